"""Poses from matched points (CDFF's PerspectiveNPointSolving and Transform3DEstimation)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.vision.pose_estimation import (
    RobustTransform,
    TransformEstimate,
    evaluate_transform,
    fit_transform,
    fit_transform_robustly,
    pixel_distances,
    refine_on_inliers,
    solve_pnp,
    solve_pnp_ransac,
)
from transect.algorithms.vision.triangulation import (
    focal_length,
    pose_covariance,
    require_camera,
    undistort_points,
)
from transect.base.arrays import Floats
from transect.engine import Node, Shape, Unit, outputs, param
from transect.errors import UsageError
from transect.geometry import se3
from transect.types import CorrespondenceMaps3D, Correspondences3D, Features2D, PointCloud, Pose, Trajectory


@outputs
class Resection:
    """The pose of a camera; without `success` there are no other outputs."""

    camera: Pose | None = None  # in the frame of the points
    success: bool = False
    inliers: Annotated[np.ndarray, Shape("n")] | None = None
    # (6, 6): translation (m), then rotation (rad), in the frame of the points
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    error: Annotated[float, Unit("px")] | None = None  # RMS reprojection error of the inliers


class PerspectiveNPointSolving(Node, interface=True):
    """Pose of a camera from points and their projections, row by row; rows with NaN are ignored.

    The solution of the solver is refined on its inliers, and rejected if they are too few or do not determine
    the pose. The camera model is that of the projections.
    """

    sigma: float = param(
        0.5, gt=0, unit="px", doc="smallest standard deviation that is assumed for a pixel coordinate"
    )
    threshold: float = param(2.0, gt=0, unit="px", doc="largest reprojection error of an inlier")
    min_inliers: int = param(6, ge=6, doc="smallest number of inliers")
    min_inlier_ratio: float = param(0.3, ge=0, le=1, doc="smallest ratio of inliers to points")
    max_relative_sigma: float = param(
        0.5, gt=0, doc="largest standard deviation of a position relative to the distance of the points"
    )

    def process(self, points: PointCloud, projections: Features2D) -> Resection:
        lens = require_camera(projections.camera, "the image of the projections")
        world, pixels, rows = _pairs(points, undistort_points(projections.points, projections.camera))
        if len(rows) < self.min_inliers:
            return self._refuse("too few points")
        first = self.solve(world, pixels, lens.K)
        if first is None:
            return self._refuse("no pose was found")
        pose, inliers = refine_on_inliers(first, world, pixels, lens.K, self.threshold)
        if np.count_nonzero(inliers) < max(self.min_inliers, self.min_inlier_ratio * len(rows)):
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
        """Return the covariance (6, 6) of the pose; None if it is not determined."""
        # The errors have 2 n coordinates, and the pose has 6 degrees of freedom.
        found = error * np.sqrt(len(world) / (2 * len(world) - 6))
        T_world_camera = se3.invert(T_camera_world)
        covariance = pose_covariance(T_world_camera, world, max(self.sigma, found) / focal)
        if covariance is None:
            return None
        distance = float(np.median(np.linalg.norm(world - T_world_camera[:3, 3], axis=1)))
        spread = np.sqrt(np.linalg.eigvalsh(covariance / np.outer(*[np.repeat([distance, 1.0], 3)] * 2))[-1])
        return covariance if spread < self.max_relative_sigma else None

    def _refuse(self, reason: str) -> Resection:
        self.ctx.skip(reason)
        return Resection()


class IterativePnpSolver(PerspectiveNPointSolving):
    """Levenberg-Marquardt from a direct linear solution, on all points, without outlier rejection."""

    def solve(self, world: Floats, pixels: Floats, K: Floats) -> Floats | None:
        import cv2

        return solve_pnp(world, pixels, K, cv2.SOLVEPNP_ITERATIVE)


class Ap3pRansac(PerspectiveNPointSolving):
    """RANSAC with AP3P (Ke and Roumeliotis 2017), for points with outliers."""

    def solve(self, world: Floats, pixels: Floats, K: Floats) -> Floats | None:
        return solve_pnp_ransac(world, pixels, K, self.threshold)


class Epnp(PerspectiveNPointSolving):
    """Four control points (Lepetit, Moreno-Noguer and Fua 2009), on all points: fast for large numbers."""

    def solve(self, world: Floats, pixels: Floats, K: Floats) -> Floats | None:
        import cv2

        return solve_pnp(world, pixels, K, cv2.SOLVEPNP_EPNP)


class Sqpnp(PerspectiveNPointSolving):
    """The global minimum by quadratic programs (Terzakis and Lourakis 2020), on all points."""

    def solve(self, world: Floats, pixels: Floats, K: Floats) -> Floats | None:
        import cv2

        return solve_pnp(world, pixels, K, cv2.SOLVEPNP_SQPNP)


def _pairs(cloud: PointCloud, pixels: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return the points and pixels without NaN, and their rows."""
    if len(cloud) != len(pixels):
        raise UsageError(
            f"{len(cloud)} points cannot belong to {len(pixels)} projections",
            why="row i of both must be the same point",
        )
    points = np.asarray(cloud.points, np.float64)
    rows = np.flatnonzero(np.isfinite(np.concatenate([points, pixels], axis=1)).all(axis=1))
    return points[rows], pixels[rows], rows


def _root_mean_square(distances: Floats) -> float:
    return float(np.sqrt(np.mean(distances**2)))


@outputs
class EstimatedTransforms:
    """Transforms between sets of matched points."""

    # The pose of the source's frame in the sink's for each map of matches. One that could not be estimated is
    # all zeros, including its quaternion, as in CDFF, with covariances of NaN.
    transforms: Trajectory | None = None
    success: bool = False  # whether all were estimated
    error: Annotated[float, Unit("m2")] | None = None  # mean square distance of the inliers
    inliers: float | None = None  # ratio of all matches


class Transform3DEstimation(Node, interface=True):
    """Estimates the transform between the frames of each pair of clouds from matched points."""

    min_inliers: int = param(6, ge=3, doc="smallest number of matches, and of inliers, per transform")

    def process(self, matches: CorrespondenceMaps3D) -> EstimatedTransforms:
        found = [self._estimate(each) for each in matches.maps]
        good = [each for each in found if each is not None]
        if len(good) < len(found) or not found:
            self.ctx.skip("too few matches, or they do not determine a transform")
        if not good:
            return EstimatedTransforms()
        used, total = sum(each.pairs for each in good), sum(len(each) for each in matches.maps)
        error = sum(each.squares for each in good) / used
        return EstimatedTransforms(_poses(found, matches.t_ns), len(good) == len(found), error, used / total)

    def solve(self, source: Floats, sink: Floats) -> RobustTransform | None:
        """Return the transform of points (n, 3) to points (n, 3) and its inliers; None if underdetermined."""
        raise NotImplementedError

    def _estimate(self, pairs: Correspondences3D) -> TransformEstimate | None:
        source, sink = np.asarray(pairs.source, np.float64), np.asarray(pairs.sink, np.float64)
        known = np.isfinite(np.concatenate([source, sink], axis=1)).all(axis=1)
        source, sink = source[known], sink[known]
        found = self.solve(source, sink) if len(source) >= self.min_inliers else None
        if found is None or np.count_nonzero(found.inliers) < self.min_inliers:
            return None
        return evaluate_transform(found.T, source[found.inliers], sink[found.inliers])


class LeastSquaresMinimization(Transform3DEstimation):
    """Horn's closed form (1987) on all matches, without outlier rejection."""

    def solve(self, source: Floats, sink: Floats) -> RobustTransform | None:
        return fit_transform(source, sink)


class RobustEstimation(Transform3DEstimation):
    """Truncated least squares by graduated non-convexity (Yang et al. 2020): for matches with outliers."""

    threshold: float = param(
        0.1,
        gt=0,
        unit="m",
        doc="largest distance between an inlier and its match: three sigma of a point",
    )

    def solve(self, source: Floats, sink: Floats) -> RobustTransform | None:
        return fit_transform_robustly(source, sink, self.threshold)


def _poses(found: Sequence[TransformEstimate | None], t_ns: int) -> Trajectory:
    n = len(found)
    positions, orientations = np.zeros((n, 3)), np.zeros((n, 4))
    covariances = np.full((n, 6, 6), np.nan)
    for row, each in enumerate(found):
        if each is not None:
            orientations[row], positions[row] = se3.to_quaternion(each.T)
            covariances[row] = each.covariance
    return Trajectory(np.full(n, t_ns, np.int64), positions, orientations, covariances)
