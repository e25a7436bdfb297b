"""Conversion of laser scans to point clouds, of clouds to other frames, and of clouds to octrees."""

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
    """Returns of a sweep as points in the laser's frame, z = 0, with the fields `beam` and `intensity` (n,).

    Beams without a return and ranges outside the sensor's limits are left out.
    """

    out_name = "pointCloud"
    min_range: float = param(0.0, ge=0, unit="m", doc="smallest range of the returns that are kept")
    max_range: float = param(
        0.0, ge=0, unit="m", doc="largest range of the returns that are kept; 0: the limit of the sensor"
    )

    def process(self, scan: LaserScan) -> PointCloud | None:
        beams = np.flatnonzero(scan.returned(self.min_range, self.max_range or np.inf))
        if not len(beams):
            return self.ctx.skip("no returns")
        points = points_from_polar(scan.ranges[beams], scan.angles[beams])
        fields: dict[str, NDArray[Any]] = {"beam": beams}
        if scan.remission is not None:
            fields["intensity"] = np.asarray(scan.remission)[beams]
        return PointCloud(points, fields, scan.t_ns, scan.frame)


class PointCloudTransformation(Node, interface=True):
    """Transforms a cloud to another frame, in which `pose` is the pose of the cloud's own frame."""

    out_name = "transformedPointCloud"

    def process(self, pointCloud: PointCloud, pose: Latest[Pose]) -> PointCloud | None:
        if not (np.isfinite(pose.position).all() and np.isfinite(pose.orientation).all()):
            return self.ctx.skip("the pose is not known")
        return self.move(pointCloud, se3.from_quaternion(pose.orientation, pose.position), pose.frame)

    def move(self, cloud: PointCloud, T_frame_cloud: Floats, frame: str) -> PointCloud:
        """Transform a cloud to another frame by ``T_frame_cloud`` (4, 4)."""
        raise NotImplementedError


class CartesianSystemTransform(PointCloudTransformation):
    """Transforms points, normals, covariances and the viewpoint, which is the origin by default."""

    def move(self, cloud: PointCloud, T_frame_cloud: Floats, frame: str) -> PointCloud:
        return transform_cloud(cloud, T_frame_cloud, frame)


class PointCloudVoxelization(Node):
    """Octree of the cubes that contain points of a cloud."""

    out_name = "octree"
    resolution: float = param(0.1, gt=0, unit="m", doc="edge length of the smallest cubes")

    def process(self, pointCloud: PointCloud) -> OctreeCells | None:
        points = np.asarray(pointCloud.points[find_measured(pointCloud)], dtype=np.float64)
        if not len(points):
            return self.ctx.skip("the cloud is empty")
        return build_octree(points, self.resolution, pointCloud.t_ns, pointCloud.frame)


class Voxelization(Node, interface=True):
    """Octree of the points of a depth image, in its camera's frame (x right, y down, z forward)."""

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
        """Return the octree of a depth image; None, with a counted reason, if no depth is measured."""
        raise NotImplementedError


class Octree(Voxelization):
    """Octree with leaves of equal size."""

    resolution: float = param(0.05, gt=0, unit="m", doc="edge length of the smallest cubes")
    max_depth: float = param(20.0, gt=0, unit="m", doc="largest depth that is used")

    def build(self, depth: Image, model: CameraModel) -> OctreeCells | None:
        points = _points(depth, model, self.max_depth)
        if not len(points):
            return self.ctx.skip("no depth was measured")
        return build_octree(points, self.resolution, depth.t_ns, depth.frame)


def _points(depth: Image, model: CameraModel, max_depth: float) -> Floats:
    """Return the points (n, 3) of a depth image in its camera."""
    # Integers are millimetres, and 0 is no measurement (OpenNI, ROS REP 118).
    scale = 1e-3 if np.issubdtype(depth.data.dtype, np.integer) else 1.0
    z = np.asarray(depth.data, dtype=np.float64) * scale
    measured = np.isfinite(z) & (z > 0) & (z <= max_depth)
    measured = measured if depth.valid is None else measured & depth.valid
    rows, columns = np.nonzero(measured)
    rays = _rays(np.column_stack([columns, rows]), model)
    return rays / rays[:, 2:] * z[measured][:, None]


def _rays(pixels: NDArray[np.int64], model: CameraModel) -> Floats:
    lens = () if model.distortion == "none" else model.coefficients
    return camera.unproject(
        pixels, model.K, lens, "fisheye" if model.distortion == "equidistant" else "pinhole"
    )
