"""Slip of each wheel: what its encoder says against what the platform's twist demands (Figure 8)."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import planar
from transect.geometry.array_checks import floats
from transect.recording import Robot, Stream, stream_of_values
from transect.types import Record

from . import four_wheel_steering
from .four_wheel_steering import (
    WHEELS,
    FourWheelGeometry,
    WheelVelocities,
    directions,
    positions,
    wheel_velocities,
)

LEAST_SPEED = 0.02
"""m/s; below it neither ratio nor angle means anything."""


class Slip(NamedTuple):
    """Slip of each wheel, both (..., 4); NaN where it hardly moves."""

    # (..., 4), ``(|rim| - |ground|) / max(|rim|, |ground|)`` where both go the same way, forwards or
    # backwards: 1 spins on the spot, 0 rolls, -1 is dragged; up to 2 and -2 where rim and ground go
    # opposite ways
    ratio: Floats
    # (..., 4), of the wheel's velocity against the line along which it rolls, rad in [-pi/2, pi/2], to the
    # left positive
    angle: Floats


def slip(rim_speed: ArrayLike, ground: WheelVelocities, least_speed: float = LEAST_SPEED) -> Slip:
    """Slip from the measured rim speeds (..., 4) in m/s and the ground's, see `wheel_velocities`."""
    rim = floats("rim speeds", rim_speed, (..., WHEELS))
    largest = np.maximum(np.abs(rim), np.abs(ground.rolling))
    lost = (rim - ground.rolling) * np.where(rim + ground.rolling < 0, -1.0, 1.0)
    ratio = np.divide(lost, largest, out=np.full(largest.shape, np.nan), where=largest >= least_speed)
    # Driving backwards the wheel's own line is the same: only the size of the rolling speed counts.
    angle = np.arctan2(ground.lateral, np.abs(ground.rolling))
    moves = np.hypot(ground.rolling, ground.lateral) >= least_speed
    return Slip(ratio, np.where(moves, angle, np.nan))


class SlipSummary(NamedTuple):
    """How one wheel, or all four, slipped on a drive."""

    wheel: int  # from 1, front left and then against the clock; 0 for all four
    # rolled_m, ground_m: how far the rim went, and the wheel over the ground the same way, m; of all four
    # the means
    rolled_m: float
    ground_m: float
    lost: float  # share of the rim's way that was lost: ``1 - ground_m / rolled_m``
    # low, median, high: 5th, 50th and 95th percentile of the slip ratio
    low: float
    median: float
    high: float
    angle: float  # 95th percentile of the slip angle without its sign, rad


def summarise(
    seconds: ArrayLike, rim_speed: ArrayLike, ground_speed: ArrayLike, slipped: Slip
) -> list[SlipSummary]:
    """Summarise the slip of each wheel and, last, of all four.

    Parameters
    ----------
    seconds : (n,)
        That each sample stands for; NaN in gaps.
    rim_speed, ground_speed : (n, 4)
        m/s.
    slipped : Slip
        (n, 4) each.
    """
    step = floats("seconds", seconds, ("n",))[:, None]
    rim = floats("rim speeds", rim_speed, ("n", WHEELS))
    ground = floats("ground speeds", ground_speed, ("n", WHEELS))
    known = np.isfinite(rim + ground + step) & np.isfinite(slipped.ratio)
    rolled = np.where(known, np.abs(rim) * step, 0.0).sum(axis=0)
    went = np.where(known, np.sign(rim) * ground * step, 0.0).sum(axis=0)
    each = [
        _summarise(k + 1, float(rolled[k]), float(went[k]), slipped.ratio[:, k], slipped.angle[:, k])
        for k in range(WHEELS)
    ]
    return [*each, _summarise(0, float(rolled.mean()), float(went.mean()), slipped.ratio, slipped.angle)]


def _summarise(wheel: int, rolled: float, went: float, ratio: Floats, angle: Floats) -> SlipSummary:
    lost = 1 - went / rolled if rolled else np.nan
    low, median, high = _percentiles(ratio, (5, 50, 95))
    return SlipSummary(wheel, rolled, went, lost, low, median, high, _percentiles(np.abs(angle), (95,))[0])


def _percentiles(values: Floats, percents: tuple[int, ...]) -> list[float]:
    known = values[np.isfinite(values)]
    return [float(np.percentile(known, percent)) if known.size else np.nan for percent in percents]


class WheelTracks(NamedTuple):
    """Paths of the wheels in the Platform frame of the start, m: both (n, 4, 2), as in Figure 8."""

    odometry: Floats  # (n, 4, 2), each wheel rolls along its own direction as far as its encoder says
    inverse: Floats  # (n, 4, 2), each wheel is where the twist of the platform carries it


def wheel_tracks(
    seconds: ArrayLike,
    twist: ArrayLike,
    rim_speed: ArrayLike,
    steering: ArrayLike,
    geometry: FourWheelGeometry,
) -> WheelTracks:
    """Both paths of each wheel; their difference is what slipped.

    Parameters
    ----------
    seconds : (n - 1,)
        From each sample to the next.
    twist : (n, 3)
        Of Platform: vx, vy, wz.
    rim_speed, steering : (n, 4)
        m/s and rad.
    """
    step = floats("seconds", seconds, ("n",))[:, None]
    body, rim = floats("twist", twist, ("n", 3)), floats("rim speeds", rim_speed, ("n", WHEELS))
    pose = planar.integrate(np.nan_to_num(step * (body[1:] + body[:-1]) / 2))
    places = positions(steering, geometry)[..., :2]
    turn = planar.rotations_from_headings(pose[:, 2])
    inverse = pose[:, None, :2] + np.einsum("nij,nwj->nwi", turn, places)
    along = np.einsum("nij,nwj->nwi", turn, directions(steering)[0]) * rim[..., None]
    rolled = np.cumsum(step[..., None] * (along[1:] + along[:-1]) / 2, axis=0)
    odometry = places[0] + np.concatenate([np.zeros((1, WHEELS, 2)), rolled])
    return WheelTracks(odometry, inverse)


BODY = "Platform"
"""Frame of the platform."""
AVERAGE = 1.0
"""Seconds over which speeds are averaged for a report of slip."""
REPORTED_SPEED = 0.05
"""m/s; slower wheels are not in a report: where a drive turns back, averages are near zero."""
MAX_GAP = 0.5
"""Seconds without a sample across which nothing is interpolated or driven."""


def wheel_angles(encoders: Stream, geometry: FourWheelGeometry) -> tuple[Floats, Floats]:
    """Steering and drive angles (n, 4) in rad of encoders' ticks, or as the stream itself has them."""
    if "steer_ticks" in encoders.table.column_names:
        steering = four_wheel_steering.steer_angles(encoders.column("steer_ticks"), geometry)
        return steering, four_wheel_steering.drive_angles(encoders.column("drive_ticks"), geometry)
    return encoders.column("steering"), encoders.column("drive_angle")


def tick_length(encoders: Stream, least_speed: float = 0.05) -> four_wheel_steering.TickLength:
    """Estimate the metres per drive tick of a recording, see `four_wheel_steering.tick_length`."""
    ticks, speeds = encoders.column("drive_ticks"), encoders.column("wheel_velocity")
    return four_wheel_steering.tick_length(encoders.t_ns, ticks, speeds, least_speed)


def step_seconds(stream: Stream, max_gap: float = MAX_GAP) -> Floats:
    """Seconds (n - 1,) from each sample to the next; NaN across seams and gaps, and where time steps back."""
    seconds = np.diff(stream.t_ns) / NS
    seconds[(seconds > max_gap) | (seconds < 0)] = np.nan
    seconds[[s - 1 for s in stream.seams]] = np.nan
    return seconds


def columns_at(stream: Stream, names: tuple[str, ...], t_ns: Ints, max_gap: float = MAX_GAP) -> Floats:
    """Columns (m, k) of a stream at other times (m,); NaN in gaps and outside."""
    if len(stream) < 2:
        return np.full((len(t_ns), len(names)), np.nan)
    values = stream.interpolate(t_ns, names, max_gap)
    return np.column_stack([values[name] for name in names])


def ground_twist(velocity: Stream, turn_rate: Stream, encoders: Stream, robot: Robot, t_ns: Ints) -> Floats:
    """Vx, vy, wz (m, 3) of the point on the ground under Platform, where the wheels roll, in Platform.

    On rough ground the platform pitches, and what is 0.3 m below it then moves by centimetres a second more
    or less.

    Parameters
    ----------
    velocity, turn_rate : Stream
        vx, vy, vz in m/s and wx, wy, wz in rad/s of an inertial navigation system, in its frame.
    encoders : Stream
        They tell the radius of the wheels.
    t_ns : (m,) int64
        When; NaN in gaps and outside.
    """
    T = robot.frames.lookup(BODY, velocity.frame or "Origin")
    speeds = columns_at(velocity, ("vx", "vy", "vz"), t_ns)
    turn = columns_at(turn_rate, ("wx", "wy", "wz"), t_ns) @ T[:3, :3].T
    below = _ground_below(encoders, FourWheelGeometry.of(robot))
    moved = speeds @ T[:3, :3].T + np.cross(turn, [0.0, 0.0, -below] - T[:3, 3])
    return np.column_stack([moved[:, :2], turn[:, 2]])


def _ground_below(encoders: Stream, geometry: FourWheelGeometry) -> float:
    """Return how far the ground is below Platform, m: the axle, and the radius that the motors imply."""
    known = {"drive_ticks", "wheel_velocity"} <= set(encoders.columns)
    radius = tick_length(encoders).wheel_radius(geometry) if known and len(encoders) > 1 else np.nan
    return geometry.wheel_height + (radius if np.isfinite(radius) else 0.0)


def ground_velocities(encoders: Stream, twist: Floats, geometry: FourWheelGeometry) -> WheelVelocities:
    """How fast each wheel moves over the ground at a twist (n, 3) of Platform: vx, vy, wz at its samples."""
    steering, _ = wheel_angles(encoders, geometry)
    return wheel_velocities(twist, steering, geometry, _rates(encoders, steering))


def _rates(encoders: Stream, steering: Floats) -> Floats:
    """Steering rates (n, 4) in rad/s: the mean of those before and after each sample; 0 where unknown."""
    seconds = step_seconds(encoders)[:, None]
    steps = np.diff(steering, axis=0)
    rates = np.divide(steps, seconds, out=np.zeros_like(steps), where=seconds > 0)
    edge = np.zeros((1, four_wheel_steering.WHEELS))
    return (np.concatenate([edge, rates]) + np.concatenate([rates, edge])) / 2 if len(steering) else steering


def wheel_slip(
    encoders: Stream,
    twist: Floats,
    geometry: FourWheelGeometry,
    least_speed: float = LEAST_SPEED,
    average: float = 0.0,
) -> Stream:
    """Slip of each wheel: what its motor says against how it moves over the ground.

    Parameters
    ----------
    twist : (n, 3)
        Of Platform over the ground at the samples of the encoders: vx, vy in m/s and wz in rad/s.
    least_speed : float
        m/s; slower wheels have no slip.
    average : float
        Seconds around each sample over which speeds are averaged first: velocities of 7 mm/s deviation make
        a slip of 0.02 at 0.3 m/s uncertain by as much.

    Returns
    -------
    Stream
        Records of role derived: slip_ratio and slip_angle (rad), see `Slip`, and the speeds rim and
        ground (m/s) that they are made of; four numbers each.
    """
    ground = ground_velocities(encoders, twist, geometry)
    rim = np.asarray(encoders.column("wheel_velocity"), dtype=np.float64)
    rim, rolling, lateral = (_average(encoders, v, average) for v in (rim, ground.rolling, ground.lateral))
    found = slip(rim, WheelVelocities(rolling, lateral), least_speed)
    return stream_of_values(
        f"{BODY}/WheelSlip",
        encoders.t_ns,
        {"slip_ratio": found.ratio, "slip_angle": found.angle, "rim": rim, "ground": rolling},
        type=Record,
        units={"slip_angle": "rad", "rim": "m/s", "ground": "m/s"},
        clock=encoders.clock,
        role="derived",
        frame=BODY,
        seams=encoders.seams,
    )


def _average(stream: Stream, values: Floats, seconds: float) -> Floats:
    """Moving means (n, 4) over samples around each; not across seams and gaps, NaN where one is not known."""
    step = np.median(np.diff(stream.t_ns)) / NS if len(stream) > 1 else 1.0
    half = round(seconds / step / 2)
    if half < 1:
        return values
    edges = [0, *(np.flatnonzero(np.isnan(step_seconds(stream))) + 1).tolist(), len(values)]
    result = np.full(values.shape, np.nan)
    for begin, end in itertools.pairwise(edges):
        known = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values[begin:end], axis=0)])
        at = np.arange(end - begin)
        low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, end - begin)
        result[begin:end] = (known[high] - known[low]) / (high - low)[:, None]
    return result
