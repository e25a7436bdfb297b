"""Perspective-n-point: the pose of a camera from known points."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.geometry import rotations, se3

MIN_DEPTH_M = 1e-9
"""Nearer points are not projected."""


def solve_pnp(points: Floats, pixels: Floats, K: Floats, method: int) -> Floats | None:
    """Return ``T_camera_world`` (4, 4) of points (n, 3) and pixels by an OpenCV solver, or None."""
    import cv2

    try:
        found, rotation, translation = cv2.solvePnP(points, pixels, K, None, flags=method)
    except cv2.error:  # points on a line, or too few for this solver
        return None
    return _transform(rotation, translation) if found else None


def solve_pnp_ransac(points: Floats, pixels: Floats, K: Floats, threshold: float) -> Floats | None:
    """Return ``T_camera_world`` (4, 4) with the most inliers among points (n, 3) by AP3P samples, or None."""
    import cv2

    cv2.setRNGSeed(0)
    found, rotation, translation, _ = cv2.solvePnPRansac(
        points,
        pixels,
        K,
        None,
        iterationsCount=1000,
        reprojectionError=threshold,
        confidence=0.9999,
        flags=cv2.SOLVEPNP_AP3P,
    )
    return _transform(rotation, translation) if found else None


def refine_pose(T_camera_world: Floats, points: Floats, pixels: Floats, K: Floats) -> Floats:
    """Return the pose with the least squared reprojection errors near an initial pose."""
    import cv2

    rotation = rotations.rotation_vector_from_matrix(T_camera_world[:3, :3]).reshape(3, 1)
    translation = T_camera_world[:3, 3].reshape(3, 1).copy()
    better = _transform(*cv2.solvePnPRefineLM(points, pixels, K, None, rotation, translation))
    return T_camera_world if better is None else better


def refine_on_inliers(
    T_camera_world: Floats, points: Floats, pixels: Floats, K: Floats, threshold: float
) -> tuple[Floats, Mask]:
    """Return the pose refined on its inliers, and the inliers (n,)."""
    best = T_camera_world
    inliers = pixel_distances(best, points, pixels, K) <= threshold
    for _ in range(3):
        if np.count_nonzero(inliers) < 6:
            break
        best = refine_pose(best, points[inliers], pixels[inliers], K)
        before, inliers = inliers, pixel_distances(best, points, pixels, K) <= threshold
        if np.array_equal(before, inliers):
            break
    return best, inliers


def pixel_distances(T_camera_world: Floats, points: Floats, pixels: Floats, K: Floats) -> Floats:
    """Return the reprojection errors (n,) in pixels; infinite behind the camera."""
    in_camera = se3.apply(T_camera_world, points)
    ahead = in_camera[:, 2] > MIN_DEPTH_M
    projected = in_camera @ K.T
    flat = projected[:, :2] / np.where(ahead, projected[:, 2], 1.0)[:, None]
    return np.where(ahead, np.linalg.norm(flat - pixels, axis=1), np.inf)


def _transform(rotation: Any, translation: Any) -> Floats | None:
    if not (np.isfinite(rotation).all() and np.isfinite(translation).all()):
        return None
    return se3.from_matrix(rotations.matrix_from_rotation_vector(np.ravel(rotation)), np.ravel(translation))
