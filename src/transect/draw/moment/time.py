"""What goes on for a while: lines of images, scans and spectra over time, and numbers as curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats

from ..frames import AXIS_COLOURS
from .panels import Field, Graph, Limits, OverTime, Rows
from .parts import draw_bar, draw_grid, draw_legend, name_axes
from .ranges import NOISE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


CURVES = ("#2f6fb3", "#d1495b", "#3a9d5d", "#8a4fbf")
ACROSS = {"pixel": "pixel of the line", "bearing": "bearing to the left / °", "range": "range / m"}
LINES = 120
"""About so many lines of a spectrum over time can be told apart."""
DEEP = 4.0
"""The largest value of an image over its smallest from which on colours tell the logarithm."""


def draw_rows(ax: Axes, seen: Rows, _: Limits) -> None:
    """Draw red, green and blue along a line: as lines of one image, as dots of many."""
    pixels = np.arange(seen.rgb.shape[1])
    for k, (name, colour) in enumerate(zip("RGB", AXIS_COLOURS, strict=True)):
        signals = seen.rgb[..., k]
        if len(signals) == 1:
            ax.plot(pixels, signals[0], lw=0.8, color=colour, label=name)
        else:
            across = np.broadcast_to(pixels, signals.shape)
            ax.plot(across.ravel(), signals.ravel(), ".", ms=1.1, mew=0, color=colour, alpha=0.6)
            ax.plot([], [], ".", ms=6, color=colour, label=name)
    draw_legend(ax, 3)
    ax.set_xlim(0, len(pixels) - 1)
    ax.set_ylim(0, 260)
    name_axes(ax, "pixel of the line", "value, 0 to 255")


def draw_over_time(ax: Axes, seen: OverTime, limits: Limits) -> None:
    """Draw an image whose lines are samples; a gap between samples stays as long as it was."""
    across = np.degrees(seen.across) if seen.kind == "bearing" else seen.across
    ends = float(across[0]), float(across[-1])
    seconds, values = _fewer(seen)
    shade: dict[str, Any] = {}
    if seen.kind == "bearing":
        shade = {"cmap": "viridis_r", "vmin": 0.0, "vmax": limits.reach or np.nanpercentile(seen.values, 99)}
        ends = ends if limits.sector is None else (np.degrees(limits.sector), -np.degrees(limits.sector))
    elif seen.kind == "range":
        low, high = np.nanpercentile(seen.values, NOISE)
        shade = {"cmap": "magma", "vmin": low, "vmax": high}
        ends = (0.0, limits.reach or ends[1])
    mesh = ax.pcolormesh(across, seconds, values, rasterized=True, **shade)
    if seen.label:
        draw_bar(ax, mesh, seen.label)
    ax.set_xlim(*ends)
    ax.set_ylim(float(seen.seconds[-1]), float(seen.seconds[0]))
    name_axes(ax, ACROSS[seen.kind], "time / s")


def _fewer(seen: OverTime) -> tuple[Floats, NDArray[Any]]:
    """Return times and lines of a spectrum, the strongest of each few, so that no echo is between pixels."""
    step = len(seen.seconds) // LINES
    if seen.kind != "range" or step < 2:
        return seen.seconds, seen.values
    first = np.arange(0, len(seen.seconds), step)
    return seen.seconds[first], np.maximum.reduceat(seen.values, first, axis=0)


def draw_graph(ax: Axes, seen: Graph, _: Limits) -> None:
    """Draw numbers over time, or over each other."""
    for k, (name, x, y) in enumerate(seen.curves):
        ax.plot(x, y, lw=1.2, color=CURVES[k % len(CURVES)], label=name)
    if len(seen.curves) > 1:
        draw_legend(ax, len(seen.curves))
    name_axes(ax, seen.xlabel, seen.ylabel)
    draw_grid(ax)


def draw_field(ax: Axes, seen: Field, _: Limits) -> None:
    """Draw a map with its metres, or an image of numbers, near ones red."""
    from matplotlib.colors import LogNorm, Normalize

    finite = seen.values[np.isfinite(seen.values)]
    low, high = (float(v) for v in np.percentile(finite, (0.5, 99.5))) if len(finite) else (0.0, 1.0)
    if seen.extent is None:
        scale = LogNorm(low, high) if low > 0 and high > DEEP * low else Normalize(low, high)
        mesh = ax.imshow(seen.values, cmap="turbo_r", norm=scale, interpolation="nearest")
        ax.set(xticks=(), yticks=())
    else:
        mesh = ax.imshow(seen.values, cmap="viridis", vmin=low, vmax=high, extent=seen.extent)
        name_axes(ax, "x / m", "y / m")
    draw_bar(ax, mesh, seen.label)
