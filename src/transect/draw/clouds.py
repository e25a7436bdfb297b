"""Clouds: one from above; of a stereo pair its image, disparities, and points from aside and from above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.errors import UsageError
from transect.geometry import robust

from .evaluation import FAR_M, ROUND_M, WIDTH, hillshade, name_axis, name_ground, write_title
from .figures import INK, Margins, fit_title, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NOT_MATCHED = "#d9dce1"
EMPTY = "#eef0f3"
WIDE = 780
"""Pixels across the view from aside."""
MARGIN = 24
"""Pixels around it."""
CELLS = 200
"""Cells along the longer side of the view from above."""
DRAWN = 3
"""Points of which a picture can be made."""
CELLS_ALONE = (100, 700)
"""The same of a cloud that is drawn alone: few points need large cells to be seen."""
CLOUD_WIDTH = 8.0
"""Inches."""
MIN_ASPECT = 0.15
"""Shorter over longer side of the ground that is shown around a cloud that is drawn alone."""
PLANAR = 1e-3
"""Metres: heights that differ by less are those of one plane, such as a robot with one laser maps."""
SEEN = Margins(0.9, 0.6, 0.5, 0.5)
"""Around a cloud that is drawn alone."""
FITS = 12
"""Rounds of weighting in which the ground is found."""


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A pair and what was made of it."""

    image: NDArray[np.uint8]  # (h, w) the left one
    disparity: NDArray[Any]  # (h, w) pixels, NaN where not matched
    points: NDArray[Any]  # (n, 3) metres, in the camera's axes: x right, y down, z forward
    colours: NDArray[np.uint8]  # (n,) of the points
    reach: float  # metres up to which points are drawn


def reconstruction_figure(seen: Reconstruction, title: str = "") -> Figure:
    """Draw image, disparities, and the points from aside and from above; both are level with the ground.

    Raises
    ------
    UsageError
        If there are too few points within reach to find the ground.
    """
    near = np.linalg.norm(seen.points, axis=1) <= seen.reach
    if np.count_nonzero(near) < 100:
        raise UsageError(f"only {np.count_nonzero(near)} points are within {seen.reach:g} m")
    points, colours = level(seen.points[near].astype(np.float64)), seen.colours[near]
    figure = new_figure(10, 7.4)
    (photo, matched), (aside, above) = figure.subplots(2, 2, height_ratios=(1, 1.1))
    _draw_photo(photo, seen.image)
    _draw_disparity(matched, seen.disparity)
    aside.imshow(draw_from_aside(points, colours, seen.reach))
    _finish(aside, f"points up to {seen.reach:g} m, from aside")
    _draw_from_above(above, points)
    if title:
        figure.suptitle(title, color=INK, fontsize=13)
    return figure


def level(points: Floats) -> Floats:
    """Turn points (n, 3) of a camera so that the ground is level: x right, y forward, z above it; metres.

    The ground is the plane ``y = a x + b z + c`` that most points are near (Cauchy weights); it tells the
    roll and the pitch of the camera.
    """
    across = np.column_stack([points[:, 0], points[:, 2], np.ones(len(points))])
    # Far points are many, uncertain, and often hills: each counts by how well its depth is known.
    depth = points[:, 2]
    weight = base = 1 / np.maximum(depth, 0.1 * np.median(depth)) ** 2
    plane = np.zeros(3)
    for _ in range(FITS):
        root = np.sqrt(weight)
        plane = np.linalg.lstsq(across * root[:, None], points[:, 1] * root)[0]
        off = points[:, 1] - across @ plane
        weight = base * robust.cauchy_weights(off / max(float(robust.nmad(off)), 1e-6))
    up = np.array([plane[0], -1.0, plane[1]]) / np.sqrt(1 + plane[0] ** 2 + plane[1] ** 2)
    ahead = np.array([0.0, 0.0, 1.0]) - up[2] * up
    ahead /= np.linalg.norm(ahead)
    turned = points @ np.column_stack([np.cross(ahead, up), ahead, up])
    turned[:, 2] -= up @ [0.0, plane[2], 0.0]
    return turned


def draw_from_aside(points: Floats, colours: NDArray[np.uint8], reach: float) -> NDArray[np.uint8]:
    """Return a picture (h, w, 3) of level points from behind, above and to the right of their camera."""
    pixels, depth = _aside(points, reach)
    order = np.argsort(-depth, kind="stable")
    column, row = pixels[order].astype(np.int64).T
    tints = np.broadcast_to(colours[order].reshape(len(order), -1), (len(order), 3))
    height = int(np.percentile(row, 99.9)) + MARGIN
    picture = np.full((height, WIDE, 3), [int(EMPTY[k : k + 2], 16) for k in (1, 3, 5)], np.uint8)
    for down, beside in np.ndindex(3, 3):  # of points on one pixel the last, and so the nearest, stays
        rows, columns = row + down - 1, column + beside - 1
        shown = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < WIDE)
        picture[rows[shown], columns[shown]] = tints[shown]
    return picture


def _aside(points: Floats, reach: float) -> tuple[Floats, Floats]:
    """Return the pixels (n, 2) of level points in the view from aside, which they fill, and depths (n,)."""
    eye, aim = np.array([0.2, -0.32, 0.34]) * reach, np.array([0.0, 0.4, 0.0]) * reach
    ahead = (aim - eye) / np.linalg.norm(aim - eye)
    right = np.cross(ahead, [0.0, 0.0, 1.0]) / np.hypot(ahead[0], ahead[1])
    there = (points - eye) @ np.column_stack([right, np.cross(ahead, right), ahead])
    depth = np.maximum(there[:, 2], 0.02 * reach)
    plane = there[:, :2] / depth[:, None]
    low, high = np.percentile(plane, (0.1, 99.9), axis=0)
    scale = (WIDE - 2 * MARGIN) / float(high[0] - low[0])
    return (plane - low) * scale + MARGIN, depth


def _draw_photo(ax: Axes, image: NDArray[np.uint8]) -> None:
    ax.imshow(image, cmap="gray" if image.ndim == 2 else None)
    _finish(ax, "left image")


def _draw_disparity(ax: Axes, disparity: NDArray[Any]) -> None:
    from matplotlib import colormaps

    colours = colormaps["turbo"].with_extremes(bad=NOT_MATCHED)
    low, high = np.nanpercentile(disparity, (0.5, 99.5))
    shown = ax.imshow(np.ma.masked_invalid(disparity), cmap=colours, vmin=low, vmax=high)
    matched = np.isfinite(disparity).mean()
    _finish(ax, f"disparity: {100 * matched:.0f} % matched, grey is not")
    _bar(ax, shown, "px")


def cloud_figure(points: NDArray[Any], title: str = "") -> Figure:
    """Draw a cloud (n, 3), metres, from above, by height; of large coordinates the round part is named apart.

    Raises
    ------
    UsageError
        If there are fewer than `DRAWN` points.
    """
    points = points[np.isfinite(points).all(axis=1)].astype(np.float64)
    if len(points) < DRAWN:
        raise UsageError(f"a cloud of {len(points)} points cannot be drawn")
    apart = np.where(np.abs(points[0]) > FAR_M, np.floor(points.min(axis=0) / ROUND_M) * ROUND_M, 0.0)
    wide, high = np.maximum(np.ptp(np.percentile(points[:, :2], (0.2, 99.8), axis=0), axis=0), 1e-3)
    flat = np.ptp(points[:, 2]) < PLANAR
    said = f", z from {apart[2]:.0f} m" if apart[2] else ""
    said = f", all at z = {np.mean(points[:, 2]):.3g} m" if flat else said
    heading = fit_title(f"{title}: {len(points)} points from above{said}", CLOUD_WIDTH)
    height = float(np.clip(6.2 * high / wide, 1.4, 6.0)) + 1.0 + heading.extra_in
    figure = new_figure(CLOUD_WIDTH, height, SEEN._replace(top=SEEN.top + heading.extra_in))
    axis = figure.add_subplot()
    cells = int(np.clip(2 * np.sqrt(len(points)), *CELLS_ALONE))
    shown = _draw_heights(axis, points - apart, cells)
    _widen(axis)
    if not flat:
        _bar(axis, shown, "z [m]")
    for name, least, label in zip("xyz", apart, (axis.set_xlabel, axis.set_ylabel, None), strict=True):
        if label is not None:
            label(f"{name} - {least:.0f} [m]" if least else f"{name} [m]", color=INK, fontsize=9)
    heading.write(figure, INK)
    return figure


def _widen(axis: Axes) -> None:
    """Show empty ground beside a narrow cloud, so that its shorter side has room for numbers."""
    (left, right), (near, far) = axis.get_xlim(), axis.get_ylim()
    least = MIN_ASPECT * max(right - left, far - near)
    across, along = (max((least - size) / 2, 0.0) for size in (right - left, far - near))
    axis.set_xlim(left - across, right + across)
    axis.set_ylim(near - along, far + along)


def _draw_heights(ax: Axes, points: Floats, cells: int) -> Any:
    """Draw the highest points (n, 3) of cells, so many along the longer side; what is beyond is cut off."""
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
    least, most = (least - 1, most + 1) if most - least < PLANAR else (least, most)
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
    shown = _draw_heights(ax, points, CELLS)
    left, right, near, far = shown.get_extent()
    ax.plot(0, 0, marker="^", color="#d1495b", markersize=7, clip_on=False, zorder=5)
    ax.set_xlim(min(left, -0.5), right)
    ax.set_ylim(min(near, -0.3), far)
    ax.set_xlabel("right of the camera [m]", color=INK, fontsize=9)
    ax.set_ylabel("ahead [m]", color=INK, fontsize=9)
    ax.set_title("from above, by height over the ground", color=INK, fontsize=10)
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
SHOWN = 98
"""Per cent of the differences that the colours span."""
BINS = 81


def map_figure(difference: Floats, reference: Floats, extent: Extent, *, title: str = "") -> Figure:
    """Draw the differences of a map over its reference, and how they are spread.

    Parameters
    ----------
    difference, reference : (rows, cols)
        Metres, first row northmost: estimate minus reference, NaN where one is not known, and the heights of
        the reference.
    extent : (4,)
        West, east, south, north in metres.
    """
    heading = fit_title(title, WIDTH)
    figure = new_figure(WIDTH, 4.4 + heading.extra_in)
    ground, spread = figure.subplots(1, 2, width_ratios=(2.4, 1))
    known = difference[np.isfinite(difference)]
    span = max(float(np.percentile(np.abs(known), SHOWN)), 1e-6)
    _draw_ground(ground, difference, reference, extent, span)
    heading.write(figure, INK)
    _draw_spread(spread, known, span)
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


def _draw_spread(axis: Axes, known: Floats, span: float) -> None:
    axis.hist(known, bins=list(np.linspace(-2 * span, 2 * span, BINS)), color="#5a6570")
    axis.locator_params(axis="x", nbins=3)  # a narrow panel
    axis.axvline(0, color=INK, lw=0.8)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    name_axis(axis, "difference [m]")
    write_title(axis, f"{len(known)} cells")
