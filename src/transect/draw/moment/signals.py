"""Images and maps; lines of images, scans and spectra over time; and numbers as curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from transect.base.arrays import Array, Floats

from ..frames import AXIS_COLOURS, INK
from .parts import HEIGHT, NOISE, TITLE, WIDTH, Limits, Panel, draw_bar, draw_grid, name_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = ("#2f6fb3", "#d1495b", "#3a9d5d", "#8a4fbf")
ACROSS = {"pixel": "pixel of the line", "bearing": "bearing to the left / °", "range": "range / m"}
LINES = 120
"""About so many lines of a spectrum over time can be told apart."""
DEEP = 4.0
"""From this ratio of the largest value of an image to the smallest on, colours show the logarithm."""


@dataclass(frozen=True, eq=False)
class Photo(Panel):
    """An image.

    Attributes
    ----------
    rgb : (h, w, 3) uint8 array
    row : int or None
        A line of pixels that is marked.
    """

    rgb: Array
    row: int | None = None

    def height(self, limits: Limits) -> float:
        h, w = self.rgb.shape[:2]
        return min(HEIGHT, WIDTH * h / w + TITLE)

    def draw(self, ax: Axes, limits: Limits) -> None:
        ax.imshow(self.rgb, interpolation="antialiased")
        if self.row is not None:
            ax.axhline(self.row, color="black", lw=1.2)
        ax.set(xticks=(), yticks=())


@dataclass(frozen=True, eq=False)
class Field(Panel):
    """A map with its metres, or an image of numbers, near ones red.

    Attributes
    ----------
    values : (h, w) array
        NaN where there are none.
    label : str
        What they are, with the unit.
    extent : (left, right, bottom, top) or None
        Of a map, m; None where it is an image.
    """

    values: Floats
    label: str
    extent: tuple[float, float, float, float] | None = None

    def height(self, limits: Limits) -> float:
        h, w = self.values.shape
        return HEIGHT if self.extent else min(HEIGHT, 0.85 * WIDTH * h / w + TITLE)

    def draw(self, ax: Axes, limits: Limits) -> None:
        from matplotlib.colors import LogNorm, Normalize

        finite = self.values[np.isfinite(self.values)]
        low, high = (float(v) for v in np.percentile(finite, (0.5, 99.5))) if len(finite) else (0.0, 1.0)
        if self.extent is None:
            scale = LogNorm(low, high) if low > 0 and high > DEEP * low else Normalize(low, high)
            mesh = ax.imshow(self.values, cmap="turbo_r", norm=scale, interpolation="nearest")
            ax.set(xticks=(), yticks=())
        else:
            mesh = ax.imshow(self.values, cmap="viridis", vmin=low, vmax=high, extent=self.extent)
            name_axes(ax, "x / m", "y / m")
        draw_bar(ax, mesh, self.label)


@dataclass(frozen=True, eq=False)
class Rows(Panel):
    """The same line of one or more images, (k, w, 3) uint8: as lines of one image, as dots of many."""

    rgb: Array

    def draw(self, ax: Axes, limits: Limits) -> None:
        count, width, _ = self.rgb.shape
        pixels = np.tile(np.arange(width), count)
        for name, colour, signal in zip("RGB", AXIS_COLOURS, self.rgb.reshape(-1, 3).T, strict=True):
            if count == 1:
                ax.plot(pixels, signal, lw=0.8, color=colour, label=name)
            else:
                ax.plot(pixels, signal, ".", ms=1.1, mew=0, color=colour, alpha=0.6)
                ax.plot([], [], ".", ms=6, color=colour, label=name)
        _draw_legend(ax, 3)
        ax.set(xlim=(0, width - 1), ylim=(0, 260))
        name_axes(ax, "pixel of the line", "value, 0 to 255")


@dataclass(frozen=True, eq=False)
class Graph(Panel):
    """Numbers over time, or over each other: (name, x (n,), y (n,)) of each curve, and what the axes show."""

    curves: tuple[tuple[str, Floats, Floats], ...]
    xlabel: str
    ylabel: str

    def draw(self, ax: Axes, limits: Limits) -> None:
        for k, (name, x, y) in enumerate(self.curves):
            ax.plot(x, y, lw=1.2, color=CURVES[k % len(CURVES)], label=name)
        if len(self.curves) > 1:
            _draw_legend(ax, len(self.curves))
        name_axes(ax, self.xlabel, self.ylabel)
        draw_grid(ax)


def _draw_legend(ax: Axes, names: int) -> None:
    """Write names of curves beside the title, where they hide nothing."""
    ax.legend(
        loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=names, fontsize=8, labelcolor=INK,
        frameon=False, columnspacing=1.0,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class OverTime(Panel):
    """What a sensor saw, line by line, as an image whose time goes down; gaps are as long as they were.

    Attributes
    ----------
    values : (k, n) array, or (k, n, 3) uint8 array
        One line for each sample; colours as they are, or numbers for the colour bar.
    seconds : (k,) array
    across : (n,) array
        Where the values of a line are: pixels, rad to the left, or m.
    kind : str
        Which of these: `pixel`, `bearing` or `range`.
    label : str
        What the colour bar shows.
    """

    values: Array
    seconds: Floats
    across: Floats
    kind: Literal["pixel", "bearing", "range"]
    label: str = ""

    def draw(self, ax: Axes, limits: Limits) -> None:
        across, seconds, values = self.across, self.seconds, self.values
        ends = across[0], across[-1]
        shade: dict[str, Any] = {}
        if self.kind == "bearing":
            across = np.degrees(across)
            ends = limits.bearings or (across[0], across[-1])
            shade = {"cmap": "viridis_r", "vmin": 0.0, "vmax": limits.reach or np.nanpercentile(values, 99)}
        elif self.kind == "range":
            low, high = np.nanpercentile(values, NOISE)
            shade = {"cmap": "magma", "vmin": low, "vmax": high}
            ends = (0.0, limits.reach or across[-1])
            # The strongest of each few lines is drawn, so that no echo falls between pixels.
            first = np.arange(0, len(seconds), max(1, len(seconds) // LINES))
            seconds, values = seconds[first], np.maximum.reduceat(values, first, axis=0)
        mesh = ax.pcolormesh(across, seconds, values, rasterized=True, **shade)
        if self.label:
            draw_bar(ax, mesh, self.label)
        ax.set_xlim(*ends)
        ax.set_ylim(float(self.seconds[-1]), float(self.seconds[0]))
        name_axes(ax, ACROSS[self.kind], "time / s")
