"""The two LWR IV+ arms with their cameras (AMEDS, Tables 2 and 3, and errata), and the moving frames."""

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

Table 7 does not define it. This is eq. 3, the only order of angles about x, y and z in AMEDS, as read by the
errata; GnssPose has that of the receiver, yaw first. `derived_poses.attitude_orders` determines the order by
the numbers of a recording.
"""


def robot_of(recording: Recording) -> Robot:
    """Return the robot of a recording, by default Interact."""
    from transect import robots

    return recording.robot or robots.load(ROBOT)


def lander_of(robot: Robot) -> Floats:
    """Return the origin of the NED world (section 5.2): latitude, longitude (rad), altitude (m)."""
    numbers = Constants(robot, "the world at the lander", "interact.yaml")
    return np.array([numbers["world_origin", key] for key in ("latitude", "longitude", "altitude")])


def end_poses(angles: ArrayLike, robot: Robot, side: str) -> Floats:
    """Return ``T_Origin_end`` (..., 4, 4) of an arm, "Main" or "Aux", at joint angles (..., 7), rad."""
    T_origin_base = robot.frames.lookup("Origin", f"{side}Arm (base)")
    return T_origin_base @ chain_of(robot).forward(angles)


def camera_poses(angles: ArrayLike, robot: Robot, side: str) -> Floats:
    """Return ``T_Origin_Cam`` (..., 4, 4) of MainCam or AuxCam at joint angles (..., 7), rad."""
    return end_poses(angles, robot, side) @ robot.frames.lookup(f"{side}Arm (end)", f"{side}Cam")


def attitude_angles(matrices: ArrayLike, order: str = ATTITUDE) -> Floats:
    """Return angles (..., 3) about x, y, z, rad, of rotation matrices (..., 3, 3), as in the processed files.

    Parameters
    ----------
    order : {"XYZ", "rpy"}
        ``Rx Ry Rz`` (eq. 3) or ``Rz Ry Rx``.
    """
    return rotations.euler_from_matrix(order, matrices)


STILL, APPROACH, GRASP, LIFT, PLACE, RETURN = "still", "approach", "grasp", "lift", "place", "return"


@dataclass(frozen=True)
class PickingThresholds:
    """Thresholds of the phases of a rock picking."""

    min_joint_rate_rad_s: float = 0.01  # Rate of the fastest joint of a moving arm.
    # Height above the lowest point at which the gripper is at the rock; smaller differences are ignored.
    height_band_m: float = 0.03


def find_arm_motion(t_ns: ArrayLike, angles: ArrayLike, min_joint_rate: float = 0.01) -> Mask:
    """Return whether the arm moves to or from each sample (n,).

    Parameters
    ----------
    t_ns : (n,)
        Sorted.
    angles : (n, 7)
        Joint angles, rad.
    min_joint_rate : float
        Rate of the fastest joint of a moving arm, rad/s.
    """
    times, q = check_times_ns("times", t_ns), floats("joint angles", angles, ("n", "joints"))
    if len(q) < 2:
        return np.zeros(len(q), dtype=np.bool_)
    seconds = np.maximum(np.diff(times), 1) / NS
    fast = np.abs(np.diff(q, axis=0)).max(axis=1) / seconds >= min_joint_rate
    return np.concatenate([[False], fast]) | np.concatenate([fast, [False]])


def classify_phases(
    heights: ArrayLike, moves: ArrayLike, thresholds: PickingThresholds | None = None
) -> NDArray[np.str_]:
    """Return the phase (n,) of each sample of one picking.

    Parameters
    ----------
    heights : (n,)
        Height of the gripper, m, positive upwards, without NaN.
    moves : (n,)
        Whether the arm moves.

    Returns
    -------
    (n,) of str
        `approach`, `grasp`, `lift`, `place`, `return`, in this order as far as they occur, and `still` if the
        arm rests outside grasp and place. An arm that never moves is `still` throughout.
    """
    limit = thresholds or PickingThresholds()
    height, mask = floats("heights", heights, ("n",)), np.asarray(moves, dtype=np.bool_)
    if mask.shape != height.shape or not np.isfinite(height).all():
        raise GeometryError(f"heights {height.shape} and moves {mask.shape} must be finite and of one length")
    names = np.full(len(height), STILL, dtype="<U8")
    if not mask.any():
        return names
    down, up = _find_grasp(height, limit.height_band_m)
    peak = _find_lift_end(height, up, limit.height_band_m)
    placed = _find_place_end(height, peak, mask, limit.height_band_m)
    names[:down] = np.where(mask[:down], APPROACH, STILL)
    names[down:up] = GRASP
    names[up:peak] = np.where(mask[up:peak], LIFT, STILL)
    names[peak:placed] = PLACE
    names[placed:] = np.where(mask[placed:], RETURN, STILL)
    return names


def _find_grasp(height: Floats, band: float) -> tuple[int, int]:
    """Return first and stop index of the samples around the lowest one that are within the band."""
    low = int(np.argmin(height))
    above = height > height[low] + band
    return low - _first(above[:low][::-1]), low + _first(above[low:])


def _find_lift_end(height: Floats, start: int, band: float) -> int:
    """Return the stop index of the lift: after the highest sample before it sinks by more than the band."""
    rest = height[start:]
    sinks = _first(np.maximum.accumulate(rest) - rest > band)
    return start + (int(np.argmax(rest[:sinks])) + 1 if sinks < len(rest) else len(rest))


def _find_place_end(height: Floats, peak: int, mask: Mask, band: float) -> int:
    """Return the stop index of placing: when it rises again or moves after a rest below the peak."""
    rest, moves = height[peak:], mask[peak:]
    rises = _first(rest - np.minimum.accumulate(rest) > band)
    rests = _first(~moves & (height[max(peak - 1, 0)] - rest > band))
    if rests >= rises:
        return peak + rises
    # The rest, in which the gripper opens, is a part of placing unless nothing follows.
    continues = rests + _first(moves[rests:])
    return peak + (continues + 1 if continues < len(rest) else rests)


def _first(mask: Mask) -> int:
    """Return the index of the first True, the length without one."""
    return int(np.argmax(mask)) if mask.any() else len(mask)


Poses = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
"""Times, positions and quaternions, for `FrameTree.add_lazy`."""

T_NED_NWU = np.diag([1.0, -1.0, -1.0, 1.0])


def frame_tree(robot: Robot, streams: Iterable[Stream], raw: bool = False) -> FrameTree:
    """Return the robot's frames with the moving ones of a recording; nothing is read before a lookup.

    NED -> Origin is from Gnss/Pose, with NWU fixed to NED. (base) -> (end) of an arm is from the pose
    estimate of its camera, so that Origin -> MainCam equals MainCamPoseEstimate.csv, or else from its joint
    angles. Platform -> Wheel1 to Wheel4 are from the motor encoders, or else from the angles of the wheel
    pose estimate.

    Parameters
    ----------
    streams : iterable of Stream
        Streams of AMEDS, which are found by their names.
    raw : bool
        Prefer the joint angles to the estimates.
    """
    by_name = {stream.name: stream for stream in streams}
    tree = robot.frames.copy()
    if (fix := by_name.get("Gnss/Pose")) is not None:
        tree.add_static("NED", "NWU", T_NED_NWU, source="AMEDS section 5.2")
        _add_moving(tree, "NED", "Origin", fix, partial(rover_poses, fix, robot))
    for side in SIDES:
        _add_arm(tree, robot, side, by_name, raw)
    _add_wheels(tree, robot, by_name)
    return tree


def _add_arm(tree: FrameTree, robot: Robot, side: str, by_name: dict[str, Stream], raw: bool) -> None:
    by_estimate, by_joints = by_name.get(f"{side}Cam/PoseEstimate"), by_name.get(f"{side}Arm/JointAngles")
    base, end = f"{side}Arm (base)", f"{side}Arm (end)"
    if by_joints is not None and (raw or by_estimate is None):
        _add_moving(tree, base, end, by_joints, partial(joint_poses, by_joints, robot))
    elif by_estimate is not None:
        _add_moving(tree, base, end, by_estimate, partial(estimated_poses, by_estimate, robot, side))


def _add_wheels(tree: FrameTree, robot: Robot, by_name: dict[str, Stream]) -> None:
    # Not `or`, which would read the stream to find out whether it is empty.
    stream = by_name.get("Platform/MotorEncoders", by_name.get("Platform/WheelPoseEstimate"))
    if stream is None:
        return
    for wheel in range(WHEEL_COUNT):
        turning = partial(wheel_poses, stream, robot, wheel)
        _add_moving(tree, "Platform", f"Wheel{wheel + 1}", stream, turning)


def _add_moving(tree: FrameTree, frame: str, child: str, stream: Stream, read: Callable[[], Poses]) -> None:
    """Add an edge with the poses of a stream; without poses if its file lacks columns."""

    def poses() -> Poses:
        try:
            return read()
        except StreamError:
            return np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 4))

    tree.add_lazy(frame, child, poses, clock=stream.clock, source=stream.name)


def rover_poses(stream: Stream, robot: Robot) -> Poses:
    """Return the poses of Origin in the NED world at the lander (section 5.2).

    The attitude is relative to north at the rover, not at the lander. Over the 500 m of the test site these
    differ by less than 0.005 degrees, a sixth of the resolution of the Spatial Dual, which is neglected.
    """
    values = stream.array("lat", "lon", "alt", "roll", "pitch", "yaw")
    known = np.isfinite(values).all(axis=1) & (np.abs(values[:, 0]) <= np.pi / 2)
    position, attitude = values[known, :3], values[known, 3:]
    local = geodesy.local_from_geodetic(position, lander_of(robot), "NED")
    return stream.t_ns[known], local, rotations.quaternion_from_euler("rpy", attitude)


def estimated_poses(stream: Stream, robot: Robot, side: str) -> Poses:
    """Return the poses of an arm's end in its base by the pose estimate of its camera."""
    values = stream.array("x", "y", "z", "qx", "qy", "qz", "qw")
    known = np.isfinite(values).all(axis=1)
    T_origin_camera = se3.from_quaternion(values[known, 3:], values[known, :3])
    T_base_origin = robot.frames.lookup(f"{side}Arm (base)", "Origin")
    T_camera_end = robot.frames.lookup(stream.child, f"{side}Arm (end)")
    return _poses(stream.t_ns[known], T_base_origin @ T_origin_camera @ T_camera_end)


def joint_poses(stream: Stream, robot: Robot) -> Poses:
    """Return the poses of an arm's end in its base by its joint angles."""
    angles = np.asarray(stream.column("position"), dtype=np.float64)
    known = np.isfinite(angles).all(axis=1)
    return _poses(stream.t_ns[known], chain_of(robot).forward(angles[known]))


def wheel_poses(stream: Stream, robot: Robot, wheel: int) -> Poses:
    """Return the poses of wheel number `wheel`, counted from 0, in Platform.

    Between samples that are more than half a revolution apart, its attitude is interpolated the shorter way.
    """
    geometry = FourWheelGeometry.of(robot)
    steering, drive = wheel_angles(stream, geometry)
    angles = euler_angles(steering, drive, geometry)[:, wheel]
    quaternions = rotations.quaternion_from_euler("ZX", angles)
    return stream.t_ns, positions(steering, geometry)[:, wheel], quaternions


def _poses(t_ns: NDArray[np.int64], transforms: NDArray[np.float64]) -> Poses:
    quaternions, translations = se3.to_quaternion(transforms)
    return t_ns, translations, quaternions
