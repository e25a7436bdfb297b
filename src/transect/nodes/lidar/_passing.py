"""Where a moving sensor was at each of its points, by poses that pass by while a scan waits for its end."""

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

KNOT_NS = 100_000
"""Points this near in time share a pose: at 1 rad/s and 30 m they are 3 mm off at most."""


class PassingPoses:
    """The poses around a scan, oldest first; those before it are forgotten.

    Parameters
    ----------
    max_gap_ns : int
        Between poses further apart nothing is known.
    assumed : dict of str to None, optional
        Takes sentences, each once, that say what is assumed where frames do not tell how a sensor is mounted;
        without it that is an error.
    """

    def __init__(self, max_gap_ns: int, assumed: dict[str, None] | None = None) -> None:
        self.max_gap_ns, self.assumed = max_gap_ns, assumed
        self.poses: list[Pose] = []

    def add(self, poses: Sequence[Pose], after_ns: int) -> None:
        """Take the poses that came, and forget those that are not needed from a time (ns) on."""
        self.poses += [pose for pose in poses if not self.poses or pose.t_ns > self.poses[-1].t_ns]
        older = [i for i, pose in enumerate(self.poses) if pose.t_ns <= after_ns]
        self.poses = self.poses[max(older[-1] - 1, 0) if older else 0 :]

    def place(self, cloud: PointCloud, offset_ns: Ints, frames: FrameTree) -> Floats | None:
        """Return points (n, 3) in the poses' frame, NaN where no pose is known; None without any pose."""
        sensors = self.sensor_poses(cloud, frames)
        if sensors is None:
            return None
        t_ns = cloud.t_ns + offset_ns
        knots, row = np.unique(t_ns // KNOT_NS, return_inverse=True)
        places, turns = interpolate_poses(
            [pose.t_ns for pose in self.poses],
            sensors[:, :3, 3],
            rotations.quaternion_from_matrix(sensors[:, :3, :3]),
            knots * KNOT_NS + KNOT_NS // 2,
            Limits(gap_ns=self.max_gap_ns, beyond_ns=KNOT_NS),
        )
        known = np.isfinite(places).all(axis=1)
        matrices = np.full((len(knots), 3, 3), np.nan)
        matrices[known] = rotations.matrix_from_quaternion(turns[known])
        points = np.asarray(cloud.points, dtype=np.float64)
        return np.einsum("nij,nj->ni", matrices[row], points) + places[row]

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
        """T_child_sensor (4, 4), or (n, 4, 4) at the poses where the sensor moves on the body."""
        if child and child == sensor:
            return np.eye(4)
        try:
            return frames.lookup(child, sensor)
        except FrameError:
            if self.assumed is None:
                raise
        way = frames.ancestry(sensor) if sensor in frames else [sensor]
        if child and child in way:
            times = np.array([pose.t_ns for pose in self.poses])
            return frames.lookup(child, sensor, times, tolerance=self.max_gap_ns / NS, missing="nan")
        body = child or "the vehicle"
        fixed = _list_fixed(way, frames)
        if len(fixed) > 1:
            self.assumed[f"{body} is taken for {fixed[-1]}: no frames connect the two"] = None
            return frames.lookup(fixed[-1], sensor)
        named = f"the frame {sensor}" if sensor else "the sensor, whose frame is not named,"
        self.assumed[f"{named} is taken to be at the origin of {body} with its axes: no frames say it"] = None
        return np.eye(4)


def _list_fixed(way: Sequence[str], frames: FrameTree) -> list[str]:
    """Return a frame and those above it, as far as nothing moves between them."""
    moving = {edge.child for edge in frames.edges if edge.moving}
    count = next((k for k, name in enumerate(way) if name in moving), len(way) - 1)
    return list(way[: count + 1])


Moving = RigidBodyState | Odometry | Pose | Twist
"""What tells of the motion of a body."""


class Reckoning:
    """Poses of a body from whatever tells of its motion; velocities are integrated.

    Parameters
    ----------
    assumed : dict of str to None
        Takes sentences, each once, that say what is done for want of poses.
    """

    def __init__(self, assumed: dict[str, None]) -> None:
        self.assumed = assumed
        self.place = np.eye(4)
        self.height = 0.0
        self.before: tuple[int, Floats] | None = None

    def poses_of(self, samples: Sequence[Moving]) -> list[Pose]:
        """Return a pose for each sample that tells one."""
        return [pose for each in samples if (pose := self._pose_of(each)) is not None]

    def _pose_of(self, sample: Moving) -> Pose | None:
        position, orientation = getattr(sample, "position", None), getattr(sample, "orientation", None)
        child = sample.frame if isinstance(sample, Twist) else sample.child
        has_place = position is not None and bool(np.isfinite(position[:2]).all())
        # Drivers that fill in velocities alone leave a quaternion of zeros.
        is_turned = orientation is not None and bool(np.isfinite(orientation).all() and orientation.any())
        if position is not None and orientation is not None and has_place and is_turned:
            return Pose(self._lift(position), orientation, sample.t_ns, sample.frame, child)
        if isinstance(sample, Pose):
            missing = "an orientation (for a robot in the plane `yaw` will do)" if has_place else "x and y"
            self.assumed[f"poses without {missing} are left out"] = None
            return None
        return self._integrate(sample, "odom" if isinstance(sample, Twist) else sample.frame, child)

    def _lift(self, position: Floats) -> Floats:
        """Return a place (3,) with a height: robots in the plane tell none."""
        if np.isfinite(position[2]):
            self.height = float(position[2])
            return position
        self.assumed[f"poses tell no height: they are taken to lie in the plane z = {self.height:g} m"] = None
        return np.array([*position[:2], self.height])

    def _integrate(self, sample: RigidBodyState | Odometry | Twist, frame: str, child: str) -> Pose | None:
        """Return the pose to which the velocities up to a sample lead, None if it has none."""
        given = [getattr(sample, name) for name in ("velocity", "angular_velocity")]
        parts = [np.full(3, np.nan) if part is None else np.asarray(part, dtype=np.float64) for part in given]
        twist = np.concatenate(parts)
        if isinstance(sample, RigidBodyState) or not np.isfinite(twist).any():
            self.assumed["states with neither pose nor velocity are left out"] = None
            return None
        self.assumed["velocities are integrated: there are no poses, so the path drifts"] = None
        twist = np.nan_to_num(twist)
        if self.before is not None:
            before_ns, before = self.before
            self.place = self.place @ se3.exp((before + twist) / 2 * ((sample.t_ns - before_ns) / NS))
        self.before = (sample.t_ns, twist)
        orientation, position = se3.to_quaternion(self.place)
        return Pose(position, orientation, sample.t_ns, frame, child)
