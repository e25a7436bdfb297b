"""What the sweeps before and after saw of a place: for slow lasers of robots that move.

Few beams of a slow laser go through a cell of space, and in a room something is beside every cell. So its
sweeps are held against each other directly: each tells, in the direction of a place, whether it saw beyond.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.geometry import se3

from .sweeps import Sweeps

SLOW_S = 0.1
"""Seconds from one sweep to the next, from which on a laser is slow."""
KEPT, WITHIN = 10, 5
"""Sweeps before a window, and beside one within it, that are asked."""
BEYOND_M, SAME_M = 0.3, 0.3
"""Metres by which a sweep saw beyond a place that was free; and from a return for it to be of that place."""
AROUND, WIDER = 2, 3
"""Directions to each side that must all be beyond; and in which a return may be that of a place."""
FREE = 2
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
    return (beyond >= FREE) & ~taken
