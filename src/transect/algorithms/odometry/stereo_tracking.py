"""Sparse tracking between images, and from the left to the right image: pyramidal Lucas-Kanade."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np

from transect.base.arrays import Bytes, Floats, Mask
from transect.geometry import robust


@dataclass(frozen=True)
class KltSettings:
    """Settings of corner detection, Lucas-Kanade tracking, and stereo matching of corners."""

    # Tracking. With three levels and this window, initial positions may be off by 60 px.
    window_px: tuple[int, int] = (16, 16)  # width, height; OpenCV processes eight columns at once
    pyramid_levels: int = 3
    max_iterations: int = 20  # per level
    min_step_px: float = 0.02  # a smaller step ends the iteration

    # Matching in the right image
    max_row_difference_px: float = 1.5  # of a rectified pair, after removal of the common offset
    min_disparity_px: float = 0.5  # smaller disparities are within the noise of an infinite distance

    # Corners (Shi and Tomasi)
    gradient_window_px: int = 5
    min_quality: float = 0.002  # response relative to that of the strongest corner

    # Initial disparities by block matching in reduced images
    reduction: int = 4
    block_px: int = 9


KLT = KltSettings()


def track_points(
    previous: Bytes, current: Bytes, pixels: Floats, initial: Floats, settings: KltSettings = KLT
) -> tuple[Floats, Mask]:
    """Track pixels (n, 2) from one image to another by pyramidal Lucas-Kanade.

    Parameters
    ----------
    initial : (n, 2)
        Predicted pixels in the current image.

    Returns
    -------
    pixels : (n, 2)
    found : (n,) bool
    """
    import cv2

    if not len(pixels):
        return np.zeros((0, 2)), np.zeros(0, dtype=bool)
    tracked, status, _ = cv2.calcOpticalFlowPyrLK(
        previous, current, pixels.astype(np.float32), initial.astype(np.float32),
        winSize=settings.window_px, maxLevel=settings.pyramid_levels,
        criteria=(
            cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, settings.max_iterations, settings.min_step_px
        ),
        flags=cv2.OPTFLOW_USE_INITIAL_FLOW,
    )  # fmt: skip
    found = tracked.reshape(-1, 2).astype(np.float64)
    height, width = current.shape
    inside = ((found >= 0) & (found <= [width - 1, height - 1])).all(axis=1)
    return found, (status.ravel() == 1) & inside


def track_points_parallel(
    previous: Bytes, current: Bytes, pixels: Floats, initial: Floats, settings: KltSettings = KLT
) -> tuple[Floats, Mask]:
    """Like `track_points`, with half of the pixels on a second thread; the result is the same."""
    half = len(pixels) // 2
    first = _second_thread().submit(track_points, previous, current, pixels[:half], initial[:half], settings)
    rest, rest_found = track_points(previous, current, pixels[half:], initial[half:], settings)
    tracked, found = first.result()
    return np.concatenate([tracked, rest]), np.concatenate([found, rest_found])


@cache
def _second_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "tracking")


def match_right_image(
    left: Bytes, right: Bytes, pixels: Floats, disparities: Floats, settings: KltSettings = KLT
) -> tuple[Floats, Mask]:
    """Match pixels (n, 2) of the left image with the right one, given initial disparities (n,).

    Returns
    -------
    columns : (n,)
        In the right image.
    found : (n,) bool
        Whether the match is in the same row, with a positive disparity.
    """
    initial = pixels - np.stack([disparities, np.zeros_like(disparities)], axis=1)
    matched, found = track_points_parallel(left, right, pixels, initial, settings)
    # Small rectification errors are tolerated: the median row offset is removed.
    row_difference, limit_px = matched[:, 1] - pixels[:, 1], settings.max_row_difference_px
    offset_px = np.clip(robust.median(row_difference[found]), -limit_px, limit_px) if found.any() else 0.0
    same_row = np.abs(row_difference - offset_px) < limit_px
    return matched[:, 0], found & same_row & (pixels[:, 0] - matched[:, 0] > settings.min_disparity_px)


def find_corners(
    image: Bytes,
    occupied: Floats,
    cell_px: int,
    valid: Mask | None = None,
    reduction: int = 1,
    settings: KltSettings = KLT,
) -> Floats:
    """Return the strongest corner (n, 2) of each grid cell that contains no occupied pixel (m, 2).

    The response is Shi and Tomasi's; one corner per cell distributes them evenly over the image.

    Parameters
    ----------
    valid : (h, w) bool, optional
        Pixels that were measured; there are no corners elsewhere, or within a tracking window of it.
    reduction : int
        Factor by which the image is reduced before detection, for speed.
    """
    import cv2

    small = image
    if reduction > 1:
        small = cv2.resize(image, None, fx=1 / reduction, fy=1 / reduction, interpolation=cv2.INTER_AREA)
    response = cv2.cornerMinEigenVal(small, settings.gradient_window_px // reduction | 1)
    if valid is not None and not valid.all():
        measured = cv2.erode(valid.astype(np.uint8), np.ones(settings.window_px[::-1], np.uint8))
        response[cv2.resize(measured, small.shape[::-1], interpolation=cv2.INTER_NEAREST) == 0] = 0.0
    cell = max(cell_px // reduction, 1)
    rows, columns = (length // cell for length in small.shape)
    if not rows or not columns:
        return np.zeros((0, 2))
    grid = response[: rows * cell, : columns * cell].reshape(rows, cell, columns, cell).swapaxes(1, 2)
    grid = grid.reshape(rows * columns, cell * cell)
    strongest = grid.argmax(axis=1)
    accepted = grid[np.arange(len(grid)), strongest] > settings.min_quality * float(response.max(initial=0.0))
    occupied_cells = (occupied // (reduction * cell)).astype(np.int64)
    inside = ((occupied_cells >= 0) & (occupied_cells < [columns, rows])).all(axis=1)
    occupied_cells = occupied_cells[inside]
    accepted[occupied_cells[:, 1] * columns + occupied_cells[:, 0]] = False
    chosen = np.flatnonzero(accepted)
    row, column = np.divmod(chosen, columns)
    row_in_cell, column_in_cell = np.divmod(strongest[chosen], cell)
    corners = np.stack([column * cell + column_in_cell, row * cell + row_in_cell], axis=1)
    return reduction * corners + (reduction - 1) / 2


def coarse_disparities(
    left: Bytes, right: Bytes, pixels: Floats, max_disparity_px: float, settings: KltSettings = KLT
) -> Floats:
    """Return disparities (n,) of pixels (n, 2) by block matching in reduced images; NaN if unmatched."""
    import cv2

    factor, block = settings.reduction, settings.block_px
    range_ = 16 * max(int(np.ceil(max_disparity_px / factor / 16)), 1)
    if not len(pixels) or left.shape[1] // factor <= range_ + block:
        return np.full(len(pixels), np.nan)
    small = [
        cv2.resize(image, None, fx=1 / factor, fy=1 / factor, interpolation=cv2.INTER_AREA)
        for image in (left, right)
    ]
    # OpenCV does not match the first `range_` columns, so a margin is added on the left.
    padded = (cv2.copyMakeBorder(image, 0, 0, range_, 0, cv2.BORDER_REPLICATE) for image in small)
    matched = cv2.StereoBM.create(range_, block).compute(*padded)[:, range_:]
    last = [matched.shape[1] - 1, matched.shape[0] - 1]
    column, row = np.minimum(pixels // factor, last).astype(np.int64).T
    disparity = factor * (matched[row, column] / cv2.StereoMatcher_DISP_SCALE)
    return np.where((disparity > 0) & (disparity <= pixels[:, 0]), disparity, np.nan)
