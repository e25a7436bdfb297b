"""Rigid transforms between sets of matched points in space (CDFF's Transform3DEstimation)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np

from transect.base.arrays import Floats
from transect.engine import Node, Unit, outputs, param
from transect.geometry import se3
from transect.types import CorrespondenceMaps3D, Correspondences3D, Trajectory

from ._matched_points import Found, Judged, judged, least_squares, truncated_squares

Solver = Callable[[Floats, Floats], Found | None]


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

    least: int = param(6, ge=3, doc="fewer matches, or inliers, determine no transform")

    def process(self, matches: CorrespondenceMaps3D) -> Estimated: ...

    def estimated(self, matches: CorrespondenceMaps3D, solve: Solver) -> Estimated:
        """Return the transforms of all pairs by a solver of one."""
        found = [self._one(each, solve) for each in matches.maps]
        good = [each for each in found if each is not None]
        if len(good) < len(found) or not found:
            self.ctx.skip("too few matches, or they do not determine a transform")
        if not good:
            return Estimated()
        used, total = sum(each.pairs for each in good), sum(len(each) for each in matches.maps)
        error = sum(each.squares for each in good) / used
        return Estimated(_poses(found, matches.t_ns), len(good) == len(found), error, used / total)

    def _one(self, pairs: Correspondences3D, solve: Solver) -> Judged | None:
        source, sink = np.asarray(pairs.source, np.float64), np.asarray(pairs.sink, np.float64)
        known = np.isfinite(np.concatenate([source, sink], axis=1)).all(axis=1)
        source, sink = source[known], sink[known]
        found = solve(source, sink) if len(source) >= self.least else None
        if found is None or np.count_nonzero(found.good) < self.least:
            return None
        return judged(found.T, source[found.good], sink[found.good])


class LeastSquaresMinimization(Transform3DEstimation):
    """Horn's closed form (1987) on all matches: for clean ones."""

    def process(self, matches: CorrespondenceMaps3D) -> Estimated:
        return self.estimated(matches, least_squares)


class RobustEstimation(Transform3DEstimation):
    """Truncated least squares by graduated non-convexity (Yang et al. 2020): for matches with outliers."""

    threshold: float = param(
        0.1, gt=0, unit="m", doc="largest distance of an inlier: 3 deviations of a point"
    )

    def process(self, matches: CorrespondenceMaps3D) -> Estimated:
        return self.estimated(matches, lambda source, sink: truncated_squares(source, sink, self.threshold))


def _poses(found: Sequence[Judged | None], t_ns: int) -> Trajectory:
    n = len(found)
    positions, orientations = np.zeros((n, 3)), np.zeros((n, 4))
    covariances = np.full((n, 6, 6), np.nan)
    for row, each in enumerate(found):
        if each is not None:
            orientations[row], positions[row] = se3.to_quaternion(each.T)
            covariances[row] = each.covariance
    return Trajectory(np.full(n, t_ns, np.int64), positions, orientations, covariances)
