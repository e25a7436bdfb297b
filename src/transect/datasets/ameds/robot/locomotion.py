"""Wheel odometry, wheel slip and manoeuvres of Interact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.errors import StreamError
from transect.geometry import planar, rotations
from transect.geometry.array_checks import floats, measured_rows
from transect.recording import Recording, Stream, stream_of_values
from transect.robots import four_wheel_steering as wheels
from transect.robots import slip
from transect.robots.four_wheel_steering import WHEEL_COUNT, FourWheelGeometry
from transect.robots.slip import (
    AVERAGING_S,
    MAX_GAP_S,
    MIN_REPORTED_SPEED,
    columns_at,
    step_seconds,
    wheel_angles,
)
from transect.types import Odometry

from .arms import robot_of
from .derived_poses import ENCODERS, NamedInterval, intervals

STRAIGHT_STEERING_RAD = np.radians(2.0)
"""Steering angles up to this are straight: wheels are mounted with an accuracy of 2 degrees (section 2)."""
TWIST = "Platform/2DTwistEstimate"
INS = ("Gnss/BodyVelocity", "Gnss/BodyAngularVelocity")
"""Velocities of the inertial navigation system in Origin, which does not use the wheels."""
ODOMETRY = "Platform/WheelOdometry"
_PLANAR = ("vx", "vy", "wz")

By = Literal["velocity", "ticks"]


def tick_length(recording: Recording, min_speed: float = 0.05) -> wheels.TickLength:
    """Estimate the metres per drive tick of a recording, see `wheels.tick_length`."""
    return slip.tick_length(recording[ENCODERS], min_speed)


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
        Whether the travel of the wheels is the integral of the reported speeds, or the ticks.
    metres_per_tick : float, optional
        For ticks; default the estimate of `tick_length` from this recording.
    weights, across_weight
        See `wheels.body_motion`.

    Returns
    -------
    Stream
        Odometry of role estimate. The twist of a sample is the mean since the previous one. In seams, in gaps
        of more than `MAX_GAP_S` and with fewer than two valid wheels, the rover is assumed to stand; the
        twist is NaN.
    """
    stream, geometry = recording[ENCODERS], FourWheelGeometry.of(robot_of(recording))
    seconds = step_seconds(stream)
    if by == "ticks" and metres_per_tick is None:
        metres_per_tick = tick_length(recording).metres
    travel = _travel(stream, seconds, metres_per_tick if by == "ticks" else None)
    steering, _ = wheel_angles(stream, geometry)
    middle, change = (steering[1:] + steering[:-1]) / 2, np.diff(steering, axis=0)
    motion = wheels.body_motion(travel, middle, geometry, change, weights, across_weight).motion
    motion[~np.isfinite(seconds)] = np.nan
    pose = planar.integrate(np.nan_to_num(motion)) if len(stream) else np.zeros((0, 3))
    twist = np.divide(motion, seconds[:, None], out=np.full_like(motion, np.nan), where=seconds[:, None] > 0)
    return _odometry_stream(stream, pose, np.concatenate([twist[:1], twist]))


def _travel(stream: Stream, seconds: Floats, metres_per_tick: float | None) -> Floats:
    """Return the travel (n - 1, 4) of each wheel from sample to sample, m."""
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


def planar_twist(stream: Stream, t_ns: Ints, max_gap: float = MAX_GAP_S) -> Floats:
    """Return vx, vy, wz (m, 3) of a stream at other times (m,); NaN in gaps and outside."""
    return columns_at(stream, _PLANAR, t_ns, max_gap)


def ground_twist(recording: Recording, t_ns: Ints, twist: str | None = None) -> tuple[Floats, str]:
    """Return vx, vy, wz (m, 3) of Platform over the ground at times (m,), m/s and rad/s, and their source.

    Parameters
    ----------
    twist : str, optional
        A stream of the platform's twist. By default the inertial navigation system, else the estimate of the
        rover. A twist that was computed from the wheels does not show slip.
    """
    if twist is None and all(name in recording for name in INS):
        velocity, turn_rate = (recording[name] for name in INS)
        found = slip.ground_twist(velocity, turn_rate, recording[ENCODERS], robot_of(recording), t_ns)
        return found, " and ".join(INS)
    source = twist or TWIST
    if source not in recording:
        raise StreamError(
            f"{recording.name} has no motion of the platform over the ground",
            why=f"it has neither {' and '.join(INS)} nor {source}",
            hint="name a stream with vx, vy and wz that was not computed from the wheels: --twist NAME",
        )
    return planar_twist(recording[source], t_ns), source


def wheel_slip(
    recording: Recording,
    twist: str | None = None,
    min_speed: float = slip.MIN_SLIP_SPEED,
    average: float = 0.0,
) -> Stream:
    """Return the slip of each wheel: its rim speed against its speed over the ground.

    Parameters
    ----------
    twist : str, optional
        See `ground_twist`.
    min_speed, average : float
        See `robots.slip.wheel_slip`.
    """
    stream = recording[ENCODERS]
    body, _ = ground_twist(recording, stream.t_ns, twist)
    geometry = FourWheelGeometry.of(robot_of(recording))
    return slip.wheel_slip(stream, body, geometry, min_speed, average)


@dataclass(frozen=True, eq=False)
class SlipReport:
    """Wheel slip of a drive."""

    source: str  # streams with the platform's motion over the ground
    average: float  # time over which speeds were averaged, s
    stream: Stream  # see `wheel_slip`
    wheels: list[slip.SlipSummary]  # each wheel, and all four last
    # time in ns, wheel from 1 and slip ratio of the worst moments, the worst first; at least 5 s apart
    worst: list[tuple[int, int, float]]


def slip_report(recording: Recording, twist: str | None = None, average: float = AVERAGING_S) -> SlipReport:
    """Return a report on the slip of the wheels; parameters as of `wheel_slip`."""
    if ENCODERS not in recording:
        raise StreamError(
            f"{recording.name} has no wheel encoders of Interact",
            why=f"it has no {ENCODERS} (AMEDS, Table 7)",
        )
    stream = wheel_slip(recording, twist, MIN_REPORTED_SPEED, average)
    _, source = ground_twist(recording, stream.t_ns[:1], twist)
    values = {name: np.asarray(stream[name], dtype=np.float64) for name in ("rim", "ground")}
    slipped = slip.WheelSlip(np.asarray(stream["slip_ratio"]), np.asarray(stream["slip_angle"]))
    seconds = np.append(step_seconds(stream), np.nan) if len(stream) else np.zeros(0)
    rows = slip.summarise(seconds, values["rim"], values["ground"], slipped)
    return SlipReport(source, average, stream, rows, _worst(stream.t_ns, slipped.ratio))


def _worst(
    t_ns: Ints, ratio: Floats, count: int = 3, min_interval_ns: int = 5 * NS
) -> list[tuple[int, int, float]]:
    remaining, found = np.abs(np.nan_to_num(ratio)), list[tuple[int, int, float]]()
    while len(found) < count and remaining.size and remaining.max() > 0:
        row, wheel = (int(k) for k in np.unravel_index(remaining.argmax(), remaining.shape))
        found.append((int(t_ns[row]), wheel + 1, float(ratio[row, wheel])))
        remaining[np.abs(t_ns - t_ns[row]) < min_interval_ns] = 0.0
    return found


def wheel_tracks(recording: Recording, twist: str | None = None) -> tuple[Ints, slip.WheelTracks]:
    """Return the tracks of the wheels by odometry and by inverse kinematics (Figure 8), and their times.

    Samples without all four wheels are skipped. In seams and gaps, and without a twist, the rover is assumed
    to stand.
    """
    stream, geometry = recording[ENCODERS], FourWheelGeometry.of(robot_of(recording))
    rim = np.asarray(stream.column("wheel_velocity"), dtype=np.float64)
    good = measured_rows(rim) & measured_rows(wheel_angles(stream, geometry)[0])
    stream = stream.take(good)
    body = np.nan_to_num(ground_twist(recording, stream.t_ns, twist)[0])
    seconds = np.nan_to_num(step_seconds(stream))
    steering, _ = wheel_angles(stream, geometry)
    return stream.t_ns, slip.wheel_tracks(seconds, body, rim[good], steering, geometry)


def steered_manoeuvres(
    recording: Recording, straight_rad: float = STRAIGHT_STEERING_RAD
) -> list[NamedInterval]:
    """Return the sequence of manoeuvres of Figure 7 by the steering of the wheels."""
    stream, geometry = recording[ENCODERS], FourWheelGeometry.of(robot_of(recording))
    steering, _ = wheel_angles(stream, geometry)
    speeds = stream.column("wheel_velocity") if "wheel_velocity" in stream.table.column_names else None
    names = classify_steering(steering, geometry, speeds, straight_rad)
    return intervals(stream.t_ns, names, stream.seams)


STRAIGHT = "straight"
LEFT_TURN, RIGHT_TURN = "left turn", "right turn"
LEFT_CRAB, RIGHT_CRAB = "left crab turn", "right crab turn"
SPOT, LEFT_SPOT, RIGHT_SPOT = "spot turn", "left spot turn", "right spot turn"
MIXED = "mixed"
"""Not a manoeuvre of Figure 7: the steering angles are inconsistent."""
STANDING = "standing"
UNKNOWN = "unknown"


def classify_steering(
    steering: ArrayLike,
    geometry: FourWheelGeometry,
    drive: ArrayLike | None = None,
    straight_rad: float = STRAIGHT_STEERING_RAD,
    min_speed: float = 0.02,
) -> NDArray[np.str_]:
    """Return the manoeuvre (...) by the steering of the wheels.

    Parameters
    ----------
    steering : (..., 4)
        Steering angles, rad.
    drive : (..., 4), optional
        Rim speeds, m/s, which distinguish left and right spot turns.
    straight_rad : float
        Angles up to this are straight, rad.
    min_speed : float
        Speed of a wheel that turns, m/s.
    """
    phi = floats("steering", steering, (..., WHEEL_COUNT))
    sign = np.where(np.abs(phi) <= straight_rad, 0.0, np.sign(phi))
    front, rear = sign[..., geometry.ends > 0], sign[..., geometry.ends < 0]
    leans = sign * geometry.ends * geometry.sides
    cases = {
        UNKNOWN: ~_all(np.isfinite(phi)),
        STRAIGHT: _all(sign == 0),
        LEFT_CRAB: _all(sign >= 0) & _some(front > 0) & _some(rear > 0),
        RIGHT_CRAB: _all(sign <= 0) & _some(front < 0) & _some(rear < 0),
        LEFT_TURN: _all(front >= 0) & _all(rear <= 0),
        RIGHT_TURN: _all(front <= 0) & _all(rear >= 0),
        **_spot_turns(_all(leans < 0), drive, geometry, min_speed),
    }
    return np.select(list(cases.values()), list(cases), MIXED)


def _all(wheels: Mask) -> Mask:
    return np.asarray(wheels.all(axis=-1))


def _some(wheels: Mask) -> Mask:
    return np.asarray(wheels.any(axis=-1))


def _spot_turns(
    spot: Mask, drive: ArrayLike | None, geometry: FourWheelGeometry, min_speed: float
) -> dict[str, Mask]:
    """Return the masks of spot turns; to the left, the right wheels turn forward and the left ones back."""
    if drive is None:
        return {SPOT: spot}
    turning = -(geometry.sides * floats("drive", drive, (..., WHEEL_COUNT))).mean(axis=-1)
    return {
        LEFT_SPOT: spot & (turning > min_speed),
        RIGHT_SPOT: spot & (turning < -min_speed),
        SPOT: spot,
    }


def classify_motion(
    twist: ArrayLike,
    geometry: FourWheelGeometry,
    min_crab_rad: float = np.radians(10.0),
    min_curvature: float = 0.05,
    min_speed: float = 0.02,
) -> NDArray[np.str_]:
    """Return the actual manoeuvre (...): on loose ground a turn can become a crab or a spot turn.

    Parameters
    ----------
    twist : (..., 3)
        Twist of Platform: vx, vy in m/s, wz in rad/s.
    min_crab_rad : float
        Angle between the direction of motion and the heading of a crab turn, rad.
    min_curvature : float
        Curvature of a turn, 1/m.
    min_speed : float
        Speed of a moving platform, at the centre or the corners, m/s.
    """
    v = floats("twist", twist, (..., 3))
    speed = np.hypot(v[..., 0], v[..., 1])
    corner = np.hypot(geometry.half_length, geometry.half_width)
    turning = v[..., 2] * corner
    # In reverse the same steering gives the opposite twist: manoeuvres are named by the steering.
    direction = np.where(v[..., 0] < 0, -1.0, 1.0)
    sideways = np.arctan2(direction * v[..., 1], np.abs(v[..., 0]))
    bend = direction * v[..., 2]
    cases: dict[str, Mask] = {
        UNKNOWN: ~_all(np.isfinite(v)),
        STANDING: np.maximum(speed, np.abs(turning)) < min_speed,
        LEFT_SPOT: turning > np.maximum(speed, min_speed),
        RIGHT_SPOT: -turning > np.maximum(speed, min_speed),
        LEFT_CRAB: sideways > min_crab_rad,
        RIGHT_CRAB: sideways < -min_crab_rad,
        LEFT_TURN: bend > min_curvature * speed,
        RIGHT_TURN: -bend > min_curvature * speed,
    }
    return np.select(list(cases.values()), list(cases), STRAIGHT)
