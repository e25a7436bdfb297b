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

WINDOW = 15
"""Pixels: edge of the square around a match that is compared."""
DEPENDENCE = 1.75 * 1.5
"""How many pixels count as one. Differences over two pixels of white noise are correlated -1/2 with the next
but one of their row. Noise that rectification has interpolated, half-way between pixels at worst, is
correlated with more of them; the sums of squared correlations are then 1.75 along the row and 1.5 down the
column."""


def shared_texture(
    left: NDArray[np.uint8], right: NDArray[np.uint8], disparity: NDArray[np.float32], false_alarms: float
) -> NDArray[np.bool_]:
    """Tell (h, w) where two rectified images show the same texture.

    Parameters
    ----------
    left, right : (h, w) uint8 array
    disparity : (h, w) float32 array
        In pixels, NaN where not matched; those are no part of the test, and False in the result.
    false_alarms : float
        Share of pixels of independent noise that pass. Who takes the best of k disparities divides what can
        be borne by k.
    """
    import cv2

    matched = np.isfinite(disparity)
    here, there = (cv2.filter2D(each, cv2.CV_32F, np.array([[-1.0, 0.0, 1.0]])) for each in (left, right))
    rows, columns = disparity.shape
    x = np.arange(columns, dtype=np.float32) - np.where(matched, disparity, np.float32(0))
    y = np.repeat(np.arange(rows, dtype=np.float32)[:, None], columns, axis=1)
    there = cv2.remap(there, x, y, cv2.INTER_LINEAR)
    here[~matched] = there[~matched] = 0.0
    correlation = _sums(here * there) / np.sqrt(np.maximum(_sums(here * here) * _sums(there * there), 1.0))
    count = np.rint(_sums(matched.astype(np.float32))).astype(np.uint8)
    return matched & (correlation > _least_correlations(false_alarms)[count])


def _sums(values: Any) -> NDArray[np.float32]:
    """Return the sum over the window around each pixel."""
    import cv2

    return np.asarray(
        cv2.boxFilter(values, -1, (WINDOW, WINDOW), normalize=False, borderType=cv2.BORDER_CONSTANT)
    )


def _least_correlations(false_alarms: float) -> NDArray[np.float32]:
    """Return the correlation that noise seldom exceeds, by how many pixels of the window are matched."""
    independent = np.arange(WINDOW * WINDOW + 1) / DEPENDENCE - 3
    z = NormalDist().inv_cdf(1 - false_alarms)
    least = np.tanh(z / np.sqrt(np.maximum(independent, 1e-6)))
    return least.astype(np.float32)


Method = Literal["block", "semi-global", "scanline"]
METHODS: tuple[Method, ...] = ("block", "semi-global", "scanline")
STEP = 16
"""OpenCV searches multiples of this many disparities, and counts sixteenths of a pixel."""
COARSE, COARSE_WINDOW = 4, 9
"""How many times smaller the images are in which the largest disparity is found, and the window there."""
WIDEST = 0.25
"""Largest disparity that is looked for, as a share of the width."""


@dataclass(frozen=True)
class StereoSearch:
    """How pixels are matched.

    Attributes
    ----------
    method : str
        `block`: windows compared by the sum of absolute differences, from both images. `semi-global`:
        Hirschmüller 2008, costs summed along five paths. `scanline`: the same along three, faster.
    window : int
        Edge of the matching window in pixels.
    disparities : int
        How many are searched, from 0 for infinity upwards; 0 for as many as a coarse search finds use for.
    uniqueness : int
        Percent by which the best match must be better than the second best.
    speckle : int
        Largest patch, in pixels, that differs from all around it and is left out.
    false_alarms : float
        Share of surface without texture, such as sky, that is matched all the same (`texture`); 1: all.
    """

    method: Method = "scanline"
    window: int = 5
    disparities: int = 0
    uniqueness: int = 10
    speckle: int = 200
    false_alarms: float = 0.001


def match_stereo(left: Image, right: Image, search: StereoSearch) -> Image:
    """Return the disparity image of a rectified pair.

    Its mode is `disparity`, its values are float32, in pixels, NaN where not matched: where a pixel is hidden
    from the right camera, where another match is nearly as good, where it is a speckle, where either image
    has nothing measured, and where they have nothing but noise to show. The `P` of its camera has the
    baseline; what the principal points are apart is taken off.
    """
    camera = disparity_camera(left, right)
    grays = gray_of(left), gray_of(right)
    if min(grays[0].shape) <= search.window:
        raise TransectError(
            f"images of {left.width} x {left.height} pixels are too small to match",
            why=f"the matching window has {search.window} pixels",
        )
    count = count_disparities(*grays, search)
    found = _disparities(*grays, search, count)
    if search.method == "block":
        found[~_is_consistent(*grays, found, search, count)] = np.nan
    if search.false_alarms < 1:
        found[~shared_texture(*grays, found, search.false_alarms / count)] = np.nan
    if left.valid is not None:
        found[~left.valid] = np.nan
    if right.valid is not None:
        found[_partner_missing(found, right.valid)] = np.nan
    found -= np.float32(zero_disparity(camera, require_camera(right)))
    found[~(found > 0)] = np.nan
    return Image(found, "disparity", left.t_ns, left.frame, camera)


def coverage(disparity: Image) -> float:
    """Return the share of the pixels that were matched."""
    return float(np.isfinite(disparity.data).mean())


def count_disparities(left: Bytes, right: Bytes, search: StereoSearch) -> int:
    """Return how many disparities are searched: whole multiples of 16.

    Where the caller does not say, blocks are matched in images a quarter as large, and what all but 0.5 % of
    them have is enough, with a quarter of that and half a step of 16 to spare.
    """
    import cv2

    if search.disparities:
        return _whole_steps(search.disparities)
    height, width = left.shape
    widest, size = _whole_steps(WIDEST * width), (width // COARSE, height // COARSE)
    if min(size) <= COARSE_WINDOW:
        return widest
    small, beside = (
        np.asarray(cv2.resize(each, size, interpolation=cv2.INTER_AREA), np.uint8) for each in (left, right)
    )
    blocks = StereoSearch("block", COARSE_WINDOW, speckle=20)
    found = _disparities(small, beside, blocks, _whole_steps(widest / COARSE))
    if not np.isfinite(found).any():
        return widest
    return min(widest, _whole_steps(1.25 * COARSE * float(np.nanquantile(found, 0.995)) + STEP / 2))


def _whole_steps(pixels: float) -> int:
    return max(STEP, int(np.ceil(pixels / STEP)) * STEP)


def _disparities(left: Bytes, right: Bytes, search: StereoSearch, count: int) -> NDArray[np.float32]:
    """Return disparities (h, w) in pixels, NaN where OpenCV found none."""
    import cv2

    # OpenCV leaves out as many columns at the left edge as there are disparities; a margin brings back those
    # of them whose partner is in the image.
    padded = (cv2.copyMakeBorder(each, 0, 0, count, 0, cv2.BORDER_REPLICATE) for each in (left, right))
    raw = np.asarray(_matcher(search, count).compute(*padded))[:, count:]
    found = raw.astype(np.float32) / np.float32(STEP)
    outside = found > np.arange(left.shape[1], dtype=np.float32)
    found[(raw < 0) | outside] = np.nan
    return found


def _is_consistent(
    left: Bytes, right: Bytes, found: NDArray[np.float32], search: StereoSearch, count: int
) -> NDArray[np.bool_]:
    """Return where (h, w) the right image, matched with the left one, has the same disparities to a pixel.

    OpenCV's block matcher compares with the right image's best match among the costs of the left one only,
    which misses part of what is hidden from the right camera.
    """
    first, second = (np.ascontiguousarray(each[:, ::-1]) for each in (right, left))
    back = _disparities(first, second, search, count)[:, ::-1]
    columns = np.arange(found.shape[1]) - np.nan_to_num(np.rint(found)).astype(np.int64)
    there = np.take_along_axis(back, np.clip(columns, 0, found.shape[1] - 1), axis=1)
    return np.abs(there - found) <= 1


def _matcher(search: StereoSearch, count: int) -> Any:
    import cv2

    if search.method == "block":
        matcher = cv2.StereoBM.create(count, max(search.window, 5))
        matcher.setUniquenessRatio(search.uniqueness)
        matcher.setTextureThreshold(0)  # in grey levels, which says nothing; `texture` takes its place
        matcher.setDisp12MaxDiff(1)
        matcher.setSpeckleWindowSize(search.speckle)
        matcher.setSpeckleRange(STEP)  # a pixel: this matcher counts sixteenths here, the other one pixels
        return matcher
    area = search.window**2
    modes = {"semi-global": cv2.StereoSGBM_MODE_SGBM, "scanline": cv2.StereoSGBM_MODE_SGBM_3WAY}
    return cv2.StereoSGBM.create(
        minDisparity=0, numDisparities=count, blockSize=search.window,
        P1=8 * area, P2=32 * area,  # as OpenCV recommends for one channel
        disp12MaxDiff=1, preFilterCap=63, uniquenessRatio=search.uniqueness,
        speckleWindowSize=search.speckle, speckleRange=1, mode=modes[search.method],
    )  # fmt: skip


def _partner_missing(found: NDArray[np.float32], valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell where the matched pixel of the right image was not measured."""
    columns = np.arange(found.shape[1]) - np.nan_to_num(np.rint(found)).astype(np.int64)
    return ~np.take_along_axis(valid, np.clip(columns, 0, found.shape[1] - 1), axis=1)
