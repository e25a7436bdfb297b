"""Panels of images and their lines over time, of laser scans, radar scans and spectra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from transect.base.arrays import Array, Floats, Mask

from ..figures import INK
from .panels import (
    NOISE_PERCENTILES,
    PANEL,
    RETURN_COLOUR,
    Landmarks,
    Panel,
    ViewLimits,
    draw_bar,
    draw_grid,
    draw_landmarks,
    draw_legend,
    name_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE_AXIS_LABELS = {"pixel": "column [px]", "bearing": "bearing to the left [°]", "range": "range [m]"}
CHANNEL_COLOURS = ("#d55e00", "#009e73", "#0072b2")
"""Red, green and blue for readers with colour blindness."""


@dataclass(frozen=True, eq=False)
class ImagePanel(Panel):
    """An image."""

    rgb: Array  # (h, w, 3)
    row: int | None = None  # the image row that is marked

    def height(self, limits: ViewLimits) -> float:
        h, w = self.rgb.shape[:2]
        return min(PANEL.height, PANEL.width * h / w + PANEL.title)

    def draw(self, ax: Axes, limits: ViewLimits) -> None:
        ax.imshow(self.rgb, interpolation="antialiased")
        if self.row is not None:
            ax.axhline(self.row, color="black", lw=1.2)
        ax.set(xticks=(), yticks=())


@dataclass(frozen=True, eq=False)
class PixelRowPanel(Panel):
    """The same row of one or more images, (k, w, 3) uint8: curves for one image, dots for several."""

    rgb: Array

    def draw(self, ax: Axes, limits: ViewLimits) -> None:
        count, width, _ = self.rgb.shape
        pixels = np.tile(np.arange(width), count)
        grey = bool((self.rgb == self.rgb[..., :1]).all())
        signals = [("grey", INK)] if grey else list(zip("RGB", CHANNEL_COLOURS, strict=True))
        for k, (name, colour) in enumerate(signals):
            signal = self.rgb[..., k].reshape(-1)
            if count == 1:
                ax.plot(pixels, signal, lw=0.8, color=colour, label=name)
            else:
                ax.plot(pixels, signal, ".", ms=1.1, mew=0, color=colour, alpha=0.6)
                ax.plot([], [], ".", ms=6, color=colour, label=name)
        draw_legend(ax, len(signals))
        ax.set(xlim=(0, width - 1), ylim=(0, 260))
        name_axes(ax, LINE_AXIS_LABELS["pixel"], "value, 0 to 255")


@dataclass(frozen=True, eq=False)
class WaterfallPanel(Panel):
    """The samples of a sensor as lines of an image, time downwards; gaps keep their duration."""

    values: Array  # (k, n) one line for each sample; colours, or values for the colour bar
    seconds: Floats  # (k,)
    across: Floats  # (n,) coordinates of the values of a line: pixels, rad to the left, or m
    kind: Literal["pixel", "bearing", "range"]
    label: str = ""  # of the colour bar

    def draw(self, ax: Axes, limits: ViewLimits) -> None:
        across, seconds, values = self.across, self.seconds, self.values
        ends = across[0], across[-1]
        shade: dict[str, Any] = {}
        if self.kind == "bearing":
            across = np.degrees(across)
            ends = limits.bearings or (across[0], across[-1])
            shade = {"cmap": "viridis_r", "vmin": 0.0, "vmax": limits.reach or np.nanpercentile(values, 99)}
        elif self.kind == "range":
            low, high = np.nanpercentile(values, NOISE_PERCENTILES)
            shade = {"cmap": "magma", "vmin": low, "vmax": high}
            ends = (0.0, limits.reach or across[-1])
            # Draw the maximum over groups of lines, about 120 in all, so that no echo falls between pixels.
            first = np.arange(0, len(seconds), max(1, len(seconds) // 120))
            seconds, values = seconds[first], np.maximum.reduceat(values, first, axis=0)
        mesh = ax.pcolormesh(across, seconds, values, rasterized=True, **shade)
        if self.label:
            draw_bar(ax, mesh, self.label)
        ax.set_xlim(*ends)
        ax.set_ylim(float(self.seconds[-1]), float(self.seconds[0]))
        name_axes(ax, LINE_AXIS_LABELS[self.kind], "time [s]")


DETECTED_COLOUR, MASKED_COLOUR, PEER_COLOUR = "#7dd3fc", "#d07a00", "#22303c"
RANGE_AXES_IN = (3.8, 2.0)
"""Approximate size of the axes of a `RangePanel`."""
MIN_SCANS_FOR_THIN_LINES = 20
"""Lines of more scans are thin and half transparent."""


@dataclass(frozen=True, eq=False)
class RangePanel(Panel):
    """Laser scans, or scans of a rotating radar, as range over bearing."""

    scans: Sequence[Floats]  # (n, 2) bearing (rad to the left) and range (m); NaN without a return
    # whether the beams of a scan are connected by lines, which leave the picture at beams without a return;
    # else they are dots
    lines: bool = False
    frame: str = "sensor"  # bearings are relative to its x axis
    landmarks: Landmarks = ()  # at a bearing and a range
    # returns of each scan that are masked as outliers, drawn in another colour; none if empty
    masked: Sequence[Mask] = ()
    peer: str = ""  # name of another sensor that is drawn as rings
    rings: Floats | None = None  # (k, 2) its bearings (rad) and ranges (m), seen from this sensor

    def draw(self, ax: Axes, limits: ViewLimits) -> None:
        scans = [_in_degrees(scan) for scan in self.scans]
        everything = np.concatenate([*scans, np.zeros((0, 2))])
        masked = np.concatenate(self.masked) if len(self.masked) else np.zeros(len(everything), np.bool_)
        self._set_limits(ax, everything, limits)
        if self.lines:
            self._draw_lines(ax, scans)
        else:
            size = 2.8 if len(everything) < 10_000 else 2.0
            ax.plot(*everything[~masked].T, ".", ms=size, color=RETURN_COLOUR, mew=0)
        if masked.any():
            size = 4.5 if np.count_nonzero(masked) < 300 else 1.6  # a few drops of rain stay visible
            ax.plot(*everything[masked].T, ".", ms=size, color=MASKED_COLOUR, mew=0)
        if self.rings is not None:
            ax.plot(*_in_degrees(self.rings).T, "o", ms=3.2, mfc="none", mec=PEER_COLOUR, mew=0.6)
        self._draw_key(ax, bool(masked.any()))
        draw_grid(ax)
        positions = _in_degrees(np.array([polar for _, polar in self.landmarks]).reshape(-1, 2))
        draw_landmarks(ax, [name for name, _ in self.landmarks], positions, everything, RANGE_AXES_IN)
        name_axes(ax, f"bearing to the left of {self.frame} [°]", "range [m]")

    def max_range(self, limits: ViewLimits) -> float:
        """Return the upper limit of the range axis, m, from 90 % of the returns within the sector."""
        parts = [np.concatenate([*self.scans, np.zeros((1, 2))])]
        if self.rings is not None:
            parts.append(np.concatenate([self.rings, np.zeros((1, 2))]))
        widest = limits.sector or float(np.nanmax(np.abs(parts[0][:, 0])))
        near = [part[np.abs(part[:, 0]) <= widest] for part in parts]
        return 1.15 * max(1.0, *(float(np.nanpercentile(part[:, 1], 90)) for part in near))

    def _set_limits(self, ax: Axes, everything: Floats, limits: ViewLimits) -> None:
        bearings = np.append(everything[:, 0], 0.0)
        ax.set_xlim(*(limits.bearings or (np.nanmax(bearings), np.nanmin(bearings))))
        ax.set_ylim(0, limits.reach or self.max_range(limits))

    def _draw_lines(self, ax: Axes, scans: Sequence[Floats]) -> None:
        from matplotlib.collections import LineCollection

        width = 0.9 if len(scans) < MIN_SCANS_FOR_THIN_LINES else 0.35
        ordered = [scan[np.argsort(scan[:, 0], kind="stable")] for scan in scans]
        ordered = [np.nan_to_num(scan, nan=4 * ax.get_ylim()[1]) for scan in ordered]
        shade = 1.0 if len(scans) < MIN_SCANS_FOR_THIN_LINES else 0.5
        ax.add_collection(LineCollection(ordered, colors=RETURN_COLOUR, linewidths=width, alpha=shade))

    def _draw_key(self, ax: Axes, masked: bool) -> None:
        """Draw a legend if there are several colours."""
        marks = [("returns", ".", RETURN_COLOUR, RETURN_COLOUR)] if masked or self.peer else []
        marks += [("masked", ".", MASKED_COLOUR, MASKED_COLOUR)] if masked else []
        marks += [(self.peer, "o", PEER_COLOUR, "none")] if self.peer else []
        for label, marker, colour, fill in marks:
            ax.plot([], [], marker, ms=5, color=colour, mfc=fill, label=label)
        if marks:
            draw_legend(ax, len(marks))


def _in_degrees(polar: Floats) -> Floats:
    """Return bearings and ranges (n, 2) with bearings in degrees."""
    return np.column_stack([np.degrees(polar[:, 0]), polar[:, 1]])


@dataclass(frozen=True, eq=False)
class SpectrumPanel(Panel):
    """One rotation of a radar, as reflectivity over bearing and range."""

    reflectivity: Floats  # (n, bins) in the radar's scale
    bearings: Floats  # (n,) rad to the left
    ranges: Floats  # (bins,) m
    detected: Floats | None = (
        None  # (k, 2) bearing (rad) and range (m) of the targets that the radar detected
    )
    frame: str = "sensor"  # bearings are relative to its x axis

    def height(self, limits: ViewLimits) -> float:
        return PANEL.height

    def draw(self, ax: Axes, limits: ViewLimits) -> None:
        order = np.argsort(self.bearings, kind="stable")
        bearings = np.degrees(self.bearings[order])
        shade = self.reflectivity[order].T
        low, high = np.nanpercentile(shade, NOISE_PERCENTILES)
        mesh = ax.pcolormesh(bearings, self.ranges, shade, cmap="magma", vmin=low, vmax=high, rasterized=True)
        draw_bar(ax, mesh, "reflectivity")
        top = float(self.ranges[-1])
        if self.detected is not None and len(self.detected):
            found = _in_degrees(self.detected).T
            ax.plot(*found, "o", ms=3, mfc="none", mec=DETECTED_COLOUR, mew=0.7, label="detected")
            ax.legend(loc="upper right", fontsize=8, facecolor=INK, labelcolor="white", edgecolor="none")
            top = min(top, 1.25 * float(np.nanmax(found[1])))
        ax.set_xlim(*(limits.bearings or (bearings[-1], bearings[0])))
        ax.set_ylim(0, limits.reach or top)
        name_axes(ax, f"bearing to the left of {self.frame} [°]", "range [m]")
