"""Camera poses of Table 7 recomputed from joint angles, and the phases of a recorded rock picking."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.clocks import NS
from transect.errors import StreamError
from transect.geometry import robust, rotations, se3
from transect.geometry.interpolation import nearest_index
from transect.recording import Recording, Stream, stream_of_values
from transect.types import Pose

from . import arms
from .arms import ATTITUDE, attitude_angles, camera_poses, end_poses, robot_of

ENCODERS = "Platform/MotorEncoders"

_ANGLES = ("roll", "pitch", "yaw")


def camera_pose_estimate(recording: Recording, side: str) -> Stream:
    """Recompute MainCam/PoseEstimate ("Main") or AuxCam/PoseEstimate ("Aux") from the arm's joint angles.

    The pose is that of the camera in Origin, the common frame of section 3.1, as AMEDS does not name the
    frame, at the times of the joint angles. In addition to the quaternion it has roll, pitch and yaw in the
    order `arms.ATTITUDE`.
    """
    stream, robot = recording[f"{side}Arm/JointAngles"], robot_of(recording)
    angles = np.asarray(stream.column("position"), dtype=np.float64)
    known = np.isfinite(angles).all(axis=1)
    values = np.full((len(stream), 10), np.nan)
    T = camera_poses(angles[known], robot, side)
    quaternions, positions = se3.to_quaternion(T)
    values[known] = np.column_stack([positions, quaternions, attitude_angles(T[:, :3, :3])])
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
    """Differences of recorded and recomputed poses: medians over the common samples."""

    samples: int
    position_m: float
    # by the assumed order of the angles: "XYZ" is ``Rx Ry Rz`` (eq. 3), "rpy" is ``Rz Ry Rx``.
    angle_rad: Mapping[str, float]

    @property
    def order(self) -> str:
        """Order of the angles that fits better; `arms.ATTITUDE` if both fit equally."""
        best = min(self.angle_rad, key=lambda order: self.angle_rad[order])
        return best if self.angle_rad[best] < self.angle_rad[ATTITUDE] else ATTITUDE


def attitude_orders(recording: Recording, side: str, max_offset_ns: int = 20_000_000) -> PoseDifference:
    """Compare the recorded camera poses with recomputed ones for both orders of roll, pitch and yaw.

    Table 7 does not define the order; with recorded joint angles, it is determined by the numbers. Samples
    are compared if they are at most `max_offset_ns` apart.
    """
    recorded, ours = recording[f"{side}Cam/PoseEstimate"], camera_pose_estimate(recording, side)
    if not len(ours) or not len(recorded):
        raise StreamError(f"{recording.name} has no {side}Arm angles or {side}Cam poses to compare")
    order = np.argsort(ours.t_ns, kind="stable")
    near = nearest_index(ours.t_ns[order], recorded.t_ns, max_offset_ns)
    computed = ours.array("x", "y", "z", "qx", "qy", "qz", "qw")[order][near[near >= 0]]
    logged = recorded.array("x", "y", "z", *_ANGLES)[near >= 0]
    angles = {
        name: float(
            robust.median(
                rotations.angle_between(rotations.quaternion_from_euler(name, logged[:, 3:]), computed[:, 3:])
            )
        )
        for name in ("XYZ", "rpy")
    }
    distance = np.linalg.norm(computed[:, :3] - logged[:, :3], axis=1)
    return PoseDifference(int((near >= 0).sum()), float(robust.median(distance)), angles)


def picking_phases(
    recording: Recording,
    thresholds: arms.PickingThresholds | None = None,
    tip: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> list[NamedInterval]:
    """Return the phases of a rock picking from the joint angles of AuxArm.

    Parameters
    ----------
    tip : (x, y, z)
        The gripper's tip in AuxArm (end), m; not in AMEDS.
    """
    limit = thresholds or arms.PickingThresholds()
    stream = recording["AuxArm/JointAngles"]
    angles = np.asarray(stream.column("position"), dtype=np.float64)
    order = np.argsort(stream.t_ns, kind="stable")
    known = order[np.isfinite(angles[order]).all(axis=1)]
    times, joints = stream.t_ns[known], angles[known]
    # Origin has z down.
    heights = -se3.apply(end_poses(joints, robot_of(recording), "Aux"), np.asarray(tip))[:, 2]
    moves = arms.find_arm_motion(times, joints, limit.min_joint_rate_rad_s)
    return intervals(times, arms.classify_phases(heights, moves, limit))


@dataclass(frozen=True)
class NamedInterval:
    """Consecutive samples with the same name."""

    name: str
    start_ns: int  # of the first sample
    end_ns: int  # of the last sample
    first: int  # the samples are ``samples[first:stop]``
    stop: int

    @property
    def seconds(self) -> float:
        """Time from the first to the last sample, s."""
        return (self.end_ns - self.start_ns) / NS


def intervals(t_ns: ArrayLike, names: NDArray[np.str_], seams: Sequence[int] = ()) -> list[NamedInterval]:
    """Return the intervals of equal names (n,) at times (n,), which are split at seams."""
    times = np.asarray(t_ns, dtype=np.int64)
    if not len(times):
        return []
    changes = np.flatnonzero(names[1:] != names[:-1]) + 1
    inner = sorted({*changes.tolist(), *(s for s in seams if 0 < s < len(times))})
    edges = [0, *inner, len(times)]
    return [
        NamedInterval(str(names[a]), int(times[a]), int(times[b - 1]), a, b)
        for a, b in itertools.pairwise(edges)
    ]
