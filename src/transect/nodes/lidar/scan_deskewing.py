"""Deskewing of lidar scans, given motion from poses or an IMU."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from transect.algorithms.clouds.deskewing import OFFSET_FIELD, deskew, point_offsets
from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.engine import Batch, Node, param
from transect.errors import FrameError
from transect.geometry import rotations, se3
from transect.types import Imu, PointCloud, Pose

from .body_poses import PoseBuffer


class ScanDeskewing(Node, interface=True):
    """A scan deskewed to its own time; `t_offset_ns` is then 0 for all points.

    Inputs
    ------
    cloud
        With `t_offset_ns`, or of a whole revolution in the order of firing, from which times are derived.
    pose
        Of the sensor, or of the body that carries it.
    imu
        Of the same body.
    """

    out_name = "cloud"
    waits: ClassVar[bool] = True  # for the next scan, so that all measurements during this one have arrived
    max_gap: float = param(1.0, gt=0, unit="s", doc="largest time between two poses that are interpolated")

    def reset(self) -> None:
        self.pose_buffer = PoseBuffer(round(self.max_gap * NS))
        self.imus: list[Imu] = []
        self.last: PointCloud | None = None

    def process(self, cloud: PointCloud, pose: Batch[Pose] = (), imu: Batch[Imu] = ()) -> PointCloud | None:
        cloud = replace(cloud, t_ns=cloud.t_ns or self.ctx.time)
        previous, self.last = self.last, cloud
        scan = cloud if previous is None or not self.waits else previous
        self.pose_buffer.add(pose, scan.t_ns)
        since_ns = scan.t_ns - self.max_gap * NS
        self.imus = [each for each in (*self.imus, *imu) if each.t_ns >= since_ns]
        if previous is None and self.waits:
            return None
        offset_ns = point_offsets(scan, 0 if previous is None else cloud.t_ns - previous.t_ns)
        if offset_ns is None:
            return self.ctx.skip("no time for each point")
        points = self.deskew(scan, offset_ns)
        if points is None:
            return None
        fields = {**scan.fields, OFFSET_FIELD: np.zeros(len(scan), dtype=np.int64)}
        return replace(scan, points=points.astype(scan.points.dtype), fields=fields)

    def deskew(self, scan: PointCloud, offset_ns: Ints) -> Floats | None:
        """Return the points (n, 3) as measured at the scan's time; None, with a counted reason, if unknown.

        Parameters
        ----------
        offset_ns : (n,)
            When each point was measured, from the scan's time on.
        """
        raise NotImplementedError


class ConstantVelocity(ScanDeskewing):
    """By the velocity between the last two poses, e.g. of an odometry that is fed back with `~>`."""

    waits = False

    def deskew(self, scan: PointCloud, offset_ns: Ints) -> Floats | None:
        sensors = self.pose_buffer.sensor_poses(scan, self.ctx.frames)
        velocity = np.zeros(6)
        if sensors is not None and len(sensors) > 1:
            seconds = (self.pose_buffer.poses[-1].t_ns - self.pose_buffer.poses[-2].t_ns) / NS
            velocity = se3.log(se3.invert(sensors[-2]) @ sensors[-1]) / seconds
        return deskew(scan.points, offset_ns / NS, velocity)


class Gyroscope(ScanDeskewing):
    """By the angular velocity during the scan, which therefore waits for the next one; rotation only."""

    def deskew(self, scan: PointCloud, offset_ns: Ints) -> Floats | None:
        end_ns = scan.t_ns + int(offset_ns.max(initial=0))
        during = [imu for imu in self.imus if scan.t_ns <= imu.t_ns <= end_ns]
        if not during:
            return self.ctx.skip("no imu during the scan")
        rate = np.mean([imu.angular_velocity for imu in during], axis=0)
        if during[0].frame and scan.frame and during[0].frame != scan.frame:
            try:
                turn = self.ctx.frames.lookup(scan.frame, during[0].frame)[:3, :3]
            except FrameError:
                return self.ctx.skip(f"no frames connect the imu ({during[0].frame}) with {scan.frame}")
            rate = rotations.rotate(rotations.quaternion_from_matrix(turn), rate)
        return deskew(scan.points, offset_ns / NS, np.concatenate([np.zeros(3), rate]))


class KnownPoses(ScanDeskewing):
    """By the poses during the scan, which therefore waits for the next one."""

    def deskew(self, scan: PointCloud, offset_ns: Ints) -> Floats | None:
        placed = self.pose_buffer.place_points(scan, offset_ns, self.ctx.frames)
        origin = self.pose_buffer.place_points(
            replace(scan, points=np.vstack([np.zeros(3), np.eye(3)])),
            np.zeros(4, dtype=np.int64),
            self.ctx.frames,
        )
        if placed is None or origin is None or not np.isfinite(origin).all():
            return self.ctx.skip("no pose at the time of the scan")
        # Rows are the sensor's axes at the scan's time, which transform placed points back to the sensor.
        axes = origin[1:] - origin[0]
        return (placed - origin[0]) @ axes.T
