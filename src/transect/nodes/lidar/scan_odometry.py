"""Lidar odometry: each scan is aligned to a map of the previous ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np

from transect.algorithms.odometry.lidar_odometer import (
    RESTARTED,
    KeyframeSubmap,
    LidarOdometer,
    LidarOdometrySettings,
)
from transect.algorithms.odometry.scan_to_map import LocalMap
from transect.algorithms.registration.gicp import VoxelMap
from transect.engine import Node, outputs, param
from transect.engine.ports import Shape
from transect.geometry import se3
from transect.geometry.robust import inflate
from transect.types import PointCloud, Pose, Twist

from .._attempts import Attempts

FRAME = "odom"


@outputs
class ScanMotion:
    """Result of a scan."""

    pose: Pose | None = None  # of the lidar at the scan's time, relative to the first scan
    velocity: Twist | None = None  # during the scan, in the lidar's axes; not of the first scan
    success: bool | None = None  # if False there is no pose, and the map is unchanged
    converged: bool | None = None
    inliers: float | None = None  # ratio of downsampled points with a correspondence
    degeneracy: float | None = None  # weakest over strongest constrained motion: near 0 it can slide
    # Of the motion since the last pose: m, then rad, in the lidar's axes; from the sixth scan on.
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    map: PointCloud | None = None  # all scans, downsampled; at the end
    scan: PointCloud | None = None  # deskewed; if `emit_scans`


class ScanOdometry(Node, interface=True):
    """Pose of a lidar relative to its first scan; scans of a moving sensor are deskewed."""

    voxel: float = param(
        0.0,
        ge=0,
        le=5,
        unit="m",
        doc="voxel size to which scans are downsampled; 0: chosen from the first two scans",
    )
    min_range: float = param(
        1.0,
        ge=0,
        unit="m",
        doc="smallest range of the returns that are used; nearer ones are of the vehicle, or fog",
    )
    deskew: bool = param(True, doc="whether scans are corrected for the motion during the scan")
    emit_scans: bool = param(False, doc="whether deskewed scans are emitted")
    min_points: int = param(100, ge=10, doc="smallest number of points of a scan")
    min_inlier_ratio: float = param(
        0.4,
        gt=0,
        lt=1,
        doc="smallest ratio of points with a correspondence in the map; half of it at the predicted pose",
    )
    max_failed_ratio: float = param(
        0.5, ge=0, le=1, doc="largest ratio of failed attempts in a result that can be trusted"
    )

    def reset(self) -> None:
        settings = LidarOdometrySettings(
            self.voxel, self.min_range, self.deskew, self.min_points, self.min_inlier_ratio
        )
        self.odometer = LidarOdometer(settings, self.new_map)
        self.attempts = Attempts(self.max_failed_ratio)

    def new_map(self, voxel: float, parts: int) -> LocalMap:
        """Return an empty map, in which each scan is inserted in a number of parts."""
        raise NotImplementedError

    def process(self, cloud: PointCloud) -> ScanMotion | None:
        scan = cloud if cloud.t_ns else replace(cloud, t_ns=self.ctx.time)
        motion = self.odometer.register_cloud(scan)
        self.attempts.add(motion.pose is not None)
        if motion.reason == RESTARTED:
            self.ctx.log("no scan matched the map for long: odometry restarts")
        if motion.pose is None:
            self.ctx.skip(motion.reason)
            return ScanMotion(success=False, converged=motion.converged, inliers=motion.inlier_ratio)
        orientation, position = se3.to_quaternion(motion.pose)
        velocity = motion.velocity
        return ScanMotion(
            pose=Pose(position, orientation, scan.t_ns, FRAME, scan.frame),
            velocity=None
            if velocity is None
            else Twist(velocity[:3], velocity[3:], t_ns=scan.t_ns, frame=scan.frame),
            success=True,
            converged=motion.converged,
            inliers=motion.inlier_ratio,
            degeneracy=motion.degeneracy,
            covariance=inflate(motion.covariance, self.ctx.trust("cloud")),
            scan=self._deskewed(scan) if self.emit_scans else None,
        )

    def finish(self) -> ScanMotion | None:
        """Return the map."""
        self.attempts.report(self.ctx, "scans did not match the map", "the path")
        if not self.odometer.has_scans:
            return None
        result = self.odometer.map_points()
        if result is None:
            return self.ctx.skip("only one scan matched: no map")
        count, points = result
        if not self.odometer.has_covariance:
            self.ctx.skip("fewer than six scans matched: no covariance")
        return ScanMotion(map=PointCloud(points.astype(np.float32), {"count": count}, frame=FRAME))

    def _deskewed(self, cloud: PointCloud) -> PointCloud:
        """Return the last scan as measured at its time."""
        points = self.odometer.deskewed_points().astype(np.float32)
        return PointCloud(points, t_ns=cloud.t_ns, frame=cloud.frame)


class VoxelGaussians(ScanOdometry):
    """Alignment to one Gaussian per voxel; unseen voxels are removed (VGICP, small_gicp)."""

    history: int = param(
        300, ge=10, doc="number of scans after which an unseen voxel is removed from the map"
    )

    def new_map(self, voxel: float, parts: int) -> LocalMap:
        return VoxelMap(voxel, self.history * parts)


class KeyframePlanes(ScanOdometry):
    """Alignment to the tangent planes of the points of the last keyframes (small_gicp)."""

    keyframes: int = param(20, ge=1, doc="number of keyframes in the map")
    keyframe_distance: float = param(
        1.0, gt=0, unit="m", doc="distance from the last keyframe at which a scan becomes a keyframe"
    )
    keyframe_angle: float = param(
        0.2, gt=0, unit="rad", doc="rotation from the last keyframe at which a scan becomes a keyframe"
    )

    def new_map(self, voxel: float, parts: int) -> LocalMap:
        return KeyframeSubmap(voxel / 2, self.keyframes, self.keyframe_distance, self.keyframe_angle)
