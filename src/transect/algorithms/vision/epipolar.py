"""Two-view geometry: the fundamental matrix, and the relative pose of the cameras."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.geometry import align, robust, rotations, se3
from transect.types import CameraModel

from .triangulation import focal_length, homogeneous, normalise_pixels, triangulate, undistort_points

HOMOGRAPHY_THRESHOLD_FACTOR = 1.62
"""Threshold of distances from a homography relative to distances from epipolar lines: 99.7 % of them are
within 4.86 and 3 standard deviations, as the former have two coordinates and the noise of both pixels."""
DIFFERENCE_STEP_RAD = 1e-6
"""Step of numerical derivatives."""


def epipolar_distances(F: Floats, source: Floats, sink: Floats) -> Floats:
    """Return the signed Sampson distances (n,) in pixels of pairs from ``x_sink' F x_source = 0``.

    If both pixels have the same standard deviation, the distance has it, too.
    """
    a, b = homogeneous(source), homogeneous(sink)
    line_in_b, line_in_a = a @ F.T, b @ F
    slope = np.sqrt(np.sum(line_in_b[:, :2] ** 2 + line_in_a[:, :2] ** 2, axis=1))
    return np.sum(b * line_in_b, axis=1) / np.maximum(slope, np.finfo(np.float64).tiny)


def sample_fundamental(source: Floats, sink: Floats, method: int, threshold: float) -> Floats | None:
    """Return a fundamental matrix (3, 3) of pairs (n, 2) by a sampling method of OpenCV, or None."""
    import cv2

    cv2.setRNGSeed(0)
    return _as_single_matrix(cv2.findFundamentalMat(source, sink, method, threshold, 0.9999, 5000)[0])


def refit_fundamental(F: Floats, source: Floats, sink: Floats, threshold: float) -> Floats:
    """Return the least-squares matrix of the inliers of F."""
    import cv2

    best = F
    for _ in range(3):
        good = np.abs(epipolar_distances(best, source, sink)) <= threshold
        if np.count_nonzero(good) < 8:
            break
        better = _as_single_matrix(cv2.findFundamentalMat(source[good], sink[good], cv2.FM_8POINT)[0])
        if better is None:
            break
        best = better
    return best


def _as_single_matrix(found: Any) -> Floats | None:
    """Return a matrix (3, 3) of OpenCV; None if it found none, or several."""
    if found is None or found.shape != (3, 3) or not np.isfinite(found).all():
        return None
    return np.asarray(found, np.float64)


def off_plane_ratio(source: Floats, sink: Floats, threshold: float) -> float:
    """Return the ratio of pairs (n, 2) that are outliers of the best homography.

    Near 0 the scene is flat or distant, or the camera only rotated: then a family of fundamental matrices
    fits the pairs (Hartley and Zisserman, 11.9). `threshold` is that of the fundamental matrix (px).
    """
    import cv2

    cv2.setRNGSeed(0)
    found: Any = cv2.findHomography(
        source, sink, cv2.RANSAC, HOMOGRAPHY_THRESHOLD_FACTOR * threshold, maxIters=200
    )
    return 1.0 if found[0] is None else 1.0 - np.count_nonzero(found[1]) / len(source)


# From the fundamental matrix to the relative pose


@dataclass(frozen=True)
class RelativePose:
    """The pose of the second camera in the frame of the first, at a distance of one."""

    T_source_sink: Floats  # (4, 4)
    # (6, 6): translation, with no variance along itself, then rotation (rad), in the first camera
    covariance: Floats
    in_front: float  # ratio of pairs in front of both cameras
    parallax: float  # rad, median angle between the two rays of a pair


@dataclass(frozen=True)
class PixelPairs:
    """Matched pixels (n, 2) of two calibrated cameras, without lens distortion."""

    source: Floats
    sink: Floats
    K_source: Floats
    K_sink: Floats

    @classmethod
    def of(cls, source: Any, sink: Any, one: CameraModel, other: CameraModel) -> PixelPairs:
        """Return the pairs that are inside both lens models."""
        a, b = undistort_points(source, one), undistort_points(sink, other)
        seen = np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1)
        return cls(a[seen], b[seen], one.K, other.K)

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: Mask) -> PixelPairs:
        """Return a subset of the pairs."""
        return PixelPairs(self.source[rows], self.sink[rows], self.K_source, self.K_sink)

    @cached_property
    def normalised(self) -> Floats:
        """Normalised coordinates (n, 2, 2): pair, camera, coordinate."""
        both = [(self.source, self.K_source), (self.sink, self.K_sink)]
        return np.stack([normalise_pixels(pixels, _pinhole(K)) for pixels, K in both], axis=1)

    @cached_property
    def focal_lengths(self) -> Floats:
        """(2,) pixels."""
        return np.array([focal_length(_pinhole(K)) for K in (self.K_source, self.K_sink)])


def _pinhole(K: Floats) -> CameraModel:
    return CameraModel("", 0, 0, K)


def rotation_residual_px(pairs: PixelPairs) -> float:
    """Return the median residual in pixels of pairs after the best rotation of the camera."""
    rays = homogeneous(pairs.normalised)
    rays = rays / np.linalg.norm(rays, axis=-1, keepdims=True)
    a, b = rays[:, 0], rays[:, 1]
    # With both signs the centroid is the origin, so that Horn's method estimates a pure rotation.
    R = align.horn(np.concatenate([a, -a]), np.concatenate([b, -b])).rotation
    return float(np.median(np.linalg.norm(b - a @ R.T, axis=1)) * pairs.focal_lengths.mean())


def relative_pose_from_fundamental(F: Floats, pairs: PixelPairs, sigma: float) -> RelativePose | None:
    """Return the relative pose of a fundamental matrix, refined on pairs; None if it is ambiguous.

    Parameters
    ----------
    F : (3, 3)
        For pixels without lens distortion.
    pairs : PixelPairs
        Inliers of F.
    sigma : float
        Standard deviation of a pixel coordinate.
    """
    chosen = _select_by_cheirality(pairs.K_sink.T @ F @ pairs.K_source, pairs, sigma)
    if chosen is None:
        return None
    T, covariance = _refine(chosen, pairs, sigma)
    seen = triangulate([np.eye(4), se3.invert(T)], pairs.normalised, sigma / pairs.focal_lengths)
    return RelativePose(T, covariance, float(np.mean(seen.in_front)), float(np.median(seen.parallax)))


def _select_by_cheirality(E: Floats, pairs: PixelPairs, sigma: float) -> Floats | None:
    """Return the one of the four poses of an essential matrix that has the most points in front."""
    import cv2

    first, second, t = cv2.decomposeEssentialMat(E)
    candidates = [se3.invert(se3.from_matrix(R, s * t.ravel())) for R in (first, second) for s in (1, -1)]
    sigmas = sigma / pairs.focal_lengths
    counts = [
        np.count_nonzero(triangulate([np.eye(4), se3.invert(T)], pairs.normalised, sigmas).in_front)
        for T in candidates
    ]
    order = np.argsort(counts, kind="stable")[::-1]
    # Noise puts some distant points behind; for the wrong poses nearly all of them are.
    if counts[order[0]] < 0.75 * len(pairs) or counts[order[1]] > 0.7 * counts[order[0]]:
        return None
    return candidates[order[0]]


def _refine(T: Floats, pairs: PixelPairs, sigma: float) -> tuple[Floats, Floats]:
    """Return the pose with the least robust epipolar distances, and its covariance (6, 6)."""
    best = T
    for _ in range(10):
        tangents = _tangent_basis(best[:3, 3])
        residual, slopes = _jacobian(best, tangents, pairs)
        weight = np.sqrt(robust.huber_weights(residual / sigma))
        solved = np.linalg.lstsq(weight[:, None] * slopes, -weight * residual, rcond=None)[0]
        step = np.asarray(solved, np.float64)
        best = _move(best, tangents, step)
        if np.abs(step).max() < DIFFERENCE_STEP_RAD:
            break
    tangents = _tangent_basis(best[:3, 3])
    _, slopes = _jacobian(best, tangents, pairs)
    lift = np.zeros((6, 5))
    lift[:3, :2], lift[3:, 2:] = tangents, np.eye(3)
    return best, lift @ np.linalg.pinv(slopes.T @ slopes) @ lift.T * sigma**2


def _jacobian(T: Floats, tangents: Floats, pairs: PixelPairs) -> tuple[Floats, Floats]:
    """Return the epipolar distances (n,), and their derivatives (n, 5) by direction and rotation."""
    residual = _distances(T, pairs)
    ahead = [_distances(_move(T, tangents, move), pairs) for move in DIFFERENCE_STEP_RAD * np.eye(5)]
    return residual, (np.array(ahead) - residual).T / DIFFERENCE_STEP_RAD


def _distances(T: Floats, pairs: PixelPairs) -> Floats:
    # x_sink = R' (x_source - p): coplanar with p, hence E = R' [p]x.
    E = T[:3, :3].T @ rotations.skew(T[:3, 3])
    F = np.linalg.solve(pairs.K_sink.T, E) @ np.linalg.inv(pairs.K_source)
    return epipolar_distances(F, pairs.source, pairs.sink)


def _tangent_basis(direction: Floats) -> Floats:
    """Return two unit vectors (3, 2) that are perpendicular to a direction and to each other."""
    return np.linalg.svd(direction[None])[2][1:].T


def _move(T: Floats, tangents: Floats, step: Floats) -> Floats:
    direction = T[:3, 3] + tangents @ step[:2]
    rotation = rotations.matrix_from_rotation_vector(step[2:]) @ T[:3, :3]
    return se3.from_matrix(rotation, direction / np.linalg.norm(direction))
