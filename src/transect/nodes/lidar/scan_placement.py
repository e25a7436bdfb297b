"""Scans of a moving sensor in a fixed frame, each point by the pose at its own time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from transect.engine import Batch, Node, param
from transect.geometry import rotations
from transect.recording.clocks import NS
from transect.types import Imu, PointCloud, Pose

from ._passing import PassingPoses
from ._timing import OFFSETS, point_offsets

Floats = NDArray[np.float64]
LEVEL = "level"
UP = np.array([0.0, 0.0, 1.0])


class ScanPlacement(Node):
    """Puts scans where the poses of the sensor, or of the body that carries it, have them.

    Points are measured while the sensor moves on, so a scan waits for the poses until its end, that is for
    the next scan. Points at whose time no pose is known are left out.

    An odometry begins with the axes of its sensor, which nobody mounted level. With an IMU, which feels where
    up is until the first scan is placed, the clouds are turned upright into the frame `level`.
    """

    out_name = "cloud"
    max_gap: float = param(1.0, gt=0, unit="s", doc="between poses further apart nothing is known")

    def reset(self) -> None:
        self.passing = PassingPoses(round(self.max_gap * NS))
        self.waiting: PointCloud | None = None
        self.felt: list[Imu] = []
        self.upright: Floats | None = None

    def process(self, cloud: PointCloud, pose: Batch[Pose], imu: Batch[Imu] = ()) -> PointCloud | None:
        """Return the scan before, placed."""
        scan = replace(cloud, t_ns=cloud.t_ns or self.ctx.time)
        if self.upright is None:
            self.felt += imu
        before, self.waiting = self.waiting, scan
        self.passing.add(pose, scan.t_ns if before is None else before.t_ns)
        return None if before is None else self._placed(before, scan.t_ns - before.t_ns)

    def finish(self) -> PointCloud | None:
        """Return the last scan, as far as there are poses for it."""
        return None if self.waiting is None else self._placed(self.waiting, 0)

    def _placed(self, cloud: PointCloud, period_ns: int) -> PointCloud | None:
        offset_ns = point_offsets(cloud, period_ns)
        if offset_ns is None:
            offset_ns = np.zeros(len(cloud), dtype=np.int64)
        points = self.passing.placed(cloud, offset_ns, self.ctx.frames)
        known = np.zeros(len(cloud), dtype=np.bool_) if points is None else np.isfinite(points).all(axis=1)
        if points is None or not known.any():
            return self.ctx.skip("no pose at the time of the scan")
        fields = {name: values[known] for name, values in cloud.fields.items() if name != OFFSETS}
        frame, points = self.passing.poses[0].frame, points[known]
        if self.upright is None and self.felt:
            self.upright = self._found_upright(self.passing.poses[0])
        if self.upright is not None:
            frame, points = LEVEL, points @ self.upright.T
        return PointCloud(points, fields, cloud.t_ns, frame)

    def _found_upright(self, pose: Pose) -> Floats:
        """Return the least rotation (3, 3) that takes what the IMU felt as up to z."""
        up = np.mean([imu.acceleration for imu in self.felt], axis=0)
        sensor = self.felt[0].frame
        if sensor and pose.child and sensor != pose.child:
            up = self.ctx.frames.lookup(pose.child, sensor)[:3, :3] @ up
        up = rotations.rotate(pose.orientation, up / np.linalg.norm(up))
        axis = np.cross(up, UP)
        angle = np.arctan2(np.linalg.norm(axis), up @ UP)
        return rotations.matrix_from_rotation_vector(axis / max(float(np.linalg.norm(axis)), 1e-12) * angle)
