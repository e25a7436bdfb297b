"""Two-view geometry: fundamental matrix, relative camera pose and triangulation, as nodes of CDFF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.vision.epipolar import (
    PixelPairs,
    RelativePose,
    epipolar_distances,
    off_plane_ratio,
    refit_fundamental,
    relative_pose_from_fundamental,
    rotation_residual_px,
    sample_fundamental,
)
from transect.algorithms.vision.features import select_matches
from transect.algorithms.vision.triangulation import (
    TriangulatedPoints,
    focal_length,
    normalise_pixels,
    require_camera,
    triangulate,
    undistort_points,
)
from transect.base.arrays import Floats, Ints
from transect.engine import Node, Shape, Unit, outputs, param
from transect.geometry import se3
from transect.types import Correspondences2D, PointCloud, Pose


@outputs
class FundamentalEstimate:
    """The epipolar geometry of matches; without `success` there are no other outputs."""

    # (3, 3) of norm 1: ``x_sink' F x_source = 0`` for pixels (x, y, 1) without lens distortion
    fundamentalMatrix: Annotated[np.ndarray, Shape(3, 3)] | None = None
    success: bool = False
    inlierMatches: Correspondences2D | None = None  # with lens distortion, like the input
    inlierRatio: float | None = None
    error: Annotated[float, Unit("px")] | None = None  # RMS Sampson distance of the inliers
    offPlane: float | None = None  # ratio of inliers that no homography explains


class FundamentalMatrixComputation(Node, interface=True):
    """Robust estimation of the epipolar geometry of two images from matches.

    It fails with too few inliers, and for matches that do not determine the matrix: those of a flat or
    distant scene, or of a camera that only rotated.
    """

    threshold: float = param(
        1.5,
        gt=0,
        unit="px",
        doc="largest distance of an inlier from its epipolar line: three sigma of 0.5 px",
    )
    min_inliers: int = param(15, ge=8, doc="smallest number of inliers")
    min_inlier_ratio: float = param(0.3, ge=0, le=1, doc="smallest ratio of inliers to matches")
    off_plane: float = param(
        0.05, ge=0, lt=1, doc="smallest ratio of the inliers that must lie off any one plane"
    )

    def process(self, matches: Correspondences2D) -> FundamentalEstimate:
        valid_rows, source, sink = _pixels(matches)
        if len(valid_rows) < self.min_inliers:
            return self._refuse("too few matches")
        matrix = self.compute(source, sink)
        if matrix is None:
            return self._refuse("no fundamental matrix was found")
        distances = np.abs(epipolar_distances(matrix, source, sink))
        rows = np.flatnonzero(distances <= self.threshold)
        ratio = len(rows) / len(matches)
        if len(rows) < self.min_inliers or ratio < self.min_inlier_ratio:
            return self._refuse("too few inliers")
        outside = off_plane_ratio(source[rows], sink[rows], self.threshold)
        if outside < self.off_plane or outside * len(rows) < 8:
            return self._refuse("a flat or distant scene, or only a rotation: the matrix is not determined")
        error = float(np.sqrt(np.mean(distances[rows] ** 2)))
        return FundamentalEstimate(
            matrix / np.linalg.norm(matrix),
            True,
            select_matches(matches, valid_rows[rows]),
            ratio,
            error,
            outside,
        )

    def compute(self, source: Floats, sink: Floats) -> Floats | None:
        """Return the matrix (3, 3) of matched pixels (n, 2) without distortion; None if there is none."""
        raise NotImplementedError

    def _refuse(self, reason: str) -> FundamentalEstimate:
        self.ctx.skip(reason)
        return FundamentalEstimate()


class FundamentalMatrixRansac(FundamentalMatrixComputation):
    """RANSAC with samples of seven (Fischler and Bolles 1981), then least squares over the inliers."""

    def compute(self, source: Floats, sink: Floats) -> Floats | None:
        import cv2

        matrix = sample_fundamental(source, sink, cv2.FM_RANSAC, self.threshold)
        return None if matrix is None else refit_fundamental(matrix, source, sink, self.threshold)


class FundamentalMatrixMagsac(FundamentalMatrixComputation):
    """MAGSAC++ (Barath et al. 2020): marginalises over all thresholds up to the given one."""

    def compute(self, source: Floats, sink: Floats) -> Floats | None:
        import cv2

        return sample_fundamental(source, sink, cv2.USAC_MAGSAC, self.threshold)


def _pixels(matches: Correspondences2D) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return the rows inside both lens models, and their pixels without distortion."""
    source = undistort_points(matches.source, matches.source_camera)
    sink = undistort_points(matches.sink, matches.sink_camera)
    valid_rows = np.flatnonzero(np.isfinite(np.concatenate([source, sink], axis=1)).all(axis=1))
    return valid_rows, source[valid_rows], sink[valid_rows]


@outputs
class CameraMotion:
    """The relative pose of two cameras; without `success` there are no other outputs."""

    transform: Pose | None = None  # of camera B in camera A, at the distance `baseline`
    success: bool = False
    # (6, 6): translation (m), then rotation (rad), in the frame of A; 0 along the translation
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    inliers: int | None = None
    parallax: Annotated[float, Unit("rad")] | None = None  # median angle between the two rays of a match


class CamerasTransformEstimation(Node, interface=True):
    """Estimates the relative pose of two calibrated cameras from their fundamental matrix and matches."""

    baseline: float = param(1.0, gt=0, unit="m", doc="distance between the cameras, which sets the scale")

    def process(
        self, fundamentalMatrix: Annotated[np.ndarray, Shape(3, 3)], matches: Correspondences2D
    ) -> CameraMotion:
        one = require_camera(matches.source_camera, "the first image of the matches")
        other = require_camera(matches.sink_camera, "the second image of the matches")
        pairs = PixelPairs.of(matches.source, matches.sink, one, other)
        found = self.estimate(np.asarray(fundamentalMatrix, np.float64), pairs)
        if found is None:
            return CameraMotion()
        motion, inliers = found
        orientation, direction = se3.to_quaternion(motion.T_source_sink)
        pose = Pose(direction * self.baseline, orientation, matches.t_ns, one.frame, other.frame)
        scale = np.repeat([self.baseline, 1.0], 3)
        return CameraMotion(pose, True, motion.covariance * np.outer(scale, scale), inliers, motion.parallax)

    def estimate(self, F: Floats, pairs: PixelPairs) -> tuple[RelativePose, int] | None:
        """Return the relative pose and the number of inliers; None, with a counted reason, if it fails."""
        raise NotImplementedError


class EssentialMatrixDecomposition(CamerasTransformEstimation):
    """The one of the four poses of the essential matrix with the points in front, refined on the matches.

    It fails if the matches do not determine the pose: if the camera only rotated, or the scene is flat.
    """

    sigma: float = param(0.5, gt=0, unit="px", doc="standard deviation of a matched pixel coordinate")
    threshold: float = param(1.5, gt=0, unit="px", doc="largest distance of an inlier from its epipolar line")
    min_inliers: int = param(15, ge=8, doc="smallest number of inliers")
    off_plane: float = param(
        0.05, ge=0, lt=1, doc="smallest ratio of the inliers that must lie off any one plane"
    )

    def estimate(self, F: Floats, pairs: PixelPairs) -> tuple[RelativePose, int] | None:
        pairs = pairs.take(np.abs(epipolar_distances(F, pairs.source, pairs.sink)) <= self.threshold)
        if reason := self._degenerate(pairs):
            return self.ctx.skip(reason)
        found = relative_pose_from_fundamental(F, pairs, self.sigma)
        if found is None:
            return self.ctx.skip("no pose has the points in front of both cameras")
        return found, len(pairs)

    def _degenerate(self, pairs: PixelPairs) -> str:
        if len(pairs) < self.min_inliers:
            return "too few inliers"
        # The noise of both pixels alone has a median of 1.2 * sqrt(2) standard deviations.
        if rotation_residual_px(pairs) < 3 * self.sigma:
            return "the camera only rotated, or all points are distant"
        if off_plane_ratio(pairs.source, pairs.sink, self.threshold) < self.off_plane:
            return "the scene is flat"
        return ""


@outputs
class TriangulatedCloud:
    """Points triangulated from two views."""

    # In the frame of camera A. Fields: `covariance` (n, 9), m^2 row by row; `parallax` (n,), rad; `error`
    # (n,), distance between rays and point in standard deviations; `index` (n,), row of the match.
    pointcloud: PointCloud
    kept: float  # ratio of the matches that became points


class PointCloudReconstruction2DTo3D(Node, interface=True):
    """Triangulates matches between two images from the pose of camera B in the frame of camera A."""

    def process(self, matches: Correspondences2D, pose: Pose) -> TriangulatedCloud | None:
        cameras = (
            require_camera(matches.source_camera, "the first image of the matches"),
            require_camera(matches.sink_camera, "the second image of the matches"),
        )
        both = zip((matches.source, matches.sink), cameras, strict=True)
        normalised = np.stack([normalise_pixels(pixels, camera) for pixels, camera in both], axis=1)
        T_source_sink = se3.from_quaternion(pose.orientation, pose.position)
        found, rows = self.intersect(normalised, T_source_sink, [focal_length(camera) for camera in cameras])
        if not len(rows):
            return self.ctx.skip("no match has enough parallax to become a point")
        cloud = _cloud(found, rows, matches.t_ns, cameras[0].frame)
        return TriangulatedCloud(cloud, len(rows) / len(matches))

    def intersect(
        self, normalised: Floats, T_source_sink: Floats, focal_lengths: Sequence[float]
    ) -> tuple[TriangulatedPoints, Ints]:
        """Return the triangulated points, and the rows (k,) of those that are accepted.

        Parameters
        ----------
        normalised : (n, 2, 2)
            Normalised coordinates of each match in both images.
        T_source_sink : (4, 4)
        focal_lengths : sequence of float
            In pixels, of both cameras.
        """
        raise NotImplementedError


class Triangulation(PointCloudReconstruction2DTo3D):
    """The maximum likelihood point of the two rays of each match, with sufficient parallax."""

    sigma: float = param(0.5, gt=0, unit="px", doc="standard deviation of a matched pixel coordinate")
    parallax: float = param(0.005, ge=0, unit="rad", doc="smallest angle between the two rays of a point")
    gate: float = param(
        3.0, gt=0, doc="largest distance between the rays and the point, in standard deviations"
    )

    def intersect(
        self, normalised: Floats, T_source_sink: Floats, focal_lengths: Sequence[float]
    ) -> tuple[TriangulatedPoints, Ints]:
        sigmas = [self.sigma / focal_length for focal_length in focal_lengths]
        found = triangulate([np.eye(4), se3.invert(T_source_sink)], normalised, sigmas)
        good = found.in_front & (found.parallax >= self.parallax) & (found.error <= self.gate)
        return found, np.flatnonzero(good)


def _cloud(found: TriangulatedPoints, rows: Ints, t_ns: int, frame: str) -> PointCloud:
    fields = {
        "covariance": found.covariances[rows].reshape(-1, 9).astype(np.float32),
        "parallax": found.parallax[rows].astype(np.float32),
        "error": found.error[rows].astype(np.float32),
        "index": rows,
    }
    return PointCloud(found.points[rows], fields, t_ns, frame)
