"""Free space around a moving robot: cells that a laser's beams crossed recently, and where they ended.

A solid object keeps its position while the robot moves. Dust returns beams from cells that others just
crossed. A slow laser has too few beams per cell, and indoors every cell has an object beside it, so that its
sweeps are compared with each other directly: each shows whether it saw beyond a position in its direction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.base.cache_folder import load_compiled
from transect.errors import TransectError
from transect.geometry import se3
from transect.geometry.interpolation import interpolate_poses
from transect.integrity.windows import Window
from transect.recording import FrameTree
from transect.types import Odometry, RigidBodyState

from .sweeps import Sweeps


class CellState(IntEnum):
    """State of a cell, as returned by the compiled loops."""

    OCCUPIED = -1  # a beam ended in it or in a neighbour
    UNKNOWN = 0
    FREE = 1  # crossed by beams


class ReturnKind(IntEnum):
    """Kind of a return; the index of its counts in the compiled loops."""

    SMOOTH = 0  # from a surface
    ROUGH = 1
    NEW = 2  # rough, and from a cell that was free


@dataclass(frozen=True)
class FreeSpaceSettings:
    """Numbers of the grid, and of the comparison of slow sweeps."""

    cell_m: float = 0.5  # Edge of a cell.
    shape: tuple[int, int, int] = (64, 64, 16)  # Cells of the grid, with the robot in the centre.
    max_range_m: float = 15.0  # Beams are followed up to here; the grid is as large.
    decay: float = 0.8  # Weight of the previous windows after one window.
    min_passed: float = 3.0  # Beams that crossed a free cell, and ...
    max_struck: float = 0.1  # ... that ended in it or in its neighbours.
    # Decayed number of windows with returns after which a cell is occupied: four consecutive ones.
    min_persistent_windows: float = 2.9
    clearance_m: float = 0.5  # A beam shows free space up to this distance before its end.
    pose_span_s: float = 2.0  # Time of poses before a window that are needed to interpolate within it.
    max_pose_interval_ns: int = 500_000_000
    slow_period_s: float = 0.1  # Time between the sweeps of a slow laser.
    kept_sweeps: int = 10  # Sweeps before a window, and ...
    neighbour_sweeps: int = 5  # ... around one within it, that are compared.
    beyond_m: float = 0.3  # A sweep saw through a position if it saw farther by this, ...
    same_position_m: float = 0.3  # ... and a return is at the position if it is within this.
    beyond_directions: int = 2  # Directions to each side that must all be beyond, and ...
    same_position_directions: int = 3  # ... in which a return may be at the position.
    min_free_sweeps: int = 2  # Sweeps that saw through a free position.
    in_front_m: float = 0.5  # A drop is in front of its neighbours by this.
    max_height_m: float = 0.1  # Distance of a position from the plane of a sweep that observes it, ...
    max_height_ratio: float = 0.02  # ... plus this ratio of the range.
    max_turn_rad_s: float = 1.0  # Faster turns make sweeps too inaccurate to compare.


SETTINGS = FreeSpaceSettings()


def poses_of(windows: Sequence[Window[Any]], t_ns: Ints, frames: FrameTree, frame: str) -> Floats | None:
    """Return ``T_world_sensor`` (n, 4, 4) at times (n,) by the first stream with poses; None without one.

    After its last pose the robot is extrapolated at constant velocity, as no later pose has arrived. A
    sensor with an unknown mount is assumed to be at the body of the poses.
    """
    for window in sorted(windows, key=lambda each: not issubclass(each.stream.type, RigidBodyState)):
        is_pose = issubclass(window.stream.type, (RigidBodyState, Odometry))
        if not is_pose or (history := _pose_history(window)) is None:
            continue
        axis, position, quaternion = history
        near = (t_ns >= axis[0]) & (t_ns <= axis[-1])
        if not near.all() or np.diff(axis).max(initial=0) > SETTINGS.max_pose_interval_ns:
            continue
        position_at, attitude = interpolate_poses(axis, position, quaternion, t_ns)
        T = se3.from_quaternion(attitude, position_at)
        try:
            return T @ frames.lookup(window.stream.child, frame, int(t_ns[-1]))
        except TransectError:
            return T
    return None


def _pose_history(window: Window[Any]) -> tuple[Ints, Floats, Floats] | None:
    """Return times (n,), positions (n, 3) and quaternions (n, 4) up to the end of a window."""
    names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    past = window.history(SETTINGS.pose_span_s)
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
    if 0 < ahead <= SETTINGS.max_pose_interval_ns:
        ratio = ahead / int(axis[-1] - axis[-2])
        predicted = T[1] @ se3.exp(ratio * se3.log(se3.invert(T[0]) @ T[1]))
        quaternion, position = se3.to_quaternion(predicted)
        axis = np.append(axis, window.t1_ns)
        values = np.vstack([values, [*position, *quaternion]])
    return axis, values[:, :3], values[:, 3:]


class FreeSpaceGrid:
    """Cells around a robot: how many beams crossed each, and how many ended in it."""

    def __init__(self) -> None:
        self._passed = np.zeros(SETTINGS.shape, np.float32)
        self._struck = np.zeros(SETTINGS.shape, np.float32)
        self._uncertain = np.zeros(SETTINGS.shape, np.float32)
        self._centre: Ints | None = None

    def move(self, origin: Floats) -> None:
        """Move the grid to a position (3,), m: cells that leave it are cleared, the others decay."""
        centre = np.floor(origin / SETTINGS.cell_m).astype(np.int64)
        if self._centre is None or np.any(np.abs(centre - self._centre) >= np.array(SETTINGS.shape) // 2):
            for cells in (self._passed, self._struck, self._uncertain):
                cells[:] = 0.0
        else:
            for axis, (before, now) in enumerate(zip(self._centre.tolist(), centre.tolist(), strict=True)):
                self._clear_rows(axis, before, now)
        for cells in (self._passed, self._struck, self._uncertain):
            cells *= SETTINGS.decay
        self._centre = centre

    def _clear_rows(self, axis: int, before: int, now: int) -> None:
        half, count = SETTINGS.shape[axis] // 2, SETTINGS.shape[axis]
        new = range(before + half, now + half) if now > before else range(now - half, before - half)
        rows = np.array([each % count for each in new], np.int64)
        for cells in (self._passed, self._struck, self._uncertain):
            np.moveaxis(cells, axis, 0)[rows] = 0.0

    def classify(self, points: Floats) -> Ints:
        """Return the `CellState` (m,) of the cells of points (m, 3)."""
        return load_kernels().classify_points(
            self._passed,
            self._struck,
            self._centre,
            points,
            SETTINGS.cell_m,
            SETTINGS.min_passed,
            SETTINGS.max_struck,
        )

    def add_beams(
        self, origins: Floats, directions: Floats, free: Floats, hit: Floats, kind: Ints, *, cloudy: bool
    ) -> None:
        """Add the beams of a window from origins (m, 3) along unit vectors (m, 3).

        A cell is occupied if most of its returns are smooth, or if it has returns in several windows. In
        clear air any return from a cell that was not free occupies it, such as a bush; in a cloud it may
        be dust.

        Parameters
        ----------
        free : (m,) array
            Length that they show to be free, m.
        hit : (m,) array
            Length at which they end, m; NaN without a return.
        kind : (m,) int array
            `ReturnKind` of the return.
        cloudy : bool
            Whether there is a cloud.
        """
        now = np.zeros((3, *SETTINGS.shape), np.float32)
        is_uncertain = cloudy | (
            (self._passed >= SETTINGS.min_passed) & (self._struck <= SETTINGS.max_struck)
        )
        load_kernels().add_beams(
            self._passed, now, self._centre, origins, directions, free, hit, kind, SETTINGS.cell_m
        )
        smooth, rough, new = now
        is_certain = (smooth >= rough + new) | ~is_uncertain
        self._struck += np.where(is_certain, smooth + rough, 0.0)
        self._uncertain += (rough > 0) & ~is_certain
        self._struck[self._uncertain > SETTINGS.min_persistent_windows] = 1.0


def load_kernels() -> Any:
    """Load the compiled loops."""
    return load_compiled(__name__, "free_space")


@dataclass(frozen=True, eq=False)
class _PosedSweep:
    """A sweep: its pose ``T_world_laser`` (4, 4), and ranges (d,), infinite without a return."""

    T: Floats
    ranges: Floats


class SweepHistory:
    """Newest sweeps of a slow laser, and the positions that they saw through."""

    def __init__(self) -> None:
        self._kept: deque[_PosedSweep] = deque(maxlen=SETTINGS.kept_sweeps)

    def find_isolated(self, sweeps: Sweeps, poses: Floats) -> Mask:
        """Return which returns (s, d) of a window are isolated in space that other sweeps saw through.

        `poses` (n, 4, 4) are ``T_world_laser`` of the scans.
        """
        T = poses[first_scans(sweeps, len(poses))]
        ranges = np.where(np.isfinite(sweeps.ranges), sweeps.ranges, np.inf)
        own = [_PosedSweep(*each) for each in zip(T, ranges, strict=True)]
        found = _find_in_front(ranges) & ~_turns_too_fast(T, sweeps.period_s)[:, None]
        for k in np.flatnonzero(found.any(axis=1)).tolist():
            beams = np.flatnonzero(found[k])
            others = [
                *self._kept,
                *own[max(0, k - SETTINGS.neighbour_sweeps) : k],
                *own[k + 1 : k + 1 + SETTINGS.neighbour_sweeps],
            ]
            found[k, beams] = _is_free(own[k], beams, others, sweeps.angles)
        self._kept.extend(own)
        return found


def first_scans(sweeps: Sweeps, scans: int) -> Ints:
    """Return (s,) the scan with which each sweep begins; `scans` is the number of scans."""
    first = np.searchsorted(sweeps.scan, np.arange(scans))
    begins = np.searchsorted(sweeps.sweep[first], np.arange(len(sweeps.ranges)))
    return np.minimum(begins, scans - 1)


def _find_in_front(ranges: Floats) -> Mask:
    """Return which returns (s, d) are well in front of all their neighbours."""
    padded = np.pad(
        ranges, ((0, 0), (SETTINGS.beyond_directions, SETTINGS.beyond_directions)), constant_values=-np.inf
    )
    count = ranges.shape[1]
    neighbours = [
        padded[:, k : k + count]
        for k in range(2 * SETTINGS.beyond_directions + 1)
        if k != SETTINGS.beyond_directions
    ]
    return np.isfinite(ranges) & (np.min(neighbours, axis=0) > ranges + SETTINGS.in_front_m)


def _turns_too_fast(T: Floats, period_s: float) -> Mask:
    """Return (s,) in which sweeps the laser turns too fast, by its poses (s, 4, 4)."""
    if len(T) < 2:
        return np.zeros(len(T), np.bool_)
    turn_rates = np.linalg.norm(se3.log(se3.invert(T[:-1]) @ T[1:])[:, 3:], axis=1) / max(period_s, 1e-3)
    return (
        np.maximum(np.append(turn_rates, turn_rates[-1]), np.append(turn_rates[:1], turn_rates))
        > SETTINGS.max_turn_rad_s
    )


def _is_free(own: _PosedSweep, beams: Ints, others: list[_PosedSweep], angles: Floats) -> Mask:
    """Return (m,) whether other sweeps saw through the ends of beams (m,), and none had a return there."""
    r, angle = own.ranges[beams], angles[beams]
    points = np.stack([r * np.cos(angle), r * np.sin(angle), 0 * r, np.ones(len(r))])
    beyond, taken = np.zeros(len(beams), np.int64), np.zeros(len(beams), np.bool_)
    step, count = float(angles[1] - angles[0]), len(angles)
    for other in others:
        x, y, z = (se3.invert(other.T) @ own.T @ points)[:3]
        distance, index = np.hypot(x, y), np.rint((np.arctan2(y, x) - angles[0]) / step).astype(np.int64)
        is_observed = (
            (index >= SETTINGS.same_position_directions)
            & (index < count - SETTINGS.same_position_directions)
            & (np.abs(z) < SETTINGS.max_height_m + SETTINGS.max_height_ratio * distance)
        )
        index = np.where(is_observed, index, SETTINGS.same_position_directions)
        near = np.stack(
            [
                other.ranges[index + offset]
                for offset in range(-SETTINGS.same_position_directions, SETTINGS.same_position_directions + 1)
            ]
        )
        first = SETTINGS.same_position_directions - SETTINGS.beyond_directions
        last = SETTINGS.same_position_directions + SETTINGS.beyond_directions
        beyond += is_observed & (near[first : last + 1].min(axis=0) > distance + SETTINGS.beyond_m)
        taken |= is_observed & (np.abs(near - distance).min(axis=0) < SETTINGS.same_position_m)
    return (beyond >= SETTINGS.min_free_sweeps) & ~taken
