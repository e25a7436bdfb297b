"""Scans of a window combined to sweeps over all directions of a laser."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow.compute as pc

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.integrity.model import CheckContext
from transect.integrity.windows import Window
from transect.types import LaserScan, returns


@dataclass(frozen=True)
class SurfaceSettings:
    """Numbers of neighbouring returns from one surface."""

    neighbours: int = 2  # Directions to each side that are neighbours.
    max_range_difference_m: float = 0.15  # Range difference of neighbours on one surface.
    max_line_distance_m: float = 0.1  # Distance of a return from the line between its neighbours.


SETTINGS = SurfaceSettings()


@dataclass(frozen=True, eq=False)
class Sweeps:
    """Scans of a window; interleaved ones, such as a SICK's at a quarter of a degree, make one sweep."""

    ranges: Floats  # (s, d) m by sweep and direction; NaN without a return
    angles: Floats  # (d,) rad
    measured: Mask  # (s, d) directions that were measured at all
    scan: Ints  # (m,) scan in the window of each measured beam, ...
    beam: Ints  # (m,) ... its number in the scan, ...
    sweep: Ints  # (m,) ... and its position in `ranges`
    direction: Ints
    shape: tuple[int, int]  # scans in the window, and the most beams of one
    period_s: float  # time between sweeps

    @cached_property
    def surface(self) -> Mask:
        """(s, d) returns from surfaces: two neighbours at the same range, or neighbours in line with it.

        ``1 / r`` is linear along a wall, at any angle of incidence.
        """
        near = self.ranges[:, 1:-1]
        between = 2 / (1 / self.ranges[:, :-2] + 1 / self.ranges[:, 2:])
        line = np.zeros(self.ranges.shape, dtype=bool)
        line[:, 1:-1] = np.abs(between - near) < SETTINGS.max_line_distance_m
        line[:, :-1] |= line[:, 1:]
        line[:, 1:] |= line[:, :-1]
        return line | (
            count_close_neighbours(self.ranges, 0, SETTINGS.max_range_difference_m) >= SETTINGS.neighbours
        )

    def region(self, mask: Mask) -> Mask:
        """Return the beams (scans, beams) of the window that a mask (s, d) selects."""
        found = np.zeros(self.shape, dtype=bool)
        found[self.scan, self.beam] = mask[self.sweep, self.direction]
        return found

    def ratio(self, mask: Mask) -> float:
        """Return the ratio of the measured beams that a mask (s, d) selects."""
        return float(np.count_nonzero(mask & self.measured)) / max(int(self.measured.sum()), 1)


class ScanLayout:
    """Directions of a laser's beams, learned from its first window."""

    def __init__(self) -> None:
        self._first, self._step, self._count, self._scans = 0.0, 0.0, 0, 1

    def combine(self, laser: Window[LaserScan]) -> Sweeps:
        """Return the scans of a window as sweeps."""
        column = laser.stream.table.column("ranges").slice(laser.start, len(laser))
        lengths = pc.call_function("list_value_length", [column]).to_numpy().astype(np.int64)
        ranges = np.asarray(pc.call_function("list_flatten", [column]).to_numpy(), dtype=np.float64)
        scan = np.repeat(np.arange(len(lengths)), lengths)
        beam = np.arange(len(ranges)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        start, step = laser.column("start_angle"), laser.column("angle_increment")
        if not self._count:
            self._learn(start, step, lengths)
        position = (start[scan] + beam * step[scan] - self._first) / self._step
        direction = np.clip(np.rint(position).astype(np.int64), 0, self._count - 1)
        sweep = scan // self._scans
        shape = (int(sweep[-1]) + 1 if len(sweep) else 0, self._count)
        limits = [laser.column(name)[scan] if laser.has(name) else end
                  for name, end in (("range_min", 0.0), ("range_max", np.inf))]  # fmt: skip
        returned = returns.find_returns(ranges, *limits)
        ranges_of_sweeps, measured = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        ranges_of_sweeps[sweep[returned], direction[returned]] = ranges[returned]
        measured[sweep, direction] = True
        period = self._scans * (int(laser.t_ns[-1] - laser.t_ns[0])) / NS / max(len(laser) - 1, 1)
        shape = (len(lengths), int(lengths.max(initial=0)))
        angles = self._first + self._step * np.arange(self._count, dtype=np.float64)
        return Sweeps(ranges_of_sweeps, angles, measured, scan, beam, sweep, direction, shape, period)

    def _learn(self, start: Floats, step: Floats, lengths: Ints) -> None:
        usual = float(np.median(step))
        starts = np.unique(np.rint(start / usual * 1e3))
        self._scans = len(starts) if np.ptp(starts) < 1e3 else 1
        self._step = usual / self._scans
        ends = start + usual * lengths
        self._first = float(start.min() if usual > 0 else start.max())
        field_of_view = (ends.max() if usual > 0 else ends.min()) - self._first
        self._count = int(np.rint(field_of_view / self._step))


class _SweepCache:
    """A laser's layout, and the sweeps of its newest window."""

    def __init__(self) -> None:
        self.layout = ScanLayout()
        self.newest: tuple[int, Sweeps] | None = None


_CACHE: WeakKeyDictionary[CheckContext, dict[str, _SweepCache]] = WeakKeyDictionary()


def sweeps_of(laser: Window[LaserScan], context: CheckContext) -> Sweeps:
    """Return the scans of a window as sweeps, computed once for all checks of a session."""
    kept = _CACHE.setdefault(context, {}).setdefault(laser.stream.name, _SweepCache())
    if kept.newest is None or kept.newest[0] != laser.t1_ns:
        kept.newest = laser.t1_ns, kept.layout.combine(laser)
    return kept.newest[1]


def count_close_neighbours(r: Floats, later: int, within: float) -> Ints:
    """Return the number (s, d) of neighbours in sweep `later` that are within a range difference, m."""
    sweeps, directions = r.shape
    padded = np.full((sweeps + 2, directions + 2 * SETTINGS.neighbours), np.nan)
    padded[1:-1, SETTINGS.neighbours : -SETTINGS.neighbours] = r
    count = np.zeros(r.shape, dtype=np.int64)
    for aside in range(-SETTINGS.neighbours, SETTINGS.neighbours + 1):
        if later or aside:
            other = padded[
                1 + later : 1 + later + sweeps,
                SETTINGS.neighbours + aside : SETTINGS.neighbours + aside + directions,
            ]
            count += np.abs(other - r) < within
    return count
