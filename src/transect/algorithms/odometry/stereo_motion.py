"""Where a stereo pair is that sees known points: sampled consensus, then least squares on all pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.geometry import robust, rotations, se3

from .stereo_rig import StereoRig

SAMPLES = 100
"""Quadruples that are tried: with half of the points wrong, 99.8 % sure that a good one is among them."""
CONSENSUS = 2.0
"""Pixels by which a point may miss in the sampled pose."""
STEPS, STILL = 10, 3e-5
"""Gauss-Newton steps, and the length of one (m, rad) that ends them."""
CAUCHY = 2.3849
"""Standard deviations at which a point counts half: 95 % efficient where the noise is normal."""
SIGMA = 0.3
"""Pixels: least noise of a tracked point, below which no measured spread is believed."""
OUTLIER = 4.0
"""Standard deviations beyond which a point does not belong to the motion."""


@dataclass(frozen=True, eq=False)
class Located:
    """A camera among known points.

    Attributes
    ----------
    T_camera_world : (4, 4)
    covariance : (6, 6)
        Of a small motion of the world seen in the camera, ``exp(xi) T``: translation (m), rotation (rad).
    inliers : (n,) bool
        Points that agree.
    """

    T_camera_world: Floats
    covariance: Floats
    inliers: Mask


def locate(points: Floats, seen: Floats, rig: StereoRig, guess: Floats) -> Located | None:
    """Return the pose of a pair that sees points (n, 3) at pixels (n, 3); None where no consensus is found.

    Parameters
    ----------
    points : (n, 3)
        Metres, in the world.
    seen : (n, 3)
        Left column, left row, right column; the right column may be NaN.
    guess : (4, 4)
        ``T_camera_world`` that was expected; it stays in the running beside the sampled ones.
    """
    start = _sample(points, seen, rig)
    if start is None:
        return None
    best = max((start, guess), key=lambda pose: np.count_nonzero(_close(points, seen, rig, pose)))
    return refine(points, seen, rig, best)


def refine(
    points: Floats, seen: Floats, rig: StereoRig, start: Floats, within: float = CONSENSUS
) -> Located | None:
    """Return the pose near a first one (4, 4) that fits the points which miss by few pixels there."""
    close = _close(points, seen, rig, start, within)
    return None if np.count_nonzero(close) < 4 else _refine(points, seen, rig, start, close)


def _sample(points: Floats, seen: Floats, rig: StereoRig) -> Floats | None:
    import cv2

    if len(points) < 4:
        return None
    cv2.setRNGSeed(0)
    found, turn, shift, _ = cv2.solvePnPRansac(
        np.ascontiguousarray(points), np.ascontiguousarray(seen[:, :2]), rig.K, None,
        flags=cv2.SOLVEPNP_AP3P, reprojectionError=CONSENSUS, iterationsCount=SAMPLES, confidence=0.999,
    )  # fmt: skip
    if not found:
        return None
    return se3.from_matrix(rotations.matrix_from_rotation_vector(turn.ravel()), shift.ravel())


def _close(points: Floats, seen: Floats, rig: StereoRig, T: Floats, within: float = CONSENSUS) -> Mask:
    return _squares(_misses(points, seen, rig, T)) < 2 * within**2


def _misses(points: Floats, seen: Floats, rig: StereoRig, T: Floats) -> Floats:
    """Pixels (n, 3) by which points are seen elsewhere; 0 where the right column was not measured."""
    missed = rig.pixels(se3.apply(T, points)) - seen
    missed[np.isnan(seen[:, 2]), 2] = 0.0
    return missed


def _squares(missed: Floats) -> Floats:
    """Squared lengths (n,) of misses (n, 3); infinite for points behind the camera."""
    squares = np.einsum("nk,nk->n", missed, missed)
    return np.where(np.isnan(squares), np.inf, squares)


def _refine(points: Floats, seen: Floats, rig: StereoRig, start: Floats, close: Mask) -> Located | None:
    """Gauss and Newton on all three pixels with Cauchy weights, in units of what the points scatter."""
    p, s = points[close], seen[close]
    unmatched = np.isnan(s[:, 2])
    sigma = max(float(robust.nmad(_misses(p, s, rig, start))), SIGMA)
    pose, normal = start, np.zeros((6, 6))
    for _ in range(STEPS):
        moved = p @ pose[:3, :3].T + pose[:3, 3]
        missed = rig.pixels(moved) - s
        missed[unmatched, 2] = 0.0
        weight = 1.0 / (1.0 + _squares(missed) / (CAUCHY * sigma) ** 2)
        slopes = pixel_slopes(moved, unmatched, rig)
        weighted = (weight[:, None, None] * slopes).reshape(-1, 6)
        normal = weighted.T @ slopes.reshape(-1, 6)
        missed[np.isnan(missed)] = 0.0
        step = -np.linalg.lstsq(normal, weighted.T @ missed.ravel())[0].astype(np.float64)
        pose = shift_pose(pose, step)
        if np.linalg.norm(step) < STILL:
            break
    if not np.isfinite(pose).all() or np.linalg.matrix_rank(normal) < 6:
        return None
    inliers = _squares(_misses(points, seen, rig, pose)) < (OUTLIER * sigma) ** 2
    return Located(pose, np.asarray(sigma**2 * np.linalg.inv(normal), np.float64), inliers)


def shift_pose(pose: Floats, step: Floats) -> Floats:
    """Return a pose after a small motion (6,) in the camera: turned, then shifted."""
    import cv2

    shift = np.eye(4)
    shift[:3, :3], shift[:3, 3] = cv2.Rodrigues(step[3:])[0], step[:3]
    return shift @ pose


def pixel_slopes(moved: Floats, unmatched: Mask, rig: StereoRig) -> Floats:
    """Derivatives (n, 3, 6) of pixels by a small motion ``exp(xi)`` of points (n, 3) in the camera."""
    x, y, z = moved.T
    u, v, by_depth = x / z, y / z, 1.0 / z
    slopes = np.zeros((len(moved), 3, 6))
    slopes[:, 0, 0] = by_depth
    slopes[:, 0, 2], slopes[:, 0, 3] = -u * by_depth, -u * v
    slopes[:, 0, 4], slopes[:, 0, 5] = 1 + u * u, -v
    slopes[:, 2] = slopes[:, 0]
    # The right column is the left one less a disparity that only depth changes.
    slopes[:, 2, 2] += rig.baseline * by_depth**2
    slopes[:, 2, 3] += rig.baseline * by_depth * v
    slopes[:, 2, 4] -= rig.baseline * by_depth * u
    slopes[:, 1, 1] = by_depth
    slopes[:, 1, 2], slopes[:, 1, 3] = -v * by_depth, -(1 + v * v)
    slopes[:, 1, 4], slopes[:, 1, 5] = u * v, u
    slopes *= np.array([rig.fx, rig.fy, rig.fx])[:, None]
    slopes[unmatched, 2] = 0.0
    return slopes
