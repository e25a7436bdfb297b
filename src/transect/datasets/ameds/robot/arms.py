"""The two LWR IV+ arms and the cameras at their ends (document 000, Tables 2 and 3, and errata)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Mask
from transect.base.clocks import NS
from transect.errors import GeometryError, StreamError
from transect.geometry import geodesy, rotations, se3
from transect.geometry.array_checks import check_times_ns, floats
from transect.recording import FrameTree, Recording, Robot, Stream
from transect.robots.chains import chain_of
from transect.robots.description import Constants
from transect.robots.four_wheel_steering import WHEEL_COUNT, FourWheelGeometry, euler_angles, positions
from transect.robots.slip import wheel_angles

ROBOT = "interact"
SIDES = ("Main", "Aux")

ATTITUDE = "XYZ"
"""Order of the angles (roll-x, pitch-y, yaw-z) in the processed files: ``R = Rx(roll) Ry(pitch) Rz(yaw)``.

Table 7 does not say. This is eq. 3, the only order that the document gives to angles about x, y and z, and
the errata's reading of it; GnssPose has the receiver's own, yaw first. `recomputed.attitude_orders` tells
which one a recording's own numbers fit.
"""


def robot_of(recording: Recording) -> Robot:
    """Return the robot of a recording, or Interact as the document describes it."""
    from transect import robots

    return recording.robot or robots.load(ROBOT)


def lander_of(robot: Robot) -> Floats:
    """Return the origin of the NED world (section 5.2): latitude, longitude (rad), altitude (m)."""
    numbers = Constants(robot, "the world at the lander", "interact.yaml")
    return np.array([numbers["world_origin", key] for key in ("latitude", "longitude", "altitude")])


def end_poses(angles: ArrayLike, robot: Robot, side: str) -> Floats:
    """``T_Origin_end`` (..., 4, 4) of an arm, "Main" or "Aux", at joint angles (..., 7) in rad."""
    T_origin_base = robot.frames.lookup("Origin", f"{side}Arm (base)")
    return T_origin_base @ chain_of(robot).forward(angles)


def camera_poses(angles: ArrayLike, robot: Robot, side: str) -> Floats:
    """``T_Origin_Cam`` (..., 4, 4) of MainCam or AuxCam at joint angles (..., 7) in rad."""
    return end_poses(angles, robot, side) @ robot.frames.lookup(f"{side}Arm (end)", f"{side}Cam")


def attitude_angles(matrices: ArrayLike, order: str = ATTITUDE) -> Floats:
    """Angles (..., 3) about x, y, z in rad of rotation matrices (..., 3, 3), as in the processed files.

    Parameters
    ----------
    order : {"XYZ", "rpy"}
        ``Rx Ry Rz`` (eq. 3) or ``Rz Ry Rx``.
    """
    return rotations.euler_from_matrix(order, matrices)


STILL, APPROACH, GRASP, LIFT, PLACE, RETURN = "still", "approach", "grasp", "lift", "place", "return"


@dataclass(frozen=True)
class Thresholds:
    """When the arm counts as moving, and how much height counts."""

    joint_rate: float = 0.01  # the fastest joint's, rad/s, from which the arm moves
    # metres: this near to the lowest point it is at the rock; differences in height below it do not count
    band: float = 0.03


def moving(t_ns: ArrayLike, angles: ArrayLike, joint_rate: float = 0.01) -> Mask:
    """Whether the arm moves to or from each sample (n,).

    Parameters
    ----------
    t_ns : (n,)
        Sorted.
    angles : (n, 7)
        Joint angles, rad.
    joint_rate : float
        The fastest joint's, rad/s, from which the arm moves.
    """
    times, q = check_times_ns("times", t_ns), floats("joint angles", angles, ("n", "joints"))
    if len(q) < 2:
        return np.zeros(len(q), dtype=np.bool_)
    seconds = np.maximum(np.diff(times), 1) / NS
    fast = np.abs(np.diff(q, axis=0)).max(axis=1) / seconds >= joint_rate
    return np.concatenate([[False], fast]) | np.concatenate([fast, [False]])


def phases(heights: ArrayLike, moves: ArrayLike, thresholds: Thresholds | None = None) -> NDArray[np.str_]:
    """Phase (n,) of each sample of one picking.

    Parameters
    ----------
    heights : (n,)
        Of the gripper, m, upwards, measured (no NaN).
    moves : (n,)
        Whether the arm moves.

    Returns
    -------
    (n,) of str
        `approach`, `grasp`, `lift`, `place`, `return`, in this order where they occur, and `still` wherever
        the arm rests outside grasp and place. An arm that never moves is `still` throughout.
    """
    limit = thresholds or Thresholds()
    height, mask = floats("heights", heights, ("n",)), np.asarray(moves, dtype=np.bool_)
    if mask.shape != height.shape or not np.isfinite(height).all():
        raise GeometryError(f"heights {height.shape} and moves {mask.shape} must be finite and of one length")
    names = np.full(len(height), STILL, dtype="<U8")
    if not mask.any():
        return names
    down, up = _grasp(height, limit.band)
    peak = _peak(height, up, limit.band)
    placed = _place(height, peak, mask, limit.band)
    names[:down] = np.where(mask[:down], APPROACH, STILL)
    names[down:up] = GRASP
    names[up:peak] = np.where(mask[up:peak], LIFT, STILL)
    names[peak:placed] = PLACE
    names[placed:] = np.where(mask[placed:], RETURN, STILL)
    return names


def _grasp(height: Floats, band: float) -> tuple[int, int]:
    """First and stop of the samples around the lowest one that are as low, within the band."""
    low = int(np.argmin(height))
    above = height > height[low] + band
    return low - _first(above[:low][::-1]), low + _first(above[low:])


def _peak(height: Floats, start: int, band: float) -> int:
    """Stop of the lift from `start`: after the highest sample before it sinks by more than the band."""
    rest = height[start:]
    sinks = _first(np.maximum.accumulate(rest) - rest > band)
    return start + (int(np.argmax(rest[:sinks])) + 1 if sinks < len(rest) else len(rest))


def _place(height: Floats, peak: int, mask: Mask, band: float) -> int:
    """Stop of the placing: when it rises again, or goes on after a rest below the peak; the earlier."""
    rest, moves = height[peak:], mask[peak:]
    rises = _first(rest - np.minimum.accumulate(rest) > band)
    rests = _first(~moves & (height[max(peak - 1, 0)] - rest > band))
    if rests >= rises:
        return peak + rises
    # The rest itself belongs to it, for the gripper opens, to the sample from which it goes on; but not
    # if nothing follows.
    wakes = rests + _first(moves[rests:])
    return peak + (wakes + 1 if wakes < len(rest) else rests)


def _first(mask: Mask) -> int:
    """Index of the first True, the length if there is none."""
    return int(np.argmax(mask)) if mask.any() else len(mask)


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
    for wheel in range(WHEEL_COUNT):
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
