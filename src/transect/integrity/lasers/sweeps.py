"""Scans of a window laid side by side, as sweeps over the directions in which a laser looks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow.compute as pc

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.integrity.model import Surroundings
from transect.integrity.windows import Window
from transect.types import LaserScan, returns

BESIDE = 2
"""Directions to each side that are neighbours."""
NEAR_M, IN_LINE_M = 0.15, 0.1
"""Metres between neighbours on one surface; and off the line between those beside it."""


@dataclass(frozen=True, eq=False)
class Sweeps:
    """The scans of a window; interleaved ones, such as a SICK's at a quarter of a degree, make one sweep.

    Attributes
    ----------
    ranges : (s, d) array
        By sweep and direction, m; NaN where nothing came back.
    angles : (d,) array
        Of the directions, rad.
    asked : (s, d) bool array
        Which directions were measured at all.
    scan, beam : (m,) int arrays
        Where each measured beam stands in the window.
    sweep, direction : (m,) int arrays
        Where it stands here.
    shape : tuple of int
        Scans in the window, and most beams of one.
    period_s : float
        From one sweep to the next.
    """

    ranges: Floats
    angles: Floats
    asked: Mask
    scan: Ints
    beam: Ints
    sweep: Ints
    direction: Ints
    shape: tuple[int, int]
    period_s: float

    @cached_property
    def surface(self) -> Mask:
        """(s, d) returns from surfaces: two neighbours are as far, or those beside it are in line with it.

        ``1 / r`` is linear along a wall, however oblique it is.
        """
        near = self.ranges[:, 1:-1]
        between = 2 / (1 / self.ranges[:, :-2] + 1 / self.ranges[:, 2:])
        line = np.zeros(self.ranges.shape, dtype=bool)
        line[:, 1:-1] = np.abs(between - near) < IN_LINE_M
        line[:, :-1] |= line[:, 1:]
        line[:, 1:] |= line[:, :-1]
        return line | (count_alike(self.ranges, 0, NEAR_M) >= BESIDE)

    def region(self, which: Mask) -> Mask:
        """Return which beams (scans, beams) of the window are meant by a mask (s, d)."""
        found = np.zeros(self.shape, dtype=bool)
        found[self.scan, self.beam] = which[self.sweep, self.direction]
        return found

    def share(self, which: Mask) -> float:
        """Return which part of the beams a mask (s, d) has."""
        return float(np.count_nonzero(which & self.asked)) / max(int(self.asked.sum()), 1)


class Layout:
    """The directions in which a laser looks, learned from its first window."""

    def __init__(self) -> None:
        self._first, self._step, self._count, self._scans = 0.0, 0.0, 0, 1

    def lay_out(self, laser: Window[LaserScan]) -> Sweeps:
        """Return the scans of a window as sweeps."""
        column = laser.stream.table.column("ranges").slice(laser.start, len(laser))
        lengths = pc.call_function("list_value_length", [column]).to_numpy().astype(np.int64)
        ranges = np.asarray(pc.call_function("list_flatten", [column]).to_numpy(), dtype=np.float64)
        scan = np.repeat(np.arange(len(lengths)), lengths)
        beam = np.arange(len(ranges)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        start, step = laser.column("start_angle"), laser.column("angle_increment")
        if not self._count:
            self._learn(start, step, lengths)
        place = (start[scan] + beam * step[scan] - self._first) / self._step
        direction = np.clip(np.rint(place).astype(np.int64), 0, self._count - 1)
        sweep = scan // self._scans
        shape = (int(sweep[-1]) + 1 if len(sweep) else 0, self._count)
        limits = [laser.column(name)[scan] if laser.has(name) else end
                  for name, end in (("range_min", 0.0), ("range_max", np.inf))]  # fmt: skip
        came = returns.find_returns(ranges, *limits)
        laid, asked = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        laid[sweep[came], direction[came]] = ranges[came]
        asked[sweep, direction] = True
        period = self._scans * (int(laser.t_ns[-1] - laser.t_ns[0])) / NS / max(len(laser) - 1, 1)
        shape = (len(lengths), int(lengths.max(initial=0)))
        angles = self._first + self._step * np.arange(self._count, dtype=np.float64)
        return Sweeps(laid, angles, asked, scan, beam, sweep, direction, shape, period)

    def _learn(self, start: Floats, step: Floats, lengths: Ints) -> None:
        usual = float(np.median(step))
        starts = np.unique(np.rint(start / usual * 1e3))
        self._scans = len(starts) if np.ptp(starts) < 1e3 else 1
        self._step = usual / self._scans
        ends = start + usual * lengths
        self._first = float(start.min() if usual > 0 else start.max())
        reach = (ends.max() if usual > 0 else ends.min()) - self._first
        self._count = int(np.rint(reach / self._step))


class _Kept:
    """A laser's layout, and its newest window laid out, for all checks that ask for it."""

    def __init__(self) -> None:
        self.layout = Layout()
        self.newest: tuple[int, Sweeps] | None = None


_KEPT: WeakKeyDictionary[Surroundings, dict[str, _Kept]] = WeakKeyDictionary()


def sweeps_of(laser: Window[LaserScan], about: Surroundings) -> Sweeps:
    """Return the scans of a window as sweeps; they are laid out once for all checks of a session."""
    kept = _KEPT.setdefault(about, {}).setdefault(laser.stream.name, _Kept())
    if kept.newest is None or kept.newest[0] != laser.t1_ns:
        kept.newest = laser.t1_ns, kept.layout.lay_out(laser)
    return kept.newest[1]


def count_alike(r: Floats, later: int, within: float) -> Ints:
    """Return how many neighbours (s, d) of ranges (s, d), in a sweep later, are within so many metres."""
    sweeps, directions = r.shape
    padded = np.full((sweeps + 2, directions + 2 * BESIDE), np.nan)
    padded[1:-1, BESIDE:-BESIDE] = r
    count = np.zeros(r.shape, dtype=np.int64)
    for aside in range(-BESIDE, BESIDE + 1):
        if later or aside:
            other = padded[1 + later : 1 + later + sweeps, BESIDE + aside : BESIDE + aside + directions]
            count += np.abs(other - r) < within
    return count
