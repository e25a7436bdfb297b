"""Returns from places through which other beams go: a cloud is porous, a thing is not.

Of the beams that reach a surface all come back from it, at the same moment and just before and after. Of
those that reach a grain of dust most go on. Beams that come back from before the place tell nothing of it, so
that what is seen through a cloud, now and then, is told from the cloud.

Masks of clouds, grown: what hangs among masked returns is of the cloud, too.

Two grains of dust are near each other by chance, and then look like a surface. A true surface has neighbours
that are not masked: those beside it on the same surface.
"""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.geometry import se3

from .free_space import first_scans, load_kernels
from .sweeps import Sweeps

AROUND_S, BESIDE = 0.27, 1
"""Seconds before and after, and directions to each side, whose beams are asked."""
MIN_RETURNS_PER_DIRECTION = 3
"""Returns of a direction in a window whose spread is measured, at least."""
NEAR_M = 0.1
"""Metres between returns from one place; a beam that went through is longer by twice as much."""


def place_sweeps(sweeps: Sweeps, poses: Floats | None) -> Floats:
    """Return where the laser was (s, 4, 4) as each sweep began, by its poses (n, 4, 4) at all scans.

    Without poses it stands.
    """
    if poses is None:
        return np.tile(np.eye(4), (len(sweeps.ranges), 1, 1))
    return poses[first_scans(sweeps, len(poses))]


def find_porous(sweeps: Sweeps, T: Floats) -> tuple[Mask, Mask]:
    """Return which returns (s, d) are from places that other beams go through, and of which no beam tells.

    ``T_world_laser`` (s, 4, 4) is where the laser was in each sweep. A place is porous if half of the beams
    that reach it go on, at least.
    """
    came = np.isfinite(sweeps.ranges)
    if len(sweeps.angles) < 2:
        return np.zeros_like(came), came
    ranges = np.where(sweeps.asked & ~came, np.inf, sweeps.ranges)
    first, step = float(sweeps.angles[0]), float(sweeps.angles[1] - sweeps.angles[0])
    later = max(1, round(AROUND_S / max(sweeps.period_s, 1e-3)))
    agree, through = load_kernels().count_around(ranges, T, first, step, later, BESIDE, NEAR_M)
    return came & (through > 0) & (through >= agree), came & (agree + through == 0)


def find_again(sweeps: Sweeps, T: Floats) -> Mask:
    """Return which returns (s, d) both the sweep before and that after have, seen from there: T (s, 4, 4)."""
    found = np.ones(sweeps.ranges.shape, dtype=bool)
    for later in (-1, 1):
        other = np.clip(np.arange(len(T)) + later, 0, len(T) - 1)
        seen = _see_from(sweeps, se3.invert(T) @ T[other], other)
        alike = [np.abs(np.roll(seen, aside, axis=1) - sweeps.ranges) < NEAR_M for aside in (-1, 0, 1)]
        found &= np.any(alike, axis=0) | (other == np.arange(len(T)))[:, None]
    return found if len(T) > 1 else np.zeros_like(found)


def find_unstable(sweeps: Sweeps, poses: Floats | None = None) -> Mask:
    """Return which returns (s, d) are from no surface, not repeated by the next sweeps, and seen through.

    It needs no baseline: of a cloud most returns are so. Without poses (n, 4, 4) the laser stands.
    """
    T = place_sweeps(sweeps, poses)
    porous, _ = find_porous(sweeps, T)
    return porous & ~sweeps.surface & ~find_again(sweeps, T)


def depth_spread(sweeps: Sweeps, which: Mask) -> float:
    """Return how far apart returns (s, d) of one direction are: the median of their 10-90 % spreads, m.

    0.0 where no direction has three such returns.
    """
    ranges = np.where(which, sweeps.ranges, np.nan)
    ranges = ranges[:, np.isfinite(ranges).sum(axis=0) >= MIN_RETURNS_PER_DIRECTION]
    if not ranges.size:
        return 0.0
    low, high = np.nanpercentile(ranges, (10.0, 90.0), axis=0)
    return float(np.median(high - low))


def _see_from(sweeps: Sweeps, T: Floats, other: Ints) -> Floats:
    """Return ranges (s, d) of other sweeps (s,) as seen from these, by ``T_this_other`` (s, 4, 4)."""
    ranges = sweeps.ranges[other]
    x, y = ranges * np.cos(sweeps.angles), ranges * np.sin(sweeps.angles)
    moved = [T[:, k, :1] * x + T[:, k, 1:2] * y + T[:, k, 3:] for k in (0, 1)]
    step = float(sweeps.angles[1] - sweeps.angles[0]) if len(sweeps.angles) > 1 else 1.0
    place = np.rint((np.arctan2(moved[1], moved[0]) - sweeps.angles[0]) / step)
    seen = np.full(ranges.shape, np.nan)
    row, column = np.nonzero((place >= 0) & (place < ranges.shape[1]))
    seen[row, place[row, column].astype(np.int64)] = np.hypot(*moved)[row, column]
    return seen


NEIGHBOUR_DIRECTIONS, NEIGHBOUR_SWEEPS = 3, 2
"""Directions to each side, and sweeps before and after, in which neighbours are."""
MAX_NEIGHBOUR_DIFFERENCE_M = 1.0
"""By how much a neighbour's range may differ."""
MIN_MASKED_RATIO, MIN_MASKED_NEIGHBOURS = 0.5, 3
"""Share and number of a return's neighbours that are masked, from which on it is masked."""
GROWTH_PASSES = 2


def grow(mask: Mask, ranges: Floats) -> Mask:
    """Return a mask (s, d) with the returns most of whose neighbours are masked.

    Parameters
    ----------
    mask : (s, d) bool array
        By sweep and direction.
    ranges : (s, d) array
        m; NaN where nothing came back.
    """
    grown = mask.copy()
    if not mask.any():
        return grown
    sweeps, directions = ranges.shape
    around = ((NEIGHBOUR_SWEEPS, NEIGHBOUR_SWEEPS), (NEIGHBOUR_DIRECTIONS, NEIGHBOUR_DIRECTIONS))
    far = np.pad(ranges, around, constant_values=np.nan)
    beside = [
        (slice(i, i + sweeps), slice(j, j + directions))
        for i in range(2 * NEIGHBOUR_SWEEPS + 1)
        for j in range(2 * NEIGHBOUR_DIRECTIONS + 1)
        if (i, j) != (NEIGHBOUR_SWEEPS, NEIGHBOUR_DIRECTIONS)
    ]
    near = [np.abs(far[place] - ranges) < MAX_NEIGHBOUR_DIFFERENCE_M for place in beside]
    count = sum(each.astype(np.int8) for each in near)
    for _ in range(GROWTH_PASSES):
        dropped = np.pad(grown, around)
        hits = sum((each & dropped[place]).astype(np.int8) for each, place in zip(near, beside, strict=True))
        grown |= (hits >= MIN_MASKED_RATIO * count) & (hits >= MIN_MASKED_NEIGHBOURS)
    return grown
