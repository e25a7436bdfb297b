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
class Fundamental:
    """The geometry that matches agree on.

    Attributes
    ----------
    fundamentalMatrix : (3, 3)
        ``x_sink' F x_source = 0`` for pixels (x, y, 1) without lens distortion, of norm 1.
    success : bool
        Without it there are no other outputs.
    inlierMatches : Correspondences2D
        Those that agree, as they came.
    inlierRatio : float
        Their part of all.
    error : float
        Root mean square distance of the inliers from their epipolar lines (Sampson's).
    offPlane : float
        Part of the inliers that a flat scene, or a camera that only turned, does not explain.
    """

    fundamentalMatrix: Annotated[np.ndarray, Shape(3, 3)] | None = None
    success: bool = False
    inlierMatches: Correspondences2D | None = None
    inlierRatio: float | None = None
    error: Annotated[float, Unit("px")] | None = None
    offPlane: float | None = None


class FundamentalMatrixComputation(Node, interface=True):
    """Finds the epipolar geometry of two images from matches, wrong ones among them.

    It fails on too few inliers, and on matches that do not determine the matrix: those of a flat or far
    scene, or of a camera that only turned.
    """

    threshold: float = param(
        1.5,
        gt=0,
        unit="px",
        doc="largest distance of an inlier from its epipolar line: three deviations of 0.5 px",
    )
    least: int = param(15, ge=8, doc="smallest number of inliers")
    share: float = param(0.3, ge=0, le=1, doc="smallest share of the matches that must be inliers")
    off_plane: float = param(
        0.05, ge=0, lt=1, doc="smallest share of the inliers that must lie off any one plane"
    )

    def process(self, matches: Correspondences2D) -> Fundamental:
        seen, source, sink = _pixels(matches)
        if len(seen) < self.least:
            return self._refuse("too few matches")
        matrix = self.compute(source, sink)
        if matrix is None:
            return self._refuse("no fundamental matrix was found")
        distances = np.abs(epipolar_distances(matrix, source, sink))
        rows = np.flatnonzero(distances <= self.threshold)
        ratio = len(rows) / len(matches)
        if len(rows) < self.least or ratio < self.share:
            return self._refuse("too few inliers")
        apart = off_plane_ratio(source[rows], sink[rows], self.threshold)
        if apart < self.off_plane or apart * len(rows) < 8:
            return self._refuse("a flat or far scene, or only a turn: the matrix is not determined")
        error = float(np.sqrt(np.mean(distances[rows] ** 2)))
        return Fundamental(
            matrix / np.linalg.norm(matrix), True, select_matches(matches, seen[rows]), ratio, error, apart
        )

    def compute(self, source: Floats, sink: Floats) -> Floats | None:
        """Return the matrix (3, 3) of matched pixels (n, 2) without distortion; None if there is none."""
        raise NotImplementedError

    def _refuse(self, reason: str) -> Fundamental:
        self.ctx.skip(reason)
        return Fundamental()


class FundamentalMatrixRansac(FundamentalMatrixComputation):
    """Samples of seven (Fischler and Bolles 1981), then least squares over all that agree."""

    def compute(self, source: Floats, sink: Floats) -> Floats | None:
        import cv2

        matrix = sample_fundamental(source, sink, cv2.FM_RANSAC, self.threshold)
        return None if matrix is None else refit_fundamental(matrix, source, sink, self.threshold)


class FundamentalMatrixMagsac(FundamentalMatrixComputation):
    """MAGSAC++ (Barath et al. 2020): weighs over all thresholds up to the given one."""

    def compute(self, source: Floats, sink: Floats) -> Floats | None:
        import cv2

        return sample_fundamental(source, sink, cv2.USAC_MAGSAC, self.threshold)


def _pixels(matches: Correspondences2D) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return the rows that the lenses can have seen, and their pixels without distortion."""
    source = undistort_points(matches.source, matches.source_camera)
    sink = undistort_points(matches.sink, matches.sink_camera)
    seen = np.flatnonzero(np.isfinite(np.concatenate([source, sink], axis=1)).all(axis=1))
    return seen, source[seen], sink[seen]


@outputs
class CameraMotion:
    """How the second camera stood to the first.

    Attributes
    ----------
    transform : Pose
        Of the camera that took image B in the frame of the one that took image A. Matches cannot tell the
        distance: it is `baseline`.
    success : bool
        Without it there are no other outputs.
    covariance : (6, 6)
        Translation (m), then rotation (rad), in the frame of A; 0 along the translation.
    inliers : int
        Matches that agree.
    parallax : float
        Median angle between the two rays of a match.
    """

    transform: Pose | None = None
    success: bool = False
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    inliers: int | None = None
    parallax: Annotated[float, Unit("rad")] | None = None


class CamerasTransformEstimation(Node, interface=True):
    """Finds the rigid transform between two calibrated cameras from their fundamental matrix and matches."""

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
        """Return the motion and how many matches agree; None, and the reason is counted, without one."""
        raise NotImplementedError


class EssentialMatrixDecomposition(CamerasTransformEstimation):
    """That of the four motions of an essential matrix which has the points in front, refined on the matches.

    It fails where the matches do not determine a motion: the camera only turned, or the scene is flat.
    """

    sigma: float = param(0.5, gt=0, unit="px", doc="standard deviation of a matched pixel coordinate")
    threshold: float = param(1.5, gt=0, unit="px", doc="largest distance of an inlier from its epipolar line")
    least: int = param(15, ge=8, doc="smallest number of inliers")
    off_plane: float = param(
        0.05, ge=0, lt=1, doc="smallest share of the inliers that must lie off any one plane"
    )

    def estimate(self, F: Floats, pairs: PixelPairs) -> tuple[RelativePose, int] | None:
        pairs = pairs.take(np.abs(epipolar_distances(F, pairs.source, pairs.sink)) <= self.threshold)
        if reason := self._degenerate(pairs):
            return self.ctx.skip(reason)
        found = relative_pose_from_fundamental(F, pairs, self.sigma)
        if found is None:
            return self.ctx.skip("no motion has the points in front of both cameras")
        return found, len(pairs)

    def _degenerate(self, pairs: PixelPairs) -> str:
        if len(pairs) < self.least:
            return "too few inliers"
        # Noise in both pixels alone leaves a median of 1.2 * sqrt(2) deviations.
        if rotation_residual_px(pairs) < 3 * self.sigma:
            return "the camera only turned, or all points are far"
        if off_plane_ratio(pairs.source, pairs.sink, self.threshold) < self.off_plane:
            return "the scene is flat"
        return ""


@outputs
class Reconstructed:
    """Points that two views determine.

    Attributes
    ----------
    pointcloud : PointCloud
        In the frame of the camera that took image A. Fields: `covariance` (n, 9), square metres row by row;
        `parallax` (n,), rad between the rays; `error` (n,), deviations between rays and point; `index` (n,),
        row of the match.
    kept : float
        Part of the matches that became points.
    """

    pointcloud: PointCloud
    kept: float


class PointCloudReconstruction2DTo3D(Node, interface=True):
    """Turns matches between two images, and the pose of camera B in the frame of camera A, into points."""

    def process(self, matches: Correspondences2D, pose: Pose) -> Reconstructed | None:
        cameras = (
            require_camera(matches.source_camera, "the first image of the matches"),
            require_camera(matches.sink_camera, "the second image of the matches"),
        )
        both = zip((matches.source, matches.sink), cameras, strict=True)
        places = np.stack([normalise_pixels(pixels, camera) for pixels, camera in both], axis=1)
        T_source_sink = se3.from_quaternion(pose.orientation, pose.position)
        found, rows = self.intersect(places, T_source_sink, [focal_length(camera) for camera in cameras])
        if not len(rows):
            return self.ctx.skip("no match has enough parallax to become a point")
        cloud = _cloud(found, rows, matches.t_ns, cameras[0].frame)
        return Reconstructed(cloud, len(rows) / len(matches))

    def intersect(
        self, places: Floats, T_source_sink: Floats, focal_lengths: Sequence[float]
    ) -> tuple[TriangulatedPoints, Ints]:
        """Return where the rays of matches meet, and the rows (k,) of those that are believed.

        Parameters
        ----------
        places : (n, 2, 2)
            Of each match in both images, on the plane at distance 1.
        T_source_sink : (4, 4)
        focal_lengths : sequence of float
            Pixels, of both cameras.
        """
        raise NotImplementedError


class Triangulation(PointCloudReconstruction2DTo3D):
    """The most likely point for the two rays of each match; where they hardly cross, none."""

    sigma: float = param(0.5, gt=0, unit="px", doc="standard deviation of a matched pixel coordinate")
    parallax: float = param(0.005, ge=0, unit="rad", doc="smallest angle between the two rays of a point")
    gate: float = param(
        3.0, gt=0, doc="largest distance between the rays and the point, in standard deviations"
    )

    def intersect(
        self, places: Floats, T_source_sink: Floats, focal_lengths: Sequence[float]
    ) -> tuple[TriangulatedPoints, Ints]:
        sigmas = [self.sigma / focal_length for focal_length in focal_lengths]
        found = triangulate([np.eye(4), se3.invert(T_source_sink)], places, sigmas)
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
