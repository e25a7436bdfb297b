"""Wheel poses of Interact recomputed from its motor encoders, to compare with recorded and simulated ones."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.datasets.ameds.robot.arms import attitude_angles, robot_of
from transect.datasets.ameds.robot.derived_poses import ENCODERS
from transect.geometry.interpolation import Limits, interpolate_columns
from transect.recording import Recording, Stream, stream_of_values
from transect.robots import four_wheel_steering as wheels
from transect.robots.four_wheel_steering import FourWheelGeometry
from transect.robots.slip import wheel_angles
from transect.types import WheelState

WHEEL_POSES = "Platform/WheelPoseEstimate"
_ANGLES = ("roll", "pitch", "yaw")


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


def _at(stream: Stream, values: Floats, t_ns: Ints, max_gap: float) -> Floats:
    """Values (n, k) of a stream at other times (m,), NaN in gaps and outside."""
    order = np.argsort(stream.t_ns, kind="stable")
    limits = Limits(gap_ns=round(max_gap * NS))
    return interpolate_columns(stream.t_ns[order], values[order], t_ns, limits)
