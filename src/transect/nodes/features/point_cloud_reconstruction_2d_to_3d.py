"""Points in space from matches in two images (CDFF's PointCloudReconstruction2DTo3D)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.algorithms.vision.triangulation import (
    Triangulated,
    focal_length,
    places_of,
    require_camera,
    triangulate,
)
from transect.base.arrays import Floats, Ints
from transect.engine import Node, outputs, param
from transect.geometry import se3
from transect.types import Correspondences2D, PointCloud, Pose


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
        places = np.stack([places_of(pixels, camera) for pixels, camera in both], axis=1)
        T_source_sink = se3.from_quaternion(pose.orientation, pose.position)
        found, rows = self.intersect(places, T_source_sink, [focal_length(camera) for camera in cameras])
        if not len(rows):
            return self.ctx.skip("no match has enough parallax to become a point")
        cloud = _cloud(found, rows, matches.t_ns, cameras[0].frame)
        return Reconstructed(cloud, len(rows) / len(matches))

    def intersect(
        self, places: Floats, T_source_sink: Floats, focal_lengths: Sequence[float]
    ) -> tuple[Triangulated, Ints]:
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
    ) -> tuple[Triangulated, Ints]:
        sigmas = [self.sigma / focal_length for focal_length in focal_lengths]
        found = triangulate([np.eye(4), se3.invert(T_source_sink)], places, sigmas)
        good = found.in_front & (found.parallax >= self.parallax) & (found.error <= self.gate)
        return found, np.flatnonzero(good)


def _cloud(found: Triangulated, rows: Ints, t_ns: int, frame: str) -> PointCloud:
    fields = {
        "covariance": found.covariances[rows].reshape(-1, 9).astype(np.float32),
        "parallax": found.parallax[rows].astype(np.float32),
        "error": found.error[rows].astype(np.float32),
        "index": rows,
    }
    return PointCloud(found.points[rows], fields, t_ns, frame)
