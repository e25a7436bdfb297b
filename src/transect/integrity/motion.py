"""Whether the robot moved in a window, as its streams tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.recording import FrameTree
from transect.types import Imu, NavFix, Odometry, RigidBodyState, Twist, WheelState

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
_EARTH = 6_371_000.0


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
    north, east = (known[-1] - known[0]) * _EARTH
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
