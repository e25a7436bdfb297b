"""The space around a robot that moves: where a laser's beams went through of late, and where they struck.

A solid thing stands where it stood, whichever way the robot moved since. Dust returns beams out of places
through which others went just before.

What the sweeps before and after saw of a place: for slow lasers of robots that move.

Few beams of a slow laser go through a cell of space, and in a room something is beside every cell. So its
sweeps are held against each other directly: each tells, in the direction of a place, whether it saw beyond.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.base.cache_folder import load_compiled
from transect.base.clocks import NS
from transect.errors import TransectError
from transect.geometry import se3
from transect.geometry.interpolation import interpolate_poses
from transect.integrity.windows import Window
from transect.recording import FrameTree
from transect.types import Odometry, RigidBodyState

from .sweeps import Sweeps

CELL = 0.5
"""Edge of a cell, m."""
SHAPE = (64, 64, 16)
"""Cells of the grid, which has the robot in its middle."""
REACH = 15.0
"""Metres up to which beams are followed; the grid reaches as far."""
FADING = 0.8
"""What a window leaves of what was known before it."""
THROUGH, STRUCK = 3.0, 0.1
"""Beams that went through a cell that is free, at least; and that struck in it or beside it, at most."""
FREE, STRANGE, TAKEN = 1, 0, -1
"""Places through which beams went, that no one looked at, and in or beside which something was struck."""
SMOOTH, ROUGH, NEW = range(3)
"""Kinds of what beams strike."""
LASTING = 2.9
"""Windows, faded, in which something came back from a place that is struck then: four in a row."""
SHORT = 0.5
"""Metres before what it strikes up to which a beam shows that nothing is there."""
BACK_S = 2.0
"""Seconds of poses before a window that it takes to know those within."""
SOON = NS // 2
"""Longest way from one pose to the next, ns."""


def poses_of(windows: Sequence[Window[Any]], t_ns: Ints, frames: FrameTree, frame: str) -> Floats | None:
    """Return ``T_world_sensor`` (n, 4, 4) at times (n,) by the first stream that has poses; None if none has.

    After its last pose the robot is taken to move on as between the last two: nothing later has come yet. A
    sensor whose mount is not known is taken for the body that the poses are of.
    """
    for window in sorted(windows, key=lambda each: not issubclass(each.stream.type, RigidBodyState)):
        track = _track_of(window) if issubclass(window.stream.type, (RigidBodyState, Odometry)) else None
        if track is None:
            continue
        axis, position, quaternion = track
        near = (t_ns >= axis[0]) & (t_ns <= axis[-1])
        if not near.all() or np.diff(axis).max(initial=0) > SOON:
            continue
        place, attitude = interpolate_poses(axis, position, quaternion, t_ns)
        T = se3.from_quaternion(attitude, place)
        try:
            return T @ frames.lookup(window.stream.child, frame, int(t_ns[-1]))
        except TransectError:
            return T
    return None


def _track_of(window: Window[Any]) -> tuple[Ints, Floats, Floats] | None:
    """Return times (n,), positions (n, 3) and quaternions (n, 4) up to the end of a window."""
    names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    past = window.history(BACK_S)
    if not past.has(*names):
        return None
    values = past.array(*names)
    known = np.isfinite(values).all(axis=1)
    axis, rows = np.unique(past.t_ns[known], return_index=True)
    if len(axis) < 2:
        return None
    values = values[known][rows]
    T = se3.from_quaternion(values[-2:, 3:], values[-2:, :3])
    ahead = window.t1_ns - int(axis[-1])
    if 0 < ahead <= SOON:
        pace = ahead / int(axis[-1] - axis[-2])
        on = T[1] @ se3.exp(pace * se3.log(se3.invert(T[0]) @ T[1]))
        quaternion, position = se3.to_quaternion(on)
        axis = np.append(axis, window.t1_ns)
        values = np.vstack([values, [*position, *quaternion]])
    return axis, values[:, :3], values[:, 3:]


class Space:
    """Cells around a robot: how many beams went through each, and how many struck something in it."""

    def __init__(self) -> None:
        self._passed = np.zeros(SHAPE, np.float32)
        self._struck = np.zeros(SHAPE, np.float32)
        self._doubted = np.zeros(SHAPE, np.float32)
        self._home: Ints | None = None

    def move(self, origin: Floats) -> None:
        """Let the robot be at a place (3,), m: what is far from there now is forgotten, the rest fades."""
        home = np.floor(origin / CELL).astype(np.int64)
        if self._home is None or np.any(np.abs(home - self._home) >= np.array(SHAPE) // 2):
            for kept in (self._passed, self._struck, self._doubted):
                kept[:] = 0.0
        else:
            for axis, (before, now) in enumerate(zip(self._home.tolist(), home.tolist(), strict=True)):
                self._leave(axis, before, now)
        for kept in (self._passed, self._struck, self._doubted):
            kept *= FADING
        self._home = home

    def _leave(self, axis: int, before: int, now: int) -> None:
        half, count = SHAPE[axis] // 2, SHAPE[axis]
        new = range(before + half, now + half) if now > before else range(now - half, before - half)
        rows = np.array([each % count for each in new], np.int64)
        for kept in (self._passed, self._struck, self._doubted):
            np.moveaxis(kept, axis, 0)[rows] = 0.0

    def look_up(self, points: Floats) -> Ints:
        """Return (m,) which of points (m, 3) are at places that were `FREE`, `STRANGE` or `TAKEN`."""
        return load_kernels().look_up(self._passed, self._struck, self._home, points, CELL, THROUGH, STRUCK)

    def lay_beams(
        self, origins: Floats, towards: Floats, free: Floats, hit: Floats, kind: Ints, *, cloudy: bool
    ) -> None:
        """Add the beams of a window from origins (m, 3) along unit vectors (m, 3).

        A place is struck if most of what came back from it is smooth, or if something came back in several
        windows. In clear air so is one that was not known to be free: a bush. In a cloud it may be dust.

        Parameters
        ----------
        free : (m,) array
            How far they showed that nothing is there, m.
        hit : (m,) array
            Where they struck, m; NaN where they did not.
        kind : (m,) int array
            Of what they struck: `SMOOTH`, `ROUGH`, or `NEW`, which is rough and was not there before.
        cloudy : bool
            There is something in the air.
        """
        now = np.zeros((3, *SHAPE), np.float32)
        doubtful = cloudy | ((self._passed >= THROUGH) & (self._struck <= STRUCK))
        load_kernels().lay_beams(self._passed, now, self._home, origins, towards, free, hit, kind, CELL)
        sure = (now[SMOOTH] >= now[ROUGH] + now[NEW]) | ~doubtful
        self._struck += np.where(sure, now[SMOOTH] + now[ROUGH], 0.0)
        self._doubted += (now[ROUGH] > 0) & ~sure
        self._struck[self._doubted > LASTING] = 1.0


def load_kernels() -> Any:
    """Load the compiled loops."""
    return load_compiled(__name__, "free_space")


SLOW_S = 0.1
"""Seconds from one sweep to the next, from which on a laser is slow."""
KEPT, WITHIN = 10, 5
"""Sweeps before a window, and beside one within it, that are asked."""
BEYOND_M, SAME_M = 0.3, 0.3
"""Metres by which a sweep saw beyond a place that was free; and from a return for it to be of that place."""
AROUND, WIDER = 2, 3
"""Directions to each side that must all be beyond; and in which a return may be that of a place."""
MIN_FREE_SWEEPS = 2
"""Sweeps that saw beyond a place, at least, for it to be free."""
BEFORE_M = 0.5
"""Metres by which a drop is before what the beams beside it see."""
LEVEL_M, LEVEL = 0.1, 0.02
"""Metres, and part of the range, by which a place may be off the plane of a sweep that tells of it."""
TURNING = 1.0
"""rad/s: while a laser turns faster, its sweeps are not laid on each other well enough."""


@dataclass(frozen=True, eq=False)
class _Sweep:
    """A sweep: where it was, ``T_world_laser`` (4, 4), and its ranges (d,), infinite where none came back."""

    T: Floats
    ranges: Floats


class Sight:
    """The newest sweeps of a laser, and what they saw of places."""

    def __init__(self) -> None:
        self._kept: deque[_Sweep] = deque(maxlen=KEPT)

    def find_lone(self, sweeps: Sweeps, poses: Floats) -> Mask:
        """Return which returns (s, d) of a window hang alone in space that the other sweeps saw through.

        Parameters
        ----------
        poses : (n, 4, 4) array
            ``T_world_laser`` of the scans.
        """
        T = poses[first_scans(sweeps, len(poses))]
        ranges = np.where(np.isfinite(sweeps.ranges), sweeps.ranges, np.inf)
        own = [_Sweep(*each) for each in zip(T, ranges, strict=True)]
        found = _find_alone(ranges) & ~_turns(T, sweeps.period_s)[:, None]
        for k in np.flatnonzero(found.any(axis=1)).tolist():
            beams = np.flatnonzero(found[k])
            others = [*self._kept, *own[max(0, k - WITHIN) : k], *own[k + 1 : k + 1 + WITHIN]]
            found[k, beams] = _is_free(own[k], beams, others, sweeps.angles)
        self._kept.extend(own)
        return found


def first_scans(sweeps: Sweeps, scans: int) -> Ints:
    """Return (s,) the scan with which each sweep begins, of so many."""
    first = np.searchsorted(sweeps.scan, np.arange(scans))
    begins = np.searchsorted(sweeps.sweep[first], np.arange(len(sweeps.ranges)))
    return np.minimum(begins, scans - 1)


def _find_alone(ranges: Floats) -> Mask:
    """Return which returns (s, d) are well before all that the beams beside them see."""
    padded = np.pad(ranges, ((0, 0), (AROUND, AROUND)), constant_values=-np.inf)
    count = ranges.shape[1]
    beside = [padded[:, k : k + count] for k in range(2 * AROUND + 1) if k != AROUND]
    return np.isfinite(ranges) & (np.min(beside, axis=0) > ranges + BEFORE_M)


def _turns(T: Floats, period_s: float) -> Mask:
    """Return (s,) in which sweeps the laser turns too fast, by its poses (s, 4, 4)."""
    if len(T) < 2:
        return np.zeros(len(T), np.bool_)
    turned = np.linalg.norm(se3.log(se3.invert(T[:-1]) @ T[1:])[:, 3:], axis=1) / max(period_s, 1e-3)
    return np.maximum(np.append(turned, turned[-1]), np.append(turned[:1], turned)) > TURNING


def _is_free(own: _Sweep, beams: Ints, others: list[_Sweep], angles: Floats) -> Mask:
    """Return (m,) whether other sweeps saw through the places of beams (m,), and none saw anything there."""
    r, angle = own.ranges[beams], angles[beams]
    points = np.stack([r * np.cos(angle), r * np.sin(angle), 0 * r, np.ones(len(r))])
    beyond, taken = np.zeros(len(beams), np.int64), np.zeros(len(beams), np.bool_)
    step, count = float(angles[1] - angles[0]), len(angles)
    for other in others:
        x, y, z = (se3.invert(other.T) @ own.T @ points)[:3]
        reach, place = np.hypot(x, y), np.rint((np.arctan2(y, x) - angles[0]) / step).astype(np.int64)
        told = (place >= WIDER) & (place < count - WIDER) & (np.abs(z) < LEVEL_M + LEVEL * reach)
        place = np.where(told, place, WIDER)
        near = np.stack([other.ranges[place + aside] for aside in range(-WIDER, WIDER + 1)])
        beyond += told & (near[WIDER - AROUND : WIDER + AROUND + 1].min(axis=0) > reach + BEYOND_M)
        taken |= told & (np.abs(near - reach).min(axis=0) < SAME_M)
    return (beyond >= MIN_FREE_SWEEPS) & ~taken
