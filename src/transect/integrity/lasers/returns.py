"""Classification of laser returns by other beams: porous, repeated and unstable returns.

All beams that reach a surface return from it, at the same moment and just before and after. Most beams that
reach a dust particle go beyond. Beams that end in front of a position do not observe it, so that a surface
that is visible through a cloud at times is distinguished from the cloud.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.geometry import se3

from .free_space import first_scans, load_kernels
from .sweeps import Sweeps


@dataclass(frozen=True)
class ReturnSettings:
    """Numbers of the comparison with other beams, and of the growth of masks."""

    max_time_difference_s: float = 0.27  # Sweeps before and after that are compared, and ...
    neighbours: int = 1  # ... directions to each side.
    min_returns_per_direction: int = 3  # Returns of a direction whose spread is measured.
    # Distance of returns from the same position; a beam that goes beyond is longer by twice as much.
    same_position_m: float = 0.1
    growth_directions: int = 3  # Neighbours of a masked return: directions to each side, ...
    growth_sweeps: int = 2  # ... sweeps before and after, ...
    growth_range_m: float = 1.0  # ... and range difference.
    min_masked_ratio: float = 0.5  # Ratio and ...
    min_masked_neighbours: int = 3  # ... number of masked neighbours of a return that becomes masked.
    growth_passes: int = 2


SETTINGS = ReturnSettings()


def sweep_poses(sweeps: Sweeps, poses: Floats | None) -> Floats:
    """Return the laser's pose (s, 4, 4) at the start of each sweep, by its poses (n, 4, 4) at all scans.

    Without poses the laser stands.
    """
    if poses is None:
        return np.tile(np.eye(4), (len(sweeps.ranges), 1, 1))
    return poses[first_scans(sweeps, len(poses))]


def find_porous(sweeps: Sweeps, T: Floats) -> tuple[Mask, Mask]:
    """Return which returns (s, d) are from porous positions, and which no other beam observes.

    A position is porous if at least half of the beams that reach it go beyond. ``T_world_laser`` (s, 4, 4)
    is the pose of each sweep.
    """
    returned = np.isfinite(sweeps.ranges)
    if len(sweeps.angles) < 2:
        return np.zeros_like(returned), returned
    ranges = np.where(sweeps.measured & ~returned, np.inf, sweeps.ranges)
    first, step = float(sweeps.angles[0]), float(sweeps.angles[1] - sweeps.angles[0])
    later = max(1, round(SETTINGS.max_time_difference_s / max(sweeps.period_s, 1e-3)))
    agree, through = load_kernels().count_agreeing_beams(
        ranges, T, first, step, later, SETTINGS.neighbours, SETTINGS.same_position_m
    )
    return returned & (through > 0) & (through >= agree), returned & (agree + through == 0)


def find_repeated(sweeps: Sweeps, T: Floats) -> Mask:
    """Return which returns (s, d) the sweeps before and after have as well, by poses T (s, 4, 4)."""
    found = np.ones(sweeps.ranges.shape, dtype=bool)
    for later in (-1, 1):
        other = np.clip(np.arange(len(T)) + later, 0, len(T) - 1)
        seen_ranges = _see_from(sweeps, se3.invert(T) @ T[other], other)
        agrees = [
            np.abs(np.roll(seen_ranges, aside, axis=1) - sweeps.ranges) < SETTINGS.same_position_m
            for aside in (-1, 0, 1)
        ]
        found &= np.any(agrees, axis=0) | (other == np.arange(len(T)))[:, None]
    return found if len(T) > 1 else np.zeros_like(found)


def find_unstable(sweeps: Sweeps, poses: Floats | None = None) -> Mask:
    """Return which returns (s, d) are not from a surface, not repeated, and crossed by other beams.

    This needs no baseline: most returns of a cloud are unstable. Without poses (n, 4, 4) the laser stands.
    """
    T = sweep_poses(sweeps, poses)
    porous, _ = find_porous(sweeps, T)
    return porous & ~sweeps.surface & ~find_repeated(sweeps, T)


def depth_spread(sweeps: Sweeps, which: Mask) -> float:
    """Return the median over directions of the 10-90 % range spread of returns (s, d), m.

    0.0 if no direction has enough returns.
    """
    ranges = np.where(which, sweeps.ranges, np.nan)
    ranges = ranges[:, np.isfinite(ranges).sum(axis=0) >= SETTINGS.min_returns_per_direction]
    if not ranges.size:
        return 0.0
    low, high = np.nanpercentile(ranges, (10.0, 90.0), axis=0)
    return float(np.median(high - low))


def _see_from(sweeps: Sweeps, T: Floats, other: Ints) -> Floats:
    """Return the ranges (s, d) of other sweeps (s,) as seen from these, by ``T_this_other`` (s, 4, 4)."""
    ranges = sweeps.ranges[other]
    x, y = ranges * np.cos(sweeps.angles), ranges * np.sin(sweeps.angles)
    moved = [T[:, k, :1] * x + T[:, k, 1:2] * y + T[:, k, 3:] for k in (0, 1)]
    step = float(sweeps.angles[1] - sweeps.angles[0]) if len(sweeps.angles) > 1 else 1.0
    index = np.rint((np.arctan2(moved[1], moved[0]) - sweeps.angles[0]) / step)
    seen_ranges = np.full(ranges.shape, np.nan)
    row, column = np.nonzero((index >= 0) & (index < ranges.shape[1]))
    seen_ranges[row, index[row, column].astype(np.int64)] = np.hypot(*moved)[row, column]
    return seen_ranges


def grow_mask(mask: Mask, ranges: Floats) -> Mask:
    """Return a mask (s, d) grown by the returns most of whose neighbours are masked.

    Two dust particles may be close by chance and look like a surface; a true surface has neighbours on the
    same surface that are not masked. `ranges` (s, d) are in m, NaN without a return.
    """
    grown = mask.copy()
    if not mask.any():
        return grown
    sweeps, directions = ranges.shape
    around = (
        (SETTINGS.growth_sweeps, SETTINGS.growth_sweeps),
        (SETTINGS.growth_directions, SETTINGS.growth_directions),
    )
    padded = np.pad(ranges, around, constant_values=np.nan)
    neighbours = [
        (slice(i, i + sweeps), slice(j, j + directions))
        for i in range(2 * SETTINGS.growth_sweeps + 1)
        for j in range(2 * SETTINGS.growth_directions + 1)
        if (i, j) != (SETTINGS.growth_sweeps, SETTINGS.growth_directions)
    ]
    is_near = [np.abs(padded[neighbour] - ranges) < SETTINGS.growth_range_m for neighbour in neighbours]
    count = sum(each.astype(np.int8) for each in is_near)
    for _ in range(SETTINGS.growth_passes):
        dropped = np.pad(grown, around)
        hits = sum(
            (each & dropped[neighbour]).astype(np.int8)
            for each, neighbour in zip(is_near, neighbours, strict=True)
        )
        grown |= (hits >= SETTINGS.min_masked_ratio * count) & (hits >= SETTINGS.min_masked_neighbours)
    return grown
