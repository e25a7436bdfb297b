"""Panels of images and their lines over time, of laser scans, radar turns and spectra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from transect.base.arrays import Array, Floats, Mask

from ..figures import INK
from .panels import (
    HEIGHT,
    NOISE,
    RETURN,
    TITLE,
    WIDTH,
    Limits,
    Panel,
    Things,
    draw_bar,
    draw_grid,
    draw_legend,
    draw_things,
    name_axes,
)

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


DETECTED, MASKED, PEER = "#7dd3fc", "#d07a00", "#22303c"
INCHES = (3.8, 2.0)
"""Approximate size of axes with ranges, inches."""
FEW_RANGES = 10_000
"""Up to so many, each is drawn as a dot that can be seen by itself."""
FEW_MASKED = 300
"""Up to so many masked returns, each is drawn so large that nobody overlooks it: drops of rain."""
OFF = 4.0
"""Heights of the picture at which lines go by where nothing came back."""
MANY_SCANS = 20
"""From so many scans on, lines are so thin that a single one among them can still be seen."""


@dataclass(frozen=True, eq=False)
class Ranges(Panel):
    """Scans, or turns of a radar, as range over bearing."""

    scans: Sequence[Floats]  # bearing (rad to the left) and range (m) in each; NaN where nothing came back
    # whether the beams of a scan are joined, by lines that leave the picture at the top where nothing came
    # back; else they are dots
    lines: bool = False
    frame: str = "sensor"  # from whose x axis bearings count
    things: Things = ()  # at a bearing and a range
    # returns of each scan that should be dropped, drawn in a colour of their own; none if empty
    masked: Sequence[Mask] = ()
    peer: str = ""  # name of another sensor that is drawn as rings; "" if there is none
    rings: Floats | None = None  # (k, 2) its bearings (rad) and ranges (m), as seen from this sensor

    def draw(self, ax: Axes, limits: Limits) -> None:
        scans = [_in_degrees(scan) for scan in self.scans]
        everything = np.concatenate([*scans, np.zeros((0, 2))])
        masked = np.concatenate(self.masked) if len(self.masked) else np.zeros(len(everything), np.bool_)
        self._set_limits(ax, everything, limits)
        if self.lines:
            self._draw_lines(ax, scans)
        else:
            size = 2.8 if len(everything) < FEW_RANGES else 2.0
            ax.plot(*everything[~masked].T, ".", ms=size, color=RETURN, mew=0)
        if masked.any():
            size = 4.5 if np.count_nonzero(masked) < FEW_MASKED else 1.6
            ax.plot(*everything[masked].T, ".", ms=size, color=MASKED, mew=0)
        if self.rings is not None:
            ax.plot(*_in_degrees(self.rings).T, "o", ms=3.2, mfc="none", mec=PEER, mew=0.6)
        self._draw_key(ax, bool(masked.any()))
        draw_grid(ax)
        places = _in_degrees(np.array([place for _, place in self.things]).reshape(-1, 2))
        draw_things(ax, [name for name, _ in self.things], places, everything, INCHES)
        name_axes(ax, f"bearing to the left of {self.frame} / °", "range / m")

    def reach(self, limits: Limits) -> float:
        """Return how far axes go that hold most returns within a sector, m."""
        parts = [np.concatenate([*self.scans, np.zeros((1, 2))])]
        if self.rings is not None:
            parts.append(np.concatenate([self.rings, np.zeros((1, 2))]))
        widest = limits.sector or float(np.nanmax(np.abs(parts[0][:, 0])))
        near = [part[np.abs(part[:, 0]) <= widest] for part in parts]
        return 1.15 * max(1.0, *(float(np.nanpercentile(part[:, 1], 90)) for part in near))

    def _set_limits(self, ax: Axes, everything: Floats, limits: Limits) -> None:
        bearings = np.append(everything[:, 0], 0.0)
        ax.set_xlim(*(limits.bearings or (np.nanmax(bearings), np.nanmin(bearings))))
        ax.set_ylim(0, limits.reach or self.reach(limits))

    def _draw_lines(self, ax: Axes, scans: Sequence[Floats]) -> None:
        from matplotlib.collections import LineCollection

        width = 0.9 if len(scans) < MANY_SCANS else 0.35
        ordered = [scan[np.argsort(scan[:, 0], kind="stable")] for scan in scans]
        ordered = [np.nan_to_num(scan, nan=OFF * ax.get_ylim()[1]) for scan in ordered]
        shade = 1.0 if len(scans) < MANY_SCANS else 0.5
        ax.add_collection(LineCollection(ordered, colors=RETURN, linewidths=width, alpha=shade))

    def _draw_key(self, ax: Axes, masked: bool) -> None:
        """Say what colours mean, where there are several."""
        marks = [("returns", ".", RETURN, RETURN)] if masked or self.peer else []
        marks += [("masked", ".", MASKED, MASKED)] if masked else []
        marks += [(self.peer, "o", PEER, "none")] if self.peer else []
        for label, marker, colour, fill in marks:
            ax.plot([], [], marker, ms=5, color=colour, mfc=fill, label=label)
        if marks:
            draw_legend(ax, len(marks))


def _in_degrees(polar: Floats) -> Floats:
    """Return bearings and ranges (n, 2) with bearings in degrees."""
    return np.column_stack([np.degrees(polar[:, 0]), polar[:, 1]])


@dataclass(frozen=True, eq=False)
class Spectrum(Panel):
    """A revolution of a radar, as reflectivity over bearing and range."""

    reflectivity: Floats  # (n, bins) as the radar scales it
    bearings: Floats  # (n,) rad to the left
    ranges: Floats  # (bins,) m
    detected: Floats | None = None  # (k, 2) bearing (rad) and range (m) of what the radar took for targets
    frame: str = "sensor"  # from whose x axis bearings count

    def height(self, limits: Limits) -> float:
        return HEIGHT

    def draw(self, ax: Axes, limits: Limits) -> None:
        order = np.argsort(self.bearings, kind="stable")
        bearings = np.degrees(self.bearings[order])
        shade = self.reflectivity[order].T
        low, high = np.nanpercentile(shade, NOISE)
        mesh = ax.pcolormesh(bearings, self.ranges, shade, cmap="magma", vmin=low, vmax=high, rasterized=True)
        draw_bar(ax, mesh, "reflectivity")
        top = float(self.ranges[-1])
        if self.detected is not None and len(self.detected):
            found = _in_degrees(self.detected).T
            ax.plot(*found, "o", ms=3, mfc="none", mec=DETECTED, mew=0.7, label="detected")
            ax.legend(loc="upper right", fontsize=8, facecolor=INK, labelcolor="white", edgecolor="none")
            top = min(top, 1.25 * float(np.nanmax(found[1])))
        ax.set_xlim(*(limits.bearings or (bearings[-1], bearings[0])))
        ax.set_ylim(0, limits.reach or top)
        name_axes(ax, f"bearing to the left of {self.frame} / °", "range / m")
