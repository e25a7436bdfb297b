"""The frames of Figure 4 over time, from what the receiver, the joints and the motors say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from transect.errors import StreamError
from transect.geometry import geodesy, rotations, se3
from transect.recording import FrameTree, Robot, Stream
from transect.robots.chains import chain_of
from transect.robots.four_wheel_steering.geometry import FourWheelGeometry
from transect.robots.four_wheel_steering.recorded import wheel_angles
from transect.robots.four_wheel_steering.wheels import (
    WHEELS,
    euler_angles,
    positions,
)

from .arms import SIDES
from .known import lander_of

Poses = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
"""Times, positions and quaternions, as `FrameTree.add_lazy` wants them."""

T_NED_NWU = np.diag([1.0, -1.0, -1.0, 1.0])


def frame_tree(robot: Robot, streams: Iterable[Stream], raw: bool = False) -> FrameTree:
    """Return the robot's frames with the moving ones of a recording; nothing is read before a lookup.

    NED -> Origin comes from Gnss/Pose, and NWU stands beside NED. (base) -> (end) of an arm comes from the
    pose estimate of its camera, so that Origin -> MainCam is what MainCamPoseEstimate.csv says, or else from
    its joint angles. Platform -> Wheel1 to Wheel4 come from the motor encoders, or else from the angles of
    the wheel pose estimate.

    Parameters
    ----------
    streams : iterable of Stream
        Those of AMEDS by their names.
    raw : bool
        Prefer the joint angles to the estimates.
    """
    there = {stream.name: stream for stream in streams}
    tree = robot.frames.copy()
    if (fix := there.get("Gnss/Pose")) is not None:
        tree.add_static("NED", "NWU", T_NED_NWU, source="AMEDS section 5.2")
        _add_moving(tree, "NED", "Origin", fix, partial(rover_poses, fix, robot))
    for side in SIDES:
        _add_arm(tree, robot, side, there, raw)
    _add_wheels(tree, robot, there)
    return tree


def _add_arm(tree: FrameTree, robot: Robot, side: str, there: dict[str, Stream], raw: bool) -> None:
    by_estimate, by_joints = there.get(f"{side}Cam/PoseEstimate"), there.get(f"{side}Arm/JointAngles")
    base, end = f"{side}Arm (base)", f"{side}Arm (end)"
    if by_joints is not None and (raw or by_estimate is None):
        _add_moving(tree, base, end, by_joints, partial(joint_poses, by_joints, robot))
    elif by_estimate is not None:
        _add_moving(tree, base, end, by_estimate, partial(estimated_poses, by_estimate, robot, side))


def _add_wheels(tree: FrameTree, robot: Robot, there: dict[str, Stream]) -> None:
    # Not `or`: whether a stream is empty is known only after reading it.
    stream = there.get("Platform/MotorEncoders", there.get("Platform/WheelPoseEstimate"))
    if stream is None:
        return
    for wheel in range(WHEELS):
        turning = partial(wheel_poses, stream, robot, wheel)
        _add_moving(tree, "Platform", f"Wheel{wheel + 1}", stream, turning)


def _add_moving(tree: FrameTree, frame: str, child: str, stream: Stream, read: Callable[[], Poses]) -> None:
    """Add an edge that a stream moves; without poses where its file, as its reader reports, lacks columns."""

    def poses() -> Poses:
        try:
            return read()
        except StreamError:
            return np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 4))

    tree.add_lazy(frame, child, poses, clock=stream.clock, source=stream.name)


def rover_poses(stream: Stream, robot: Robot) -> Poses:
    """Poses of Origin in the NED world at the lander (section 5.2).

    The attitude is against north at the rover, not at the lander. Over the 500 m of the test site that turns
    by less than 0.005 degrees, a sixth of what the Spatial Dual resolves, and is left as it is.
    """
    values = stream.array("lat", "lon", "alt", "roll", "pitch", "yaw")
    known = np.isfinite(values).all(axis=1) & (np.abs(values[:, 0]) <= np.pi / 2)
    place, attitude = values[known, :3], values[known, 3:]
    local = geodesy.local_from_geodetic(place, lander_of(robot), "NED")
    return stream.t_ns[known], local, rotations.quaternion_from_euler("rpy", attitude)


def estimated_poses(stream: Stream, robot: Robot, side: str) -> Poses:
    """Poses of an arm's end in its base such that its camera is where the estimate says."""
    values = stream.array("x", "y", "z", "qx", "qy", "qz", "qw")
    known = np.isfinite(values).all(axis=1)
    T_origin_camera = se3.from_quaternion(values[known, 3:], values[known, :3])
    T_base_origin = robot.frames.lookup(f"{side}Arm (base)", "Origin")
    T_camera_end = robot.frames.lookup(stream.child, f"{side}Arm (end)")
    return _poses(stream.t_ns[known], T_base_origin @ T_origin_camera @ T_camera_end)


def joint_poses(stream: Stream, robot: Robot) -> Poses:
    """Poses of an arm's end in its base from its joint angles."""
    angles = np.asarray(stream.column("position"), dtype=np.float64)
    known = np.isfinite(angles).all(axis=1)
    return _poses(stream.t_ns[known], chain_of(robot).forward(angles[known]))


def wheel_poses(stream: Stream, robot: Robot, wheel: int) -> Poses:
    """Poses of wheel number `wheel`, counted from 0, in Platform.

    Between samples that are more than half a turn of the wheel apart, its attitude takes the shorter way.
    """
    geometry = FourWheelGeometry.of(robot)
    steering, drive = wheel_angles(stream, geometry)
    places = positions(steering, geometry)[:, wheel]
    angles = euler_angles(steering, drive, geometry)[:, wheel]
    return stream.t_ns, places, rotations.quaternion_from_euler("ZX", angles)


def _poses(t_ns: NDArray[np.int64], transforms: NDArray[np.float64]) -> Poses:
    quaternions, places = se3.to_quaternion(transforms)
    return t_ns, places, quaternions
