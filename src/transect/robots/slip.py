"""Slip of each wheel: rim speed of the encoder against the speed over ground (AMEDS Figure 8)."""

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
    WHEEL_COUNT,
    FourWheelGeometry,
    WheelVelocities,
    directions,
    positions,
    wheel_velocities,
)

MIN_SLIP_SPEED = 0.02
"""m/s; slip ratio and angle are undefined below."""


class WheelSlip(NamedTuple):
    """Slip of each wheel, both (..., 4); NaN below the minimum speed."""

    # (..., 4), ``(|rim| - |ground|) / max(|rim|, |ground|)`` for equal directions: 1 spins without motion, 0
    # rolls, -1 is dragged; up to 2 and -2 for opposite directions
    ratio: Floats
    # (..., 4), between the velocity and the rolling direction, rad in [-pi/2, pi/2], positive to the left
    angle: Floats


def slip(rim_speed: ArrayLike, ground: WheelVelocities, min_speed: float = MIN_SLIP_SPEED) -> WheelSlip:
    """Slip from measured rim speeds (..., 4) in m/s and velocities over ground, see `wheel_velocities`."""
    rim = floats("rim speeds", rim_speed, (..., WHEEL_COUNT))
    largest = np.maximum(np.abs(rim), np.abs(ground.rolling))
    lost = (rim - ground.rolling) * np.where(rim + ground.rolling < 0, -1.0, 1.0)
    ratio = np.divide(lost, largest, out=np.full(largest.shape, np.nan), where=largest >= min_speed)
    # the rolling direction is the same in reverse
    angle = np.arctan2(ground.lateral, np.abs(ground.rolling))
    moves = np.hypot(ground.rolling, ground.lateral) >= min_speed
    return WheelSlip(ratio, np.where(moves, angle, np.nan))


class SlipSummary(NamedTuple):
    """Slip of one wheel, or of all four, during a drive."""

    wheel: int  # from 1, front left and then counterclockwise; 0 for all four
    # rolled_m, ground_m: distance of the rim, and of the wheel over ground in the same direction, m; means
    # for all four
    rolled_m: float
    ground_m: float
    lost: float  # lost fraction of the rim distance: ``1 - ground_m / rolled_m``
    # low, median, high: 5th, 50th and 95th percentile of the slip ratio
    low: float
    median: float
    high: float
    angle: float  # 95th percentile of the absolute slip angle, rad


def summarise(
    seconds: ArrayLike, rim_speed: ArrayLike, ground_speed: ArrayLike, slipped: WheelSlip
) -> list[SlipSummary]:
    """Summarise the slip of each wheel and, at the end, of all four.

    Parameters
    ----------
    seconds : (n,)
        Duration of each sample; NaN in gaps.
    rim_speed, ground_speed : (n, 4)
        m/s.
    slipped : Slip
        (n, 4) each.
    """
    step = floats("seconds", seconds, ("n",))[:, None]
    rim = floats("rim speeds", rim_speed, ("n", WHEEL_COUNT))
    ground = floats("ground speeds", ground_speed, ("n", WHEEL_COUNT))
    valid = np.isfinite(rim + ground + step) & np.isfinite(slipped.ratio)
    rolled = np.where(valid, np.abs(rim) * step, 0.0).sum(axis=0)
    moved = np.where(valid, np.sign(rim) * ground * step, 0.0).sum(axis=0)
    each = [
        _summarise(k + 1, float(rolled[k]), float(moved[k]), slipped.ratio[:, k], slipped.angle[:, k])
        for k in range(WHEEL_COUNT)
    ]
    return [*each, _summarise(0, float(rolled.mean()), float(moved.mean()), slipped.ratio, slipped.angle)]


def _summarise(wheel: int, rolled: float, moved: float, ratio: Floats, angle: Floats) -> SlipSummary:
    lost = 1 - moved / rolled if rolled else np.nan
    low, median, high = _percentiles(ratio, (5, 50, 95))
    return SlipSummary(wheel, rolled, moved, lost, low, median, high, _percentiles(np.abs(angle), (95,))[0])


def _percentiles(values: Floats, percents: tuple[int, ...]) -> list[float]:
    valid = values[np.isfinite(values)]
    return [float(np.percentile(valid, percent)) if valid.size else np.nan for percent in percents]


class WheelTracks(NamedTuple):
    """Paths of the wheels in the Platform frame of the start, m: both (n, 4, 2), as in Figure 8."""

    odometry: Floats  # (n, 4, 2), integrated from rim speed and rolling direction
    inverse: Floats  # (n, 4, 2), by inverse kinematics from the twist of the platform


def wheel_tracks(
    seconds: ArrayLike,
    twist: ArrayLike,
    rim_speed: ArrayLike,
    steering: ArrayLike,
    geometry: FourWheelGeometry,
) -> WheelTracks:
    """Both paths of each wheel; their difference is the slip.

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
    body, rim = floats("twist", twist, ("n", 3)), floats("rim speeds", rim_speed, ("n", WHEEL_COUNT))
    pose = planar.integrate(np.nan_to_num(step * (body[1:] + body[:-1]) / 2))
    centres = positions(steering, geometry)[..., :2]
    turn = planar.rotations_from_headings(pose[:, 2])
    inverse = pose[:, None, :2] + np.einsum("nij,nwj->nwi", turn, centres)
    along = np.einsum("nij,nwj->nwi", turn, directions(steering)[0]) * rim[..., None]
    rolled = np.cumsum(step[..., None] * (along[1:] + along[:-1]) / 2, axis=0)
    odometry = centres[0] + np.concatenate([np.zeros((1, WHEEL_COUNT, 2)), rolled])
    return WheelTracks(odometry, inverse)


BODY = "Platform"
"""Frame of the platform."""
AVERAGING_S = 1.0
"""Averaging time of speeds in reports of slip."""
MIN_REPORTED_SPEED = 0.05
"""m/s of the wheels in reports: averages are near zero where a drive reverses."""
MAX_GAP_S = 0.5
"""Longer gaps are not interpolated."""


def wheel_angles(encoders: Stream, geometry: FourWheelGeometry) -> tuple[Floats, Floats]:
    """Steering and drive angles (n, 4) in rad from encoder ticks, or from the stream."""
    if "steer_ticks" in encoders.table.column_names:
        steering = four_wheel_steering.steer_angles(encoders.column("steer_ticks"), geometry)
        return steering, four_wheel_steering.drive_angles(encoders.column("drive_ticks"), geometry)
    return encoders.column("steering"), encoders.column("drive_angle")


def tick_length(encoders: Stream, min_speed: float = 0.05) -> four_wheel_steering.TickLength:
    """Estimate the metres per drive tick of a recording, see `four_wheel_steering.tick_length`."""
    ticks, speeds = encoders.column("drive_ticks"), encoders.column("wheel_velocity")
    return four_wheel_steering.tick_length(encoders.t_ns, ticks, speeds, min_speed)


def step_seconds(stream: Stream, max_gap: float = MAX_GAP_S) -> Floats:
    """Seconds (n - 1,) from each sample to the next; NaN across seams, gaps and decreasing times."""
    seconds = np.diff(stream.t_ns) / NS
    seconds[(seconds > max_gap) | (seconds < 0)] = np.nan
    seconds[[s - 1 for s in stream.seams]] = np.nan
    return seconds


def columns_at(stream: Stream, names: tuple[str, ...], t_ns: Ints, max_gap: float = MAX_GAP_S) -> Floats:
    """Columns (m, k) of a stream at other times (m,); NaN in gaps and outside."""
    if len(stream) < 2:
        return np.full((len(t_ns), len(names)), np.nan)
    values = stream.interpolate(t_ns, names, max_gap)
    return np.column_stack([values[name] for name in names])


def ground_twist(velocity: Stream, turn_rate: Stream, encoders: Stream, robot: Robot, t_ns: Ints) -> Floats:
    """Vx, vy, wz (m, 3) of the ground point under Platform, in Platform.

    When the platform pitches on rough ground, the velocity 0.3 m below it differs by centimetres per second.

    Parameters
    ----------
    velocity, turn_rate : Stream
        vx, vy, vz in m/s and wx, wy, wz in rad/s of an inertial navigation system, in its frame.
    encoders : Stream
        Determine the radius of the wheels.
    t_ns : (m,) int64
        Times; NaN in gaps and outside.
    """
    T = robot.frames.lookup(BODY, velocity.frame or "Origin")
    speeds = columns_at(velocity, ("vx", "vy", "vz"), t_ns)
    turn = columns_at(turn_rate, ("wx", "wy", "wz"), t_ns) @ T[:3, :3].T
    height = _platform_height(encoders, FourWheelGeometry.of(robot))
    moved = speeds @ T[:3, :3].T + np.cross(turn, [0.0, 0.0, -height] - T[:3, 3])
    return np.column_stack([moved[:, :2], turn[:, 2]])


def _platform_height(encoders: Stream, geometry: FourWheelGeometry) -> float:
    """Return the height of Platform above the ground, m: that of the axle plus the radius from the motors."""
    available = {"drive_ticks", "wheel_velocity"} <= set(encoders.columns)
    radius = tick_length(encoders).wheel_radius(geometry) if available and len(encoders) > 1 else np.nan
    return geometry.wheel_height + (radius if np.isfinite(radius) else 0.0)


def ground_velocities(encoders: Stream, twist: Floats, geometry: FourWheelGeometry) -> WheelVelocities:
    """Velocities of the wheels over ground at the twist (n, 3) of Platform: vx, vy, wz at the samples."""
    steering, _ = wheel_angles(encoders, geometry)
    return wheel_velocities(twist, steering, geometry, _rates(encoders, steering))


def _rates(encoders: Stream, steering: Floats) -> Floats:
    """Steering rates (n, 4) in rad/s: mean of the differences before and after each sample; 0 if unknown."""
    seconds = step_seconds(encoders)[:, None]
    steps = np.diff(steering, axis=0)
    rates = np.divide(steps, seconds, out=np.zeros_like(steps), where=seconds > 0)
    edge = np.zeros((1, four_wheel_steering.WHEEL_COUNT))
    return (np.concatenate([edge, rates]) + np.concatenate([rates, edge])) / 2 if len(steering) else steering


def wheel_slip(
    encoders: Stream,
    twist: Floats,
    geometry: FourWheelGeometry,
    min_speed: float = MIN_SLIP_SPEED,
    average: float = 0.0,
) -> Stream:
    """Slip of each wheel from the rim speed of its motor and its velocity over ground.

    Parameters
    ----------
    twist : (n, 3)
        Of Platform over the ground at the samples of the encoders: vx, vy in m/s and wz in rad/s.
    min_speed : float
        m/s; slower wheels have no slip.
    average : float
        Averaging time of the speeds in s: a standard deviation of 7 mm/s corresponds to a slip of 0.02 at 0.3
        m/s.

    Returns
    -------
    Stream
        Records of role derived: slip_ratio and slip_angle (rad), see `WheelSlip`, and the speeds rim and
        ground (m/s); four numbers each.
    """
    ground = ground_velocities(encoders, twist, geometry)
    rim = np.asarray(encoders.column("wheel_velocity"), dtype=np.float64)
    rim, rolling, lateral = (_average(encoders, v, average) for v in (rim, ground.rolling, ground.lateral))
    found = slip(rim, WheelVelocities(rolling, lateral), min_speed)
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
    """Centred moving averages (n, 4), not across seams and gaps; NaN if a sample in the window is NaN."""
    step = np.median(np.diff(stream.t_ns)) / NS if len(stream) > 1 else 1.0
    half = round(seconds / step / 2)
    if half < 1:
        return values
    edges = [0, *(np.flatnonzero(np.isnan(step_seconds(stream))) + 1).tolist(), len(values)]
    result = np.full(values.shape, np.nan)
    for begin, end in itertools.pairwise(edges):
        total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values[begin:end], axis=0)])
        at = np.arange(end - begin)
        low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, end - begin)
        result[begin:end] = (total[high] - total[low]) / (high - low)[:, None]
    return result
