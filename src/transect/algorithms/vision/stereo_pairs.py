"""Rectified pairs: what must be known of two cameras before rows can be compared."""

from __future__ import annotations

import dataclasses

import numpy as np

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.types import CameraModel, Image, StereoPair

from .rectification import differ_at_most, is_rectified, require_camera

ROWS_AGREE = 1.5
"""Pixels by which the principal points of a rectified pair may differ vertically."""


def is_rectified_pair(left: CameraModel, right: CameraModel) -> bool:
    """Tell whether the rows of two cameras correspond, and their baseline is known."""
    if not (is_rectified(left) and is_rectified(right) and _agree(left.K, right.K)):
        return False
    return right.P is not None and pair_baseline(left, right) > 0


def pair_baseline(left: CameraModel, right: CameraModel) -> float:
    """Return the distance between two rectified cameras in metres; NaN if it is not known."""
    # Datasets with more than two cameras (KITTI) count P[0, 3] of all of them from the first one.
    return right.baseline - (0.0 if left.P is None else left.baseline)


def disparity_camera(left: Image, right: Image) -> CameraModel:
    """Return the camera of the disparity image of a rectified pair.

    It is the left one with ``P[0, 3] = -fx * baseline``, so that nothing else is needed to make points of
    disparities.

    Raises
    ------
    TransectError
        If the pair is not rectified, of unequal size, or its baseline is not known.
    """
    first, second = require_camera(left), require_camera(right)
    if left.data.shape[:2] != right.data.shape[:2]:
        raise TransectError(
            f"the images of the pair differ in size: {left.data.shape[:2]} and {right.data.shape[:2]}"
        )
    if not is_rectified_pair(first, second):
        raise TransectError(
            f"the images of {first.name or 'left'} and {second.name or 'right'} are not rectified",
            why=_difference(first, second),
            hint="put StereoRectification before this",
        )
    return with_baseline(first, pair_baseline(first, second))


def with_baseline(camera: CameraModel, baseline: float) -> CameraModel:
    """Return a rectified camera whose `P` tells the distance in metres to its partner."""
    shift = np.array([[-camera.K[0, 0] * baseline], [0.0], [0.0]])
    return dataclasses.replace(camera, P=np.hstack([camera.K, shift]))


def zero_disparity(left: CameraModel, right: CameraModel) -> float:
    """Return the disparity in pixels of a point at infinity: how far the principal points are apart."""
    return float(left.K[0, 2] - right.K[0, 2])


def replace_images(pair: StereoPair, left: Image, right: Image) -> StereoPair:
    """Return a pair with other images, at the same time."""
    return dataclasses.replace(pair, left=left, right=right)


def _agree(left: Floats, right: Floats) -> bool:
    focal = differ_at_most(left[:2, :2], right[:2, :2], 1e-6 * (1 + np.abs(right[:2, :2])))
    return focal and abs(left[1, 2] - right[1, 2]) < ROWS_AGREE


def _difference(left: CameraModel, right: CameraModel) -> str:
    for camera in (left, right):
        if not is_rectified(camera):
            return f"{camera.name} has a lens ({camera.distortion}), or R and P that were not applied"
    if not _agree(left.K, right.K):
        return "their focal lengths or principal rows differ"
    return f"the P of {right.name} has no -fx * baseline at row 0, column 3"
