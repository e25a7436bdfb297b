"""When a robot moved, by the sensors beside its IMU: wheels, odometry, velocities, fixes and positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.geometry import geodesy
from transect.recording import Recording, Stream
from transect.types import NavFix, Odometry, Pose, Twist, WheelState

MIN_SPEED_MPS = 0.02
"""Slower wheels stand."""
MIN_MOVE_M = 0.3
"""Over `WINDOW_S`, a change of a measured position: fixes at rest wander by less."""
WINDOW_S = 2.0
SIGMAS = 4.0
"""Of a mean over half of that time, beyond which a change is no noise."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Windows (n, 2), ns, in which a stream measured motion."""

    stream: str
    windows: Ints


def find_motion(recording: Recording, clock: str) -> list[Motion]:
    """Return when each stream of a clock that measures motion says that the robot moved."""
    found: list[Motion] = []
    for stream in recording:
        if stream.clock != clock or stream.role in ("estimate", "derived") or len(stream) < 2:
            continue
        moved = _moving_windows(stream)
        if moved is not None:
            found.append(Motion(stream.name, moved))
    return found


def overlaps(motion: Motion, starts: Ints, ends: Ints) -> Mask:
    """Return which spans from `starts` (m,) to `ends` (m,), ns, have some motion."""
    if not len(motion.windows):
        return np.zeros(len(starts), np.bool_)
    first, last = motion.windows[np.argsort(motion.windows[:, 0], kind="stable")].T
    latest = np.maximum.accumulate(last)
    before = np.searchsorted(first, ends, side="right")
    return (before > 0) & (latest[np.maximum(before - 1, 0)] >= starts)


def _moving_windows(stream: Stream) -> Ints | None:
    """Return windows of motion (n, 2); None for a stream that measures none."""
    t_ns = stream.t_ns
    order = np.argsort(t_ns, kind="stable")
    if issubclass(stream.type, WheelState):
        if "wheel_velocity" not in stream.columns:
            return None
        speeds = np.asarray(stream["wheel_velocity"], np.float64).reshape(len(stream), -1)
        return _fast(t_ns[order], speeds[order])
    if issubclass(stream.type, Odometry | Twist) and "vx" in stream.columns:
        names = [each for each in ("vx", "vy") if each in stream.columns]
        return _fast(t_ns[order], stream.array(*names)[order])
    if issubclass(stream.type, NavFix):
        return _displaced(t_ns[order], _local(stream)[order])
    if issubclass(stream.type, Odometry | Pose) and {"x", "y"} <= {*stream.columns}:
        return _displaced(t_ns[order], stream.array("x", "y")[order])
    return None


def _local(stream: Stream) -> Floats:
    places = np.column_stack([stream.array("lat", "lon"), np.zeros(len(stream))])
    known = np.flatnonzero(np.isfinite(places).all(axis=1))
    if not len(known):
        return np.full((len(places), 2), np.nan)
    return geodesy.local_from_geodetic(places, places[known[0]])[:, :2]


def _noise(values: Floats) -> float:
    """Return one sigma of the white noise of values (n, k) in order of time, by their second differences."""
    bent = np.diff(values[np.isfinite(values).all(axis=1)], n=2, axis=0)
    return float(np.median(np.abs(bent)) / 0.6745 / np.sqrt(6)) if len(bent) else 0.0


def _fast(t_ns: Ints, speeds: Floats) -> Ints:
    """Return windows around samples whose mean speed over a second is more than noise."""
    half = round(WINDOW_S * NS / 4)
    first, last = np.searchsorted(t_ns, t_ns - half), np.searchsorted(t_ns, t_ns + half, side="right")
    known = np.isfinite(speeds)
    total = np.concatenate([np.zeros((1, speeds.shape[1])), np.cumsum(np.where(known, speeds, 0.0), axis=0)])
    count = np.concatenate([np.zeros((1, speeds.shape[1])), np.cumsum(known, axis=0)])
    numbers = np.maximum(count[last] - count[first], 1)
    mean = np.abs(total[last] - total[first]) / numbers
    moving = (mean > MIN_SPEED_MPS + SIGMAS * _noise(speeds) / np.sqrt(numbers)).any(axis=1)
    return np.column_stack([t_ns - half, t_ns + half])[moving]


def _displaced(t_ns: Ints, places: Floats) -> Ints:
    """Return windows at whose two ends places (n, 2) differ by more than noise."""
    span = round(WINDOW_S * NS)
    later = np.searchsorted(t_ns, t_ns + span)
    pairs = np.flatnonzero(later < len(t_ns))
    later = later[pairs]
    moved = np.linalg.norm(places[later] - places[pairs], axis=1)
    # A jump over a gap tells that it moved, not when.
    near = t_ns[later] - t_ns[pairs] < 2 * span
    moving = near & (moved > MIN_MOVE_M + SIGMAS * np.sqrt(2) * _noise(places))
    return np.column_stack([t_ns[pairs], t_ns[later]])[moving]
