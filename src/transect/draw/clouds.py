"""Point clouds: one seen from above, and the reconstruction of a stereo pair in four panels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.errors import UsageError
from transect.geometry import robust

from .evaluation import WIDTH_IN, axis_offset, hillshade, map_label, name_axis, name_ground, write_title
from .figures import INK, Margins, fit_title, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NOT_MATCHED = "#d9dce1"
EMPTY = "#eef0f3"
CLOUD_WIDTH_IN = 8.0
CLOUD_MARGINS = Margins(0.9, 0.6, 0.5, 0.5)
MIN_CLOUD_POINTS = 3
PLANAR_HEIGHT_RANGE_M = 1e-3
"""A cloud with a smaller height range is drawn without a colour scale, e.g. the map of a planar laser."""


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A stereo pair and its reconstruction."""

    image: NDArray[np.uint8]  # (h, w) the left one
    disparity: NDArray[Any]  # (h, w) pixels, NaN where not matched
    points: NDArray[Any]  # (n, 3) metres, in the camera's axes: x right, y down, z forward
    colours: NDArray[np.uint8]  # (n,) of the points
    max_range_m: float  # points farther away are not drawn


def reconstruction_figure(pair: Reconstruction, title: str = "") -> Figure:
    """Draw image, disparity, and the points in perspective and from above, levelled with the ground.

    Raises
    ------
    UsageError
        If there are too few points within `max_range_m` to fit the ground plane.
    """
    near = np.linalg.norm(pair.points, axis=1) <= pair.max_range_m
    if np.count_nonzero(near) < 100:
        raise UsageError(f"only {np.count_nonzero(near)} points are within {pair.max_range_m:g} m")
    points, colours = level(pair.points[near].astype(np.float64)), pair.colours[near]
    figure = new_figure(10, 7.4)
    (photo, matched), (perspective, above) = figure.subplots(2, 2, height_ratios=(1, 1.1))
    _draw_photo(photo, pair.image)
    _draw_disparity(matched, pair.disparity)
    perspective.imshow(draw_perspective(points, colours, pair.max_range_m))
    _finish(perspective, f"points up to {pair.max_range_m:g} m, in perspective")
    _draw_from_above(above, points)
    if title:
        figure.suptitle(title, color=INK, fontsize=13)
    return figure


def level(points: Floats, iterations: int = 12) -> Floats:
    """Rotate points (n, 3) of a camera so that the ground is level: x right, y forward, z above it; metres.

    The ground plane ``y = a x + b z + c`` is fitted by iteratively reweighted least squares with Cauchy
    weights; its normal gives the roll and the pitch of the camera.
    """
    across = np.column_stack([points[:, 0], points[:, 2], np.ones(len(points))])
    # Far points are many, uncertain, and often hills: the weight falls with the variance of their depth.
    depth = points[:, 2]
    weight = base = 1 / np.maximum(depth, 0.1 * np.median(depth)) ** 2
    plane = np.zeros(3)
    for _ in range(iterations):
        root = np.sqrt(weight)
        plane = np.linalg.lstsq(across * root[:, None], points[:, 1] * root)[0]
        residuals = points[:, 1] - across @ plane
        weight = base * robust.cauchy_weights(residuals / max(float(robust.nmad(residuals)), 1e-6))
    up = np.array([plane[0], -1.0, plane[1]]) / np.sqrt(1 + plane[0] ** 2 + plane[1] ** 2)
    ahead = np.array([0.0, 0.0, 1.0]) - up[2] * up
    ahead /= np.linalg.norm(ahead)
    levelled = points @ np.column_stack([np.cross(ahead, up), ahead, up])
    levelled[:, 2] -= up @ [0.0, plane[2], 0.0]
    return levelled


def draw_perspective(
    points: Floats,
    colours: NDArray[np.uint8],
    max_range_m: float,
    *,
    width_px: int = 780,
    margin_px: int = 24,
) -> NDArray[np.uint8]:
    """Return a picture (h, w, 3) of level points from behind, above and to the right of their camera."""
    pixels, depth = _project(points, max_range_m, width_px, margin_px)
    order = np.argsort(-depth, kind="stable")
    column, row = pixels[order].astype(np.int64).T
    tints = np.broadcast_to(colours[order].reshape(len(order), -1), (len(order), 3))
    height = int(np.percentile(row, 99.9)) + margin_px
    picture = np.full((height, width_px, 3), [int(EMPTY[k : k + 2], 16) for k in (1, 3, 5)], np.uint8)
    for down, beside in np.ndindex(3, 3):  # the nearest point is drawn last and hides the others
        rows, columns = row + down - 1, column + beside - 1
        shown = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width_px)
        picture[rows[shown], columns[shown]] = tints[shown]
    return picture


def _project(points: Floats, max_range_m: float, width_px: int, margin_px: int) -> tuple[Floats, Floats]:
    """Return the pixels (n, 2) of level points in the perspective view, which they fill, and depths (n,)."""
    eye, aim = np.array([0.2, -0.32, 0.34]) * max_range_m, np.array([0.0, 0.4, 0.0]) * max_range_m
    ahead = (aim - eye) / np.linalg.norm(aim - eye)
    right = np.cross(ahead, [0.0, 0.0, 1.0]) / np.hypot(ahead[0], ahead[1])
    in_view = (points - eye) @ np.column_stack([right, np.cross(ahead, right), ahead])
    depth = np.maximum(in_view[:, 2], 0.02 * max_range_m)
    plane = in_view[:, :2] / depth[:, None]
    low, high = np.percentile(plane, (0.1, 99.9), axis=0)
    scale = (width_px - 2 * margin_px) / float(high[0] - low[0])
    return (plane - low) * scale + margin_px, depth


def _draw_photo(ax: Axes, image: NDArray[np.uint8]) -> None:
    ax.imshow(image, cmap="gray" if image.ndim == 2 else None)
    _finish(ax, "left image")


def _draw_disparity(ax: Axes, disparity: NDArray[Any]) -> None:
    from matplotlib import colormaps

    colours = colormaps["turbo"].with_extremes(bad=NOT_MATCHED)
    low, high = np.nanpercentile(disparity, (0.5, 99.5))
    shown = ax.imshow(np.ma.masked_invalid(disparity), cmap=colours, vmin=low, vmax=high)
    matched = np.isfinite(disparity).mean()
    _finish(ax, f"disparity: {100 * matched:.0f} % matched (grey: no match)")
    _bar(ax, shown, "px")


def cloud_figure(points: NDArray[Any], title: str = "") -> Figure:
    """Draw a cloud (n, 3), metres, from above, coloured by height; a large offset goes into the axis label.

    Raises
    ------
    UsageError
        If there are fewer than `MIN_CLOUD_POINTS` points.
    """
    points = points[np.isfinite(points).all(axis=1)].astype(np.float64)
    if len(points) < MIN_CLOUD_POINTS:
        raise UsageError(f"a cloud of {len(points)} points cannot be drawn")
    offset = np.array([axis_offset(least) for least in points.min(axis=0)])
    wide, high = np.maximum(np.ptp(np.percentile(points[:, :2], (0.2, 99.8), axis=0), axis=0), 1e-3)
    flat = np.ptp(points[:, 2]) < PLANAR_HEIGHT_RANGE_M
    note = f", z from {offset[2]:.0f} m" if offset[2] else ""
    note = f", all at z = {np.mean(points[:, 2]):.3g} m" if flat else note
    heading = fit_title(f"{title}: {len(points)} points from above{note}", CLOUD_WIDTH_IN)
    height = float(np.clip(6.2 * high / wide, 1.4, 6.0)) + 1.0 + heading.extra_in
    figure = new_figure(
        CLOUD_WIDTH_IN, height, CLOUD_MARGINS._replace(top=CLOUD_MARGINS.top + heading.extra_in)
    )
    axis = figure.add_subplot()
    cells = int(np.clip(2 * np.sqrt(len(points)), 100, 700))  # few points need large cells to be visible
    shown = _draw_heights(axis, points - offset, cells)
    _widen(axis)
    if not flat:
        _bar(axis, shown, "z [m]")
    for name, least, label in zip("xyz", offset, (axis.set_xlabel, axis.set_ylabel, None), strict=True):
        if label is not None:
            label(map_label(name, least), color=INK, fontsize=9)
    heading.write(figure, INK)
    return figure


def _widen(axis: Axes, min_aspect: float = 0.15) -> None:
    """Widen the view of a narrow cloud, so that its shorter side has room for tick labels."""
    (left, right), (near, far) = axis.get_xlim(), axis.get_ylim()
    least = min_aspect * max(right - left, far - near)
    across, along = (max((least - size) / 2, 0.0) for size in (right - left, far - near))
    axis.set_xlim(left - across, right + across)
    axis.set_ylim(near - along, far + along)


def _draw_heights(ax: Axes, points: Floats, cells: int) -> Any:
    """Draw the highest point of each cell, `cells` along the longer side; outlying points are cut off."""
    z = points[:, 2]
    low, high = np.percentile(points[:, :2], (0.2, 99.8), axis=0)
    size = max(float(max(high - low)), 1e-3) / cells
    order = np.argsort(z, kind="stable")  # the highest of a cell is what is seen from above
    column, row = np.floor((points[order, :2] - low) / size).astype(np.int64).T
    shape = np.ceil((high - low) / size).astype(np.int64) + 1
    inside = (column >= 0) & (row >= 0) & (column < shape[0]) & (row < shape[1])
    heights = np.full((shape[1], shape[0]), np.nan)
    heights[row[inside], column[inside]] = z[order][inside]
    least, most = np.nanpercentile(heights, (2, 98))
    if most - least < PLANAR_HEIGHT_RANGE_M:
        least, most = least - 1, most + 1
    edges = (low[0], low[0] + shape[0] * size, low[1], low[1] + shape[1] * size)
    ax.tick_params(labelsize=8, colors=INK)
    ax.set_facecolor(EMPTY)
    shown = ax.imshow(
        np.ma.masked_invalid(heights), origin="lower", extent=edges, cmap="viridis", vmin=least, vmax=most,
        interpolation="nearest",
    )  # fmt: skip
    ax.set_aspect("equal")
    return shown


def _draw_from_above(ax: Axes, points: Floats) -> None:
    shown = _draw_heights(ax, points, cells=200)
    left, right, near, far = shown.get_extent()
    ax.plot(0, 0, marker="^", color="#d1495b", markersize=7, clip_on=False, zorder=5)
    ax.set_xlim(min(left, -0.5), right)
    ax.set_ylim(min(near, -0.3), far)
    ax.set_xlabel("right of the camera [m]", color=INK, fontsize=9)
    ax.set_ylabel("ahead [m]", color=INK, fontsize=9)
    ax.set_title("from above, coloured by height above the ground", color=INK, fontsize=10)
    _bar(ax, shown, "m")


def _finish(ax: Axes, title: str) -> None:
    ax.set_title(title, color=INK, fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])


def _bar(ax: Axes, shown: Any, unit: str) -> None:
    bar = ax.figure.colorbar(shown, ax=ax, shrink=0.85, pad=0.015, aspect=25)
    bar.outline.set_visible(False)  # pyright: ignore[reportAttributeAccessIssue, reportCallIssue]
    bar.ax.tick_params(labelsize=8, colors=INK)
    bar.ax.set_title(unit, fontsize=9, color=INK)


Extent = tuple[float, float, float, float]
COLOUR_RANGE_PERCENTILE = 98
"""The colour scale of a difference ends at this percentile of its magnitude."""


def map_figure(difference: Floats, reference: Floats, extent: Extent, *, title: str = "") -> Figure:
    """Draw the difference of a map over its reference, and its histogram.

    Parameters
    ----------
    difference, reference : (rows, cols)
        Metres, first row northmost: estimate minus reference, NaN where one is not known, and the heights of
        the reference.
    extent : (4,)
        West, east, south, north in metres.
    """
    heading = fit_title(title, WIDTH_IN)
    figure = new_figure(WIDTH_IN, 4.4 + heading.extra_in)
    ground, histogram = figure.subplots(1, 2, width_ratios=(2.4, 1))
    known = difference[np.isfinite(difference)]
    span = max(float(np.percentile(np.abs(known), COLOUR_RANGE_PERCENTILE)), 1e-6)
    _draw_ground(ground, difference, reference, extent, span)
    heading.write(figure, INK)
    _draw_histogram(histogram, known, span)
    return figure


def _draw_ground(axis: Axes, difference: Floats, reference: Floats, extent: Extent, span: float) -> None:
    axis.imshow(hillshade(reference), extent=extent, cmap="gray", vmin=-0.6, vmax=1.1)
    drawn = axis.imshow(
        difference, extent=extent, cmap="RdBu_r", vmin=-span, vmax=span,
        interpolation="nearest",
    )  # fmt: skip
    bar = axis.figure.colorbar(drawn, ax=axis, shrink=0.85, pad=0.02)
    bar.set_label("too low  |  too high [m]", fontsize=9, color=INK)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.ax.tick_params(labelsize=8)
    name_ground(axis, "x", "y")
    axis.grid(visible=False)


def _draw_histogram(axis: Axes, known: Floats, span: float) -> None:
    axis.hist(known, bins=list(np.linspace(-2 * span, 2 * span, 81)), color="#5a6570")
    axis.locator_params(axis="x", nbins=3)  # a narrow panel
    axis.axvline(0, color=INK, lw=0.8)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    name_axis(axis, "difference [m]")
    write_title(axis, f"{len(known)} cells")
