"""Poses of a body from any measured motion, and points of a moving sensor placed by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import FrameError
from transect.geometry import rotations, se3
from transect.geometry.interpolation import Limits, interpolate_poses
from transect.recording import FrameTree
from transect.types import Odometry, PointCloud, Pose, RigidBodyState, Twist


class PoseBuffer:
    """Poses around the current scan, oldest first; older ones are dropped.

    Parameters
    ----------
    max_gap_ns : int
        Largest time between two poses that are interpolated.
    assumed : dict of str to None, optional
        Collects sentences on assumptions where frames do not state how a sensor is mounted; without it that
        is an error.
    bin_ns : int
        Points of one bin of time share a pose; at 1 rad/s and 30 m the error is at most 3 mm.
    """

    def __init__(
        self, max_gap_ns: int, assumed: dict[str, None] | None = None, bin_ns: int = 100_000
    ) -> None:
        self.max_gap_ns, self.assumed, self.bin_ns = max_gap_ns, assumed, bin_ns
        self.poses: list[Pose] = []

    def add(self, poses: Sequence[Pose], after_ns: int) -> None:
        """Add new poses, and drop those that are not needed from a time (ns) on."""
        self.poses += [pose for pose in poses if not self.poses or pose.t_ns > self.poses[-1].t_ns]
        older = [i for i, pose in enumerate(self.poses) if pose.t_ns <= after_ns]
        self.poses = self.poses[max(older[-1] - 1, 0) if older else 0 :]

    def place_points(self, cloud: PointCloud, offset_ns: Ints, frames: FrameTree) -> Floats | None:
        """Return points (n, 3) in the poses' frame, NaN where no pose is known; None without any pose."""
        sensors = self.sensor_poses(cloud, frames)
        if sensors is None:
            return None
        t_ns = cloud.t_ns + offset_ns
        knots, rows = np.unique(t_ns // self.bin_ns, return_inverse=True)
        positions, orientations = interpolate_poses(
            [pose.t_ns for pose in self.poses],
            sensors[:, :3, 3],
            rotations.quaternion_from_matrix(sensors[:, :3, :3]),
            knots * self.bin_ns + self.bin_ns // 2,
            Limits(gap_ns=self.max_gap_ns, beyond_ns=self.bin_ns),
        )
        valid = np.isfinite(positions).all(axis=1)
        matrices = np.full((len(knots), 3, 3), np.nan)
        matrices[valid] = rotations.matrix_from_quaternion(orientations[valid])
        points = np.asarray(cloud.points, dtype=np.float64)
        return np.einsum("nij,nj->ni", matrices[rows], points) + positions[rows]

    def sensor_poses(self, cloud: PointCloud, frames: FrameTree) -> Floats | None:
        """Return the poses (n, 4, 4) of the cloud's own frame; None without any pose."""
        if not self.poses:
            return None
        child = self.poses[0].child
        body = se3.from_quaternion(
            np.stack([pose.orientation for pose in self.poses]), np.stack([p.position for p in self.poses])
        )
        if self.assumed is None and (not child or not cloud.frame or child == cloud.frame):
            return body
        return body @ self._mounting(child, cloud.frame, frames)

    def _mounting(self, child: str, sensor: str, frames: FrameTree) -> Floats:
        """Return T_child_sensor (4, 4), or (n, 4, 4) at the poses if the sensor moves on the body."""
        if child and child == sensor:
            return np.eye(4)
        try:
            return frames.lookup(child, sensor)
        except FrameError:
            if self.assumed is None:
                raise
        ancestors = frames.ancestry(sensor) if sensor in frames else [sensor]
        if child and child in ancestors:
            times = np.array([pose.t_ns for pose in self.poses])
            return frames.lookup(child, sensor, times, tolerance=self.max_gap_ns / NS, missing="nan")
        body = child or "the vehicle"
        fixed = _fixed_ancestors(ancestors, frames)
        if len(fixed) > 1:
            self.assumed[f"{body} is assumed to be {fixed[-1]}: no frames connect them"] = None
            return frames.lookup(fixed[-1], sensor)
        name = f"the frame {sensor}" if sensor else "the sensor, whose frame has no name,"
        self.assumed[f"{name} is assumed to coincide with {body}: no frames connect them"] = None
        return np.eye(4)


def _fixed_ancestors(ancestors: Sequence[str], frames: FrameTree) -> list[str]:
    """Return a frame and its ancestors, up to the first moving edge."""
    moving = {edge.child for edge in frames.edges if edge.moving}
    count = next((k for k, name in enumerate(ancestors) if name in moving), len(ancestors) - 1)
    return list(ancestors[: count + 1])


MotionSample = RigidBodyState | Odometry | Pose | Twist


class PoseIntegrator:
    """Poses of a body from any samples of its motion; velocities are integrated.

    Parameters
    ----------
    assumed : dict of str to None
        Collects sentences on assumptions for lack of poses.
    """

    def __init__(self, assumed: dict[str, None]) -> None:
        self.assumed = assumed
        self.T_odom_body = np.eye(4)
        self.height = 0.0
        self.last_twist: tuple[int, Floats] | None = None

    def poses(self, samples: Sequence[MotionSample]) -> list[Pose]:
        """Return a pose for each sample that determines one."""
        return [pose for each in samples if (pose := self._pose(each)) is not None]

    def _pose(self, sample: MotionSample) -> Pose | None:
        position, orientation = getattr(sample, "position", None), getattr(sample, "orientation", None)
        child = sample.frame if isinstance(sample, Twist) else sample.child
        has_position = position is not None and bool(np.isfinite(position[:2]).all())
        # Some drivers set velocities only, and a quaternion of zeros.
        has_orientation = orientation is not None and bool(
            np.isfinite(orientation).all() and orientation.any()
        )
        if position is not None and orientation is not None and has_position and has_orientation:
            return Pose(self._fill_height(position), orientation, sample.t_ns, sample.frame, child)
        if isinstance(sample, Pose):
            missing = "an orientation (for a planar robot `yaw` is enough)" if has_position else "x and y"
            self.assumed[f"poses without {missing} are ignored"] = None
            return None
        return self._integrate(sample, "odom" if isinstance(sample, Twist) else sample.frame, child)

    def _fill_height(self, position: Floats) -> Floats:
        """Return a position (3,) with a height: planar robots report none."""
        if np.isfinite(position[2]):
            self.height = float(position[2])
            return position
        self.assumed[f"poses have no height: z = {self.height:g} m is assumed"] = None
        return np.array([*position[:2], self.height])

    def _integrate(self, sample: RigidBodyState | Odometry | Twist, frame: str, child: str) -> Pose | None:
        """Return the pose after integrating the velocities up to a sample, None if it has none."""
        velocities = [getattr(sample, name) for name in ("velocity", "angular_velocity")]
        parts = [
            np.full(3, np.nan) if part is None else np.asarray(part, dtype=np.float64) for part in velocities
        ]
        twist = np.concatenate(parts)
        if isinstance(sample, RigidBodyState) or not np.isfinite(twist).any():
            self.assumed["states with neither pose nor velocity are ignored"] = None
            return None
        self.assumed["velocities are integrated, since there are no poses: the path drifts"] = None
        twist = np.nan_to_num(twist)
        if self.last_twist is not None:
            before_ns, last_twist = self.last_twist
            self.T_odom_body = self.T_odom_body @ se3.exp(
                (last_twist + twist) / 2 * ((sample.t_ns - before_ns) / NS)
            )
        self.last_twist = (sample.t_ns, twist)
        orientation, position = se3.to_quaternion(self.T_odom_body)
        return Pose(position, orientation, sample.t_ns, frame, child)
