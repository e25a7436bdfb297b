"""Scans of a moving sensor in a fixed frame, each point by the pose at its own time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine import Batch, Node, param
from transect.types import Imu, PointCloud, Pose

from ..cloud._clouds import joined_fields
from ._levelling import upright
from ._passing import PassingPoses
from ._timing import OFFSETS, point_offsets

LEVEL = "level"


class ScanPlacement(Node):
    """Puts scans where the poses of the sensor, or of the body that carries it, have them.

    Points are measured while the sensor moves on, so a scan waits for the poses until its end, that is for
    the next scan. Points at whose time no pose is known are left out.

    An odometry begins with the axes of its sensor, which nobody mounted level. With an IMU the clouds are
    turned upright into the frame `level`; the first ones wait until it has felt for some seconds where up is,
    and are given as one.
    """

    out_name = "cloud"
    max_gap: float = param(1.0, gt=0, unit="s", doc="between poses further apart nothing is known")
    settling: float = param(5.0, ge=0, unit="s", doc="for which the IMU feels where up is")

    def reset(self) -> None:
        self.passing = PassingPoses(round(self.max_gap * NS))
        self.waiting: list[PointCloud] = []
        self.felt: list[Imu] = []
        self.upright: Floats | None = None
        self.frame = ""

    def process(self, cloud: PointCloud, pose: Batch[Pose], imu: Batch[Imu] = ()) -> PointCloud | None:
        """Return the scan before, placed."""
        self.waiting.append(replace(cloud, t_ns=cloud.t_ns or self.ctx.time))
        self.passing.add(pose, self.waiting[0].t_ns)
        if self.upright is None:
            self.felt += imu
        waited_ns = self.waiting[-1].t_ns - self.waiting[0].t_ns
        if self.upright is None and self.felt and waited_ns < self.settling * NS:
            return None
        return self._given(len(self.waiting) - 1)

    def finish(self) -> PointCloud | None:
        """Return the last scan, as far as there are poses for it."""
        return self._given(len(self.waiting))

    def _given(self, count: int) -> PointCloud | None:
        """Return the first of the waiting scans, placed, as one cloud."""
        ends = [scan.t_ns for scan in [*self.waiting[1:], *self.waiting[-1:]]]
        due, self.waiting = list(zip(self.waiting, ends, strict=True))[:count], self.waiting[count:]
        placed = [self._placed(scan, end_ns - scan.t_ns) for scan, end_ns in due]
        return _joined([cloud for cloud in placed if cloud is not None])

    def _placed(self, cloud: PointCloud, period_ns: int) -> PointCloud | None:
        offset_ns = point_offsets(cloud, period_ns)
        if offset_ns is None:
            offset_ns = np.zeros(len(cloud), dtype=np.int64)
        points = self.passing.placed(cloud, offset_ns, self.ctx.frames)
        known = np.zeros(len(cloud), dtype=np.bool_) if points is None else np.isfinite(points).all(axis=1)
        if points is None or not known.any():
            return self.ctx.skip("no pose at the time of the scan")
        if self.upright is None:
            self.upright, self.frame = self._level()
        fields = {name: values[known] for name, values in cloud.fields.items() if name != OFFSETS}
        return PointCloud(points[known] @ self.upright.T, fields, cloud.t_ns, self.frame)

    def _level(self) -> tuple[Floats, str]:
        """Return the rotation (3, 3) into the frame of all clouds, and that frame."""
        felt, self.felt, poses = self.felt, [], self.passing.poses
        if not felt:
            return np.eye(3), poses[0].frame
        return upright(felt, poses, self.ctx.frames), LEVEL


def _joined(clouds: list[PointCloud]) -> PointCloud | None:
    """Return clouds of one frame as one, with the fields that all of them have, at the time of the last."""
    if len(clouds) < 2:
        return clouds[0] if clouds else None
    points = np.concatenate([cloud.points for cloud in clouds])
    return PointCloud(points, joined_fields(*clouds), clouds[-1].t_ns, clouds[-1].frame)
