"""The processed poses of Table 7 recomputed from a recording's raw files, and what follows from the arms.

Known things fall into the images as in Figure 5: the rock container, the gripper and the axes of AuxCam. The
document gives no coordinates for the first two: those in `interact.yaml` are invented and say so; give your
own.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.errors import StreamError, TransectError
from transect.geometry import robust, rotations, se3
from transect.geometry.camera import project_points
from transect.geometry.interpolation import Limits, interpolate_columns, nearest_index
from transect.recording import FrameTree, Recording, Robot, Stream, stream_of_values
from transect.robots import four_wheel_steering as wheels
from transect.robots.description import PointShape, shapes_of
from transect.robots.four_wheel_steering import FourWheelGeometry
from transect.robots.slip import wheel_angles
from transect.types import Pose, WheelState

from . import arms
from .arms import ATTITUDE, SIDES, attitude_angles, camera_poses, end_poses, robot_of

ENCODERS = "Platform/MotorEncoders"
WHEEL_POSES = "Platform/WheelPoseEstimate"
NEAR_NS = 20_000_000
"""A recorded estimate is compared with a recomputed one at most this far away in time."""
_ANGLES = ("roll", "pitch", "yaw")


def frames_from_raw(recording: Recording) -> FrameTree:
    """Return the frames of a recording with the arms driven by their joint angles, not by the estimates."""
    return arms.frame_tree(robot_of(recording), recording.streams, raw=True)


def wheel_pose_estimate(recording: Recording, t_ns: Ints | None = None, max_gap: float = 0.5) -> Stream:
    """Recompute Platform/WheelPoseEstimate from the motor encoders.

    Parameters
    ----------
    recording : Recording
        With Platform/MotorEncoders.
    t_ns : (n,) int64, optional
        When, such as the 100 Hz of the recorded estimate; default the encoders' own times.
    max_gap : float
        Between samples further apart, in seconds, the answer is NaN.

    Returns
    -------
    Stream
        x, y, z (m), roll, pitch, yaw, drive_angle, steering (rad), four numbers each, in Platform.
    """
    stream, geometry = recording[ENCODERS], FourWheelGeometry.of(robot_of(recording))
    steering, drive = wheel_angles(stream, geometry)
    times = stream.t_ns
    if t_ns is not None:
        steering, drive = (_at(stream, values, t_ns, max_gap) for values in (steering, drive))
        times = t_ns
    known = np.isfinite(steering).all(axis=1) & np.isfinite(drive).all(axis=1)
    places, turns = (np.full((len(times), wheels.WHEEL_COUNT, 3), np.nan) for _ in range(2))
    places[known] = wheels.positions(steering[known], geometry)
    turns[known] = attitude_angles(wheels.rotation_matrices(steering[known], drive[known], geometry))
    columns = {
        **{axis: places[..., i] for i, axis in enumerate("xyz")},
        **{angle: turns[..., i] for i, angle in enumerate(_ANGLES)},
        "drive_angle": drive,
        "steering": steering,
    }
    units = {**dict.fromkeys("xyz", "m"), **dict.fromkeys((*_ANGLES, "drive_angle", "steering"), "rad")}
    return stream_of_values(
        WHEEL_POSES,
        times,
        columns,
        type=WheelState,
        units=units,
        clock=stream.clock,
        role="derived",
        frame="Platform",
        seams=stream.seams if t_ns is None else (),
    )


def camera_pose_estimate(recording: Recording, side: str) -> Stream:
    """Recompute MainCam/PoseEstimate ("Main") or AuxCam/PoseEstimate ("Aux") from the arm's joint angles.

    The pose is that of the camera in Origin, at the times of the joint angles: the document names no frame,
    and Origin is the common one of section 3.1. Besides the quaternion it has roll, pitch and yaw in the
    order `arms.ATTITUDE`.
    """
    stream, robot = recording[f"{side}Arm/JointAngles"], robot_of(recording)
    angles = np.asarray(stream.column("position"), dtype=np.float64)
    known = np.isfinite(angles).all(axis=1)
    values = np.full((len(stream), 10), np.nan)
    T = camera_poses(angles[known], robot, side)
    quaternions, places = se3.to_quaternion(T)
    values[known] = np.column_stack([places, quaternions, attitude_angles(T[:, :3, :3])])
    names = ("x", "y", "z", "qx", "qy", "qz", "qw", *_ANGLES)
    return stream_of_values(
        f"{side}Cam/PoseEstimate",
        stream.t_ns,
        {name: values[:, i] for i, name in enumerate(names)},
        type=Pose,
        units=dict.fromkeys(_ANGLES, "rad"),
        clock=stream.clock,
        role="derived",
        tag=side.lower(),
        frame="Origin",
        child=f"{side}Cam",
        seams=stream.seams,
    )


@dataclass(frozen=True)
class PoseDifference:
    """How far recorded poses are from recomputed ones: medians over the samples that both have."""

    samples: int
    position_m: float
    # for the order of the angles that was assumed: "XYZ" is ``Rx Ry Rz`` (eq. 3), "rpy" ``Rz Ry Rx``.
    angle_rad: Mapping[str, float]

    @property
    def order(self) -> str:
        """The order of the angles that fits better; `arms.ATTITUDE` if neither does."""
        best = min(self.angle_rad, key=lambda order: self.angle_rad[order])
        return best if self.angle_rad[best] < self.angle_rad[ATTITUDE] else ATTITUDE


def attitude_orders(recording: Recording, side: str) -> PoseDifference:
    """Compare the recorded camera poses with recomputed ones under both orders of roll, pitch and yaw.

    Table 7 does not say how the angles are meant; with joint angles recorded beside them, the numbers do.
    """
    recorded, ours = recording[f"{side}Cam/PoseEstimate"], camera_pose_estimate(recording, side)
    if not len(ours) or not len(recorded):
        raise StreamError(f"{recording.name} has no {side}Arm angles or {side}Cam poses to compare")
    order = np.argsort(ours.t_ns, kind="stable")
    near = nearest_index(ours.t_ns[order], recorded.t_ns, NEAR_NS)
    mine = ours.array("x", "y", "z", "qx", "qy", "qz", "qw")[order][near[near >= 0]]
    theirs = recorded.array("x", "y", "z", *_ANGLES)[near >= 0]
    apart = {
        name: float(
            robust.median(
                rotations.angle_between(rotations.quaternion_from_euler(name, theirs[:, 3:]), mine[:, 3:])
            )
        )
        for name in ("XYZ", "rpy")
    }
    away = np.linalg.norm(mine[:, :3] - theirs[:, :3], axis=1)
    return PoseDifference(int((near >= 0).sum()), float(robust.median(away)), apart)


def project_shapes(
    recording: Recording,
    camera: str = "MainCam",
    shapes: Sequence[PointShape] | None = None,
    t_ns: Ints | None = None,
    frames: FrameTree | None = None,
) -> list[Projection]:
    """Project shapes into the images of a camera.

    Parameters
    ----------
    camera : str
        `MainCam` or `AuxCam`: the name of the camera, its frame and its image stream.
    shapes : sequence of Shape, optional
        Default those of the robot.
    t_ns : (n,) int64, optional
        When; default the times of the images.
    frames : FrameTree, optional
        Default the recording's; `arms.frame_tree(..., raw=True)` uses the joint angles alone.
    """
    if camera not in recording.cameras:
        known = ", ".join(recording.cameras) or "none"
        raise TransectError(f"{recording.name} has no camera {camera!r}", hint=f"known are: {known}")
    if shapes is None:
        shapes = shapes_of_figure_5(recording.robot) if recording.robot else ()
    times = recording[camera].t_ns if t_ns is None else np.asarray(t_ns, dtype=np.int64)
    model, tree = recording.cameras[camera], frames or recording.frames
    ages = joint_ages(recording, times)
    projections: list[Projection] = []
    for shape in shapes:
        T = tree.lookup(model.frame or camera, shape.frame, times, missing="nan")
        pixels, visible = project_points(shape.points, T, model)
        projections.append(Projection(shape, camera, times, pixels, visible, ages))
    return projections


def joint_ages(recording: Recording, t_ns: Ints) -> dict[str, Floats]:
    """The DT of Figure 5 (n,) in seconds at times (n,): since the nearest joint angles, by stream."""
    names = (f"{side}Arm/JointAngles" for side in SIDES)
    return {name: _age(recording[name], t_ns) for name in names if name in recording and len(recording[name])}


def _age(stream: Stream, t_ns: Ints) -> Floats:
    axis = np.sort(stream.t_ns)
    return (t_ns - axis[nearest_index(axis, t_ns)]) / NS


def picking_phases(
    recording: Recording,
    thresholds: arms.Thresholds | None = None,
    tip: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> list[Interval]:
    """Return the phases of a rock picking from the joint angles of AuxArm.

    Parameters
    ----------
    tip : (x, y, z)
        The gripper's tip in AuxArm (end), m; the document does not give it.
    """
    limit = thresholds or arms.Thresholds()
    stream = recording["AuxArm/JointAngles"]
    angles = np.asarray(stream.column("position"), dtype=np.float64)
    order = np.argsort(stream.t_ns, kind="stable")
    known = order[np.isfinite(angles[order]).all(axis=1)]
    times, joints = stream.t_ns[known], angles[known]
    # Origin has z down.
    heights = -se3.apply(end_poses(joints, robot_of(recording), "Aux"), np.asarray(tip))[:, 2]
    moves = arms.moving(times, joints, limit.joint_rate)
    return intervals(times, arms.phases(heights, moves, limit))


def _at(stream: Stream, values: Floats, t_ns: Ints, max_gap: float) -> Floats:
    """Values (n, k) of a stream at other times (m,), NaN in gaps and outside."""
    order = np.argsort(stream.t_ns, kind="stable")
    limits = Limits(gap_ns=round(max_gap * NS))
    return interpolate_columns(stream.t_ns[order], values[order], t_ns, limits)


@dataclass(frozen=True)
class Interval:
    """From the first to the last sample of a stretch, both included."""

    name: str
    # start_ns, end_ns: times of the first and the last sample
    start_ns: int
    end_ns: int
    # first, stop: indices: ``samples[first:stop]``
    first: int
    stop: int

    @property
    def seconds(self) -> float:
        """From the first to the last sample."""
        return (self.end_ns - self.start_ns) / NS


def intervals(t_ns: ArrayLike, names: NDArray[np.str_], seams: Sequence[int] = ()) -> list[Interval]:
    """Return the stretches of equal names (n,) at times (n,); none goes across a seam."""
    times = np.asarray(t_ns, dtype=np.int64)
    if not len(times):
        return []
    changes = np.flatnonzero(names[1:] != names[:-1]) + 1
    inner = sorted({*changes.tolist(), *(s for s in seams if 0 < s < len(times))})
    edges = [0, *inner, len(times)]
    return [
        Interval(str(names[a]), int(times[a]), int(times[b - 1]), a, b) for a, b in itertools.pairwise(edges)
    ]


AXIS = 0.1
"""Length of a drawn axis, m."""


@dataclass(frozen=True, eq=False)
class Projection:
    """A shape in the images of one camera."""

    shape: PointShape
    camera: str
    t_ns: Ints  # (n,), times of the images
    # (n, k, 2), with distortion; NaN behind the camera, beyond the lens model, and where the arm is not
    # known
    pixels: Floats
    visible: Mask  # (n, k), whether the point is inside the image. Nothing is taken to hide it.
    # the DT of Figure 5: image time minus the time of the nearest joint angles, by stream
    age_s: dict[str, Floats]


def axes_of(frame: str, length: float = AXIS) -> PointShape:
    """Return the origin of a frame and the tips of its x, y and z axis."""
    points = np.concatenate([np.zeros((1, 3)), length * np.eye(3)])
    return PointShape(f"{frame} axes", frame, points, np.array([[0, 1], [0, 2], [0, 3]]))


def shapes_of_figure_5(robot: Robot) -> tuple[PointShape, ...]:
    """Return the shapes of a robot's `constants.shapes`, and the axes of AuxCam."""
    return (*shapes_of(robot), axes_of("AuxCam"))
