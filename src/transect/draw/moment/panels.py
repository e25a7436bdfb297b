"""What sensors saw, a panel each.

Lasers, lidars and radars: points from above or from the side, and ranges over bearing. Images and maps; lines
of images, scans and spectra over time; and numbers as curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from transect.base.arrays import Array, Floats

from ..frames import AXIS_COLOURS, INK
from .parts import HEIGHT, NOISE, TITLE, WIDTH, Limits, Panel, draw_bar, draw_grid, draw_things, name_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


RETURN, ROBOT, DETECTED = "#2f6fb3", "#d1495b", "#7dd3fc"
LAYERS = (("#9aa5b1", 4.0), ("#2f6fb3", 26.0), ("#3a9d5d", 7.0), ("#8a4fbf", 4.0))
"""Colour and size of each sensor's points where several are drawn: the small ones on top of the large."""
WIDE, INCHES = 3.7, (3.8, 2.0)
"""Approximate width of axes with points, and size of axes with ranges, inches."""
FEW_POINTS, FEW_RANGES = 2000, 10_000
"""Up to so many, each is drawn as a dot that can be seen by itself."""
OFF = 4.0
"""Heights of the picture at which lines go by where nothing came back."""
MANY_SCANS = 20
"""From so many scans on, lines are so thin that a single one among them can still be seen."""
Things = tuple[tuple[str, Floats], ...]
"""Names of what is known to be there, and where."""


@dataclass(frozen=True, eq=False)
class Points(Panel):
    """Points of a scan or a cloud, from above or from the side.

    Attributes
    ----------
    points : (n, 3) array
        In metres; NaN where nothing came back. On a body x is forward, y left, z up.
    by_height : bool
        Whether colours show z.
    frame : str
        Whose axes they are; its origin is at (0, 0).
    side : bool
        Whether they are seen from the right side, else from above.
    on_body : bool
        Whether the frame is a body's; of a sensor alone nobody knows which way it was driven.
    """

    points: Floats
    by_height: bool = False
    frame: str = "sensor"
    side: bool = False
    on_body: bool = True

    def height(self, limits: Limits) -> float:
        return min(HEIGHT, 0.85 * WIDTH * self.aspect(limits) + 2 * TITLE)

    def draw(self, ax: Axes, limits: Limits) -> None:
        there = self.measured()
        across, up = self.on_paper(there)
        area = 5.0 if len(there) <= FEW_POINTS else 0.6
        if self.by_height and len(there):
            z = there[:, 2]
            low, high = np.percentile(z, (1, 99))
            marks = ax.scatter(across, up, s=area, c=z, cmap="viridis", vmin=low, vmax=high, linewidths=0)
            draw_bar(ax, marks, "height / m")
        else:
            ax.scatter(across, up, s=area, c=RETURN, linewidths=0)
        self.draw_axes(ax, there, limits)

    def draw_axes(self, ax: Axes, there: Floats, limits: Limits) -> None:
        """Draw the vehicle, and axes that hold most points (n, 3)."""
        across, up = _window(there, self.side, limits)
        ax.set(xlim=across, ylim=up, aspect="equal")
        marker = (">" if self.side else "^") if self.on_body else "o"
        ax.plot(0, 0, marker=marker, color=ROBOT, ms=7, mec="white", mew=0.8, zorder=5)
        if not self.on_body:
            across, up = ("x", "z") if self.side else ("y", "x")
            name_axes(ax, f"{across} of {self.frame} / m", f"{up} of {self.frame} / m")
        elif self.side:
            name_axes(ax, f"ahead of {self.frame} / m", "height / m")
        else:
            name_axes(ax, f"left of {self.frame} / m", "forward / m")
        draw_grid(ax)

    def aspect(self, limits: Limits) -> float:
        """Return the height of the axes over their width."""
        (left, right), (low, high) = _window(self.measured(), self.side, limits)
        return (high - low) / abs(right - left)

    def measured(self) -> Floats:
        """Return the points that there are; those that are higher, or nearer to the eye, come last."""
        there = self.points[np.isfinite(self.points).all(axis=1)]
        return there[np.argsort(-there[:, 1] if self.side else there[:, 2], kind="stable")]

    def on_paper(self, points: Floats) -> Floats:
        """Return points (n, 3) across and up (2, n): forward is right from the side, and up from above."""
        return points[:, [0, 2] if self.side else [1, 0]].T


def _window(there: Floats, side: bool, limits: Limits) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return from where to where axes go, across and up.

    A few far points do not make the picture larger, and it shows what is behind only where something is.
    """
    near = np.abs(there[:, :1] if side else there[:, :2])
    reach = limits.reach or (1.2 * max(float(np.percentile(near, 90)), 1.0) if len(near) else 10.0)
    behind = bool(len(there)) and float(np.percentile(there[:, 0], 3)) < -0.1 * reach
    ahead = (-reach if behind else -0.12 * reach, reach)
    if not side:
        aside = reach * float(np.sin(min(limits.sector or np.pi, np.pi / 2)))
        return (aside, -aside), ahead
    heights = np.append(there[there[:, 0] <= reach, 2], 0.0)
    margin = 0.08 * reach
    return ahead, (float(heights.min()) - margin, float(heights.max()) + margin)


@dataclass(frozen=True, eq=False)
class Together(Panel):
    """Points of several sensors in the axes of the first, and things at points (3,)."""

    parts: tuple[Points, ...]
    things: Things = ()

    def height(self, limits: Limits) -> float:
        return min(1.5 * HEIGHT, 0.85 * WIDTH * self.parts[0].aspect(limits) + 2 * TITLE)

    def draw(self, ax: Axes, limits: Limits) -> None:
        first = self.parts[0]
        for part, (colour, area) in zip(self.parts, LAYERS * len(self.parts), strict=False):
            ax.scatter(*first.on_paper(part.measured()), s=area, c=colour, linewidths=0, label=part.name)
        ax.legend(
            loc="lower left", fontsize=8, labelcolor=INK, framealpha=0.9, edgecolor="none", markerscale=1.4
        )
        everything = np.concatenate([part.measured() for part in self.parts])
        first.draw_axes(ax, everything, limits)
        places = np.array([place for _, place in self.things]).reshape(-1, 3)
        names = [name for name, _ in self.things]
        marks = first.on_paper(everything).T
        draw_things(ax, names, first.on_paper(places).T, marks, (WIDE, WIDE * first.aspect(limits)))


@dataclass(frozen=True, eq=False)
class Ranges(Panel):
    """Scans, or turns of a radar, as range over bearing.

    Attributes
    ----------
    scans : sequence of (n, 2) arrays
        Bearing (rad to the left) and range (m) in each; NaN where nothing came back.
    lines : bool
        Whether the beams of a scan are joined, by lines that leave the picture at the top where nothing came
        back; else they are dots.
    frame : str
        From whose x axis bearings count.
    things : sequence of (str, (2,) array)
        At a bearing and a range.
    """

    scans: Sequence[Floats]
    lines: bool = False
    frame: str = "sensor"
    things: Things = ()

    def draw(self, ax: Axes, limits: Limits) -> None:
        from matplotlib.collections import LineCollection

        scans = [_in_degrees(scan) for scan in self.scans]
        everything = np.concatenate([*scans, np.zeros((0, 2))])
        seen = np.append(everything, [[0.0, 0.0]], axis=0)
        if limits.bearings:
            seen = seen[np.abs(seen[:, 0]) <= limits.bearings[0]]
        far = limits.reach or 1.15 * max(float(np.nanpercentile(seen[:, 1], 90)), 1.0)
        ax.set_xlim(*(limits.bearings or (np.nanmax(seen[:, 0]), np.nanmin(seen[:, 0]))))
        ax.set_ylim(0, far)
        if self.lines:
            width = 0.9 if len(scans) < MANY_SCANS else 0.35
            ordered = [scan[np.argsort(scan[:, 0], kind="stable")] for scan in scans]
            ordered = [np.nan_to_num(scan, nan=OFF * far) for scan in ordered]
            ax.add_collection(LineCollection(ordered, colors=RETURN, linewidths=width))
        else:
            size = 2.8 if len(everything) < FEW_RANGES else 1.6
            ax.plot(*everything.T, ".", ms=size, color=RETURN, mew=0)
        draw_grid(ax)
        places = _in_degrees(np.array([place for _, place in self.things]).reshape(-1, 2))
        draw_things(ax, [name for name, _ in self.things], places, everything, INCHES)
        name_axes(ax, f"bearing to the left of {self.frame} / °", "range / m")


def _in_degrees(polar: Floats) -> Floats:
    """Return bearings and ranges (n, 2) with bearings in degrees."""
    return np.column_stack([np.degrees(polar[:, 0]), polar[:, 1]])


@dataclass(frozen=True, eq=False)
class Spectrum(Panel):
    """A revolution of a radar, as reflectivity over bearing and range.

    Attributes
    ----------
    reflectivity : (n, bins) array
        As the radar scales it.
    bearings : (n,) array
        rad to the left.
    ranges : (bins,) array
        m.
    detected : (k, 2) array
        Bearing (rad) and range (m) of what the radar took for targets.
    frame : str
        From whose x axis bearings count.
    """

    reflectivity: Floats
    bearings: Floats
    ranges: Floats
    detected: Floats | None = None
    frame: str = "sensor"

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
