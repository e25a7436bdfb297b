"""Rigid transforms between sets of matched points in space (CDFF's Transform3DEstimation)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.engine import Node, Unit, outputs, param
from transect.errors import GeometryError
from transect.geometry import align, rotations, se3
from transect.types import CorrespondenceMaps3D, Correspondences3D, Trajectory

STEPS = 100
GROWTH = 1.4
"""By how much the surrogate nears the truncated cost in each step (Yang et al. 2020, V-A)."""


class Found(NamedTuple):
    """T_sink_source (4, 4) and the matches (n,) that agree with it."""

    T: Floats
    good: Mask


class Judged(NamedTuple):
    """A transform, its covariance (6, 6), the sum of squares (m2) that it leaves, and of how many pairs."""

    T: Floats
    covariance: Floats
    squares: float
    pairs: int


@outputs
class Estimated:
    """How sets of points stand to each other.

    Attributes
    ----------
    transforms : Trajectory
        A pose for each map, in their order: of the source's frame in the sink's, so that it takes points of
        the source to the sink. One that could not be computed is all zeros, its quaternion too, as in CDFF;
        covariances are NaN there.
    success : bool
        Whether all could be computed.
    error : float
        Mean square distance that is left between the inliers.
    inliers : float
        Part of all matches.
    """

    transforms: Trajectory | None = None
    success: bool = False
    error: Annotated[float, Unit("m2")] | None = None
    inliers: float | None = None


class Transform3DEstimation(Node, interface=True):
    """Finds the transform between the frames of each pair of clouds from the points matched in both."""

    least: int = param(6, ge=3, doc="smallest number of matches, and of inliers, per transform")

    def process(self, matches: CorrespondenceMaps3D) -> Estimated:
        found = [self._estimate(each) for each in matches.maps]
        good = [each for each in found if each is not None]
        if len(good) < len(found) or not found:
            self.ctx.skip("too few matches, or they do not determine a transform")
        if not good:
            return Estimated()
        used, total = sum(each.pairs for each in good), sum(len(each) for each in matches.maps)
        error = sum(each.squares for each in good) / used
        return Estimated(_poses(found, matches.t_ns), len(good) == len(found), error, used / total)

    def solve(self, source: Floats, sink: Floats) -> Found | None:
        """Return the transform of points (n, 3) onto points (n, 3); None if they do not determine it."""
        raise NotImplementedError

    def _estimate(self, pairs: Correspondences3D) -> Judged | None:
        source, sink = np.asarray(pairs.source, np.float64), np.asarray(pairs.sink, np.float64)
        known = np.isfinite(np.concatenate([source, sink], axis=1)).all(axis=1)
        source, sink = source[known], sink[known]
        found = self.solve(source, sink) if len(source) >= self.least else None
        if found is None or np.count_nonzero(found.good) < self.least:
            return None
        return judge(found.T, source[found.good], sink[found.good])


class LeastSquaresMinimization(Transform3DEstimation):
    """Horn's closed form (1987) on all matches: for clean ones."""

    def solve(self, source: Floats, sink: Floats) -> Found | None:
        return least_squares(source, sink)


class RobustEstimation(Transform3DEstimation):
    """Truncated least squares by graduated non-convexity (Yang et al. 2020): for matches with outliers."""

    threshold: float = param(
        0.1,
        gt=0,
        unit="m",
        doc="largest distance between an inlier and its match: three deviations of a point",
    )

    def solve(self, source: Floats, sink: Floats) -> Found | None:
        return truncated_squares(source, sink, self.threshold)


def _poses(found: Sequence[Judged | None], t_ns: int) -> Trajectory:
    n = len(found)
    positions, orientations = np.zeros((n, 3)), np.zeros((n, 4))
    covariances = np.full((n, 6, 6), np.nan)
    for row, each in enumerate(found):
        if each is not None:
            orientations[row], positions[row] = se3.to_quaternion(each.T)
            covariances[row] = each.covariance
    return Trajectory(np.full(n, t_ns, np.int64), positions, orientations, covariances)


def least_squares(source: Floats, sink: Floats) -> Found | None:
    """Return the transform of least squares of points (n, 3) onto points (n, 3); None if undetermined."""
    T = weighted_horn(source, sink, np.ones(len(source)))
    return None if T is None else Found(T, np.ones(len(source), np.bool_))


def truncated_squares(source: Floats, sink: Floats, threshold: float) -> Found | None:
    """Return the transform of least truncated squares (Yang, Antonante, Tzoumas, Carlone, RA-L 5(2), 2020).

    The cost begins nearly convex and nears the truncated one in steps; each step solves weighted least
    squares in closed form. Matches (n, 3) further apart than `threshold` (m) after that count as outliers.
    """
    found = least_squares(source, sink)
    if found is None:
        return None
    squares, limit = _squares(found.T, source, sink), threshold**2
    if squares.max() <= limit:
        return found
    mu, weight = limit / max(2 * squares.max() - limit, limit), np.ones(len(source))
    for _ in range(STEPS):
        before, weight = weight, _truncating_weights(squares, limit, mu)
        solved = weighted_horn(source, sink, weight)
        if solved is None:
            return None
        squares, mu = _squares(solved, source, sink), mu * GROWTH
        if np.allclose(before, weight, atol=1e-6) and np.all(np.minimum(weight, 1 - weight) < 1e-3):
            break
    good = squares <= limit
    final = weighted_horn(source, sink, good.astype(np.float64))
    return None if final is None else Found(final, good)


def _truncating_weights(squares: Floats, limit: float, mu: float) -> Floats:
    """Return the weights (n,) of eq. 14: 1 up to the limit, 0 beyond, a slope between them."""
    with np.errstate(divide="ignore"):
        return np.clip(np.sqrt(limit * mu * (mu + 1) / squares) - mu, 0.0, 1.0)


def weighted_horn(source: Floats, sink: Floats, weight: Floats) -> Floats | None:
    """Return ``T_sink_source`` (4, 4) of least weighted squares; None if the points do not determine it."""
    if np.count_nonzero(weight) < 3:
        return None
    part = (weight / weight.sum())[:, None]
    a, b = source - np.sum(part * source, axis=0), sink - np.sum(part * sink, axis=0)
    a, b = np.sqrt(part) * a, np.sqrt(part) * b
    try:  # with both signs the rows stand about the origin, so that Horn does not move them again
        R = align.horn(np.concatenate([a, -a]), np.concatenate([b, -b])).rotation
    except GeometryError:
        return None
    return se3.from_matrix(R, np.sum(part * (sink - source @ R.T), axis=0))


def judge(T: Floats, source: Floats, sink: Floats) -> Judged:
    """Return a least-squares transform and the covariance by its residuals: m, then rad, in the sink."""
    moved = se3.apply(T, source)
    squares = float(np.sum((sink - moved) ** 2))
    slopes = np.concatenate([np.broadcast_to(np.eye(3), (len(moved), 3, 3)), -rotations.skew(moved)], axis=2)
    slopes = slopes.reshape(-1, 6)
    variance = squares / max(len(slopes) - 6, 1)
    # The turn moves the points about the sink's origin; here it is wanted about the pose.
    about = np.eye(6)
    about[:3, 3:] = -rotations.skew(T[:3, 3])
    return Judged(T, variance * about @ np.linalg.pinv(slopes.T @ slopes) @ about.T, squares, len(source))


def _squares(T: Floats, source: Floats, sink: Floats) -> Floats:
    return np.sum((sink - se3.apply(T, source)) ** 2, axis=1)
