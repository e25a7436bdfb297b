"""Scans of a moving sensor in a fixed, level frame, each point by the pose at its own time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from transect.algorithms.clouds.deskewing import OFFSET_FIELD, point_offsets
from transect.algorithms.clouds.selection import join_fields
from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.engine import Batch, Node, outputs, param
from transect.errors import FrameError
from transect.geometry import rotations
from transect.geometry.interpolation import interpolate_columns, interpolate_poses
from transect.recording import FrameTree
from transect.types import Imu, PointCloud, Pose

from .body_poses import PoseBuffer

UP = np.array([0.0, 0.0, 1.0])
LEAST_POSES = 5
"""From which start, speed and gravity are told apart."""
LEVEL, ODOM = "level", "odom"
"""Frame of clouds that were turned upright, and that of poses of which nobody says that they are."""


@outputs
class PlacedScan:
    """A scan in the frame of the poses, or turned upright.

    Attributes
    ----------
    cloud : PointCloud
    levelling : Pose
        Of the frame of the poses in that of the clouds, where these differ: a rotation; given once.
    """

    cloud: PointCloud | None = None
    levelling: Pose | None = None


class ScanPlacement(Node):
    """Puts scans where the poses of the sensor, or of the body that carries it, have them.

    Points are measured while the sensor moves on, so a scan waits for the poses until its end, that is for
    the next scan. Beams that did not come back and points at whose time no pose is known are left out.

    An odometry begins with the axes of its sensor, which nobody mounted level. With an IMU the clouds are
    turned upright into the frame `level`; the first ones wait until it has felt for some seconds where up is,
    and are given as one. Poses in a frame that is not `odom` stay as they are. An IMU that no frames connect
    with the sensor is not used, which is said.
    """

    max_gap: float = param(1.0, gt=0, unit="s", doc="largest time between two poses that are interpolated")
    settling: float = param(
        5.0, ge=0, unit="s", doc="time at the start in which the IMU measures the direction of gravity"
    )

    def reset(self) -> None:
        self.pose_buffer = PoseBuffer(round(self.max_gap * NS))
        self.waiting: list[PointCloud] = []
        self.felt: list[Imu] = []
        self.upright: Floats | None = None
        self.frame = ""
        self.levelling: Pose | None = None

    def process(self, cloud: PointCloud, pose: Batch[Pose], imu: Batch[Imu] = ()) -> PlacedScan | None:
        """Return the scan before, placed."""
        self.waiting.append(replace(cloud, t_ns=cloud.t_ns or self.ctx.time))
        self.pose_buffer.add(pose, self.waiting[0].t_ns)
        if self.upright is None:
            self.felt += imu
        waited_ns = self.waiting[-1].t_ns - self.waiting[0].t_ns
        if self.upright is None and self.felt and waited_ns < self.settling * NS:
            return None
        return self._emit(len(self.waiting) - 1)

    def finish(self) -> PlacedScan | None:
        """Return the last scan, as far as there are poses for it."""
        return self._emit(len(self.waiting))

    def _emit(self, count: int) -> PlacedScan | None:
        """Return the first of the waiting scans, placed, as one cloud."""
        ends = [scan.t_ns for scan in [*self.waiting[1:], *self.waiting[-1:]]]
        due, self.waiting = list(zip(self.waiting, ends, strict=True))[:count], self.waiting[count:]
        placed = [self._place(scan, end_ns - scan.t_ns) for scan, end_ns in due]
        joined = _join([cloud for cloud in placed if cloud is not None])
        if joined is None:
            return None
        levelling, self.levelling = self.levelling, None
        return PlacedScan(joined, levelling)

    def _place(self, cloud: PointCloud, period_ns: int) -> PointCloud | None:
        offset_ns = point_offsets(cloud, period_ns)
        if offset_ns is None:
            offset_ns = np.zeros(len(cloud), dtype=np.int64)
        points = self.pose_buffer.place_points(cloud, offset_ns, self.ctx.frames)
        # Many spinning lidars write a beam that did not come back as a point in the sensor itself.
        known = np.asarray(cloud.points.any(axis=1), dtype=np.bool_)
        known &= False if points is None else np.isfinite(points).all(axis=1)
        if points is None or not known.any():
            return self.ctx.skip("no pose at the time of the scan")
        if self.upright is None:
            self.upright, self.frame = self._level()
            before = self.pose_buffer.poses[0]
            if self.frame != before.frame:
                turned = rotations.quaternion_from_matrix(self.upright)
                self.levelling = Pose(np.zeros(3), turned, before.t_ns, self.frame, before.frame)
        fields = {name: values[known] for name, values in cloud.fields.items() if name != OFFSET_FIELD}
        return PointCloud(points[known] @ self.upright.T, fields, cloud.t_ns, self.frame)

    def _level(self) -> tuple[Floats, str]:
        """Return the rotation (3, 3) into the frame of all clouds, and that frame."""
        felt, self.felt, poses = self.felt, [], self.pose_buffer.poses
        if not felt or poses[0].frame not in ("", ODOM):
            return np.eye(3), poses[0].frame
        body, sensor = poses[0].child, felt[0].frame
        if not body or not sensor:
            self.ctx.conclude(
                f"no frame tells how {sensor or 'the IMU'} is mounted: its axes are taken for those of "
                f"{body or 'the sensor'} to find where up is"
            )
        try:
            return upright(felt, poses, self.ctx.frames), LEVEL
        except FrameError:
            edge = f"{{frame: {body}, child: {sensor}, xyz: ..., euler: ...}}"
            self.ctx.conclude(
                f"{sensor} is not used: no frames connect it with {body}. Up is the z axis of {body} at the "
                f"start. To use it, add to `frames` in recording.yaml: {edge}"
            )
            return np.eye(3), poses[0].frame


def _join(clouds: list[PointCloud]) -> PointCloud | None:
    """Return clouds of one frame as one, with the fields that all of them have, at the time of the last."""
    if len(clouds) < 2:
        return clouds[0] if clouds else None
    points = np.concatenate([cloud.points for cloud in clouds])
    return PointCloud(points, join_fields(*clouds), clouds[-1].t_ns, clouds[-1].frame)


def upright(felt: Sequence[Imu], poses: Sequence[Pose], frames: FrameTree) -> Floats:
    """Return the least rotation (3, 3) that makes the frame of poses level, by an IMU on the body."""
    return rotations.rotation_between(_measure_up(felt, poses, frames), UP)


def _measure_up(felt: Sequence[Imu], poses: Sequence[Pose], frames: FrameTree) -> Floats:
    """Return the acceleration (3,) that holds the body against gravity, in the frame of the poses, m/s^2."""
    child, sensor = poses[0].child, felt[0].frame
    mounting = frames.lookup(child, sensor)[:3, :3] if sensor and child and sensor != child else np.eye(3)
    t_ns, force = np.array([imu.t_ns for imu in felt]), np.stack([imu.acceleration for imu in felt])
    at_ns = np.array([pose.t_ns for pose in poses])
    places, turns = np.stack([p.position for p in poses]), np.stack([p.orientation for p in poses])
    _, turned = interpolate_poses(at_ns, places, turns, np.clip(t_ns, at_ns[0], at_ns[-1]))
    force = rotations.rotate(turned, force @ mounting.T)
    within = (at_ns >= t_ns[0]) & (at_ns <= t_ns[-1])
    if np.count_nonzero(within) < LEAST_POSES:
        return force.mean(axis=0)
    return gravity_reaction(t_ns, force, at_ns[within], places[within])


def gravity_reaction(t_ns: Ints, force: Floats, at_ns: Ints, places: Floats) -> Floats:
    """Return what a body at rest would feel (3,), m/s^2, from what it felt while it moved.

    A mean of what is felt is tilted by how the body sped up. Here places tell that: twice integrated, the
    force less its reaction to gravity is the way, but for where the body began and how fast.

    Parameters
    ----------
    t_ns, force : (n,), (n, 3)
        Specific force in a frame that does not turn, m/s^2.
    at_ns, places : (m,), (m, 3)
        Metres, in the same frame, at times among those of the force; at least three.
    """
    way = _integrate(t_ns, _integrate(t_ns, force))
    seconds = (at_ns - t_ns[0]) / NS
    powers = np.column_stack([np.ones_like(seconds), seconds, -(seconds**2) / 2])
    coefficients, *_ = np.linalg.lstsq(powers, places - interpolate_columns(t_ns, way, at_ns), rcond=None)
    return coefficients[2]


def _integrate(t_ns: Ints, values: Floats) -> Floats:
    """Return the integral (n, 3) over time from the first on, by trapezoids."""
    steps = np.diff(t_ns)[:, None] / NS * (values[1:] + values[:-1]) / 2
    return np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
