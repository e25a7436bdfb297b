"""Motion of the robot in a window: whether it moves, how fast, and how it turns.

Speeds come from the wheels and from references that do not touch the ground.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry.robust import SIGMA_PER_MAD
from transect.recording import FrameTree
from transect.types import FIX_TYPES, Imu, NavFix, Odometry, Pose, RigidBodyState, Twist, WheelState

from .windows import Window

Moving = Odometry | Twist | WheelState | RigidBodyState | NavFix | Imu
"""Types that show motion."""
GRAVITY_RANGE_M_S2 = (3.0, 30.0)
"""Norm of a mean acceleration that shows the vertical."""
BODY_FRAMES = ("base_link", "base_footprint", "Platform")
"""Body frames with z up and x forward."""
_GYROS, _FORCES = ("gyro_x", "gyro_y", "gyro_z"), ("acc_x", "acc_y", "acc_z")


@dataclass(frozen=True)
class MotionSettings:
    """Thresholds of motion, and numbers of the speed estimates."""

    min_speed_m_s: float = 0.1  # Faster is motion, and not noise or bias.
    min_turn_rad_s: float = 0.1
    min_fix_distance_m: float = 1.0  # Distance of the first and the last fix of a window.
    min_odometry_step_m: float = 0.05  # Motion of a dead reckoning in a window.
    min_odometry_step_rad: float = 0.02
    grid_step_s: float = 0.1  # Step of the common time grid of two streams, and ...
    chord_s: float = 1.0  # ... of the chords along a path.
    gravity_span_s: float = 10.0  # Time over which the direction of gravity is averaged.
    # Gap that is interpolated, or a quarter of the time over which a speed is averaged.
    max_gap_s: float = 1.5
    max_reference_interval_s: float = 5.0  # Longest usual interval of a reference.
    fix_error_time_s: float = 60.0  # Time constant of the error of a fix.
    max_slope: float = 0.6  # Height over distance; steeper is noise of the heights.
    max_scatter_windows: int = 60  # Windows that determine the scatter of a reference, ...
    min_scatter_windows: int = 5  # ... at least, of those in which it is faster than the wheels.
    min_speed_sigma_m_s: float = 0.05  # Minimum sigma of a speed that updates a lever arm.
    max_shift_s: float = 0.5  # Largest time shift between two streams that is tried.


SETTINGS = MotionSettings()


def is_moving(windows: Sequence[Window[Any]], speed_ratio: float = 1.0) -> bool | None:
    """Return whether the robot moves, by all windows that can show it; None if none can.

    One that shows motion is enough. Gyroscopes alone show rotation, but not standstill. `speed_ratio`
    scales the usual speed threshold of wheels and bodies.
    """
    answers = [
        answer for window in windows if len(window) and (answer := _moves(window, speed_ratio)) is not None
    ]
    return any(answers) if answers else None


def _moves(window: Window[Any], speed_ratio: float) -> bool | None:
    kind = window.stream.type
    if issubclass(kind, Imu):
        rates = window.array(*(name for name in ("gyro_x", "gyro_y", "gyro_z") if window.has(name)))
        return bool(rates.size and np.linalg.norm(np.mean(rates, axis=0)) > SETTINGS.min_turn_rad_s) or None
    if issubclass(kind, NavFix) and window.has("lat", "lon"):
        return _travels(window.array("lat", "lon"))
    if issubclass(kind, WheelState) and window.has("wheel_velocity"):
        return _above(window, ("wheel_velocity",), speed_ratio * SETTINGS.min_speed_m_s)
    answers = [
        _above(window, names, speed_ratio * limit)
        for names, limit in (
            (("vx", "vy", "vz"), SETTINGS.min_speed_m_s),
            (("wx", "wy", "wz"), SETTINGS.min_turn_rad_s),
        )
        if any(window.has(name) for name in names)
    ]
    answers += [_is_odometry_moving(window, speed_ratio)] if issubclass(kind, Odometry) else []
    known = [answer for answer in answers if answer is not None]
    return any(known) if known else None


def _is_odometry_moving(window: Window[Any], speed_ratio: float) -> bool | None:
    """Return whether a dead reckoning changed in a window, as its velocities may be missing."""
    if len(window) < 2 or not window.has("x", "y"):
        return None
    names = ("x", "y", "qz", "qw") if window.has("qz", "qw") else ("x", "y")
    change = np.diff(window.array(*names)[[0, -1]], axis=0)[0]
    turn = 2 * float(np.linalg.norm(change[2:]))
    return bool(
        np.hypot(*change[:2]) > speed_ratio * SETTINGS.min_odometry_step_m
        or turn > speed_ratio * SETTINGS.min_odometry_step_rad
    )


def _above(window: Window[Any], names: Sequence[str], limit: float) -> bool | None:
    """Return whether the norm of a vector exceeds a limit in most samples."""
    values = window.array(*(name for name in names if window.has(name)))
    known = values[np.isfinite(values).any(axis=1)]
    if not known.size:
        return None
    return bool(np.median(np.sqrt(np.nansum(known**2, axis=1))) > limit)


def _travels(points: np.ndarray) -> bool | None:
    known = points[np.isfinite(points).all(axis=1)]
    if len(known) < 2:
        return None
    north, east = (known[-1] - known[0]) * EARTH_RADIUS_M
    return bool(np.hypot(north, east * np.cos(known[0, 0])) > SETTINGS.min_fix_distance_m)


def body_of(frames: FrameTree, frame: str) -> str | None:
    """Return the body frame, with z up, that carries a sensor's frame; None if it is not described."""
    if not frame or frame not in frames:
        return None
    ancestors = frames.ancestry(frame)
    return next((name for name in BODY_FRAMES if name in ancestors and name != frame), None)


def angle_turned(past: Window[Any]) -> tuple[Floats, Floats] | None:
    """Return times, ns, and the angle turned to the left about the vertical since the first, rad.

    None without turn rates, or without a vertical.
    """
    if issubclass(past.stream.type, Odometry) and past.has("wz"):
        rate = past.array("wz")[:, 0]
    elif issubclass(past.stream.type, Imu) and past.has(*_GYROS, *_FORCES):
        forces, rates = past.array(*_FORCES), past.array(*_GYROS)
        forces = forces[np.isfinite(forces).all(axis=1)]
        up = forces.mean(axis=0) if len(forces) else np.zeros(3)
        if not GRAVITY_RANGE_M_S2[0] < float(np.linalg.norm(up)) < GRAVITY_RANGE_M_S2[1]:
            return None
        rate = rates @ (up / np.linalg.norm(up))
    else:
        return None
    t, order = np.unique(past.t_ns, return_index=True)
    rate = rate[order]
    ok = np.isfinite(rate)
    t, rate = t[ok], rate[ok]
    if len(t) < 10:
        return None
    seconds = np.diff(t) / 1e9
    return t.astype(np.float64), np.concatenate([[0.0], np.cumsum(seconds * (rate[1:] + rate[:-1]) / 2)])


SECOND_DIFFERENCE_SIGMA = float(np.sqrt(6.0))
"""Standard deviation of ``x0 - 2 x1 + x2`` over that of x."""
EARTH_RADIUS_M = 6_371_000.0
SPEED_REFERENCES = ((RigidBodyState, "measurement"), (Pose, "estimate"))
"""Types and roles of speed references: a navigation system, and odometry by another sensor."""


class Speed(NamedTuple):
    """Mean speed of a reference for each time shift (k,), m/s, its sigma, m/s, and its step, s.

    In a curve a step is a chord.
    """

    values: Floats
    sigma: float
    step_s: float = 0.0


def grid_of(end_ns: int, seconds: float) -> Ints:
    """Return the times (m,) of the last seconds, with room for the largest shift."""
    return end_ns - round((seconds + SETTINGS.max_shift_s) * NS) + _steps(seconds)


def shift_grid(grid: Ints) -> Ints:
    """Return the times (k, m) of all time shifts."""
    shifts = np.concatenate([-_steps(SETTINGS.max_shift_s)[:0:-1], _steps(SETTINGS.max_shift_s)])
    return grid + shifts[:, None]


def _steps(seconds: float) -> Ints:
    return np.rint(np.arange(0, seconds + 1e-9, SETTINGS.grid_step_s) * NS).astype(np.int64)


def _seconds(grid: Ints) -> float:
    return float(grid[-1] - grid[0]) / NS


def resample(
    window: Window[Any], values: Floats, t_ns: Ints, longest_s: float = SETTINGS.max_gap_s
) -> Floats:
    """Return (k, m, c) values at times (k, m), interpolated; NaN in gaps and outside."""
    known = np.isfinite(values).all(axis=1)
    t, order = np.unique(window.t_ns[known], return_index=True)
    result = np.full((*t_ns.shape, values.shape[1]), np.nan)
    if len(t) < 2:
        return result
    after = np.clip(np.searchsorted(t, t_ns), 1, len(t) - 1)
    step = t[after] - t[after - 1]
    near = (step <= longest_s * NS) & (t_ns >= t[0] - NS // 10) & (t_ns <= t[-1] + NS // 10)
    part = np.clip((t_ns - t[after - 1]) / step, 0.0, 1.0)[..., None]
    sorted_values = values[known][order]
    between = sorted_values[after - 1] * (1 - part) + sorted_values[after] * part
    result[near] = between[near]
    return result


def mean_speed(past: Window[Any], t_ns: Ints) -> Floats | None:
    """Return the mean absolute speed (k,) of wheels or a body over times (k, m)."""
    if past.has("wheel_velocity"):
        rim = np.atleast_2d(past.array("wheel_velocity"))
        known = np.isfinite(rim)
        mean = np.where(known, rim, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        velocity = np.where(known.any(axis=1), mean, np.nan)[:, None]
    elif names := [name for name in ("vx", "vy") if past.has(name)]:
        velocity = past.array(*names)
        velocity[:, 1:] = np.nan_to_num(velocity[:, 1:])
    elif past.has("x", "y"):
        return _path_speed(resample(past, past.array("x", "y"), t_ns))
    else:
        return None
    return np.linalg.norm(resample(past, velocity, t_ns), axis=2).mean(axis=1)


def _path_speed(positions: Floats) -> Floats:
    """Return the speed (k,) along positions (k, m, 2 or 3) by chords, as noise lengthens short steps.

    A third column is the height, whose slope is limited.
    """
    each = round(SETTINGS.chord_s / SETTINGS.grid_step_s)
    level = np.linalg.norm(np.diff(positions[:, ::each, :2], axis=1), axis=2).mean(axis=1)
    if positions.shape[2] < 3:
        return level
    rise = np.abs(positions[:, -1, 2] - positions[:, 0, 2]) / (
        (positions.shape[1] - 1) * SETTINGS.grid_step_s
    )
    return np.hypot(level, np.minimum(np.nan_to_num(rise), SETTINGS.max_slope * level))


def turn_of_wheels(past: Window[Any], t_ns: Ints) -> Floats | None:
    """Return the mean turn rate (k,) by wheels, rad/s to the left; None without one."""
    return resample(past, past.array("wz"), t_ns).mean(axis=(1, 2)) if past.has("wz") else None


def turn_of_gyros(peer: Window[Any], t_ns: Ints) -> tuple[str, Floats] | None:
    """Return the stream and its mean turn rate (k,) about the vertical; None without a vertical."""
    names = ("gyro_x", "gyro_y", "gyro_z", "acc_x", "acc_y", "acc_z")
    if not (issubclass(peer.stream.type, Imu) and peer.has(*names)):
        return None
    past = peer.history(max(SETTINGS.gravity_span_s, (peer.t1_ns - int(t_ns.min())) / NS))
    values = past.array(*names)
    known = values[np.isfinite(values).all(axis=1)]
    if not len(known):
        return None
    up = known[:, 3:].mean(axis=0)
    size = float(np.linalg.norm(up))
    if not GRAVITY_RANGE_M_S2[0] < size < GRAVITY_RANGE_M_S2[1]:
        return None
    rate = resample(past, values[:, :3] @ (up / size)[:, None], t_ns).mean(axis=(1, 2))
    return (peer.stream.name, rate[np.isfinite(rate)]) if _is_mostly_known(rate) else None


def is_reference(peer: Window[Any]) -> bool:
    """Return whether a stream may show the speed over ground."""
    fixes = issubclass(peer.stream.type, NavFix) and peer.has("lat", "lon")
    return fixes or (peer.stream.type, peer.stream.role) in SPEED_REFERENCES


def newest_ns(peer: Window[Any]) -> int:
    """Return the time up to which a reference is used: the newest sample of a slow one."""
    if _usual_step(peer) <= SETTINGS.max_shift_s:
        return peer.t1_ns
    return min(
        peer.t1_ns,
        int(peer.history(2 * SETTINGS.max_reference_interval_s).t_ns.max())
        + round(SETTINGS.max_shift_s * NS),
    )


def _usual_step(peer: Window[Any]) -> float:
    """Return the median interval, s; 0 with less than two samples."""
    t_ns = peer.history(2 * SETTINGS.max_reference_interval_s).t_ns
    return float(np.median(np.diff(t_ns))) / NS if len(t_ns) > 1 else 0.0


def speed_over_ground(peer: Window[Any], grid: Ints) -> Speed | None:
    """Return the speed of a reference over the ground at times (m,); None if unknown."""
    past = peer.history((peer.t1_ns - int(grid[0])) / NS + 2 * SETTINGS.max_shift_s + _usual_step(peer))
    if not issubclass(peer.stream.type, NavFix):
        speed = mean_speed(past, shift_grid(grid))
        return (
            Speed(speed[np.isfinite(speed)], 0.0) if speed is not None and _is_mostly_known(speed) else None
        )
    return _speed_of_fixes(past, grid) if _is_fixed(past) else None


def _speed_of_fixes(past: Window[Any], grid: Ints) -> Speed | None:
    points = past.array("lat", "lon")
    middle = np.nanmean(points, axis=0) if np.isfinite(points).any() else np.zeros(2)
    metres = (points - middle) * EARTH_RADIUS_M * np.array([1.0, np.cos(middle[0])])
    newest = metres[past.t_ns >= grid[0]]
    if len(metres) < SETTINGS.min_scatter_windows or (len(newest) > 2 and np.all(newest == newest[0])):
        return None  # the receiver repeats its position
    position = np.column_stack([metres, past.array("alt")]) if past.has("alt") else metres
    position = position if np.isfinite(position).all(axis=1).sum() >= SETTINGS.min_scatter_windows else metres
    seconds = _seconds(grid)
    speed = _path_speed(resample(past, position, shift_grid(grid), max(SETTINGS.max_gap_s, seconds / 4)))
    if not _is_mostly_known(speed):
        return None
    second = np.abs(metres[2:] - 2 * metres[1:-1] + metres[:-2])
    noise = SIGMA_PER_MAD * float(np.nanmedian(second)) / SECOND_DIFFERENCE_SIGMA
    # On a straight path the chords add up to one, so that only its two ends scatter.
    error = np.hypot(np.sqrt(2.0) * noise, _fix_drift(past, seconds)) / seconds
    longest = float(np.median(np.diff(past.t_ns))) / NS
    return Speed(speed[np.isfinite(speed)], float(error), max(SETTINGS.chord_s, longest))


def _fix_drift(past: Window[Any], seconds: float) -> float:
    """Return the sigma of the change of a fix's error over a time, m, by its declared uncertainty."""
    names = [name for name in ("std_north", "std_east") if past.has(name)]
    declared = past.array(*names) if names else np.zeros((1, 1))
    known = declared[np.isfinite(declared)]
    sigma = float(np.median(known)) if known.size else 0.0
    return sigma * float(np.sqrt(2.0 * (1.0 - np.exp(-seconds / SETTINGS.fix_error_time_s))))


def _is_mostly_known(values: Floats) -> bool:
    """Return whether most shifts can be tried, as the newest samples of a slow stream are missing."""
    return bool(2 * np.isfinite(values).sum() > len(values))


def _is_fixed(past: Window[Any]) -> bool:
    """Return whether the fix type did not change: a float solution drifts by decimetres a second."""
    ranks = (
        [FIX_TYPES.index(each) for each in past.column("fix") if each in FIX_TYPES] if past.has("fix") else []
    )
    return not ranks or (ranks[-1] > 0 and min(ranks) == max(ranks))


class LeverArmEstimate:
    """Lever arm of a reference, estimated in turns: its speed is ``v - w y + w^2 x^2 / 2 v``.

    The arm (x, y) from the body is at most `max_arm_m` m long, which is three sigmas of the prior.
    """

    def __init__(self, max_arm_m: float) -> None:
        self._information = (
            np.diag([(3.0 / max_arm_m) ** 2, (1.0 / max_arm_m**2) ** 2]) if max_arm_m else np.eye(2) * 1e9
        )
        self._sum = np.zeros(2)

    def predict(self, speed: float, turn: float) -> tuple[float, float]:
        """Return the excess speed of the reference in a turn (rad/s), and its sigma; m/s."""
        row = self._row(speed, turn)
        covariance = np.linalg.inv(self._information)
        return float(row @ covariance @ self._sum), float(np.sqrt(row @ covariance @ row))

    def learn(self, speed: float, turn: float, faster: float, sigma: float) -> None:
        """Add a window without slip, in which the reference was `faster` by this; m/s."""
        row, weight = self._row(speed, turn), 1.0 / max(sigma, SETTINGS.min_speed_sigma_m_s) ** 2
        self._information = self._information + weight * np.outer(row, row)
        self._sum = self._sum + weight * faster * row

    def _row(self, speed: float, turn: float) -> Floats:
        return np.array([-turn, turn**2 / (2.0 * max(speed, SETTINGS.min_speed_sigma_m_s))])


class ReferenceScatter:
    """Scatter of a reference, by its excess over the wheels, which no slip explains."""

    def __init__(self) -> None:
        self._faster: deque[float] = deque(maxlen=SETTINGS.max_scatter_windows)

    def learn(self, faster: float) -> None:
        """Add the excess speed of a window; m/s."""
        if faster > 0:
            self._faster.append(faster)

    @property
    def sigma(self) -> float:
        """Standard deviation, m/s; 0 while unknown."""
        return (
            SIGMA_PER_MAD * float(np.median(self._faster))
            if len(self._faster) >= SETTINGS.min_scatter_windows
            else 0.0
        )
