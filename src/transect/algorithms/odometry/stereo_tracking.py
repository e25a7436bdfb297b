"""Points followed from picture to picture and from the left to the right camera."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from transect.base.arrays import Bytes, Floats, Mask
from transect.geometry import robust

WINDOW = (16, 16)
"""Pixels that a point is recognised by, across and down: OpenCV compares eight across at once."""
LEVELS = 3
"""Halvings of the picture: with a window of 16, starts may be off by 60 pixels."""
STEPS, STILL = 20, 0.02
"""Iterations on each level, and the step in pixels that ends them."""
ROWS_APART = 1.5
"""Pixels by which rows of a rectified pair may differ: a tenth is usual, the rest is noise."""
LEAST_DISPARITY = 0.5
"""Pixels; at less a point is as good as infinitely far, and on the wrong side of noise beyond it."""
CORNER = 5
"""Pixels: the neighbourhood whose gradients make a corner."""
QUALITY = 0.002
"""Of the strongest corner's response: weaker ones are noise."""
COARSE, BLOCK, NO_MATCH = 4, 9, 16.0
"""Of the coarse matching: by how much the picture is reduced, its window in pixels, and what it counts in."""


def follow(before: Bytes, now: Bytes, pixels: Floats, starts: Floats) -> tuple[Floats, Mask]:
    """Follow pixels (n, 2) from one picture to another with Lucas and Kanade's method in pyramids.

    Parameters
    ----------
    starts : (n, 2)
        Where to begin looking.

    Returns
    -------
    pixels : (n, 2)
    found : (n,) bool
    """
    import cv2

    if not len(pixels):
        return np.zeros((0, 2)), np.zeros(0, dtype=bool)
    found, status, _ = cv2.calcOpticalFlowPyrLK(
        before, now, pixels.astype(np.float32), starts.astype(np.float32), winSize=WINDOW, maxLevel=LEVELS,
        criteria=(cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, STEPS, STILL),
        flags=cv2.OPTFLOW_USE_INITIAL_FLOW,
    )  # fmt: skip
    there = found.reshape(-1, 2).astype(np.float64)
    height, width = now.shape
    inside = ((there >= 0) & (there <= [width - 1, height - 1])).all(axis=1)
    return there, (status.ravel() == 1) & inside


def follow_in_halves(before: Bytes, now: Bytes, pixels: Floats, starts: Floats) -> tuple[Floats, Mask]:
    """As `follow`, half of the pixels on another thread: the result is the same, as each stands alone."""
    half = len(pixels) // 2
    first = _second_thread().submit(follow, before, now, pixels[:half], starts[:half])
    rest, rest_found = follow(before, now, pixels[half:], starts[half:])
    there, found = first.result()
    return np.concatenate([there, rest]), np.concatenate([found, rest_found])


@cache
def _second_thread() -> ThreadPoolExecutor:
    """Return the thread for the other half of the pixels."""
    return ThreadPoolExecutor(1, "following")


def match_right(left: Bytes, right: Bytes, pixels: Floats, disparities: Floats) -> tuple[Floats, Mask]:
    """Find pixels (n, 2) of the left picture in the right one, from guesses of their disparity (n,).

    Returns
    -------
    columns : (n,)
        In the right picture.
    found : (n,) bool
        In the same row, and to the left of where the left camera sees it.
    """
    starts = pixels - np.stack([disparities, np.zeros_like(disparities)], axis=1)
    there, found = follow_in_halves(left, right, pixels, starts)
    level = np.abs(there[:, 1] - pixels[:, 1] - _tilt(there, pixels, found)) < ROWS_APART
    return there[:, 0], found & level & (pixels[:, 0] - there[:, 0] > LEAST_DISPARITY)


def _tilt(there: Floats, pixels: Floats, found: Mask) -> float:
    """Rows by which the right picture is off as a whole, pixels; it must not cost the good matches."""
    rows = (there[:, 1] - pixels[:, 1])[found]
    return float(np.clip(robust.median(rows), -ROWS_APART, ROWS_APART)) if len(rows) else 0.0


def corners(picture: Bytes, taken: Floats, cell: int, valid: Mask | None = None, reduced: int = 1) -> Floats:
    """Return the best corner (n, 2) of every cell of a grid that has no taken pixel (m, 2) yet.

    Shi and Tomasi's response; one per cell spreads the points over the picture. Where `valid` (h, w) says
    that nothing was measured, or near it, there are none. A picture that is reduced by a factor first is
    quicker to search, and its corners are as good to follow.
    """
    import cv2

    small = picture
    if reduced > 1:
        small = cv2.resize(picture, None, fx=1 / reduced, fy=1 / reduced, interpolation=cv2.INTER_AREA)
    response = cv2.cornerMinEigenVal(small, CORNER // reduced | 1)
    if valid is not None and not valid.all():
        measured = cv2.erode(valid.astype(np.uint8), np.ones(WINDOW[::-1], np.uint8))
        response[cv2.resize(measured, small.shape[::-1], interpolation=cv2.INTER_NEAREST) == 0] = 0.0
    cell = max(cell // reduced, 1)
    rows, columns = (length // cell for length in small.shape)
    if not rows or not columns:
        return np.zeros((0, 2))
    grid = response[: rows * cell, : columns * cell].reshape(rows, cell, columns, cell).swapaxes(1, 2)
    grid = grid.reshape(rows * columns, cell * cell)
    best = grid.argmax(axis=1)
    good = grid[np.arange(len(grid)), best] > QUALITY * float(response.max(initial=0.0))
    at = (taken // (reduced * cell)).astype(np.int64)
    at = at[((at >= 0) & (at < [columns, rows])).all(axis=1)]
    good[at[:, 1] * columns + at[:, 0]] = False
    which = np.flatnonzero(good)
    row, column = np.divmod(which, columns)
    down, across = np.divmod(best[which], cell)
    return reduced * np.stack([column * cell + across, row * cell + down], axis=1) + (reduced - 1) / 2


def coarse_disparities(left: Bytes, right: Bytes, pixels: Floats, largest: float) -> Floats:
    """Guess the disparities (n,) of pixels (n, 2) by block matching at quarter size; NaN where it sees none.

    Parameters
    ----------
    largest : float
        Disparity in pixels up to which to look.
    """
    import cv2

    range_ = 16 * max(int(np.ceil(largest / COARSE / 16)), 1)
    if not len(pixels) or left.shape[1] // COARSE <= range_ + BLOCK:
        return np.full(len(pixels), np.nan)
    small = [
        cv2.resize(each, None, fx=1 / COARSE, fy=1 / COARSE, interpolation=cv2.INTER_AREA)
        for each in (left, right)
    ]
    # OpenCV matches nothing in the first `range_` columns; with a margin it matches what both cameras see.
    padded = (cv2.copyMakeBorder(each, 0, 0, range_, 0, cv2.BORDER_REPLICATE) for each in small)
    found = cv2.StereoBM.create(range_, BLOCK).compute(*padded)[:, range_:]
    last = [found.shape[1] - 1, found.shape[0] - 1]
    column, row = np.minimum(pixels // COARSE, last).astype(np.int64).T
    disparity = found[row, column] / NO_MATCH
    guess = COARSE * disparity
    return np.where((guess > 0) & (guess <= pixels[:, 0]), guess, np.nan)
