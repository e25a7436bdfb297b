"""Point clouds from laser scans, in another frame, and as octrees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.clouds.selection import find_measured, transform_cloud
from transect.algorithms.clouds.voxels import build_octree
from transect.base.arrays import Floats
from transect.engine import Latest, Node, param
from transect.errors import TransectError
from transect.geometry import camera, se3
from transect.geometry.planar import points_from_polar
from transect.types import CameraModel, Image, LaserScan, PointCloud, Pose
from transect.types import Octree as OctreeCells


class LaserScanToPointCloud(Node):
    """Returns of a sweep in the laser's frame, z = 0; `beam` (n,) says which it was, `intensity` how strong.

    Beams without a return are left out, and so are ranges outside the sensor's own limits.
    """

    out_name = "pointCloud"
    nearest: float = param(0.0, ge=0, unit="m", doc="smallest range of the returns that are kept")
    farthest: float = param(
        0.0, ge=0, unit="m", doc="largest range of the returns that are kept; 0: the limit of the sensor"
    )

    def process(self, scan: LaserScan) -> PointCloud | None:
        beams = np.flatnonzero(scan.returned(self.nearest, self.farthest or np.inf))
        if not len(beams):
            return self.ctx.skip("no returns")
        points = points_from_polar(scan.ranges[beams], scan.angles[beams])
        fields: dict[str, NDArray[Any]] = {"beam": beams}
        if scan.remission is not None:
            fields["intensity"] = np.asarray(scan.remission)[beams]
        return PointCloud(points, fields, scan.t_ns, scan.frame)


class PointCloudTransformation(Node, interface=True):
    """The cloud as seen from an external system, in which `pose` is the pose of the cloud's own."""

    out_name = "transformedPointCloud"

    def process(self, pointCloud: PointCloud, pose: Latest[Pose]) -> PointCloud | None:
        if not (np.isfinite(pose.position).all() and np.isfinite(pose.orientation).all()):
            return self.ctx.skip("the pose is not known")
        return self.move(pointCloud, se3.from_quaternion(pose.orientation, pose.position), pose.frame)

    def move(self, cloud: PointCloud, T_frame_cloud: Floats, frame: str) -> PointCloud:
        """Return a cloud taken to another frame by ``T_frame_cloud`` (4, 4)."""
        raise NotImplementedError


class CartesianSystemTransform(PointCloudTransformation):
    """Turns and moves points, normals, covariances and the viewpoint; without one, that was the origin."""

    def move(self, cloud: PointCloud, T_frame_cloud: Floats, frame: str) -> PointCloud:
        return transform_cloud(cloud, T_frame_cloud, frame)


class PointCloudVoxelization(Node):
    """Space that a cloud shows to be occupied: cubes of equal size around its points."""

    out_name = "octree"
    resolution: float = param(0.1, gt=0, unit="m", doc="edge length of the smallest cubes")

    def process(self, pointCloud: PointCloud) -> OctreeCells | None:
        points = np.asarray(pointCloud.points[find_measured(pointCloud)], dtype=np.float64)
        if not len(points):
            return self.ctx.skip("the cloud is empty")
        return build_octree(points, self.resolution, pointCloud.t_ns, pointCloud.frame)


MILLIMETRES = 1e-3
"""Whole numbers in a depth image are millimetres, and 0 is no measurement (OpenNI, ROS REP 118)."""


class Voxelization(Node, interface=True):
    """Space that a depth image shows to be occupied, in its camera's frame (x right, y down, z forward)."""

    out_name = "octree"

    def process(self, depth: Image) -> OctreeCells | None:
        if depth.camera is None:
            raise TransectError(
                "the depth image has no camera",
                where=f"frame {depth.frame}" if depth.frame else "",
                why="without intrinsics its pixels have no directions",
                hint="the recording needs the camera's calibration (K, and distortion if there is any)",
            )
        return self.build(depth, depth.camera)

    def build(self, depth: Image, model: CameraModel) -> OctreeCells | None:
        """Return the octree of a depth image by its camera; None, and why is counted, if it shows nothing."""
        raise NotImplementedError


class Octree(Voxelization):
    """Cubes of equal size around the points of the image."""

    resolution: float = param(0.05, gt=0, unit="m", doc="edge length of the smallest cubes")
    farthest: float = param(20.0, gt=0, unit="m", doc="largest depth that is used")

    def build(self, depth: Image, model: CameraModel) -> OctreeCells | None:
        points = _points(depth, model, self.farthest)
        if not len(points):
            return self.ctx.skip("no depth was measured")
        return build_octree(points, self.resolution, depth.t_ns, depth.frame)


def _points(depth: Image, model: CameraModel, farthest: float) -> Floats:
    """Return the points (n, 3) of a depth image, by its camera."""
    scale = MILLIMETRES if np.issubdtype(depth.data.dtype, np.integer) else 1.0
    z = np.asarray(depth.data, dtype=np.float64) * scale
    seen = np.isfinite(z) & (z > 0) & (z <= farthest)
    seen = seen if depth.valid is None else seen & depth.valid
    rows, columns = np.nonzero(seen)
    rays = _rays(np.column_stack([columns, rows]), model)
    return rays / rays[:, 2:] * z[seen][:, None]


def _rays(pixels: NDArray[np.int64], model: CameraModel) -> Floats:
    lens = () if model.distortion == "none" else model.coefficients
    return camera.unproject(
        pixels, model.K, lens, "fisheye" if model.distortion == "equidistant" else "pinhole"
    )
