"""Scans of a moving sensor as if all of each had been measured at its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine import Batch, Node, param
from transect.geometry import rotations, se3
from transect.types import Imu, PointCloud, Pose

from ._deskewing import OFFSETS, point_offsets, straighten
from ._passing import PassingPoses


class ScanDeskewing(Node, interface=True):
    """A scan straightened to its own time; `t_offset_ns` is then 0 for all points.

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
    max_gap: float = param(1.0, gt=0, unit="s", doc="largest time between two poses that are interpolated")

    def reset(self) -> None:
        self.passing = PassingPoses(round(self.max_gap * NS))
        self.turns: list[Imu] = []
        self.waiting: PointCloud | None = None
        self.last_ns = 0

    def process(
        self, cloud: PointCloud, pose: Batch[Pose] = (), imu: Batch[Imu] = ()
    ) -> PointCloud | None: ...


class ConstantVelocity(ScanDeskewing):
    """By the velocity between the last two poses, as an odometry's that come back with `~>`."""

    def process(
        self, cloud: PointCloud, pose: Sequence[Pose] = (), imu: Sequence[Imu] = ()
    ) -> PointCloud | None:
        cloud = replace(cloud, t_ns=cloud.t_ns or self.ctx.time)
        period_ns, self.last_ns = cloud.t_ns - (self.last_ns or cloud.t_ns), cloud.t_ns
        self.passing.add(pose, cloud.t_ns)
        offset_ns = point_offsets(cloud, period_ns)
        if offset_ns is None:
            return self.ctx.skip("no time for each point")
        sensors = self.passing.sensor_poses(cloud, self.ctx.frames)
        velocity = np.zeros(6)
        if sensors is not None and len(sensors) > 1:
            seconds = (self.passing.poses[-1].t_ns - self.passing.poses[-2].t_ns) / NS
            velocity = se3.log(se3.invert(sensors[-2]) @ sensors[-1]) / seconds
        return _replace_points(cloud, straighten(cloud.points, offset_ns / NS, velocity))


class Gyroscope(ScanDeskewing):
    """By the rates that an IMU measured during the scan, which therefore waits for the next; turns only."""

    def process(
        self, cloud: PointCloud, pose: Sequence[Pose] = (), imu: Sequence[Imu] = ()
    ) -> PointCloud | None:
        cloud = replace(cloud, t_ns=cloud.t_ns or self.ctx.time)
        before, self.waiting = self.waiting, cloud
        self.turns = [*self.turns, *imu]
        if before is None:
            return None
        result = self._turn(before, cloud.t_ns - before.t_ns)
        self.turns = [each for each in self.turns if each.t_ns >= cloud.t_ns - self.max_gap * NS]
        return result

    def _turn(self, cloud: PointCloud, period_ns: int) -> PointCloud | None:
        offset_ns = point_offsets(cloud, period_ns)
        if offset_ns is None:
            return self.ctx.skip("no time for each point")
        end_ns = cloud.t_ns + int(offset_ns.max(initial=0))
        during = [imu for imu in self.turns if cloud.t_ns <= imu.t_ns <= end_ns]
        if not during:
            return self.ctx.skip("no imu during the scan")
        rate = np.mean([imu.angular_velocity for imu in during], axis=0)
        if during[0].frame and cloud.frame and during[0].frame != cloud.frame:
            rate = rotations.rotate(
                rotations.quaternion_from_matrix(
                    self.ctx.frames.lookup(cloud.frame, during[0].frame)[:3, :3]
                ),
                rate,
            )
        twist = np.concatenate([np.zeros(3), rate])
        return _replace_points(cloud, straighten(cloud.points, offset_ns / NS, twist))


class KnownPoses(ScanDeskewing):
    """By poses that are known throughout the scan, which therefore waits for the next."""

    def process(
        self, cloud: PointCloud, pose: Sequence[Pose] = (), imu: Sequence[Imu] = ()
    ) -> PointCloud | None:
        cloud = replace(cloud, t_ns=cloud.t_ns or self.ctx.time)
        before, self.waiting = self.waiting, cloud
        self.passing.add(pose, cloud.t_ns if before is None else before.t_ns)
        if before is None:
            return None
        offset_ns = point_offsets(before, cloud.t_ns - before.t_ns)
        if offset_ns is None:
            return self.ctx.skip("no time for each point")
        placed = self.passing.place(before, offset_ns, self.ctx.frames)
        origin = self.passing.place(
            replace(before, points=np.vstack([np.zeros(3), np.eye(3)])),
            np.zeros(4, dtype=np.int64),
            self.ctx.frames,
        )
        if placed is None or origin is None or not np.isfinite(origin).all():
            return self.ctx.skip("no pose at the time of the scan")
        # The sensor's axes at the scan's time, as rows: they take what is placed back to the sensor.
        axes = origin[1:] - origin[0]
        return _replace_points(before, (placed - origin[0]) @ axes.T)


def _replace_points(cloud: PointCloud, points: Floats) -> PointCloud:
    """Return the cloud with points (n, 3) that are all of its own time."""
    offsets = np.zeros(len(cloud), dtype=np.int64)
    return replace(cloud, points=points.astype(cloud.points.dtype), fields={**cloud.fields, OFFSETS: offsets})
