"""Panels of points, maps and curves, and their common layout, limits, axes and colour bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats, Mask

from ..figures import INK, place_labels
from ..overlay import SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

NOISE_PERCENTILES = (40, 99.7)
"""Percentiles of a spectrum that are drawn black and white: most of it is noise."""
LANDMARK_COLOUR, RETURN_COLOUR = "#d07a00", "#2f6fb3"
Landmarks = tuple[tuple[str, Floats], ...]
"""Names and positions of known objects."""


@dataclass(frozen=True)
class PanelLayout:
    """Sizes in inches."""

    width: float = 4.4
    height: float = 3.7
    low_height: float = 2.7
    title: float = 0.4
    axes_width: float = 3.7  # of panels with points
    letter_width: float = 0.066
    letter_height: float = 0.15


PANEL = PanelLayout()


@dataclass(frozen=True)
class ViewLimits:
    """The part of a sensor's field of view that is drawn."""

    sector: float | None = None  # largest bearing to either side of forward, rad; all bearings if None
    reach: float | None = None  # largest distance from the vehicle, m; as far as most returns if None

    @property
    def bearings(self) -> tuple[float, float] | None:
        """The leftmost and the rightmost bearing, degrees to the left."""
        side = None if self.sector is None else float(np.degrees(self.sector))
        return None if side is None else (side, -side)


@dataclass(frozen=True, eq=False)
class Panel:
    """The data of one sensor, as plain arrays that can be drawn."""

    name: str  # the title
    _: KW_ONLY
    # seconds by which the sample is later than the moment; None for several samples
    dt: float | None = None

    def height(self, limits: ViewLimits) -> float:
        """Return the height that the panel needs, inches."""
        return PANEL.low_height

    def draw(self, ax: Axes, limits: ViewLimits) -> None:
        """Draw into axes, also those of your own figure."""
        raise NotImplementedError


def name_axes(ax: Axes, across: str, up: str) -> None:
    """Label the axes."""
    ax.set_xlabel(across, fontsize=8.5, color=INK)
    ax.set_ylabel(up, fontsize=8.5, color=INK)


def draw_grid(ax: Axes) -> None:
    """Draw a light grid below everything."""
    ax.grid(color="#e8ecef", lw=0.6)
    ax.set_axisbelow(True)


def draw_bar(ax: Axes, marks: ScalarMappable, label: str) -> None:
    """Draw a colour bar beside axes, with plain numbers on a logarithmic scale, too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    bar = ax.figure.colorbar(marks, ax=ax, shrink=0.8, pad=0.02)
    bar.set_label(label, fontsize=8.5, color=INK)
    if isinstance(bar.ax.yaxis.get_major_locator(), LogLocator):
        bar.ax.yaxis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0)))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.ax.tick_params(labelsize=8, colors=SOFT)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]


def draw_landmarks(
    ax: Axes, names: Sequence[str], positions: Floats, marks: Floats, inches: tuple[float, float]
) -> None:
    """Draw crosses with names that hide neither each other nor the marks.

    Parameters
    ----------
    ax : Axes
        Its limits are set already.
    names : sequence of n str
    positions : (n, 2) array
        In axes coordinates; those outside are left out.
    marks : (m, 2) array
        Points that should stay visible.
    inches : (width, height)
        Approximate size of the axes on paper.
    """
    low, high = np.sort([ax.get_xlim(), ax.get_ylim()], axis=1).T

    def is_inside(points: Floats) -> Mask:
        return ((low < points) & (points < high)).all(axis=1)

    known = [name for name, inside in zip(names, is_inside(positions), strict=True) if inside]
    if not known:
        return
    scale = np.asarray(inches) / (high - low)
    anchors = positions[is_inside(positions)]
    sizes = np.array([(PANEL.letter_width * len(name), PANEL.letter_height) for name in known])
    bounds = (*(low * scale).tolist(), *(high * scale).tolist())
    centres = place_labels(anchors * scale, sizes, marks[is_inside(marks)] * scale, bounds) / scale
    ax.plot(*anchors.T, "+", ms=8, mew=1.1, color=LANDMARK_COLOUR, zorder=6)
    box = {"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8}
    line = {"arrowstyle": "-", "color": LANDMARK_COLOUR, "lw": 0.5, "shrinkA": 0, "shrinkB": 3}
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "color": INK, "zorder": 7}
    for name, anchor, centre in zip(known, anchors.tolist(), centres.tolist(), strict=True):
        ax.annotate(name, xy=tuple(anchor), xytext=centre, bbox=box, arrowprops=line, **style)


def draw_legend(ax: Axes, names: int) -> None:
    """Draw a legend of curves beside the title."""
    ax.legend(
        loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=names, fontsize=8, labelcolor=INK,
        frameon=False, columnspacing=1.0,
    )  # fmt: skip


ROBOT_COLOUR = "#d1495b"
LAYERS = (("#9aa5b1", 4.0), ("#2f6fb3", 26.0), ("#3a9d5d", 7.0), ("#8a4fbf", 4.0))
"""Colour and area of each sensor's points in a combined panel: small ones on top of large ones."""
CURVE_COLOURS = ("#2f6fb3", "#d1495b", "#3a9d5d", "#8a4fbf")
MIN_LOG_RATIO = 4.0
"""Images with a larger ratio of maximum to minimum have a logarithmic colour scale."""


@dataclass(frozen=True, eq=False)
class PointPanel(Panel):
    """Points of a scan or a cloud, from above or from the side."""

    points: Floats  # (n, 3) in metres; NaN where nothing came back. On a body x is forward, y left, z up.
    by_height: bool = False  # whether colours show z
    frame: str = "sensor"  # frame of the points; its origin is at (0, 0)
    side: bool = False  # seen from the right side, else from above
    # whether the frame is that of a body, so that x is forward
    on_body: bool = True

    def height(self, limits: ViewLimits) -> float:
        return min(PANEL.height, 0.85 * PANEL.width * self.aspect(limits) + 2 * PANEL.title)

    def draw(self, ax: Axes, limits: ViewLimits) -> None:
        there = self.measured()
        across, up = self.on_paper(there)
        area = 5.0 if len(there) <= 2000 else 0.6
        if self.by_height and len(there):
            z = there[:, 2]
            low, high = np.percentile(z, (1, 99))
            marks = ax.scatter(across, up, s=area, c=z, cmap="viridis", vmin=low, vmax=high, linewidths=0)
            draw_bar(ax, marks, "height [m]")
        else:
            ax.scatter(across, up, s=area, c=RETURN_COLOUR, linewidths=0)
        self.draw_axes(ax, there, limits)

    def draw_axes(self, ax: Axes, there: Floats, limits: ViewLimits) -> None:
        """Draw the vehicle, and axes whose limits include most points (n, 3)."""
        across, up = _window(there, self.side, limits)
        ax.set(xlim=across, ylim=up, aspect="equal")
        marker = (">" if self.side else "^") if self.on_body else "o"
        ax.plot(0, 0, marker=marker, color=ROBOT_COLOUR, ms=7, mec="white", mew=0.8, zorder=5)
        if not self.on_body:
            across, up = ("x", "z") if self.side else ("y", "x")
            name_axes(ax, f"{across} of {self.frame} [m]", f"{up} of {self.frame} [m]")
        elif self.side:
            name_axes(ax, f"ahead of {self.frame} [m]", "height [m]")
        else:
            name_axes(ax, f"left of {self.frame} [m]", "forward [m]")
        draw_grid(ax)

    def aspect(self, limits: ViewLimits) -> float:
        """Return the height of the axes over their width."""
        (left, right), (low, high) = _window(self.measured(), self.side, limits)
        return (high - low) / abs(right - left)

    def measured(self) -> Floats:
        """Return the finite points, the higher ones, or those nearer to the viewer, last."""
        points = self.points[np.isfinite(self.points).all(axis=1)]
        return points[np.argsort(-points[:, 1] if self.side else points[:, 2], kind="stable")]

    def on_paper(self, points: Floats) -> Floats:
        """Project points (n, 3) to (2, n): forward is to the right in the side view, and up from above."""
        return points[:, [0, 2] if self.side else [1, 0]].T


def _window(there: Floats, side: bool, limits: ViewLimits) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the limits of the axes, across and up.

    They include 90 % of the points, and the area behind the vehicle only if it has points.
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
class CombinedPointPanel(Panel):
    """Points of several sensors in the axes of the first, and landmarks at points (3,)."""

    parts: tuple[PointPanel, ...]
    landmarks: Landmarks = ()

    def height(self, limits: ViewLimits) -> float:
        return min(1.5 * PANEL.height, 0.85 * PANEL.width * self.parts[0].aspect(limits) + 2 * PANEL.title)

    def draw(self, ax: Axes, limits: ViewLimits) -> None:
        first = self.parts[0]
        for part, (colour, area) in zip(self.parts, LAYERS * len(self.parts), strict=False):
            ax.scatter(*first.on_paper(part.measured()), s=area, c=colour, linewidths=0, label=part.name)
        ax.legend(
            loc="lower left", fontsize=8, labelcolor=INK, framealpha=0.9, edgecolor="none", markerscale=1.4
        )
        everything = np.concatenate([part.measured() for part in self.parts])
        first.draw_axes(ax, everything, limits)
        positions = np.array([xyz for _, xyz in self.landmarks]).reshape(-1, 3)
        names = [name for name, _ in self.landmarks]
        marks = first.on_paper(everything).T
        draw_landmarks(
            ax,
            names,
            first.on_paper(positions).T,
            marks,
            (PANEL.axes_width, PANEL.axes_width * first.aspect(limits)),
        )


@dataclass(frozen=True, eq=False)
class FieldPanel(Panel):
    """A map with metric axes, or an image of values, small ones red."""

    values: Floats  # (h, w) NaN where not known
    label: str  # quantity with unit
    # (left, right, bottom, top) of a map, m; None for an image
    extent: tuple[float, float, float, float] | None = None

    def height(self, limits: ViewLimits) -> float:
        h, w = self.values.shape
        return PANEL.height if self.extent else min(PANEL.height, 0.85 * PANEL.width * h / w + PANEL.title)

    def draw(self, ax: Axes, limits: ViewLimits) -> None:
        from matplotlib.colors import LogNorm, Normalize

        finite = self.values[np.isfinite(self.values)]
        low, high = (float(v) for v in np.percentile(finite, (0.5, 99.5))) if len(finite) else (0.0, 1.0)
        if self.extent is None:
            scale = LogNorm(low, high) if low > 0 and high > MIN_LOG_RATIO * low else Normalize(low, high)
            mesh = ax.imshow(self.values, cmap="turbo_r", norm=scale, interpolation="nearest")
            ax.set(xticks=(), yticks=())
        else:
            mesh = ax.imshow(self.values, cmap="viridis", vmin=low, vmax=high, extent=self.extent)
            name_axes(ax, "x [m]", "y [m]")
        draw_bar(ax, mesh, self.label)


@dataclass(frozen=True, eq=False)
class CurvePanel(Panel):
    """Curves: (name, x (n,), y (n,)) of each, and the labels of the axes."""

    curves: tuple[tuple[str, Floats, Floats], ...]
    xlabel: str
    ylabel: str

    def draw(self, ax: Axes, limits: ViewLimits) -> None:
        for k, (name, x, y) in enumerate(self.curves):
            ax.plot(x, y, lw=1.2, color=CURVE_COLOURS[k % len(CURVE_COLOURS)], label=name)
        if len(self.curves) > 1:
            draw_legend(ax, len(self.curves))
        name_axes(ax, self.xlabel, self.ylabel)
        draw_grid(ax)
