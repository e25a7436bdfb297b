"""The robot of a recording, and the lander at the origin of its world."""

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
from transect.types import Odometry, WheelState

from .arms import robot_of
from .recomputed import ENCODERS, Interval, intervals

DEAD_BAND = np.radians(2.0)
"""Steering below this is straight: the wheels are mounted no better than 2 degrees (section 2)."""


TWIST = "Platform/2DTwistEstimate"
INS = ("Gnss/BodyVelocity", "Gnss/BodyAngularVelocity")
"""What the inertial navigation system measured, in Origin: it knows nothing of the wheels."""
ODOMETRY = "Platform/WheelOdometry"
_PLANAR = ("vx", "vy", "wz")

By = Literal["velocity", "ticks"]


def tick_length(recording: Recording, least_speed: float = 0.05) -> wheels.TickLength:
    """Estimate the metres per drive tick of a recording, see `wheels.tick_length`."""
    return slip.tick_length(recording[ENCODERS], least_speed)


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
        See `wheels.body_motion`.

    Returns
    -------
    Stream
        Odometry of role estimate. The twist of a sample is the mean since the one before. In seams, in gaps
        of more than `MAX_GAP_S`, and without two good wheels, the rover is taken to stand; the twist is NaN.
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


def planar_twist(stream: Stream, t_ns: Ints, max_gap: float = MAX_GAP_S) -> Floats:
    """Vx, vy, wz (m, 3) of a stream at other times (m,); NaN in gaps and outside."""
    return columns_at(stream, _PLANAR, t_ns, max_gap)


def ground_twist(recording: Recording, t_ns: Ints, twist: str | None = None) -> tuple[Floats, str]:
    """Vx, vy, wz (m, 3) of Platform over the ground at times (m,), m/s and rad/s, and who measured it.

    Parameters
    ----------
    twist : str, optional
        A stream of the platform's twist. By default the inertial navigation system, else the rover's own
        estimate. A twist that was made from the wheels shows no slip, whatever they do.
    """
    if twist is None and all(name in recording for name in INS):
        velocity, turn_rate = (recording[name] for name in INS)
        found = slip.ground_twist(velocity, turn_rate, recording[ENCODERS], robot_of(recording), t_ns)
        return found, " and ".join(INS)
    source = twist or TWIST
    if source not in recording:
        raise StreamError(
            f"{recording.name} does not say how the platform moved over the ground",
            why=f"it has neither {' and '.join(INS)} nor {source}",
            hint="name a stream with vx, vy and wz that was not made from the wheels: --twist NAME",
        )
    return planar_twist(recording[source], t_ns), source


def wheel_speeds(recording: Recording, twist: str | None = None) -> Stream:
    """Wheel speeds that the platform's twist demands (Kelly and Seegmiller), at the encoders' times.

    Parameters
    ----------
    twist : str, optional
        See `ground_twist`.

    Returns
    -------
    Stream
        WheelState of role derived: wheel_velocity along each wheel, lateral_velocity to its left, m/s.
    """
    stream = recording[ENCODERS]
    body, _ = ground_twist(recording, stream.t_ns, twist)
    ground = slip.ground_velocities(stream, body, FourWheelGeometry.of(robot_of(recording)))
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


def wheel_slip(
    recording: Recording,
    twist: str | None = None,
    least_speed: float = slip.MIN_SLIP_SPEED,
    average: float = 0.0,
) -> Stream:
    """Slip of each wheel: what its motor says against how it moves over the ground.

    Parameters
    ----------
    twist : str, optional
        See `ground_twist`.
    least_speed, average : float
        See `robots.slip.wheel_slip`.
    """
    stream = recording[ENCODERS]
    body, _ = ground_twist(recording, stream.t_ns, twist)
    geometry = FourWheelGeometry.of(robot_of(recording))
    return slip.wheel_slip(stream, body, geometry, least_speed, average)


@dataclass(frozen=True, eq=False)
class SlipReport:
    """How the wheels slipped on a drive."""

    source: str  # the streams that say how the platform moved over the ground
    average: float  # seconds over which speeds were averaged
    stream: Stream  # see `wheel_slip`
    wheels: list[slip.SlipSummary]  # each wheel, and all four last
    # time in ns, wheel from 1 and slip ratio of the worst moments, the worst first; no two within 5 s
    worst: list[tuple[int, int, float]]


def slip_report(recording: Recording, twist: str | None = None, average: float = AVERAGING_S) -> SlipReport:
    """Report how the wheels slipped; parameters as of `wheel_slip`."""
    if ENCODERS not in recording:
        raise StreamError(
            f"{recording.name} does not say how the wheels of Interact turned",
            why=f"it has no {ENCODERS} (document 000, Table 7)",
        )
    stream = wheel_slip(recording, twist, MIN_REPORTED_SPEED, average)
    _, source = ground_twist(recording, stream.t_ns[:1], twist)
    values = {name: np.asarray(stream[name], dtype=np.float64) for name in ("rim", "ground")}
    slipped = slip.WheelSlip(np.asarray(stream["slip_ratio"]), np.asarray(stream["slip_angle"]))
    seconds = np.append(step_seconds(stream), np.nan) if len(stream) else np.zeros(0)
    rows = slip.summarise(seconds, values["rim"], values["ground"], slipped)
    return SlipReport(source, average, stream, rows, _worst(stream.t_ns, slipped.ratio))


def _worst(t_ns: Ints, ratio: Floats, count: int = 3, apart_ns: int = 5 * NS) -> list[tuple[int, int, float]]:
    left, found = np.abs(np.nan_to_num(ratio)), list[tuple[int, int, float]]()
    while len(found) < count and left.size and left.max() > 0:
        row, wheel = (int(k) for k in np.unravel_index(left.argmax(), left.shape))
        found.append((int(t_ns[row]), wheel + 1, float(ratio[row, wheel])))
        left[np.abs(t_ns - t_ns[row]) < apart_ns] = 0.0
    return found


def wheel_tracks(recording: Recording, twist: str | None = None) -> tuple[Ints, slip.WheelTracks]:
    """Paths of the wheels by odometry and by inverse kinematics (Figure 8), and their times.

    Samples without all four wheels are left out. In seams and gaps, and where the twist is not known, the
    rover is taken to stand.
    """
    stream, geometry = recording[ENCODERS], FourWheelGeometry.of(robot_of(recording))
    rim = np.asarray(stream.column("wheel_velocity"), dtype=np.float64)
    good = measured_rows(rim) & measured_rows(wheel_angles(stream, geometry)[0])
    stream = stream.take(good)
    body = np.nan_to_num(ground_twist(recording, stream.t_ns, twist)[0])
    seconds = np.nan_to_num(step_seconds(stream))
    steering, _ = wheel_angles(stream, geometry)
    return stream.t_ns, slip.wheel_tracks(seconds, body, rim[good], steering, geometry)


def steered_manoeuvres(recording: Recording, dead_band: float = DEAD_BAND) -> list[Interval]:
    """Return the manoeuvres of Figure 7 that the wheels were set to, one after the other."""
    stream, geometry = recording[ENCODERS], FourWheelGeometry.of(robot_of(recording))
    steering, _ = wheel_angles(stream, geometry)
    speeds = stream.column("wheel_velocity") if "wheel_velocity" in stream.table.column_names else None
    names = classify_steering(steering, geometry, speeds, dead_band)
    return intervals(stream.t_ns, names, stream.seams)


def performed_manoeuvres(recording: Recording, twist: str = TWIST) -> list[Interval]:
    """Return the manoeuvres that the platform really made by its twist, one after the other."""
    stream = recording[twist]
    names = classify_motion(stream.array(*_PLANAR), FourWheelGeometry.of(robot_of(recording)))
    return intervals(stream.t_ns, names, stream.seams)


STRAIGHT = "straight"
LEFT_TURN, RIGHT_TURN = "left turn", "right turn"
LEFT_CRAB, RIGHT_CRAB = "left crab turn", "right crab turn"
SPOT, LEFT_SPOT, RIGHT_SPOT = "spot turn", "left spot turn", "right spot turn"
MIXED = "mixed"
"""No manoeuvre of Figure 7: the wheels contradict each other."""
STANDING = "standing"
UNKNOWN = "unknown"

LEAST_SPEED = 0.02
"""m/s below which the platform, or a wheel, stands."""


def classify_steering(
    steering: ArrayLike,
    geometry: FourWheelGeometry,
    drive: ArrayLike | None = None,
    dead_band: float = DEAD_BAND,
) -> NDArray[np.str_]:
    """Manoeuvre (...) that the wheels are set to.

    Parameters
    ----------
    steering : (..., 4)
        Steering angles, rad.
    drive : (..., 4), optional
        Rim speeds, m/s: they tell a left spot turn from a right one.
    dead_band : float
        Smaller angles are straight, rad.
    """
    phi = floats("steering", steering, (..., WHEEL_COUNT))
    sign = np.where(np.abs(phi) <= dead_band, 0.0, np.sign(phi))
    front, rear = sign[..., geometry.ends > 0], sign[..., geometry.ends < 0]
    leans = sign * geometry.ends * geometry.sides
    cases = {
        UNKNOWN: ~_all(np.isfinite(phi)),
        STRAIGHT: _all(sign == 0),
        LEFT_CRAB: _all(sign >= 0) & _some(front > 0) & _some(rear > 0),
        RIGHT_CRAB: _all(sign <= 0) & _some(front < 0) & _some(rear < 0),
        LEFT_TURN: _all(front >= 0) & _all(rear <= 0),
        RIGHT_TURN: _all(front <= 0) & _all(rear >= 0),
        **_spot_turns(_all(leans < 0), drive, geometry),
    }
    return np.select(list(cases.values()), list(cases), MIXED)


def _all(wheels: Mask) -> Mask:
    return np.asarray(wheels.all(axis=-1))


def _some(wheels: Mask) -> Mask:
    return np.asarray(wheels.any(axis=-1))


def _spot_turns(spot: Mask, drive: ArrayLike | None, geometry: FourWheelGeometry) -> dict[str, Mask]:
    """To the left the right wheels go forward and the left ones back."""
    if drive is None:
        return {SPOT: spot}
    turning = -(geometry.sides * floats("drive", drive, (..., WHEEL_COUNT))).mean(axis=-1)
    return {
        LEFT_SPOT: spot & (turning > LEAST_SPEED),
        RIGHT_SPOT: spot & (turning < -LEAST_SPEED),
        SPOT: spot,
    }


def classify_motion(
    twist: ArrayLike,
    geometry: FourWheelGeometry,
    slide: float = np.radians(10.0),
    curve: float = 0.05,
    least_speed: float = LEAST_SPEED,
) -> NDArray[np.str_]:
    """Manoeuvre (...) that the platform really made: on loose ground a turn can become a crab or a spot turn.

    Parameters
    ----------
    twist : (..., 3)
        Of Platform: vx, vy in m/s, wz in rad/s.
    slide : float
        Angle between the line on which it goes and that on which it faces, rad, from which it crabs.
    curve : float
        Curvature from which it is a turn, 1/m.
    least_speed : float
        m/s, of the middle and of the corners.
    """
    v = floats("twist", twist, (..., 3))
    speed = np.hypot(v[..., 0], v[..., 1])
    corner = np.hypot(geometry.half_length, geometry.half_width)
    turning = v[..., 2] * corner
    # Backwards the same wheels make the opposite twist: as steered, not as seen from above.
    way = np.where(v[..., 0] < 0, -1.0, 1.0)
    sideways = np.arctan2(way * v[..., 1], np.abs(v[..., 0]))
    bend = way * v[..., 2]
    cases: dict[str, Mask] = {
        UNKNOWN: ~_all(np.isfinite(v)),
        STANDING: np.maximum(speed, np.abs(turning)) < least_speed,
        LEFT_SPOT: turning > np.maximum(speed, least_speed),
        RIGHT_SPOT: -turning > np.maximum(speed, least_speed),
        LEFT_CRAB: sideways > slide,
        RIGHT_CRAB: sideways < -slide,
        LEFT_TURN: bend > curve * speed,
        RIGHT_TURN: -bend > curve * speed,
    }
    return np.select(list(cases.values()), list(cases), STRAIGHT)
