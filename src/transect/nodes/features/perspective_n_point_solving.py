"""Where a camera is, from points that it sees and whose place is known (CDFF's PerspectiveNPointSolving)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.vision.pnp import pixel_distances, pose_of_all, pose_of_most, refine_on_inliers
from transect.algorithms.vision.triangulation import focal_length, pose_covariance, require_camera, straighten
from transect.base.arrays import Floats
from transect.engine import Node, Shape, Unit, outputs, param
from transect.errors import UsageError
from transect.geometry import se3
from transect.types import Features2D, PointCloud, Pose

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
        world, pixels, rows = _pairs(points, straighten(projections.points, projections.camera))
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

        return pose_of_all(world, pixels, K, cv2.SOLVEPNP_ITERATIVE)


class Ap3pRansac(PerspectiveNPointSolving):
    """Samples of four, solved by AP3P (Ke and Roumeliotis 2017): for points with outliers."""

    def solve(self, world: Floats, pixels: Floats, K: Floats) -> Floats | None:
        return pose_of_most(world, pixels, K, self.threshold)


class Epnp(PerspectiveNPointSolving):
    """Four control points (Lepetit, Moreno-Noguer and Fua 2009), on all points: fast for very many."""

    def solve(self, world: Floats, pixels: Floats, K: Floats) -> Floats | None:
        import cv2

        return pose_of_all(world, pixels, K, cv2.SOLVEPNP_EPNP)


class Sqpnp(PerspectiveNPointSolving):
    """The global minimum by quadratic programs (Terzakis and Lourakis 2020), on all points."""

    def solve(self, world: Floats, pixels: Floats, K: Floats) -> Floats | None:
        import cv2

        return pose_of_all(world, pixels, K, cv2.SOLVEPNP_SQPNP)


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
