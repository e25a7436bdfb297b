"""Maps of keyframes from above: the trajectory, what was observed, and the loop closures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.slam.occupancy_grid import build_occupancy_grid, gray_image
from transect.algorithms.slam.place_maps import flip_z_up, format_loop_count, is_z_down, map_points
from transect.algorithms.slam.pose_graph import REJECTED
from transect.base.arrays import Floats, Ints
from transect.types.places import LOOP, PlaceMap

from .evaluation import WIDTH, name_axis, write_title
from .figures import INK, add_legend_below, new_figure
from .tracks import draw_scale, window_around

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SESSIONS = ("#1f6fb2", "#c2571a", "#2e8b57", "#8a4fa3", "#b0872c")
LOOP_COLOUR, REJECTED_COLOUR, BEFORE_COLOUR = "#1a9850", "#d73027", "#d1495b"
MOST_POINTS = 300_000
Extent = tuple[float, float, float, float]
"""Left, right, bottom, top."""
COLUMNS = 3
"""Of the legend, at most; its rows are as long as each other."""
BESIDE = 0.5
"""Inches that the numbers beside a map take."""
MOST_CELLS = 1200
"""Of a grid along one side of a picture."""
WALL, UNSEEN = 0, 205
"""Grays of an occupancy grid."""
NARROWEST = 0.3
"""The shorter side of a picture, against the longer one."""


@dataclass(frozen=True, eq=False)
class Ways:
    """A drive before its loops were closed, and as it truly was."""

    before: Floats  # (n, 2) by odometry alone, m, in the map, from the same first pose
    truth: Floats  # (m, 2) m, in the map, where it fits the corrected way best; empty where it is not known
    # (float, float) root mean square error from above, m, of odometry and of the corrected way, each where it
    # fits the truth best, or from its first pose on if it is straight; None without truth
    off: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Drawn:
    """What is drawn of a map."""

    way: Floats  # (n, 2) keyframes, m
    session: Ints  # (n,)
    # (m, 2) pairs of keyframes
    loops: Ints
    doubted: Ints
    points: Floats  # (k, 2) what was seen, m; may be empty
    image: NDArray[np.uint8] | None = None  # (rows, cols) an occupancy grid in gray, in place of the points
    extent: Extent = (0.0, 1.0, 0.0, 1.0)  # (4,) of the image: left, right, bottom, top
    ways: Ways | None = None  # of the same drive


def draw_places(panels: Sequence[tuple[str, Drawn]]) -> Figure:
    """Draw maps side by side, each with its title."""
    shapes = [_shape(drawn) for _, drawn in panels]
    width = WIDTH if len(panels) == 1 else 1.4 * WIDTH
    height = max(min((width / len(panels) - BESIDE) * max(shapes), 1.6 * width), 2.5) + 0.85
    figure = new_figure(width, height)
    for number, (title, drawn) in enumerate(panels, 1):
        axes = figure.add_subplot(1, len(panels), number)
        _draw(axes, drawn)
        write_title(axes, title)
    names = {name for axes in figure.axes for name in axes.get_legend_handles_labels()[1]}
    rows = -(-len(names) // COLUMNS)
    add_legend_below(figure, -(-len(names) // rows), rows)
    return figure


def _shape(drawn: Drawn) -> float:
    across, up = np.ptp(np.stack(_window(drawn)), axis=0)
    return float(np.clip(up / max(across, 1e-3), NARROWEST, 1.6))


def _window(drawn: Drawn) -> tuple[Floats, Floats]:
    """Return the lower left and upper right corner of what is shown: all, or ways that are compared."""
    if drawn.ways is None:
        every = np.concatenate([drawn.way, drawn.points])
        return every.min(axis=0), every.max(axis=0)
    return window_around([drawn.way, drawn.ways.before], {}, NARROWEST)


def _draw(axes: Axes, drawn: Drawn) -> None:
    _draw_seen(axes, drawn)
    before, after = _name_ways(drawn.ways)
    if drawn.ways is not None:
        axes.plot(*drawn.ways.before.T, color=BEFORE_COLOUR, lw=1.2, zorder=2, label=before)
    _draw_way(axes, drawn, after)
    if drawn.ways is not None and len(drawn.ways.truth):
        axes.plot(*drawn.ways.truth.T, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=4, label="truth")
    axes.set_aspect("equal")
    name_axis(axes, "x [m]")
    axes.set_ylabel("y [m]", fontsize=9, color=INK)
    if drawn.ways is not None:
        low, high = _window(drawn)
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    draw_scale(axes, (np.array([left, bottom]), np.array([right, top])))


def _draw_seen(axes: Axes, drawn: Drawn) -> None:
    """Draw what was seen: an occupancy grid, or points."""
    if drawn.image is not None:
        shown: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 255, "interpolation": "nearest"}
        axes.set_facecolor(str(UNSEEN / 255))
        image, extent = shrink_grid(drawn.image, drawn.extent)
        axes.imshow(image, extent=extent, **shown)
        axes.plot([], [], "s", color="black", ms=4, label="walls")
    elif len(drawn.points):
        every = drawn.points[:: max(len(drawn.points) // MOST_POINTS, 1)]
        axes.scatter(*every.T, s=0.3, c=INK, linewidths=0)
        axes.plot([], [], "o", color=INK, ms=2, label="seen")


def shrink_grid(image: NDArray[np.uint8], extent: Extent) -> tuple[NDArray[np.uint8], Extent]:
    """Return an occupancy grid of as many cells as a picture can show; one with a wall in it is a wall."""
    side = -(-max(image.shape) // MOST_CELLS)
    rows, columns = (-(-size // side) for size in image.shape)
    whole = np.full((rows * side, columns * side), UNSEEN, np.uint8)
    whole[: image.shape[0], : image.shape[1]] = image
    blocks = whole.reshape(rows, side, columns, side)
    small = np.where((blocks == WALL).any(axis=(1, 3)), WALL, blocks.mean(axis=(1, 3))).astype(np.uint8)
    left, right, bottom, top = extent
    height, width = np.array(whole.shape) / image.shape
    return small, (left, left + width * (right - left), top - height * (top - bottom), top)


def _draw_way(axes: Axes, drawn: Drawn, name: str) -> None:
    """Draw the corrected way, each session in its colour, and the loops between its places."""
    from matplotlib.collections import LineCollection

    sessions = sorted(set(drawn.session.tolist()))
    for number, session in enumerate(sessions):
        part = drawn.way[drawn.session == session]
        label = name if len(sessions) == 1 else f"{name}, session {number + 1}"
        axes.plot(*part.T, color=SESSIONS[number % len(SESSIONS)], lw=1.0, zorder=2, label=label)
    for pairs, colour, label in (
        (drawn.loops, LOOP_COLOUR, "loop closures"),
        (drawn.doubted, REJECTED_COLOUR, "rejected loop closures"),
    ):
        if len(pairs):
            lines = LineCollection(list(drawn.way[pairs]), colors=colour, linewidths=0.7, zorder=3)
            lines.set_label(label)
            axes.add_collection(lines)


def _name_ways(ways: Ways | None) -> tuple[str, str]:
    """Return what odometry and the corrected way are called in the legend, with their errors if known."""
    names = ("before: odometry alone", "after: corrected") if ways is not None else ("", "way")
    if ways is None or ways.off is None:
        return names
    before, after = (f"{name}, {off:.2f} m off" for name, off in zip(names, ways.off, strict=True))
    return before, after


def draw_map(
    places: PlaceMap, cell: float = 0.05, ways: Ways | None = None, *, failed: bool = False
) -> Figure:
    """Draw a map from above, where they are known with the ways before its loops were closed and in truth.

    The title of one that is a failed result says that it is not to be trusted.
    """
    if is_z_down(places) and ways is not None:
        ways = replace(ways, before=ways.before * (1.0, -1.0), truth=ways.truth * (1.0, -1.0))
    places = flip_z_up(places)
    loops = sum(what == LOOP for what in places.edges.what)
    title = f"{places.kind}: {len(places)} places, {places.length:.0f} m, {format_loop_count(loops)}"
    title = f"BAD, do not trust it: {title}" if failed else title
    return draw_places([(title, replace(drawn_of(places, cell), ways=ways))])


def drawn_of(places: PlaceMap, cell: float) -> Drawn:
    """Return what is drawn of a map: the grid of a planar laser, points of other sensors."""
    drawn = Drawn(
        places.poses[:, :2, 3], places.session, _pairs(places, LOOP), _pairs(places, REJECTED),
        map_points(places)[:, :2],
    )  # fmt: skip
    if places.kind != "LaserSlam":
        return drawn
    grid = build_occupancy_grid(replace(places, anchor=None), cell)
    a, _, left, _, _, top = grid.transform
    rows, columns = grid.layers["occupancy"].shape
    return replace(drawn, image=gray_image(grid), extent=(left, left + a * columns, top - a * rows, top))


def _pairs(places: PlaceMap, what: str) -> Ints:
    chosen = np.array([each == what for each in places.edges.what], bool)
    return np.stack([places.edges.a[chosen], places.edges.b[chosen]], axis=-1).astype(np.int64)
