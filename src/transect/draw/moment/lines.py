"""Images, a line of their pixels, and lines over time: of images, scans and spectra."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from transect.base.arrays import Array, Floats

from ..frames import INK
from .parts import HEIGHT, NOISE, TITLE, WIDTH, Limits, Panel, draw_bar, draw_legend, name_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACROSS = {"pixel": "pixel of the line", "bearing": "bearing to the left / °", "range": "range / m"}
CHANNELS = ("#d55e00", "#009e73", "#0072b2")
"""Red, green and blue that can be told apart without seeing all colours."""
LINES = 120
"""About so many lines of a spectrum over time can be told apart."""


@dataclass(frozen=True, eq=False)
class Photo(Panel):
    """An image."""

    rgb: Array  # (h, w, 3)
    row: int | None = None  # a line of pixels that is marked

    def height(self, limits: Limits) -> float:
        h, w = self.rgb.shape[:2]
        return min(HEIGHT, WIDTH * h / w + TITLE)

    def draw(self, ax: Axes, limits: Limits) -> None:
        ax.imshow(self.rgb, interpolation="antialiased")
        if self.row is not None:
            ax.axhline(self.row, color="black", lw=1.2)
        ax.set(xticks=(), yticks=())


@dataclass(frozen=True, eq=False)
class Rows(Panel):
    """The same line of one or more images, (k, w, 3) uint8: as lines of one image, as dots of many."""

    rgb: Array

    def draw(self, ax: Axes, limits: Limits) -> None:
        count, width, _ = self.rgb.shape
        pixels = np.tile(np.arange(width), count)
        grey = bool((self.rgb == self.rgb[..., :1]).all())
        signals = [("grey", INK)] if grey else list(zip("RGB", CHANNELS, strict=True))
        for k, (name, colour) in enumerate(signals):
            signal = self.rgb[..., k].reshape(-1)
            if count == 1:
                ax.plot(pixels, signal, lw=0.8, color=colour, label=name)
            else:
                ax.plot(pixels, signal, ".", ms=1.1, mew=0, color=colour, alpha=0.6)
                ax.plot([], [], ".", ms=6, color=colour, label=name)
        draw_legend(ax, len(signals))
        ax.set(xlim=(0, width - 1), ylim=(0, 260))
        name_axes(ax, "pixel of the line", "value, 0 to 255")


@dataclass(frozen=True, eq=False)
class OverTime(Panel):
    """What a sensor saw, line by line, as an image whose time goes down; gaps are as long as they were."""

    values: Array  # (k, n) one line for each sample; colours as they are, or numbers for the colour bar
    seconds: Floats  # (k,)
    across: Floats  # (n,) where the values of a line are: pixels, rad to the left, or m
    kind: Literal["pixel", "bearing", "range"]  # which of these: `pixel`, `bearing` or `range`
    label: str = ""  # what the colour bar shows

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
