"""The space around a robot that moves: where a laser's beams went through of late, and where they struck.

A solid thing stands where it stood, whichever way the robot moved since. Dust returns beams out of places
through which others went just before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.cache_folder import load_compiled
from transect.base.clocks import NS
from transect.errors import TransectError
from transect.geometry import se3
from transect.geometry.interpolation import interpolate_poses
from transect.recording import FrameTree
from transect.types import Odometry, RigidBodyState

from .windows import Window

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
    return load_compiled(__name__, "space")
