"""Rigid transforms from matched points, and the pose of a camera from known points (perspective-n-point)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.errors import GeometryError
from transect.geometry import align, rotations, se3


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
    ahead = in_camera[:, 2] > 1e-9
    projected = in_camera @ K.T
    flat = projected[:, :2] / np.where(ahead, projected[:, 2], 1.0)[:, None]
    return np.where(ahead, np.linalg.norm(flat - pixels, axis=1), np.inf)


def _transform(rotation: Any, translation: Any) -> Floats | None:
    if not (np.isfinite(rotation).all() and np.isfinite(translation).all()):
        return None
    return se3.from_matrix(rotations.matrix_from_rotation_vector(np.ravel(rotation)), np.ravel(translation))


# Transforms between matched points in space


class RobustTransform(NamedTuple):
    """A transform and its inliers."""

    T: Floats  # (4, 4), T_sink_source
    inliers: Mask  # (n,)


class TransformEstimate(NamedTuple):
    """A least-squares transform with its covariance and residuals."""

    T: Floats  # (4, 4), T_sink_source
    covariance: Floats  # (6, 6): m, then rad, in the sink
    squares: float  # m^2, sum of the squared residuals
    pairs: int


def fit_transform(source: Floats, sink: Floats) -> RobustTransform | None:
    """Return the least-squares transform of points (n, 3) to points (n, 3); None if underdetermined."""
    T = solve_weighted_horn(source, sink, np.ones(len(source)))
    return None if T is None else RobustTransform(T, np.ones(len(source), np.bool_))


def fit_transform_robustly(source: Floats, sink: Floats, threshold: float) -> RobustTransform | None:
    """Return the transform of truncated least squares (Yang, Antonante, Tzoumas, Carlone, RA-L 5(2), 2020).

    Graduated non-convexity: a nearly convex surrogate approaches the truncated cost in steps, each of which
    is a weighted least-squares problem in closed form. Matches (n, 3) with residuals above `threshold` (m)
    are outliers.
    """
    found = fit_transform(source, sink)
    if found is None:
        return None
    squares, limit = _squared_distances(found.T, source, sink), threshold**2
    if squares.max() <= limit:
        return found
    mu, weight = limit / max(2 * squares.max() - limit, limit), np.ones(len(source))
    for _ in range(100):
        before, weight = weight, _gnc_weights(squares, limit, mu)
        solved = solve_weighted_horn(source, sink, weight)
        if solved is None:
            return None
        squares, mu = _squared_distances(solved, source, sink), mu * 1.4  # factor of V-A
        if np.allclose(before, weight, atol=1e-6) and np.all(np.minimum(weight, 1 - weight) < 1e-3):
            break
    good = squares <= limit
    final = solve_weighted_horn(source, sink, good.astype(np.float64))
    return None if final is None else RobustTransform(final, good)


def _gnc_weights(squares: Floats, limit: float, mu: float) -> Floats:
    """Return the weights (n,) of eq. 14, from 1 for inliers to 0 for outliers."""
    with np.errstate(divide="ignore"):
        return np.clip(np.sqrt(limit * mu * (mu + 1) / squares) - mu, 0.0, 1.0)


def solve_weighted_horn(source: Floats, sink: Floats, weight: Floats) -> Floats | None:
    """Return the weighted least-squares ``T_sink_source`` (4, 4); None if underdetermined."""
    if np.count_nonzero(weight) < 3:
        return None
    ratio = (weight / weight.sum())[:, None]
    a, b = source - np.sum(ratio * source, axis=0), sink - np.sum(ratio * sink, axis=0)
    a, b = np.sqrt(ratio) * a, np.sqrt(ratio) * b
    try:  # with both signs the centroid is the origin, so that Horn's method does not shift them again
        R = align.horn(np.concatenate([a, -a]), np.concatenate([b, -b])).rotation
    except GeometryError:
        return None
    return se3.from_matrix(R, np.sum(ratio * (sink - source @ R.T), axis=0))


def evaluate_transform(T: Floats, source: Floats, sink: Floats) -> TransformEstimate:
    """Return a least-squares transform with the covariance that follows from its residuals."""
    moved = se3.apply(T, source)
    squares = float(np.sum((sink - moved) ** 2))
    jacobian = np.concatenate(
        [np.broadcast_to(np.eye(3), (len(moved), 3, 3)), -rotations.skew(moved)], axis=2
    )
    jacobian = jacobian.reshape(-1, 6)
    variance = squares / max(len(jacobian) - 6, 1)
    # From a rotation about the sink's origin to one about the source's origin.
    shift = np.eye(6)
    shift[:3, 3:] = -rotations.skew(T[:3, 3])
    return TransformEstimate(
        T, variance * shift @ np.linalg.pinv(jacobian.T @ jacobian) @ shift.T, squares, len(source)
    )


def _squared_distances(T: Floats, source: Floats, sink: Floats) -> Floats:
    return np.sum((sink - se3.apply(T, source)) ** 2, axis=1)
