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

from .evaluation import WIDTH_IN, name_axis, write_title
from .figures import INK, add_legend_below, new_figure
from .tracks import draw_scale, window_around

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SESSION_COLOURS = ("#1f6fb2", "#c2571a", "#2e8b57", "#8a4fa3", "#b0872c")
LOOP_COLOUR, REJECTED_COLOUR, BEFORE_COLOUR = "#1a9850", "#d73027", "#d1495b"
MAX_POINTS = 300_000
Extent = tuple[float, float, float, float]
"""Left, right, bottom, top."""
MAX_LEGEND_COLUMNS = 3
MAX_CELLS_PER_SIDE = 1200
OCCUPIED_GRAY, UNKNOWN_GRAY = 0, 205
MIN_ASPECT_RATIO = 0.3
"""Shorter over longer side of a map."""


@dataclass(frozen=True, eq=False)
class TrajectoryComparison:
    """The trajectory by odometry, and the ground truth, beside that with loop closures."""

    odometry: Floats  # (n, 2) m, in the map's frame, from the same first pose
    truth: Floats  # (m, 2) m, aligned with the corrected trajectory; empty where it is not known
    # horizontal RMSE, m, of odometry and of the corrected trajectory, each aligned with the truth, or with
    # its first pose if the trajectory is straight; None without truth
    rmse_m: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class MapDrawing:
    """The elements of a map that are drawn."""

    keyframes: Floats  # (n, 2) m
    session: Ints  # (n,)
    # (m, 2) pairs of keyframes
    loops: Ints
    rejected_loops: Ints
    points: Floats  # (k, 2) observed points, m; may be empty
    image: NDArray[np.uint8] | None = None  # (rows, cols) an occupancy grid in gray, instead of the points
    extent: Extent = (0.0, 1.0, 0.0, 1.0)  # of the image
    comparison: TrajectoryComparison | None = None


def draw_places(panels: Sequence[tuple[str, MapDrawing]]) -> Figure:
    """Draw maps side by side, each with its title."""
    shapes = [_shape(drawn) for _, drawn in panels]
    width = WIDTH_IN if len(panels) == 1 else 1.4 * WIDTH_IN
    height = max(min((width / len(panels) - 0.5) * max(shapes), 1.6 * width), 2.5) + 0.85
    figure = new_figure(width, height)
    for number, (title, drawn) in enumerate(panels, 1):
        axes = figure.add_subplot(1, len(panels), number)
        _draw(axes, drawn)
        write_title(axes, title)
    names = {name for axes in figure.axes for name in axes.get_legend_handles_labels()[1]}
    rows = -(-len(names) // MAX_LEGEND_COLUMNS)
    add_legend_below(figure, -(-len(names) // rows), rows)
    return figure


def _shape(drawn: MapDrawing) -> float:
    across, up = np.ptp(np.stack(_window(drawn)), axis=0)
    return float(np.clip(up / max(across, 1e-3), MIN_ASPECT_RATIO, 1.6))


def _window(drawn: MapDrawing) -> tuple[Floats, Floats]:
    """Return the lower left and upper right corner: of everything, or of the compared trajectories."""
    if drawn.comparison is None:
        every = np.concatenate([drawn.keyframes, drawn.points])
        return every.min(axis=0), every.max(axis=0)
    return window_around([drawn.keyframes, drawn.comparison.odometry], {}, MIN_ASPECT_RATIO)


def _draw(axes: Axes, drawn: MapDrawing) -> None:
    _draw_environment(axes, drawn)
    before, after = _trajectory_names(drawn.comparison)
    if drawn.comparison is not None:
        axes.plot(*drawn.comparison.odometry.T, color=BEFORE_COLOUR, lw=1.2, zorder=2, label=before)
    _draw_trajectory(axes, drawn, after)
    if drawn.comparison is not None and len(drawn.comparison.truth):
        axes.plot(
            *drawn.comparison.truth.T, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=4, label="ground truth"
        )
    axes.set_aspect("equal")
    name_axis(axes, "x [m]")
    axes.set_ylabel("y [m]", fontsize=9, color=INK)
    if drawn.comparison is not None:
        low, high = _window(drawn)
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    draw_scale(axes, (np.array([left, bottom]), np.array([right, top])))


def _draw_environment(axes: Axes, drawn: MapDrawing) -> None:
    """Draw the occupancy grid, or the observed points."""
    if drawn.image is not None:
        shown: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 255, "interpolation": "nearest"}
        axes.set_facecolor(str(UNKNOWN_GRAY / 255))
        image, extent = shrink_grid(drawn.image, drawn.extent)
        axes.imshow(image, extent=extent, **shown)
        axes.plot([], [], "s", color="black", ms=4, label="walls")
    elif len(drawn.points):
        every = drawn.points[:: max(len(drawn.points) // MAX_POINTS, 1)]
        axes.scatter(*every.T, s=0.3, c=INK, linewidths=0)
        axes.plot([], [], "o", color=INK, ms=2, label="observed points")


def shrink_grid(image: NDArray[np.uint8], extent: Extent) -> tuple[NDArray[np.uint8], Extent]:
    """Return a coarser occupancy grid that fits a picture; a cell with an occupied cell in it is occupied."""
    side = -(-max(image.shape) // MAX_CELLS_PER_SIDE)
    rows, columns = (-(-size // side) for size in image.shape)
    whole = np.full((rows * side, columns * side), UNKNOWN_GRAY, np.uint8)
    whole[: image.shape[0], : image.shape[1]] = image
    blocks = whole.reshape(rows, side, columns, side)
    small = np.where(
        (blocks == OCCUPIED_GRAY).any(axis=(1, 3)), OCCUPIED_GRAY, blocks.mean(axis=(1, 3))
    ).astype(np.uint8)
    left, right, bottom, top = extent
    height, width = np.array(whole.shape) / image.shape
    return small, (left, left + width * (right - left), top - height * (top - bottom), top)


def _draw_trajectory(axes: Axes, drawn: MapDrawing, name: str) -> None:
    """Draw the corrected trajectory, each session in its colour, and the loop closures."""
    from matplotlib.collections import LineCollection

    sessions = sorted(set(drawn.session.tolist()))
    for number, session in enumerate(sessions):
        part = drawn.keyframes[drawn.session == session]
        label = name if len(sessions) == 1 else f"{name}, session {number + 1}"
        axes.plot(
            *part.T, color=SESSION_COLOURS[number % len(SESSION_COLOURS)], lw=1.0, zorder=2, label=label
        )
    for pairs, colour, label in (
        (drawn.loops, LOOP_COLOUR, "loop closures"),
        (drawn.rejected_loops, REJECTED_COLOUR, "rejected loop closures"),
    ):
        if len(pairs):
            lines = LineCollection(list(drawn.keyframes[pairs]), colors=colour, linewidths=0.7, zorder=3)
            lines.set_label(label)
            axes.add_collection(lines)


def _trajectory_names(comparison: TrajectoryComparison | None) -> tuple[str, str]:
    """Return the legend entries of odometry and of the corrected trajectory, with their RMSE if known."""
    names = ("odometry", "with loop closures") if comparison is not None else ("", "trajectory")
    if comparison is None or comparison.rmse_m is None:
        return names
    before, after = (
        f"{name}, RMSE {rmse:.2f} m" for name, rmse in zip(names, comparison.rmse_m, strict=True)
    )
    return before, after


def draw_map(
    places: PlaceMap,
    cell: float = 0.05,
    comparison: TrajectoryComparison | None = None,
    *,
    failed: bool = False,
) -> Figure:
    """Draw a map from above, with a comparison of trajectories if given.

    The title of a failed result warns of it.
    """
    if is_z_down(places) and comparison is not None:
        comparison = replace(
            comparison, odometry=comparison.odometry * (1.0, -1.0), truth=comparison.truth * (1.0, -1.0)
        )
    places = flip_z_up(places)
    loops = sum(what == LOOP for what in places.edges.what)
    title = f"{places.kind}: {len(places)} keyframes, {places.length:.0f} m, {format_loop_count(loops)}"
    title = f"BAD, do not use: {title}" if failed else title
    return draw_places([(title, replace(drawing_of_map(places, cell), comparison=comparison))])


def drawing_of_map(places: PlaceMap, cell: float) -> MapDrawing:
    """Return the elements of a map to draw: the grid of a planar laser, points of other sensors."""
    drawn = MapDrawing(
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
