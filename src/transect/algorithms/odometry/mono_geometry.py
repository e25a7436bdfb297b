"""Depth from one camera that moves: points that its views fix, and the first motion between two of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.geometry import se3

from ..vision.triangulation import homogeneous, triangulate

PIXEL = 0.7
"""Pixels of noise of one observation."""
LEAST_ANGLE = np.radians(1.5)
"""Between rays: at a focal length of 400 pixels, one pixel is a tenth of it, and so of the depth."""
CLOSE = 2.0
"""Standard deviations by which a point may miss where it was seen, root mean square."""
SURE, THRESHOLD = 0.999, 1.0
"""Confidence of the sampled essential matrix, and pixels that a point may be off its epipolar line."""


def project(points: Floats, K: Floats) -> Floats:
    """Pixels (n, 2) of points (n, 3) in the camera; NaN behind it."""
    depth = np.where(points[:, 2:] > 0, points[:, 2:], np.nan)
    return points[:, :2] / depth * np.diag(K)[:2] + K[:2, 2]


def parallax(before: Floats, now: Floats, R_before_now: Floats, K: Floats) -> float:
    """Return the median way in pixels that points (n, 2) moved by more than the camera's turning does."""
    turned = project(homogeneous((before - K[:2, 2]) / np.diag(K)[:2]) @ R_before_now, K)
    return float(np.nanmedian(np.linalg.norm(now - turned, axis=1)))


class Deep(NamedTuple):
    """Points (n, 3) in the world, and their standard deviation (n,) in metres, all axes together."""

    points: Floats
    sigma: Floats


def find_points(poses: Floats, pixels: Floats, K: Floats) -> Deep:
    """Return the points that several views saw; NaN where the views do not fix them.

    Parameters
    ----------
    poses : (k, 4, 4)
        ``T_world_camera`` of the views, at least two.
    pixels : (k, n, 2)
        NaN where a view does not show a point.
    """
    focal = np.diag(K)[:2]
    places = np.swapaxes((pixels - K[:2, 2]) / focal, 0, 1)
    found = triangulate(se3.invert(poses), places, np.full(len(poses), PIXEL / focal.mean()))
    fixed = found.in_front & (found.parallax > LEAST_ANGLE) & (found.error < CLOSE)
    sigma = np.sqrt(np.trace(found.covariances, axis1=1, axis2=2))
    return Deep(np.where(fixed[:, None], found.points, np.nan), np.where(fixed, sigma, np.nan))


class FirstMotion(NamedTuple):
    """Between two views: ``R_before_now``, the direction (3,) in the camera before, and who agrees (n,)."""

    rotation: Floats
    direction: Floats
    inliers: Mask


def first_motion(before: Floats, now: Floats, K: Floats) -> FirstMotion | None:
    """Return how a camera moved between two views of points (n, 2), up to scale; None without consensus."""
    import cv2

    if len(before) < 8:
        return None
    cv2.setRNGSeed(0)
    found: Any = cv2.findEssentialMat(before, now, K, cv2.RANSAC, SURE, THRESHOLD)
    essential, agree = found
    if essential is None or essential.shape != (3, 3):
        return None
    _, R_now_before, shift, agree = cv2.recoverPose(essential, before, now, K, mask=agree)
    R = np.asarray(R_now_before, np.float64).T
    return FirstMotion(R, -R @ shift.ravel(), np.asarray(agree).ravel() > 0)
