"""Time lines: the availability of streams, the states of sensors, and a signal around a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats

from .evaluation import COLOURS
from .figures import INK, drawable, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROLE_COLOURS = {"measurement": "#2f6fb3", "derived": "#3a9d5d", "estimate": "#d07a00", "truth": "#8a4fbf"}
ROW_HEIGHT = 0.26


@dataclass(frozen=True)
class StreamStrip:
    """One stream: name, times in seconds from the start (n,), role, and a text for the right margin."""

    name: str
    seconds: NDArray[np.float64]
    role: str = "measurement"
    label: str = ""


def present_intervals(seconds: NDArray[np.float64], factor: float = 5.0) -> list[tuple[float, float]]:
    """Return the intervals without gaps; a gap is a step longer than `factor` median steps.

    Parameters
    ----------
    seconds : (n,) array
        Times; need not be sorted.
    factor : float
        Median steps that make a gap.

    Returns
    -------
    list of (start, duration)
    """
    t = np.sort(seconds)
    if len(t) < 2:
        return [(float(v), 0.0) for v in t]
    steps = np.diff(t)
    moving = steps[steps > 0]
    limit = factor * float(np.median(moving)) if len(moving) else np.inf
    breaks = np.flatnonzero(steps > limit)
    starts = np.concatenate([[0], breaks + 1])
    ends = np.concatenate([breaks, [len(t) - 1]])
    return [(float(t[a]), float(t[b] - t[a])) for a, b in zip(starts, ends, strict=True)]


def timeline_figure(strips: Sequence[StreamStrip], title: str = "", start: str = "") -> Figure:
    """Draw when each stream has samples.

    Parameters
    ----------
    strips : sequence of Strip
        Top to bottom.
    title : str
    start : str
        The instant of zero on the time axis, for its label.
    """
    figure = new_figure(9.0, 1.1 + ROW_HEIGHT * max(len(strips), 3))
    axes = figure.add_subplot()
    end = max((float(s.seconds.max()) for s in strips if len(s.seconds)), default=1.0) or 1.0
    for row, strip in enumerate(strips):
        spans = [(begin, max(length, end / 900)) for begin, length in present_intervals(strip.seconds)]
        axes.axhspan(row - 0.42, row + 0.42, color="#f4f6f8", zorder=0)
        axes.broken_barh(spans, (row - 0.32, 0.64), color=ROLE_COLOURS[strip.role], zorder=2)
        axes.annotate(
            strip.label, (1.01, row), xycoords=("axes fraction", "data"), va="center", fontsize=8, color=INK
        )
    axes.set_yticks(range(len(strips)), [s.name for s in strips], fontsize=8, color=INK)
    axes.set_ylim(len(strips) - 0.5, -0.5)
    axes.set_xlim(0, end)
    axes.set_xlabel(f"time from {start} [s]" if start else "time [s]", fontsize=9, color=INK)
    axes.set_title(title, fontsize=11, color=INK, loc="left")
    axes.tick_params(length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    _legend(figure, {s.role for s in strips})
    return figure


def _legend(figure: Figure, roles: set[str]) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(color=colour, label=role) for role, colour in ROLE_COLOURS.items() if role in roles]
    if len(patches) > 1:
        figure.legend(
            handles=patches, loc="outside lower right", ncols=len(patches), frameon=False, fontsize=8
        )


STATE_COLOURS = {"OK": "#3a9d5d", "SUSPECT": "#e0a100", "BAD": "#d1495b", "UNKNOWN": "#d7dde3"}


@dataclass(frozen=True)
class StateStrip:
    """One sensor: name, edges of its windows in seconds (n + 1,), their states, and a text for the margin."""

    name: str
    edges: Floats
    states: Sequence[str]
    label: str = ""


def states_figure(strips: Sequence[StateStrip], title: str = "") -> Figure:
    """Draw the state of each sensor over time, top to bottom."""
    from matplotlib.patches import Patch

    figure = new_figure(9.0, 1.2 + ROW_HEIGHT * max(len(strips), 3))
    axes = figure.add_subplot()
    for row, strip in enumerate(strips):
        for begin, end, state in _runs(strip):
            axes.broken_barh([(begin, end - begin)], (row - 0.38, 0.76), color=STATE_COLOURS[state])
        where = (1.01, row)
        axes.annotate(
            strip.label, where, xycoords=("axes fraction", "data"), va="center", fontsize=8, color=INK
        )
    axes.set_yticks(range(len(strips)), [strip.name for strip in strips], fontsize=8, color=INK)
    axes.set_ylim(len(strips) - 0.5, -0.5)
    axes.set_xlabel("time [s]", fontsize=9, color=INK)
    axes.set_title(title, fontsize=11, color=INK, loc="left")
    axes.tick_params(length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    patches = [Patch(color=colour, label=state) for state, colour in STATE_COLOURS.items()]
    figure.legend(handles=patches, loc="outside lower right", ncols=4, frameon=False, fontsize=8)
    return figure


def _runs(strip: StateStrip) -> list[tuple[float, float, str]]:
    """Return intervals of constant state: start, end, state."""
    codes = np.array([list(STATE_COLOURS).index(state) for state in strip.states])
    cuts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    return [(float(strip.edges[a]), float(strip.edges[b]), strip.states[a]) for a, b in pairwise(cuts)]


def signal_figure(
    seconds: Floats, signals: Mapping[str, Floats], marked: tuple[float, float], title: str = ""
) -> Figure:
    """Draw signals (n,) over time (n,), with the marked interval shaded."""
    figure = new_figure(6.0, 1.0 + 1.1 * len(signals))
    axes = figure.subplots(len(signals), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (name, values) in zip(axes, signals.items(), strict=True):
        ax.axvspan(*marked, color=STATE_COLOURS["BAD"], alpha=0.15, lw=0)
        ax.plot(seconds, drawable(values), ".-", ms=3, lw=0.7, color=INK)
        ax.set_ylabel(name, fontsize=8, color=INK)
        ax.ticklabel_format(axis="y", useOffset=False)
        ax.tick_params(labelsize=7)
    axes[-1].set_xlabel("time [s]", fontsize=8, color=INK)
    axes[0].set_title(title, fontsize=9, color=INK, loc="left")
    return figure


def curves_figure(
    curves: Mapping[str, tuple[Floats, Floats]], label: str, marked: tuple[float, float], title: str = ""
) -> Figure:
    """Draw one quantity by several sensors: seconds and values (n,) by name, the marked interval shaded."""
    figure = new_figure(6.0, 2.6)
    ax = figure.subplots()
    ax.axvspan(*marked, color=STATE_COLOURS["BAD"], alpha=0.15, lw=0)
    for number, (name, (seconds, values)) in enumerate(curves.items()):
        ax.plot(
            seconds, drawable(values), ".-", ms=5, lw=1.2, color=COLOURS[number % len(COLOURS)], label=name
        )
    ax.set_ylabel(label, fontsize=8, color=INK)
    ax.set_xlabel("time [s]", fontsize=8, color=INK)
    ax.tick_params(labelsize=7)
    ax.legend(fontsize=7, frameon=False)
    ax.set_title(title, fontsize=9, color=INK, loc="left")
    return figure
