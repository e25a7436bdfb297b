"""Where a lidar is by its scans alone: each is aligned to a map of those before."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np

from transect.algorithms.odometry.lidar_odometer import RESTARTED, LidarOdometer, LidarOdometrySettings
from transect.algorithms.odometry.lidar_submap import Submap
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
    """What a scan tells.

    Attributes
    ----------
    pose : Pose
        Of the lidar at the scan's time, in the frame that it had at the first scan.
    velocity : Twist
        Of the lidar during the scan, in its own axes; not of the first.
    success : bool
        Whether the scan found its place; without it there is no pose, and the map stays as it was.
    converged : bool
        Whether the alignment came to rest.
    inliers : float
        Share of the thinned points that found a partner in the map.
    degeneracy : float
        Weakest over strongest direction in which the map holds the scan: near 0 it can slide, as in a tunnel.
    covariance : (6, 6) array
        Of the motion since the pose before: m, then rad, in the axes of the lidar; not before the sixth scan.
        By how unsteady the motion was found (`odometry.unsteadiness`), and how well the map held the scan.
    map : PointCloud
        All scans, thinned; once, at the end.
    scan : PointCloud
        The scan as if all of it had been measured at its time; where `give_scans` asks for it.
    """

    pose: Pose | None = None
    velocity: Twist | None = None
    success: bool | None = None
    converged: bool | None = None
    inliers: float | None = None
    degeneracy: float | None = None
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    map: PointCloud | None = None
    scan: PointCloud | None = None


class ScanOdometry(Node, interface=True):
    """Pose of a lidar by its scans, from its first one on; scans of a moving sensor are straightened."""

    voxel: float = param(
        0.0,
        ge=0,
        le=5,
        unit="m",
        doc="edge length of the voxels to which scans are thinned; 0: chosen from the first two scans",
    )
    near: float = param(
        1.0,
        ge=0,
        unit="m",
        doc="smallest range of the returns that are used; nearer ones are the vehicle, or fog",
    )
    deskew: bool = param(True, doc="whether scans are corrected for the motion during the scan")
    give_scans: bool = param(False, doc="whether straightened scans are given")
    least_points: int = param(100, ge=10, doc="smallest number of points of a scan")
    least_share: float = param(
        0.4,
        gt=0,
        lt=1,
        doc="smallest share of points that must find a partner in the map; half of it where it was foreseen",
    )
    max_failed_ratio: float = param(
        0.5, ge=0, le=1, doc="largest ratio of failed attempts in a result that can be trusted"
    )

    def reset(self) -> None:
        settings = LidarOdometrySettings(
            self.voxel, self.near, self.deskew, self.least_points, self.least_share
        )
        self.odometer = LidarOdometer(settings, self.new_map)
        self.attempts = Attempts(self.max_failed_ratio)

    def new_map(self, voxel: float, parts: int) -> LocalMap:
        """Return an empty map to align scans to, which are inserted in so many parts each."""
        raise NotImplementedError

    def process(self, cloud: PointCloud) -> ScanMotion | None:
        scan = cloud if cloud.t_ns else replace(cloud, t_ns=self.ctx.time)
        motion = self.odometer.register_cloud(scan)
        self.attempts.add(motion.pose is not None)
        if motion.reason == RESTARTED:
            self.ctx.log("no scan found its place for long: begun anew")
        if motion.pose is None:
            self.ctx.skip(motion.reason)
            return ScanMotion(success=False, converged=motion.converged, inliers=motion.inlier_ratio)
        turned, place = se3.to_quaternion(motion.pose)
        velocity = motion.velocity
        return ScanMotion(
            pose=Pose(place, turned, scan.t_ns, FRAME, scan.frame),
            velocity=None
            if velocity is None
            else Twist(velocity[:3], velocity[3:], t_ns=scan.t_ns, frame=scan.frame),
            success=True,
            converged=motion.converged,
            inliers=motion.inlier_ratio,
            degeneracy=motion.degeneracy,
            covariance=inflate(motion.covariance, self.ctx.trust("cloud")),
            scan=self._deskewed(scan) if self.give_scans else None,
        )

    def finish(self) -> ScanMotion | None:
        """Return the map."""
        self.attempts.report(self.ctx, "scans did not find their place in the map", "the path")
        if not self.odometer.has_begun:
            return None
        found = self.odometer.map_points()
        if found is None:
            return self.ctx.skip("only one scan found its place: no map")
        count, points = found
        if not self.odometer.has_covariance:
            self.ctx.skip("fewer than six scans found their place: no covariance")
        return ScanMotion(map=PointCloud(points.astype(np.float32), {"count": count}, frame=FRAME))

    def _deskewed(self, cloud: PointCloud) -> PointCloud:
        """Return the last scan as it was at its time."""
        points = self.odometer.deskewed_points().astype(np.float32)
        return PointCloud(points, t_ns=cloud.t_ns, frame=cloud.frame)


class VoxelGaussians(ScanOdometry):
    """To a map of one Gaussian per voxel, which forgets what it has not seen for long (VGICP, small_gicp)."""

    history: int = param(
        300, ge=10, doc="number of scans after which an unseen voxel is removed from the map"
    )

    def new_map(self, voxel: float, parts: int) -> LocalMap:
        return VoxelMap(voxel, self.history * parts)


class PointToPlane(ScanOdometry):
    """To the planes around the points of the last keyframes (small_gicp)."""

    keyframes: int = param(20, ge=1, doc="number of keyframes in the map")
    spacing: float = param(
        1.0, gt=0, unit="m", doc="distance from the last keyframe at which a scan becomes a keyframe"
    )
    turning: float = param(
        0.2, gt=0, unit="rad", doc="rotation from the last keyframe at which a scan becomes a keyframe"
    )

    def new_map(self, voxel: float, parts: int) -> LocalMap:
        return Submap(voxel / 2, self.keyframes, self.spacing, self.turning)
