"""The pose of a camera from points whose place is known (perspective n-point)."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.geometry import rotations, se3

DEPTH = 1e-9
"""Metres: what is nearer to the plane of the camera than this has no pixel."""


def pose_of_all(points: Floats, pixels: Floats, K: Floats, method: int) -> Floats | None:
    """Return ``T_camera_world`` (4, 4), or None, by one of OpenCV's solvers for (n, 3) points and pixels."""
    import cv2

    try:
        found, turn, shift = cv2.solvePnP(points, pixels, K, None, flags=method)
    except cv2.error:  # points on a line, or too few for this solver
        return None
    return _transform(turn, shift) if found else None


def pose_of_most(points: Floats, pixels: Floats, K: Floats, threshold: float) -> Floats | None:
    """Return ``T_camera_world`` (4, 4) that most points (n, 3) agree with, or None; AP3P on samples."""
    import cv2

    cv2.setRNGSeed(0)
    found, turn, shift, _ = cv2.solvePnPRansac(
        points,
        pixels,
        K,
        None,
        iterationsCount=1000,
        reprojectionError=threshold,
        confidence=0.9999,
        flags=cv2.SOLVEPNP_AP3P,
    )
    return _transform(turn, shift) if found else None


def refine(T_camera_world: Floats, points: Floats, pixels: Floats, K: Floats) -> Floats:
    """Return the pose of least squared pixel distances near a pose."""
    import cv2

    turn = rotations.rotation_vector_from_matrix(T_camera_world[:3, :3]).reshape(3, 1)
    shift = T_camera_world[:3, 3].reshape(3, 1).copy()
    better = _transform(*cv2.solvePnPRefineLM(points, pixels, K, None, turn, shift))
    return T_camera_world if better is None else better


def refine_on_inliers(
    T_camera_world: Floats, points: Floats, pixels: Floats, K: Floats, threshold: float
) -> tuple[Floats, Mask]:
    """Return the pose refined on the points that agree with it, and which those are (n,)."""
    best = T_camera_world
    inliers = pixel_distances(best, points, pixels, K) <= threshold
    for _ in range(3):
        if np.count_nonzero(inliers) < 6:
            break
        best = refine(best, points[inliers], pixels[inliers], K)
        before, inliers = inliers, pixel_distances(best, points, pixels, K) <= threshold
        if np.array_equal(before, inliers):
            break
    return best, inliers


def pixel_distances(T_camera_world: Floats, points: Floats, pixels: Floats, K: Floats) -> Floats:
    """Return the distances (n,) in pixels of points from where they were seen; infinite behind the camera."""
    there = se3.apply(T_camera_world, points)
    ahead = there[:, 2] > DEPTH
    projected = there @ K.T
    flat = projected[:, :2] / np.where(ahead, projected[:, 2], 1.0)[:, None]
    return np.where(ahead, np.linalg.norm(flat - pixels, axis=1), np.inf)


def _transform(turn: Any, shift: Any) -> Floats | None:
    if not (np.isfinite(turn).all() and np.isfinite(shift).all()):
        return None
    return se3.from_matrix(rotations.matrix_from_rotation_vector(np.ravel(turn)), np.ravel(shift))
