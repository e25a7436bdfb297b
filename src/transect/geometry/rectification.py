"""Stereo rectification: rotations and projections that make epipolar lines horizontal and row-aligned."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats
from transect.errors import GeometryError

from . import se3

if TYPE_CHECKING:
    from transect.types import CameraModel


def rectify_pair(
    left: CameraModel, right: CameraModel, T_right_left: Floats, alpha: float = 0.0
) -> tuple[CameraModel, CameraModel]:
    """Return both cameras with rectifying `R` and `P` (Bouguet's algorithm, from OpenCV).

    Parameters
    ----------
    T_right_left : (4, 4)
        Takes points of the left camera to the right one; metres.
    alpha : float
        From 0 (only pixels valid in both images) to 1 (all pixels of the originals).
    """
    R_left, R_right, P_left, P_right = _bouguet(left, right, T_right_left, alpha)
    if abs(P_right[1, 3]) > abs(P_right[0, 3]) or P_right[0, 3] >= 0:
        raise GeometryError(
            f"{right.name} is not to the right of {left.name}",
            why=f"it is at {np.round(se3.invert(T_right_left)[:3, 3], 3).tolist()} m in the left camera",
            hint="the left image must be given first; vertical stereo pairs are not supported",
        )
    return dataclasses.replace(left, R=R_left, P=P_left), dataclasses.replace(right, R=R_right, P=P_right)


def _bouguet(left: CameraModel, right: CameraModel, T_right_left: Floats, alpha: float) -> list[Floats]:
    """Return R of the left camera and of the right one (3, 3), then their P (3, 4)."""
    import cv2

    size, flags = (left.width, left.height), cv2.CALIB_ZERO_DISPARITY
    rotation, translation = (
        np.ascontiguousarray(part) for part in (T_right_left[:3, :3], T_right_left[:3, 3:])
    )
    if left.distortion == "equidistant":
        lenses = _lens(left, 4), _lens(right, 4)
        found = cv2.fisheye.stereoRectify(
            left.K, lenses[0], right.K, lenses[1], size, rotation, translation, flags, balance=alpha
        )
    else:
        lenses = _lens(left, 0), _lens(right, 0)
        found = cv2.stereoRectify(
            left.K, lenses[0], right.K, lenses[1], size, rotation, translation, flags=flags, alpha=alpha
        )
    return [np.asarray(each, np.float64) for each in found[:4]]


def _lens(camera: CameraModel, count: int) -> Floats:
    return camera.coefficients if camera.distortion != "none" else np.zeros(count)
