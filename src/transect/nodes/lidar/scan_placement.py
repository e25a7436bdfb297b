"""Lidar scans in a fixed, level frame, each point by the pose at its own time."""

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
LEVEL, ODOM = "level", "odom"
"""Frame of levelled clouds, and frame of poses that may not be level."""


@outputs
class PlacedScan:
    """A scan in the frame of the poses, or levelled."""

    cloud: PointCloud | None = None
    levelling: Pose | None = None  # rotation from the frame of the poses, if they differ; once


class ScanPlacement(Node):
    """Transforms scans to the frame of the poses of the sensor, or of the body that carries it.

    Points are measured while the sensor moves, so a scan waits for the poses until its end, i.e. for the next
    scan. Beams without a return and points without a pose are dropped.

    The frame of an odometry has the axes of its sensor, which is never mounted exactly level. With an IMU the
    clouds are levelled into the frame `level`; the first ones wait for some seconds until the vertical is
    measured, and are emitted as one. Poses in a frame other than `odom` are not levelled. An IMU whose frame
    is not connected with the sensor is not used, which is reported.
    """

    max_gap: float = param(1.0, gt=0, unit="s", doc="largest time between two poses that are interpolated")
    settling: float = param(
        5.0, ge=0, unit="s", doc="time at the start in which the IMU measures the direction of gravity"
    )

    def reset(self) -> None:
        self.pose_buffer = PoseBuffer(round(self.max_gap * NS))
        self.waiting: list[PointCloud] = []
        self.imus: list[Imu] = []
        self.R_level_odom: Floats | None = None
        self.frame = ""
        self.levelling: Pose | None = None

    def process(self, cloud: PointCloud, pose: Batch[Pose], imu: Batch[Imu] = ()) -> PlacedScan | None:
        """Return the last scan, placed."""
        self.waiting.append(replace(cloud, t_ns=cloud.t_ns or self.ctx.time))
        self.pose_buffer.add(pose, self.waiting[0].t_ns)
        if self.R_level_odom is None:
            self.imus += imu
        waited_ns = self.waiting[-1].t_ns - self.waiting[0].t_ns
        if self.R_level_odom is None and self.imus and waited_ns < self.settling * NS:
            return None
        return self._emit(len(self.waiting) - 1)

    def finish(self) -> PlacedScan | None:
        """Return the last scan, as far as there are poses for it."""
        return self._emit(len(self.waiting))

    def _emit(self, count: int) -> PlacedScan | None:
        """Return the first `count` waiting scans, placed, as one cloud."""
        ends = [scan.t_ns for scan in [*self.waiting[1:], *self.waiting[-1:]]]
        scans, self.waiting = list(zip(self.waiting, ends, strict=True))[:count], self.waiting[count:]
        placed = [self._place(scan, end_ns - scan.t_ns) for scan, end_ns in scans]
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
        # Many spinning lidars write a beam without a return as a point at the origin.
        known = np.asarray(cloud.points.any(axis=1), dtype=np.bool_)
        known &= False if points is None else np.isfinite(points).all(axis=1)
        if points is None or not known.any():
            return self.ctx.skip("no pose at the time of the scan")
        if self.R_level_odom is None:
            self.R_level_odom, self.frame = self._initialise_levelling()
            first_pose = self.pose_buffer.poses[0]
            if self.frame != first_pose.frame:
                orientation = rotations.quaternion_from_matrix(self.R_level_odom)
                self.levelling = Pose(np.zeros(3), orientation, first_pose.t_ns, self.frame, first_pose.frame)
        fields = {name: values[known] for name, values in cloud.fields.items() if name != OFFSET_FIELD}
        return PointCloud(points[known] @ self.R_level_odom.T, fields, cloud.t_ns, self.frame)

    def _initialise_levelling(self) -> tuple[Floats, str]:
        """Return the rotation (3, 3) into the frame of all clouds, and that frame."""
        imus, self.imus, poses = self.imus, [], self.pose_buffer.poses
        if not imus or poses[0].frame not in ("", ODOM):
            return np.eye(3), poses[0].frame
        body, sensor = poses[0].child, imus[0].frame
        if not body or not sensor:
            self.ctx.conclude(
                f"no frame states how {sensor or 'the IMU'} is mounted: its axes are assumed to be those of "
                f"{body or 'the sensor'} to level the clouds"
            )
        try:
            return levelling_rotation(imus, poses, self.ctx.frames), LEVEL
        except FrameError:
            edge = f"{{frame: {body}, child: {sensor}, xyz: ..., euler: ...}}"
            self.ctx.conclude(
                f"{sensor} is not used: no frames connect it with {body}. Up is the z axis of {body} at the "
                f"start. To use it, add to `frames` in recording.yaml: {edge}"
            )
            return np.eye(3), poses[0].frame


def _join(clouds: list[PointCloud]) -> PointCloud | None:
    """Return clouds of one frame as one, with their common fields, at the time of the last."""
    if len(clouds) < 2:
        return clouds[0] if clouds else None
    points = np.concatenate([cloud.points for cloud in clouds])
    return PointCloud(points, join_fields(*clouds), clouds[-1].t_ns, clouds[-1].frame)


def levelling_rotation(imus: Sequence[Imu], poses: Sequence[Pose], frames: FrameTree) -> Floats:
    """Return the smallest rotation (3, 3) that levels the frame of the poses, by an IMU on the body."""
    return rotations.rotation_between(_measure_vertical(imus, poses, frames), UP)


def _measure_vertical(imus: Sequence[Imu], poses: Sequence[Pose], frames: FrameTree) -> Floats:
    """Return the reaction to gravity (3,) in the frame of the poses, m/s^2."""
    child, sensor = poses[0].child, imus[0].frame
    mounting = frames.lookup(child, sensor)[:3, :3] if sensor and child and sensor != child else np.eye(3)
    t_ns, force = np.array([imu.t_ns for imu in imus]), np.stack([imu.acceleration for imu in imus])
    pose_ns = np.array([pose.t_ns for pose in poses])
    positions, orientations = np.stack([p.position for p in poses]), np.stack([p.orientation for p in poses])
    _, orientation = interpolate_poses(
        pose_ns, positions, orientations, np.clip(t_ns, pose_ns[0], pose_ns[-1])
    )
    force = rotations.rotate(orientation, force @ mounting.T)
    inside = (pose_ns >= t_ns[0]) & (pose_ns <= t_ns[-1])
    if np.count_nonzero(inside) < 5:  # too few to separate initial position, velocity and gravity
        return force.mean(axis=0)
    return gravity_reaction(t_ns, force, pose_ns[inside], positions[inside])


def gravity_reaction(t_ns: Ints, force: Floats, pose_ns: Ints, positions: Floats) -> Floats:
    """Return the specific force (3,) of a body at rest, m/s^2, from that of a moving body.

    The mean specific force is tilted by accelerations. Positions determine these: the specific force less the
    reaction to gravity, integrated twice, is the displacement, except for the initial position and velocity.

    Parameters
    ----------
    t_ns, force : (n,), (n, 3)
        Specific force in a frame that does not rotate, m/s^2.
    pose_ns, positions : (m,), (m, 3)
        Positions, m, in the same frame, at times within those of the force; at least three.
    """
    displacement = _integrate(t_ns, _integrate(t_ns, force))
    seconds = (pose_ns - t_ns[0]) / NS
    powers = np.column_stack([np.ones_like(seconds), seconds, -(seconds**2) / 2])
    coefficients, *_ = np.linalg.lstsq(
        powers, positions - interpolate_columns(t_ns, displacement, pose_ns), rcond=None
    )
    return coefficients[2]


def _integrate(t_ns: Ints, values: Floats) -> Floats:
    """Return the integral (n, 3) over time by the trapezoidal rule."""
    steps = np.diff(t_ns)[:, None] / NS * (values[1:] + values[:-1]) / 2
    return np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
