"""Depth from one camera that moves: points from several views, and the first motion between two of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.geometry import se3

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST_ANGLE = np.radians(1.5)
"""Between rays: at a focal length of 400 pixels, one pixel is a tenth of it, and so of the depth."""
CLOSE = 2.0
"""Pixels by which a point may miss where it was seen."""
SURE, THRESHOLD = 0.999, 1.0
"""Confidence of the sampled essential matrix, and pixels that a point may be off its epipolar line."""


def rays(pixels: Floats, K: Floats) -> Floats:
    """Unit vectors (n, 3) in the camera through pixels (n, 2)."""
    across = (pixels - K[:2, 2]) / np.diag(K)[:2]
    through = np.column_stack([across, np.ones(len(pixels))])
    return through / np.linalg.norm(through, axis=1, keepdims=True)


def project(points: Floats, K: Floats) -> Floats:
    """Pixels (n, 2) of points (n, 3) in the camera; NaN behind it."""
    depth = np.where(points[:, 2:] > 0, points[:, 2:], np.nan)
    return points[:, :2] / depth * np.diag(K)[:2] + K[:2, 2]


def triangulate(poses: Floats, pixels: Floats, K: Floats) -> Floats:
    """Points (n, 3) in the world nearest to the rays of all views; NaN where the views do not fix them.

    Parameters
    ----------
    poses : (k, 4, 4)
        ``T_world_camera`` of the views.
    pixels : (k, n, 2)
        NaN where a view does not show a point.
    """
    normal, goal = np.zeros((pixels.shape[1], 3, 3)), np.zeros((pixels.shape[1], 3))
    through = np.stack([rays(seen, K) @ T[:3, :3].T for T, seen in zip(poses, pixels, strict=True)])
    for T, ray in zip(poses, through, strict=True):
        across = np.nan_to_num(np.eye(3) - ray[:, :, None] * ray[:, None, :])
        normal += across
        goal += across @ T[:3, 3]
    fixed = _widest_angle(through) > LEAST_ANGLE
    points = np.full((len(normal), 3), np.nan)
    points[fixed] = np.linalg.solve(normal[fixed], goal[fixed][..., None])[..., 0]
    points[~_fits(points, poses, pixels, K)] = np.nan
    return points


def _widest_angle(through: Floats) -> Floats:
    """Largest angle (n,) in rad between the rays (k, n, 3) of each point; 0 with fewer than two."""
    known = np.isfinite(through).all(axis=2)
    first = np.nan_to_num(through[known.argmax(axis=0), np.arange(through.shape[1])])
    aligned = np.where(known, np.einsum("kni,ni->kn", np.nan_to_num(through), first), 1.0)
    return np.arccos(np.clip(aligned.min(axis=0), -1.0, 1.0))


def _fits(points: Floats, poses: Floats, pixels: Floats, K: Floats) -> Mask:
    """Tell which points (n,) are in front of all cameras that see them, and where they see them."""
    good: Mask = np.all(np.isfinite(points), axis=1, keepdims=True)[:, 0]
    for T, seen in zip(poses, pixels, strict=True):
        missed = np.linalg.norm(project(se3.apply(se3.invert(T), points), K) - seen, axis=1)
        good &= np.isnan(seen[:, 0]) | (np.nan_to_num(missed, nan=np.inf) < CLOSE)
    return good


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
