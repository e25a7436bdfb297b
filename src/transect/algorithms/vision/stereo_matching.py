"""Stereo matching by OpenCV, with a test that rejects matches of image noise.

The noise of two cameras is independent, texture is common to both. The texture test compares the horizontal
derivatives of both images around a match. Without texture, as in a clear sky, the correlation over n
independent differences is random, and its Fisher transform has the standard deviation ``1 / sqrt(n - 3)``.
The false alarm rate that the caller chooses then gives the smallest correlation that is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Bytes
from transect.errors import TransectError
from transect.types import Image

from .image_conversion import gray_of
from .rectification import disparity_camera, require_camera, zero_disparity

TEXTURE_WINDOW_PX = 15
"""Edge of the square around a match that is compared."""
PIXELS_PER_SAMPLE = 1.75 * 1.5
"""Pixels per independent sample. Differences over two pixels of white noise have a correlation of -1/2 with
the next but one of their row. Rectification interpolates the noise, half-way between pixels at worst; the
sums of squared correlations are then 1.75 along the row and 1.5 along the column."""


def has_shared_texture(
    left: NDArray[np.uint8], right: NDArray[np.uint8], disparity: NDArray[np.float32], false_alarms: float
) -> NDArray[np.bool_]:
    """Return where (h, w) two rectified images have the same texture.

    Parameters
    ----------
    left, right : (h, w) uint8 array
    disparity : (h, w) float32 array
        In pixels, NaN where not matched; such pixels are ignored, and False in the result.
    false_alarms : float
        Ratio of pixels of independent noise that pass; divide it by k for the best of k disparities.
    """
    import cv2

    matched = np.isfinite(disparity)
    left_gradient, right_gradient = (
        cv2.filter2D(each, cv2.CV_32F, np.array([[-1.0, 0.0, 1.0]])) for each in (left, right)
    )
    rows, columns = disparity.shape
    x = np.arange(columns, dtype=np.float32) - np.where(matched, disparity, np.float32(0))
    y = np.repeat(np.arange(rows, dtype=np.float32)[:, None], columns, axis=1)
    right_gradient = cv2.remap(right_gradient, x, y, cv2.INTER_LINEAR)
    left_gradient[~matched] = right_gradient[~matched] = 0.0
    correlation = _window_sums(left_gradient * right_gradient) / np.sqrt(
        np.maximum(
            _window_sums(left_gradient * left_gradient) * _window_sums(right_gradient * right_gradient), 1.0
        )
    )
    count = np.rint(_window_sums(matched.astype(np.float32))).astype(np.uint8)
    return matched & (correlation > _min_correlations(false_alarms)[count])


def _window_sums(values: Any) -> NDArray[np.float32]:
    """Return the sums over the window around each pixel."""
    import cv2

    return np.asarray(
        cv2.boxFilter(
            values,
            -1,
            (TEXTURE_WINDOW_PX, TEXTURE_WINDOW_PX),
            normalize=False,
            borderType=cv2.BORDER_CONSTANT,
        )
    )


def _min_correlations(false_alarms: float) -> NDArray[np.float32]:
    """Return the smallest accepted correlation by the number of matched pixels in the window."""
    independent = np.arange(TEXTURE_WINDOW_PX * TEXTURE_WINDOW_PX + 1) / PIXELS_PER_SAMPLE - 3
    z = NormalDist().inv_cdf(1 - false_alarms)
    return np.tanh(z / np.sqrt(np.maximum(independent, 1e-6))).astype(np.float32)


Method = Literal["block", "semi-global", "scanline"]
METHODS: tuple[Method, ...] = ("block", "semi-global", "scanline")
DISPARITY_STEP = 16
"""OpenCV searches multiples of 16 disparities, and returns sixteenths of a pixel."""


@dataclass(frozen=True)
class DisparityRangeSettings:
    """Choice of the disparity range by a coarse search."""

    reduction: int = 4  # of the images
    window_px: int = 9  # matching window in the reduced images
    max_disparity_ratio: float = 0.25  # largest disparity relative to the width of the image


RANGE = DisparityRangeSettings()


@dataclass(frozen=True)
class StereoSearch:
    """Settings of the matcher."""

    # `block`: sum of absolute differences of windows, checked from both images. `semi-global`: costs summed
    # along five paths (Hirschmüller 2008). `scanline`: the same along three paths, faster.
    method: Method = "scanline"
    window: int = 5  # px, edge of the matching window
    disparities: int = 0  # number of disparities from 0 (infinity); 0: chosen by a coarse search
    uniqueness: int = 10  # percent, margin of the best match over the second best
    speckle: int = 200  # px, largest area of an isolated patch that is removed
    # Ratio of textureless surface, such as sky, that is matched; 1: no texture test.
    false_alarms: float = 0.001


def match_stereo(left: Image, right: Image, search: StereoSearch) -> Image:
    """Return the disparity image of a rectified pair.

    Its mode is `disparity`, its values are float32 in pixels, and NaN for pixels that are occluded in the
    right image, ambiguous, isolated, invalid in either image, or without texture. The `P` of its camera
    contains the baseline; the distance of the principal points is subtracted.
    """
    camera = disparity_camera(left, right)
    grays = gray_of(left), gray_of(right)
    if min(grays[0].shape) <= search.window:
        raise TransectError(
            f"images of {left.width} x {left.height} pixels are too small to match",
            why=f"the matching window has {search.window} pixels",
        )
    count = choose_disparity_count(*grays, search)
    found = _compute_disparities(*grays, search, count)
    if search.method == "block":
        found[~_is_consistent(*grays, found, search, count)] = np.nan
    if search.false_alarms < 1:
        found[~has_shared_texture(*grays, found, search.false_alarms / count)] = np.nan
    if left.valid is not None:
        found[~left.valid] = np.nan
    if right.valid is not None:
        found[_is_match_invalid(found, right.valid)] = np.nan
    found -= np.float32(zero_disparity(camera, require_camera(right)))
    found[~(found > 0)] = np.nan
    return Image(found, "disparity", left.t_ns, left.frame, camera)


def matched_ratio(disparity: Image) -> float:
    """Return the ratio of pixels that were matched."""
    return float(np.isfinite(disparity.data).mean())


def choose_disparity_count(left: Bytes, right: Bytes, search: StereoSearch) -> int:
    """Return the number of disparities to search, a multiple of 16.

    By default it follows from block matching in images of a quarter of the size: the 99.5 % quantile of their
    disparities with a margin of a quarter and 8 pixels.
    """
    import cv2

    if search.disparities:
        return _round_up_to_step(search.disparities)
    height, width = left.shape
    widest, size = (
        _round_up_to_step(RANGE.max_disparity_ratio * width),
        (width // RANGE.reduction, height // RANGE.reduction),
    )
    if min(size) <= RANGE.window_px:
        return widest
    reduced_left, reduced_right = (
        np.asarray(cv2.resize(each, size, interpolation=cv2.INTER_AREA), np.uint8) for each in (left, right)
    )
    blocks = StereoSearch("block", RANGE.window_px, speckle=20)
    found = _compute_disparities(
        reduced_left, reduced_right, blocks, _round_up_to_step(widest / RANGE.reduction)
    )
    if not np.isfinite(found).any():
        return widest
    return min(
        widest,
        _round_up_to_step(1.25 * RANGE.reduction * float(np.nanquantile(found, 0.995)) + DISPARITY_STEP / 2),
    )


def _round_up_to_step(pixels: float) -> int:
    return max(DISPARITY_STEP, int(np.ceil(pixels / DISPARITY_STEP)) * DISPARITY_STEP)


def _compute_disparities(left: Bytes, right: Bytes, search: StereoSearch, count: int) -> NDArray[np.float32]:
    """Return disparities (h, w) in pixels, NaN where OpenCV found none."""
    import cv2

    # OpenCV skips as many columns at the left edge as there are disparities; a margin keeps those whose match
    # is inside the image.
    padded = (cv2.copyMakeBorder(each, 0, 0, count, 0, cv2.BORDER_REPLICATE) for each in (left, right))
    raw = np.asarray(_make_matcher(search, count).compute(*padded))[:, count:]
    found = raw.astype(np.float32) / np.float32(DISPARITY_STEP)
    outside = found > np.arange(left.shape[1], dtype=np.float32)
    found[(raw < 0) | outside] = np.nan
    return found


def _is_consistent(
    left: Bytes, right: Bytes, found: NDArray[np.float32], search: StereoSearch, count: int
) -> NDArray[np.bool_]:
    """Return where (h, w) matching from the right image gives the same disparities within a pixel.

    OpenCV's block matcher checks this only with the costs of the left image, which misses part of the
    occluded pixels.
    """
    first, second = (np.ascontiguousarray(each[:, ::-1]) for each in (right, left))
    reverse_disparities = _compute_disparities(first, second, search, count)[:, ::-1]
    columns = np.arange(found.shape[1]) - np.nan_to_num(np.rint(found)).astype(np.int64)
    matched = np.take_along_axis(reverse_disparities, np.clip(columns, 0, found.shape[1] - 1), axis=1)
    return np.abs(matched - found) <= 1


def _make_matcher(search: StereoSearch, count: int) -> Any:
    import cv2

    if search.method == "block":
        matcher = cv2.StereoBM.create(count, max(search.window, 5))
        matcher.setUniquenessRatio(search.uniqueness)
        matcher.setTextureThreshold(0)  # in grey levels; the texture test replaces it
        matcher.setDisp12MaxDiff(1)
        matcher.setSpeckleWindowSize(search.speckle)
        matcher.setSpeckleRange(
            DISPARITY_STEP
        )  # one pixel: in sixteenths here, in pixels for the other matcher
        return matcher
    area = search.window**2
    modes = {"semi-global": cv2.StereoSGBM_MODE_SGBM, "scanline": cv2.StereoSGBM_MODE_SGBM_3WAY}
    return cv2.StereoSGBM.create(
        minDisparity=0, numDisparities=count, blockSize=search.window,
        P1=8 * area, P2=32 * area,  # as OpenCV recommends for one channel
        disp12MaxDiff=1, preFilterCap=63, uniquenessRatio=search.uniqueness,
        speckleWindowSize=search.speckle, speckleRange=1, mode=modes[search.method],
    )  # fmt: skip


def _is_match_invalid(found: NDArray[np.float32], valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return where the matched pixel of the right image is invalid."""
    columns = np.arange(found.shape[1]) - np.nan_to_num(np.rint(found)).astype(np.int64)
    return ~np.take_along_axis(valid, np.clip(columns, 0, found.shape[1] - 1), axis=1)
