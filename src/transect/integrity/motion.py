"""Whether the robot moved in a window, as its streams tell.

How fast a robot moved over the last seconds, by its wheels and by what does not touch the ground.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry.robust import NORMAL
from transect.recording import FrameTree
from transect.types import FIX_TYPES, Imu, NavFix, Odometry, Pose, RigidBodyState, Twist, WheelState

from .windows import Window

Moving = Odometry | Twist | WheelState | RigidBodyState | NavFix | Imu
"""What shows motion."""
SPEED, TURN, TRAVEL = 0.1, 0.1, 1.0
"""m/s, rad/s, and metres between fixes of a window: more is motion, and no noise or bias."""
STEP_M, STEP_RAD = 0.05, 0.02
"""By which a dead reckoning must go on in a window."""
GRAVITY = (3.0, 30.0)
"""m/s2: accelerations whose mean shows where up is."""
BODIES = ("base_link", "base_footprint", "Platform")
"""Frames of robots whose z axis is up and x forward, where a description has one of them."""
_GYROS, _FORCES = ("gyro_x", "gyro_y", "gyro_z"), ("acc_x", "acc_y", "acc_z")


def is_moving(windows: Sequence[Window[Any]], part: float = 1.0) -> bool | None:
    """Tell whether the robot moves, by all windows that show it; None if none can tell.

    One that shows motion is enough. Gyroscopes alone show turning, but not that the robot stands. `part` of
    the usual speed of wheels and bodies is motion.
    """
    told = [answer for window in windows if len(window) and (answer := _moves(window, part)) is not None]
    return any(told) if told else None


def _moves(window: Window[Any], part: float) -> bool | None:
    kind = window.stream.type
    if issubclass(kind, Imu):
        rates = window.array(*(name for name in ("gyro_x", "gyro_y", "gyro_z") if window.has(name)))
        return bool(rates.size and np.linalg.norm(np.mean(rates, axis=0)) > TURN) or None
    if issubclass(kind, NavFix) and window.has("lat", "lon"):
        return _travels(window.array("lat", "lon"))
    if issubclass(kind, WheelState) and window.has("wheel_velocity"):
        return _above(window, ("wheel_velocity",), part * SPEED)
    answers = [
        _above(window, names, part * limit)
        for names, limit in ((("vx", "vy", "vz"), SPEED), (("wx", "wy", "wz"), TURN))
        if any(window.has(name) for name in names)
    ]
    answers += [_goes_on(window, part)] if issubclass(kind, Odometry) else []
    known = [answer for answer in answers if answer is not None]
    return any(known) if known else None


def _goes_on(window: Window[Any], part: float) -> bool | None:
    """Tell whether a dead reckoning ends a window elsewhere than it began; its velocities may be missing."""
    if len(window) < 2 or not window.has("x", "y"):
        return None
    names = ("x", "y", "qz", "qw") if window.has("qz", "qw") else ("x", "y")
    change = np.diff(window.array(*names)[[0, -1]], axis=0)[0]
    turn = 2 * float(np.linalg.norm(change[2:]))
    return bool(np.hypot(*change[:2]) > part * STEP_M or turn > part * STEP_RAD)


def _above(window: Window[Any], names: Sequence[str], limit: float) -> bool | None:
    """Tell whether the size of a vector is above a limit in most of the samples."""
    values = window.array(*(name for name in names if window.has(name)))
    known = values[np.isfinite(values).any(axis=1)]
    if not known.size:
        return None
    return bool(np.median(np.sqrt(np.nansum(known**2, axis=1))) > limit)


def _travels(points: np.ndarray) -> bool | None:
    known = points[np.isfinite(points).all(axis=1)]
    if len(known) < 2:
        return None
    north, east = (known[-1] - known[0]) * EARTH
    return bool(np.hypot(north, east * np.cos(known[0, 0])) > TRAVEL)


def body_of(frames: FrameTree, frame: str) -> str | None:
    """Return the body, with z up, that carries a sensor's frame; None where a description has none."""
    if not frame or frame not in frames:
        return None
    ancestors = frames.ancestry(frame)
    return next((name for name in BODIES if name in ancestors and name != frame), None)


def angle_turned(past: Window[Any]) -> tuple[Floats, Floats] | None:
    """Return times, ns, and the angle turned to the left about the vertical since the first, rad.

    None where the stream has no turn rates, or does not tell where up is.
    """
    if issubclass(past.stream.type, Odometry) and past.has("wz"):
        rate = past.array("wz")[:, 0]
    elif issubclass(past.stream.type, Imu) and past.has(*_GYROS, *_FORCES):
        forces, rates = past.array(*_FORCES), past.array(*_GYROS)
        forces = forces[np.isfinite(forces).all(axis=1)]
        up = forces.mean(axis=0) if len(forces) else np.zeros(3)
        if not GRAVITY[0] < float(np.linalg.norm(up)) < GRAVITY[1]:
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


SHIFT_S, STEP_S, CHORD_S = 0.5, 0.1, 1.0
"""By which two streams may be shifted; of the grid on which both are laid; of the steps of a way."""
GYROS_S = 10.0
"""Over which the direction of gravity is measured."""
LONGEST_S = 1.5
"""Between two samples, or a quarter of the time over which a speed is the mean, if that is more."""
SLOW_S = 5.0
"""Longest usual time between two samples of a reference."""
WANDERING_S = 60.0
"""Time constant with which the error of a fix wanders: over less it is nearly the same."""
STEEPEST = 0.6
"""Height over way, at most: what is steeper is the noise of heights."""
SIX = float(np.sqrt(6.0))
"""Deviation of ``x0 - 2 x1 + x2`` over that of x."""
EARTH = 6_371_000.0
REMEMBERED, LEAST = 60, 5
"""Windows that tell how far a reference scatters: at most, and at least of those in which it is faster."""
SLOWEST = 0.05
"""Deviation of a speed that teaches an arm, m/s, at least."""
WITNESSES = ((RigidBodyState, "measurement"), (Pose, "estimate"))
"""Types and roles of streams that tell a speed: a navigation system, and odometry of another sensor."""


class Speed(NamedTuple):
    """Mean speed of a reference, for each shift that is tried (k,), its deviation, and its longest step.

    m/s, m/s, s. On a curve a step is a chord.
    """

    values: Floats
    sigma: float
    step_s: float = 0.0


def grid_of(end_ns: int, seconds: float) -> Ints:
    """Return the times (m,) of the last seconds, which end so early that they can be shifted."""
    return end_ns - round((seconds + SHIFT_S) * NS) + _steps(seconds)


def shift(grid: Ints) -> Ints:
    """Return the times (k, m) of all shifts that are tried."""
    shifts = np.concatenate([-_steps(SHIFT_S)[:0:-1], _steps(SHIFT_S)])
    return grid + shifts[:, None]


def _steps(seconds: float) -> Ints:
    return np.rint(np.arange(0, seconds + 1e-9, STEP_S) * NS).astype(np.int64)


def _seconds(grid: Ints) -> float:
    return float(grid[-1] - grid[0]) / NS


def resample(window: Window[Any], values: Floats, t_ns: Ints, longest_s: float = LONGEST_S) -> Floats:
    """Return (k, m, c) values at other times (k, m), between the samples; NaN in gaps and outside."""
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
    """Return the mean speed (k,) of wheels or a body over times (k, m), without its sign."""
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
    """Return the speed (k,) along positions (k, m, 2 or 3): noise makes short steps long.

    A third column is the height, which is steep at most as ground is.
    """
    each = round(CHORD_S / STEP_S)
    level = np.linalg.norm(np.diff(positions[:, ::each, :2], axis=1), axis=2).mean(axis=1)
    if positions.shape[2] < 3:
        return level
    rise = np.abs(positions[:, -1, 2] - positions[:, 0, 2]) / ((positions.shape[1] - 1) * STEP_S)
    return np.hypot(level, np.minimum(np.nan_to_num(rise), STEEPEST * level))


def turn_of_wheels(past: Window[Any], t_ns: Ints) -> Floats | None:
    """Return the mean turn rate (k,) by wheels, rad/s to the left; None where they have none."""
    return resample(past, past.array("wz"), t_ns).mean(axis=(1, 2)) if past.has("wz") else None


def turn_of_gyros(peer: Window[Any], t_ns: Ints) -> tuple[str, Floats] | None:
    """Return the mean turn rate (k,) about the vertical; None where it is not known where up is."""
    names = ("gyro_x", "gyro_y", "gyro_z", "acc_x", "acc_y", "acc_z")
    if not (issubclass(peer.stream.type, Imu) and peer.has(*names)):
        return None
    past = peer.history(max(GYROS_S, (peer.t1_ns - int(t_ns.min())) / NS))
    values = past.array(*names)
    known = values[np.isfinite(values).all(axis=1)]
    if not len(known):
        return None
    up = known[:, 3:].mean(axis=0)
    size = float(np.linalg.norm(up))
    if not GRAVITY[0] < size < GRAVITY[1]:
        return None
    rate = resample(past, values[:, :3] @ (up / size)[:, None], t_ns).mean(axis=(1, 2))
    return (peer.stream.name, rate[np.isfinite(rate)]) if _few_unknown(rate) else None


def is_reference(peer: Window[Any]) -> bool:
    """Tell whether a stream may show the speed over ground."""
    fixes = issubclass(peer.stream.type, NavFix) and peer.has("lat", "lon")
    return fixes or (peer.stream.type, peer.stream.role) in WITNESSES


def newest_ns(peer: Window[Any]) -> int:
    """Return up to when a reference tells: a slow one is asked up to its newest sample."""
    if _usual_step(peer) <= SHIFT_S:
        return peer.t1_ns
    return min(peer.t1_ns, int(peer.history(2 * SLOW_S).t_ns.max()) + round(SHIFT_S * NS))


def _usual_step(peer: Window[Any]) -> float:
    """Return the median step, s; 0 where there are not two samples."""
    t_ns = peer.history(2 * SLOW_S).t_ns
    return float(np.median(np.diff(t_ns))) / NS if len(t_ns) > 1 else 0.0


def speed_over_ground(peer: Window[Any], grid: Ints) -> Speed | None:
    """Return how fast a reference moved over the ground at times (m,); None where it does not tell."""
    past = peer.history((peer.t1_ns - int(grid[0])) / NS + 2 * SHIFT_S + _usual_step(peer))
    if not issubclass(peer.stream.type, NavFix):
        speed = mean_speed(past, shift(grid))
        return Speed(speed[np.isfinite(speed)], 0.0) if speed is not None and _few_unknown(speed) else None
    return _speed_of_fixes(past, grid) if _is_fixed(past) else None


def _speed_of_fixes(past: Window[Any], grid: Ints) -> Speed | None:
    points = past.array("lat", "lon")
    middle = np.nanmean(points, axis=0) if np.isfinite(points).any() else np.zeros(2)
    metres = (points - middle) * EARTH * np.array([1.0, np.cos(middle[0])])
    newest = metres[past.t_ns >= grid[0]]
    if len(metres) < LEAST or (len(newest) > 2 and np.all(newest == newest[0])):
        return None  # the receiver holds its position
    place = np.column_stack([metres, past.array("alt")]) if past.has("alt") else metres
    place = place if np.isfinite(place).all(axis=1).sum() >= LEAST else metres
    seconds = _seconds(grid)
    speed = _path_speed(resample(past, place, shift(grid), max(LONGEST_S, seconds / 4)))
    if not _few_unknown(speed):
        return None
    second = np.abs(metres[2:] - 2 * metres[1:-1] + metres[:-2])
    noise = NORMAL * float(np.nanmedian(second)) / SIX
    # On a straight way steps add up to one, so that only its two ends scatter.
    error = np.hypot(np.sqrt(2.0) * noise, _wandering(past, seconds)) / seconds
    longest = float(np.median(np.diff(past.t_ns))) / NS
    return Speed(speed[np.isfinite(speed)], float(error), max(CHORD_S, longest))


def _wandering(past: Window[Any], seconds: float) -> float:
    """Return by how much the errors of two fixes differ, m, by what is declared: they wander slowly."""
    names = [name for name in ("std_north", "std_east") if past.has(name)]
    declared = past.array(*names) if names else np.zeros((1, 1))
    known = declared[np.isfinite(declared)]
    sigma = float(np.median(known)) if known.size else 0.0
    return sigma * float(np.sqrt(2.0 * (1.0 - np.exp(-seconds / WANDERING_S))))


def _few_unknown(values: Floats) -> bool:
    """Tell whether most shifts can be tried: the newest samples of a slow stream have not come yet."""
    return bool(2 * np.isfinite(values).sum() > len(values))


def _is_fixed(past: Window[Any]) -> bool:
    """Tell whether the fixes are as good as they were: a float solution wanders by decimetres a second."""
    ranks = (
        [FIX_TYPES.index(each) for each in past.column("fix") if each in FIX_TYPES] if past.has("fix") else []
    )
    return not ranks or (ranks[-1] > 0 and min(ranks) == max(ranks))


class Arm:
    """Where a reference is mounted, as turns show it: its speed is ``v - w y + w^2 x^2 / 2 v``.

    The arm (x, y) of the body is at most `reach` m long, which is three deviations before anything is known.
    """

    def __init__(self, reach: float) -> None:
        self._information = np.diag([(3.0 / reach) ** 2, (1.0 / reach**2) ** 2]) if reach else np.eye(2) * 1e9
        self._sum = np.zeros(2)

    def tell(self, speed: float, turn: float) -> tuple[float, float]:
        """Return by how much the reference is faster in a turn (rad/s), and the deviation of that; m/s."""
        row = self._row(speed, turn)
        covariance = np.linalg.inv(self._information)
        return float(row @ covariance @ self._sum), float(np.sqrt(row @ covariance @ row))

    def learn(self, speed: float, turn: float, faster: float, sigma: float) -> None:
        """Add a window in which nothing slipped, and the reference was faster by so much; m/s."""
        row, weight = self._row(speed, turn), 1.0 / max(sigma, SLOWEST) ** 2
        self._information = self._information + weight * np.outer(row, row)
        self._sum = self._sum + weight * faster * row

    def _row(self, speed: float, turn: float) -> Floats:
        return np.array([-turn, turn**2 / (2.0 * max(speed, SLOWEST))])


class Scatter:
    """How far a reference scatters: by how much it was faster than wheels, which no slip explains."""

    def __init__(self) -> None:
        self._faster: deque[float] = deque(maxlen=REMEMBERED)

    def learn(self, faster: float) -> None:
        """Add a window; m/s."""
        if faster > 0:
            self._faster.append(faster)

    @property
    def sigma(self) -> float:
        """Deviation, m/s; 0 while nothing is known."""
        return NORMAL * float(np.median(self._faster)) if len(self._faster) >= LEAST else 0.0
