"""When each stream was there: one strip per stream, gaps left white."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROLE_COLOURS = {"measurement": "#2f6fb3", "derived": "#3a9d5d", "estimate": "#d07a00", "truth": "#8a4fbf"}
INK, QUIET, LOST = "#22303c", "#9aa5b1", "#d1495b"
ROW_HEIGHT = 0.26


@dataclass(frozen=True)
class Strip:
    """One stream: its name, times in seconds from the start (n,), role, and a text for the right margin."""

    name: str
    seconds: NDArray[np.float64]
    role: str = "measurement"
    label: str = ""


def present_intervals(seconds: NDArray[np.float64], factor: float = 5.0) -> list[tuple[float, float]]:
    """Return the intervals in which a stream was there: broken where a step exceeds `factor` median steps.

    Parameters
    ----------
    seconds : (n,) array
        Times; need not be sorted.
    factor : float
        How many median steps make a gap.

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


def timeline_figure(strips: Sequence[Strip], title: str = "", start: str = "") -> Figure:
    """Draw when each stream was there.

    Parameters
    ----------
    strips : sequence of Strip
        Top to bottom.
    title : str
    start : str
        What zero on the time axis is, for its label.
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
    axes.set_xlabel(f"seconds from {start}" if start else "seconds", fontsize=9, color=INK)
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
