"""How the rover drove, from a recording: odometry, wheel speeds, slip and manoeuvres, as streams."""

from __future__ import annotations

from typing import Literal

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import planar, rotations
from transect.geometry._arrays import measured_rows
from transect.recording import Recording, Stream, stream_of_values
from transect.types import Odometry, Record, WheelState

from . import manoeuvres, odometry, slip, wheels
from .geometry import Geometry, robot_of
from .intervals import Interval, intervals
from .moving import wheel_angles
from .recomputed import ENCODERS
from .velocities import WheelVelocities, wheel_velocities

VELOCITY, TWIST = "Platform/2DVelocity", "Platform/2DTwistEstimate"
ODOMETRY = "Platform/WheelOdometry"
MAX_GAP = 0.5
"""Seconds without a sample across which nothing is interpolated or driven."""
_PLANAR = ("vx", "vy", "wz")

By = Literal["velocity", "ticks"]


def tick_length(recording: Recording, least_speed: float = 0.05) -> wheels.TickLength:
    """Estimate the metres per drive tick of a recording, see `wheels.tick_length`."""
    stream = recording[ENCODERS]
    return wheels.tick_length(
        stream.t_ns, stream.column("drive_ticks"), stream.column("wheel_velocity"), least_speed
    )


def wheel_odometry(
    recording: Recording,
    by: By = "velocity",
    metres_per_tick: float | None = None,
    weights: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0),
    across_weight: float = 1.0,
) -> Stream:
    """Dead-reckon the platform from its four wheels, in the Platform frame of the first sample.

    Parameters
    ----------
    recording : Recording
        With Platform/MotorEncoders.
    by : {"velocity", "ticks"}
        Whether the wheels' travel is the integral of the speeds that the motors report, or ticks.
    metres_per_tick : float, optional
        For ticks; default what `tick_length` estimates from this recording.
    weights, across_weight
        See `odometry.body_motion`.

    Returns
    -------
    Stream
        Odometry of role estimate. The twist of a sample is the mean since the one before. In seams, in gaps
        of more than `MAX_GAP`, and without two good wheels, the rover is taken to stand; the twist is NaN.
    """
    stream, geometry = recording[ENCODERS], Geometry.of(robot_of(recording))
    seconds = step_seconds(stream)
    if by == "ticks" and metres_per_tick is None:
        metres_per_tick = tick_length(recording).metres
    travel = _travel(stream, seconds, metres_per_tick if by == "ticks" else None)
    steering, _ = wheel_angles(stream, geometry)
    middle, change = (steering[1:] + steering[:-1]) / 2, np.diff(steering, axis=0)
    motion = odometry.body_motion(travel, middle, geometry, change, weights, across_weight).motion
    motion[~np.isfinite(seconds)] = np.nan
    pose = planar.integrate(np.nan_to_num(motion)) if len(stream) else np.zeros((0, 3))
    twist = np.divide(motion, seconds[:, None], out=np.full_like(motion, np.nan), where=seconds[:, None] > 0)
    return _odometry_stream(stream, pose, np.concatenate([twist[:1], twist]))


def step_seconds(stream: Stream, max_gap: float = MAX_GAP) -> Floats:
    """Seconds (n - 1,) from each sample to the next; NaN across seams and gaps, and where time steps back."""
    seconds = np.diff(stream.t_ns) / NS
    seconds[(seconds > max_gap) | (seconds < 0)] = np.nan
    seconds[[s - 1 for s in stream.seams]] = np.nan
    return seconds


def _travel(stream: Stream, seconds: Floats, metres_per_tick: float | None) -> Floats:
    """Metres (n - 1, 4) that each wheel rolled from sample to sample."""
    if metres_per_tick is not None:
        return np.diff(np.asarray(stream.column("drive_ticks"), dtype=np.float64), axis=0) * metres_per_tick
    speed = np.asarray(stream.column("wheel_velocity"), dtype=np.float64)
    return (speed[1:] + speed[:-1]) / 2 * seconds[:, None]


def _odometry_stream(stream: Stream, pose: Floats, twist: Floats) -> Stream:
    nothing = np.full(len(stream), np.nan)
    q = rotations.quaternion_from_euler("Z", pose[:, 2:])
    columns = {
        "x": pose[:, 0],
        "y": pose[:, 1],
        "z": np.zeros(len(stream)),
        **{name: q[:, i] for i, name in enumerate(("qx", "qy", "qz", "qw"))},
        "vx": twist[:, 0],
        "vy": twist[:, 1],
        "vz": nothing,
        "wx": nothing,
        "wy": nothing,
        "wz": twist[:, 2],
    }
    return stream_of_values(
        ODOMETRY,
        stream.t_ns,
        columns,
        type=Odometry,
        clock=stream.clock,
        role="estimate",
        frame="odom",
        child="Platform",
        seams=stream.seams,
    )


def planar_twist(stream: Stream, t_ns: Ints, max_gap: float = MAX_GAP) -> Floats:
    """Vx, vy, wz (m, 3) of a stream at other times (m,); NaN in gaps and outside."""
    if len(stream) < 2:
        return np.full((len(t_ns), 3), np.nan)
    values = stream.interpolate(t_ns, _PLANAR, max_gap)
    return np.column_stack([values[name] for name in _PLANAR])


def _ground_velocities(recording: Recording, twist: str) -> tuple[Stream, WheelVelocities]:
    """The encoders, and how fast each wheel moves over the ground at their times."""
    stream, geometry = recording[ENCODERS], Geometry.of(robot_of(recording))
    steering, _ = wheel_angles(stream, geometry)
    body = planar_twist(recording[twist], stream.t_ns)
    return stream, wheel_velocities(body, steering, geometry, _rates(stream, steering))


def _rates(stream: Stream, steering: Floats) -> Floats:
    """Steering rates (n, 4) in rad/s: the mean of those before and after each sample; 0 where unknown."""
    seconds = step_seconds(stream)[:, None]
    steps = np.diff(steering, axis=0)
    rates = np.divide(steps, seconds, out=np.zeros_like(steps), where=seconds > 0)
    edge = np.zeros((1, wheels.WHEELS))
    return (np.concatenate([edge, rates]) + np.concatenate([rates, edge])) / 2 if len(steering) else steering


def wheel_speeds(recording: Recording, twist: str = TWIST) -> Stream:
    """Wheel speeds that the platform's twist demands (Kelly and Seegmiller), at the encoders' times.

    Returns
    -------
    Stream
        WheelState of role derived: wheel_velocity along each wheel, lateral_velocity to its left, m/s.
    """
    stream, ground = _ground_velocities(recording, twist)
    return stream_of_values(
        "Platform/WheelSpeeds",
        stream.t_ns,
        {"wheel_velocity": ground.rolling, "lateral_velocity": ground.lateral},
        type=WheelState,
        units={"lateral_velocity": "m/s"},
        clock=stream.clock,
        role="derived",
        frame="Platform",
        seams=stream.seams,
    )


def wheel_slip(recording: Recording, twist: str = TWIST, least_speed: float = slip.LEAST_SPEED) -> Stream:
    """Slip of each wheel: what its motor says against what the platform's twist demands.

    Returns
    -------
    Stream
        Records of role derived: slip_ratio and slip_angle (rad), four numbers each, see `slip.Slip`.
    """
    stream, ground = _ground_velocities(recording, twist)
    found = slip.slip(stream.column("wheel_velocity"), ground, least_speed)
    return stream_of_values(
        "Platform/WheelSlip",
        stream.t_ns,
        {"slip_ratio": found.ratio, "slip_angle": found.angle},
        type=Record,
        units={"slip_angle": "rad"},
        clock=stream.clock,
        role="derived",
        frame="Platform",
        seams=stream.seams,
    )


def wheel_tracks(recording: Recording, twist: str = TWIST) -> tuple[Ints, slip.WheelTracks]:
    """Paths of the wheels by odometry and by inverse kinematics (Figure 8), and their times.

    Samples without all four wheels are left out. In seams and gaps, and where the twist is not known, the
    rover is taken to stand.
    """
    stream, geometry = recording[ENCODERS], Geometry.of(robot_of(recording))
    rim = np.asarray(stream.column("wheel_velocity"), dtype=np.float64)
    good = measured_rows(rim) & measured_rows(wheel_angles(stream, geometry)[0])
    stream = stream.take(good)
    body = np.nan_to_num(planar_twist(recording[twist], stream.t_ns))
    seconds = np.nan_to_num(step_seconds(stream))
    steering, _ = wheel_angles(stream, geometry)
    return stream.t_ns, slip.wheel_tracks(seconds, body, rim[good], steering, geometry)


def steered_manoeuvres(recording: Recording, dead_band: float = manoeuvres.DEAD_BAND) -> list[Interval]:
    """Return the manoeuvres of Figure 7 that the wheels were set to, one after the other."""
    stream, geometry = recording[ENCODERS], Geometry.of(robot_of(recording))
    steering, _ = wheel_angles(stream, geometry)
    speeds = stream.column("wheel_velocity") if "wheel_velocity" in stream.table.column_names else None
    names = manoeuvres.steered(steering, geometry, speeds, dead_band)
    return intervals(stream.t_ns, names, stream.seams)


def performed_manoeuvres(recording: Recording, twist: str = TWIST) -> list[Interval]:
    """Return the manoeuvres that the platform really made by its twist, one after the other."""
    stream = recording[twist]
    names = manoeuvres.performed(stream.array(*_PLANAR), Geometry.of(robot_of(recording)))
    return intervals(stream.t_ns, names, stream.seams)
