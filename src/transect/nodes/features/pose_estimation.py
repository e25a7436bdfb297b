"""Poses from matched points (CDFF's PerspectiveNPointSolving and Transform3DEstimation)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.vision.pnp import pixel_distances, refine_on_inliers, solve_pnp, solve_pnp_ransac
from transect.algorithms.vision.triangulation import (
    focal_length,
    pose_covariance,
    require_camera,
    undistort_points,
)
from transect.base.arrays import Floats, Mask
from transect.engine import Node, Shape, Unit, outputs, param
from transect.errors import GeometryError, UsageError
from transect.geometry import align, rotations, se3
from transect.types import CorrespondenceMaps3D, Correspondences3D, Features2D, PointCloud, Pose, Trajectory

UNDETERMINED = 0.5
"""Standard deviation of a place as a part of the distance to the points, from which on it is none."""


@outputs
class Resection:
    """Where the camera is.

    Attributes
    ----------
    camera : Pose
        In the frame of the points.
    success : bool
        Without it there are no other outputs.
    inliers : (n,) bool
        Which of the points agree.
    covariance : (6, 6)
        Translation (m), then rotation (rad), in the frame of the points; from the slopes of the projections.
    error : float
        Root mean square distance in the image of the inliers.
    """

    camera: Pose | None = None
    success: bool = False
    inliers: Annotated[np.ndarray, Shape("n")] | None = None
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    error: Annotated[float, Unit("px")] | None = None


class PerspectiveNPointSolving(Node, interface=True):
    """Finds the pose of a camera; row i of the points is row i of their projections, NaN rows are left out.

    Whatever the solver, its solution is refined on the points that agree with it, and refused if they are few
    or do not determine a pose. The camera is that of the projections.
    """

    sigma: float = param(
        0.5, gt=0, unit="px", doc="smallest standard deviation that is assumed for a pixel coordinate"
    )
    threshold: float = param(2.0, gt=0, unit="px", doc="largest reprojection error of an inlier")
    least: int = param(6, ge=6, doc="smallest number of inliers")
    share: float = param(0.3, ge=0, le=1, doc="smallest share of the points that must be inliers")

    def process(self, points: PointCloud, projections: Features2D) -> Resection:
        lens = require_camera(projections.camera, "the image of the projections")
        world, pixels, rows = _pairs(points, undistort_points(projections.points, projections.camera))
        if len(rows) < self.least:
            return self._refuse("too few points")
        first = self.solve(world, pixels, lens.K)
        if first is None:
            return self._refuse("no pose was found")
        pose, inliers = refine_on_inliers(first, world, pixels, lens.K, self.threshold)
        if np.count_nonzero(inliers) < max(self.least, self.share * len(rows)):
            return self._refuse("too few inliers")
        error = _root_mean_square(pixel_distances(pose, world, pixels, lens.K)[inliers])
        covariance = self._covariance(pose, world[inliers], error, focal_length(lens))
        if covariance is None:
            return self._refuse("the points do not determine a pose")
        orientation, position = se3.to_quaternion(se3.invert(pose))
        agree = np.zeros(len(points), np.bool_)
        agree[rows[inliers]] = True
        where = Pose(position, orientation, projections.t_ns, points.frame, lens.frame)
        return Resection(where, True, agree, covariance, error)

    def solve(self, world: Floats, pixels: Floats, K: Floats) -> Floats | None:
        """Return ``T_camera_world`` (4, 4) of points (n, 3) and pixels (n, 2); None if there is none."""
        raise NotImplementedError

    def _covariance(self, T_camera_world: Floats, world: Floats, error: float, focal: float) -> Floats | None:
        """Return the covariance (6, 6) of the pose; None if a direction of it is hardly known at all."""
        # Both coordinates make up the error, and the pose took 6 of their 2 n degrees of freedom.
        found = error * np.sqrt(len(world) / (2 * len(world) - 6))
        T_world_camera = se3.invert(T_camera_world)
        covariance = pose_covariance(T_world_camera, world, max(self.sigma, found) / focal)
        if covariance is None:
            return None
        distance = float(np.median(np.linalg.norm(world - T_world_camera[:3, 3], axis=1)))
        spread = np.sqrt(np.linalg.eigvalsh(covariance / np.outer(*[np.repeat([distance, 1.0], 3)] * 2))[-1])
        return covariance if spread < UNDETERMINED else None

    def _refuse(self, reason: str) -> Resection:
        self.ctx.skip(reason)
        return Resection()


class IterativePnpSolver(PerspectiveNPointSolving):
    """Levenberg and Marquardt from a direct linear solution, on all points: for clean ones."""

    def solve(self, world: Floats, pixels: Floats, K: Floats) -> Floats | None:
        import cv2

        return solve_pnp(world, pixels, K, cv2.SOLVEPNP_ITERATIVE)


class Ap3pRansac(PerspectiveNPointSolving):
    """Samples of four, solved by AP3P (Ke and Roumeliotis 2017): for points with outliers."""

    def solve(self, world: Floats, pixels: Floats, K: Floats) -> Floats | None:
        return solve_pnp_ransac(world, pixels, K, self.threshold)


class Epnp(PerspectiveNPointSolving):
    """Four control points (Lepetit, Moreno-Noguer and Fua 2009), on all points: fast for very many."""

    def solve(self, world: Floats, pixels: Floats, K: Floats) -> Floats | None:
        import cv2

        return solve_pnp(world, pixels, K, cv2.SOLVEPNP_EPNP)


class Sqpnp(PerspectiveNPointSolving):
    """The global minimum by quadratic programs (Terzakis and Lourakis 2020), on all points."""

    def solve(self, world: Floats, pixels: Floats, K: Floats) -> Floats | None:
        import cv2

        return solve_pnp(world, pixels, K, cv2.SOLVEPNP_SQPNP)


def _pairs(cloud: PointCloud, pixels: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return the points and pixels that are both measured, and their rows."""
    if len(cloud) != len(pixels):
        raise UsageError(
            f"{len(cloud)} points cannot belong to {len(pixels)} projections",
            why="row i of the one must be row i of the other",
        )
    points = np.asarray(cloud.points, np.float64)
    rows = np.flatnonzero(np.isfinite(np.concatenate([points, pixels], axis=1)).all(axis=1))
    return points[rows], pixels[rows], rows


def _root_mean_square(distances: Floats) -> float:
    return float(np.sqrt(np.mean(distances**2)))


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
