"""Two views of the same points: the fundamental matrix, and the motion between the cameras."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.geometry import align, robust, rotations, se3
from transect.types import CameraModel

from .triangulation import focal_length, homogeneous, places_of, straighten, triangulate

ROUNDS = 10
PLANE = 1.62
"""Limit of distances from a homography, which have two coordinates and the noise of both pixels, over that of
distances from epipolar lines, which have one: 99.7 % are within 4.86 deviations, and within 3."""
STEP = 1e-6
"""Of the differences by which residuals are derived; rad."""


def epipolar_distances(F: Floats, source: Floats, sink: Floats) -> Floats:
    """Return the signed first-order distances (n,) in pixels of pairs from ``x_sink' F x_source = 0``.

    Sampson's: where both pixels have the same standard deviation, so has the distance.
    """
    a, b = homogeneous(source), homogeneous(sink)
    line, back = a @ F.T, b @ F
    slope = np.sqrt(np.sum(line[:, :2] ** 2 + back[:, :2] ** 2, axis=1))
    return np.sum(b * line, axis=1) / np.maximum(slope, np.finfo(np.float64).tiny)


def fundamental_by_sampling(source: Floats, sink: Floats, method: int, threshold: float) -> Floats | None:
    """Return a fundamental matrix (3, 3) by one of OpenCV's samplings of pairs (n, 2), or None."""
    import cv2

    cv2.setRNGSeed(0)
    return _matrix(cv2.findFundamentalMat(source, sink, method, threshold, 0.9999, 5000)[0])


def refit_fundamental(F: Floats, source: Floats, sink: Floats, threshold: float) -> Floats:
    """Return the least-squares matrix of all pairs that agree with F, which came from a sample of seven."""
    import cv2

    best = F
    for _ in range(3):
        good = np.abs(epipolar_distances(best, source, sink)) <= threshold
        if np.count_nonzero(good) < 8:
            break
        better = _matrix(cv2.findFundamentalMat(source[good], sink[good], cv2.FM_8POINT)[0])
        if better is None:
            break
        best = better
    return best


def _matrix(found: Any) -> Floats | None:
    """Return what OpenCV found as one matrix (3, 3); it may be none, or several."""
    if found is None or found.shape != (3, 3) or not np.isfinite(found).all():
        return None
    return np.asarray(found, np.float64)


def off_plane(source: Floats, sink: Floats, threshold: float) -> float:
    """Return the part of pairs (n, 2) that no single homography explains; `threshold` is that of F (px).

    Near 0 the scene is flat, or far away, or the camera only turned: then the pairs fit a whole family of
    fundamental matrices (Hartley and Zisserman, 11.9).
    """
    import cv2

    cv2.setRNGSeed(0)
    found: Any = cv2.findHomography(source, sink, cv2.RANSAC, PLANE * threshold, maxIters=200)
    return 1.0 if found[0] is None else 1.0 - np.count_nonzero(found[1]) / len(source)


# From the fundamental matrix to the motion


@dataclass(frozen=True)
class Motion:
    """Where the second camera stood, in the frame of the first; the distance is one.

    Attributes
    ----------
    T_source_sink : (4, 4)
    covariance : (6, 6)
        Translation (of length one: its variance along itself is 0), then rotation (rad), in the first camera.
    in_front : float
        Part of the pairs that lie in front of both cameras.
    parallax : float
        Median angle in rad between the two rays of a pair.
    """

    T_source_sink: Floats
    covariance: Floats
    in_front: float
    parallax: float


@dataclass(frozen=True)
class Pairs:
    """Matched pixels (n, 2) of two calibrated cameras, without lens distortion."""

    source: Floats
    sink: Floats
    K_source: Floats
    K_sink: Floats

    @classmethod
    def of(cls, source: Any, sink: Any, one: CameraModel, other: CameraModel) -> Pairs:
        """Return the pairs that both lenses can have seen."""
        a, b = straighten(source, one), straighten(sink, other)
        seen = np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1)
        return cls(a[seen], b[seen], one.K, other.K)

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: Mask) -> Pairs:
        """Return some of them."""
        return Pairs(self.source[rows], self.sink[rows], self.K_source, self.K_sink)

    @cached_property
    def places(self) -> Floats:
        """(n, 2, 2): pair, camera, coordinate on the plane z = 1."""
        both = [(self.source, self.K_source), (self.sink, self.K_sink)]
        return np.stack([places_of(pixels, _pinhole(K)) for pixels, K in both], axis=1)

    @cached_property
    def focal_lengths(self) -> Floats:
        """(2,) pixels."""
        return np.array([focal_length(_pinhole(K)) for K in (self.K_source, self.K_sink)])


def _pinhole(K: Floats) -> CameraModel:
    return CameraModel("", 0, 0, K)


def measure_turn_residual(pairs: Pairs) -> float:
    """Return the median distance in pixels of pairs from where a camera that only turned would see them."""
    rays = homogeneous(pairs.places)
    rays = rays / np.linalg.norm(rays, axis=-1, keepdims=True)
    a, b = rays[:, 0], rays[:, 1]
    # Both signs, so that the points stand about the origin: a turn and no translation.
    R = align.horn(np.concatenate([a, -a]), np.concatenate([b, -b])).rotation
    return float(np.median(np.linalg.norm(b - a @ R.T, axis=1)) * pairs.focal_lengths.mean())


def motion_from(F: Floats, pairs: Pairs, sigma: float) -> Motion | None:
    """Return the motion that a fundamental matrix means and pairs refine; None where pairs do not choose one.

    Parameters
    ----------
    F : (3, 3)
        Of pixels without lens distortion.
    pairs : Pairs
        Those that agree with F.
    sigma : float
        Standard deviation of a pixel coordinate.
    """
    chosen = _in_front_of_both(pairs.K_sink.T @ F @ pairs.K_source, pairs, sigma)
    if chosen is None:
        return None
    T, covariance = _refine(chosen, pairs, sigma)
    seen = triangulate([np.eye(4), se3.invert(T)], pairs.places, sigma / pairs.focal_lengths)
    return Motion(T, covariance, float(np.mean(seen.in_front)), float(np.median(seen.parallax)))


def _in_front_of_both(E: Floats, pairs: Pairs, sigma: float) -> Floats | None:
    """Return that of the four motions of an essential matrix which has the most points in front."""
    import cv2

    first, second, t = cv2.decomposeEssentialMat(E)
    candidates = [se3.invert(se3.from_matrix(R, s * t.ravel())) for R in (first, second) for s in (1, -1)]
    sigmas = sigma / pairs.focal_lengths
    counts = [
        np.count_nonzero(triangulate([np.eye(4), se3.invert(T)], pairs.places, sigmas).in_front)
        for T in candidates
    ]
    order = np.argsort(counts, kind="stable")[::-1]
    # With noise some far points fall behind; the wrong motions have nearly all of them there.
    if counts[order[0]] < 0.75 * len(pairs) or counts[order[1]] > 0.7 * counts[order[0]]:
        return None
    return candidates[order[0]]


def _refine(T: Floats, pairs: Pairs, sigma: float) -> tuple[Floats, Floats]:
    """Return the motion of least robust epipolar distances, and its covariance (6, 6)."""
    best = T
    for _ in range(ROUNDS):
        across = _tangents(best[:3, 3])
        left, slopes = _slopes(best, across, pairs)
        weight = np.sqrt(robust.huber_weights(left / sigma))
        solved = np.linalg.lstsq(weight[:, None] * slopes, -weight * left, rcond=None)[0]
        step = np.asarray(solved, np.float64)
        best = _move(best, across, step)
        if np.abs(step).max() < STEP:
            break
    across = _tangents(best[:3, 3])
    _, slopes = _slopes(best, across, pairs)
    lift = np.zeros((6, 5))
    lift[:3, :2], lift[3:, 2:] = across, np.eye(3)
    return best, lift @ np.linalg.pinv(slopes.T @ slopes) @ lift.T * sigma**2


def _slopes(T: Floats, across: Floats, pairs: Pairs) -> tuple[Floats, Floats]:
    """Return the epipolar distances (n,) and their derivatives (n, 5): across the translation, then turns."""
    left = _distances(T, pairs)
    ahead = [_distances(_move(T, across, move), pairs) for move in STEP * np.eye(5)]
    return left, (np.array(ahead) - left).T / STEP


def _distances(T: Floats, pairs: Pairs) -> Floats:
    # x_sink = R' (x_source - p): coplanar with p, hence E = R' [p]x.
    E = T[:3, :3].T @ rotations.skew(T[:3, 3])
    F = np.linalg.solve(pairs.K_sink.T, E) @ np.linalg.inv(pairs.K_source)
    return epipolar_distances(F, pairs.source, pairs.sink)


def _tangents(direction: Floats) -> Floats:
    """Return two unit vectors (3, 2) that are perpendicular to a direction and to each other."""
    return np.linalg.svd(direction[None])[2][1:].T


def _move(T: Floats, across: Floats, step: Floats) -> Floats:
    direction = T[:3, 3] + across @ step[:2]
    turned = rotations.matrix_from_rotation_vector(step[2:]) @ T[:3, :3]
    return se3.from_matrix(turned, direction / np.linalg.norm(direction))
