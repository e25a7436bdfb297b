"""Scans of a window laid side by side, what a laser usually sees, and returns that come too early.

Checks of planar lasers share it: dust, rain and objects are all returns in front of what is usually there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.geometry.robust import NORMAL
from transect.types import LaserScan, returns

from .model import Check, Finding, Unknown
from .motion import Moving, is_moving
from .windows import Window

REMEMBERED, LEAST = 30, 3
"""Clear windows that tell what is usual: at most, and at least before anything is said."""
LOW = 20.0
"""Percentile of the windows' low ranges that counts as usual: leaves that move in the wind are not early."""
MARGIN, SIGMAS = 0.5, 5.0
"""Metres, and deviations, by which a return must be nearer than usual to be early."""
CLEAR = 0.004
"""Part of the beams that may be early in a window that still tells what is usual."""
DROPS, THICK = 0.5, 0.03
"""Part of the early returns that are alone in rain, at least; part of the beams that are early, less than."""
MOVED = 0.05
"""Part of the directions that see farther than ever, from which on the laser or the scene has moved."""
BESIDE = 2
"""Directions to each side that are neighbours."""
NEAR_M, APART_M = 0.15, 0.3
"""Metres between neighbours on one surface, and around a drop."""
ROUGH_M = 0.2
"""Metres between neighbours in a cloud, at least."""
SOON_M, SPEED = 0.1, 2.0
"""Metres, and m/s, by which an object may differ from one sweep to the next."""


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


@dataclass(frozen=True, eq=False)
class Early:
    """Returns of a window that are nearer than what is usually there.

    Attributes
    ----------
    sweeps : Sweeps
    which : (s, d) bool array
    usual : (d,) array
        m; infinite where usually nothing comes back.
    """

    sweeps: Sweeps
    which: Mask
    usual: Floats

    @cached_property
    def share(self) -> float:
        """Part of all beams that are early."""
        return self.sweeps.share(self.which)

    @cached_property
    def beside(self) -> Ints:
        """(s, d) how many early neighbours in the same sweep are at nearly the same range."""
        return self._count(0, NEAR_M)

    @cached_property
    def before_and_after(self) -> Ints:
        """(s, d) the same for the sweeps before and after."""
        return self._count(-1, self._slack) + self._count(1, self._slack)

    @cached_property
    def solid(self) -> Mask:
        """(s, d) early returns from surfaces: neighbours in space and in time agree."""
        return self.which & (self.beside >= BESIDE) & (self.before_and_after >= BESIDE)

    @cached_property
    def isolated(self) -> Mask:
        """(s, d) early returns with no other around them, as from drops of rain."""
        around = sum((self._count(later, APART_M) for later in (-1, 0, 1)), np.zeros(self.which.shape, int))
        return self.which & (around == 0)

    @property
    def is_rain(self) -> bool:
        """Whether most early returns are alone, and they are few."""
        return self.sweeps.share(self.isolated) >= DROPS * self.share and self.share < THICK

    @cached_property
    def scattered(self) -> Mask:
        """(s, d) early returns that are from no surface."""
        return self.which & ~self.solid

    @cached_property
    def roughness(self) -> tuple[float, float]:
        """Median difference of scattered returns from early ones beside, and from the sweep before, m."""
        r = np.where(self.which, self.sweeps.ranges, np.nan)
        medians: list[float] = []
        for axis in (1, 0):
            either = self.scattered | np.roll(self.scattered, -1, axis)
            differences = np.abs(np.diff(r, axis=axis))[either[:, :-1] if axis else either[:-1]]
            known = differences[np.isfinite(differences)]
            medians.append(float(np.median(known)) if known.size else np.nan)
        return medians[0], medians[1]

    @property
    def is_rough(self) -> bool:
        """Whether scattered returns are as those of a cloud: legs of people scatter less."""
        beside, since = self.roughness
        smooth = beside < ROUGH_M and not since >= self._slack
        return not smooth

    @property
    def _slack(self) -> float:
        """Metres by which an object may differ from one sweep to the next."""
        return SOON_M + SPEED * self.sweeps.period_s

    def _count(self, later: int, within: float) -> Ints:
        """Return how many early neighbours (s, d) in a sweep later are within so many metres."""
        r = np.where(self.which, self.sweeps.ranges, np.nan)
        sweeps, directions = r.shape
        padded = np.full((sweeps + 2, directions + 2 * BESIDE), np.nan)
        padded[1:-1, BESIDE:-BESIDE] = r
        count = np.zeros(r.shape, dtype=np.int64)
        for aside in range(-BESIDE, BESIDE + 1):
            if later or aside:
                other = padded[1 + later : 1 + later + sweeps, BESIDE + aside : BESIDE + aside + directions]
                count += np.abs(other - r) < within
        return count


class Background:
    """What a laser that stands still usually sees in each direction, and what comes too early.

    Low ranges of clear windows are remembered. Dust and objects come nearer, never farther: where many
    directions see farther than before, the laser has moved, or it began in a cloud, and all is learned anew.
    """

    def __init__(self) -> None:
        self._layout = Layout()
        self._low: deque[Floats] = deque(maxlen=REMEMBERED)
        self._high: deque[Floats] = deque(maxlen=REMEMBERED)

    def forget(self) -> None:
        """Learn anew: the laser has moved."""
        self._low.clear()
        self._high.clear()

    def lay_out(self, laser: Window[LaserScan]) -> Sweeps:
        """Return the scans of a window as sweeps."""
        return self._layout.lay_out(laser)

    def compare(self, sweeps: Sweeps) -> Early | None:
        """Return what is early in a window; None while too little is known, or where the laser has moved."""
        low, high = _ends(sweeps)
        if len(self._low) >= LEAST and self._has_moved(low):
            self.forget()
        if len(self._low) < LEAST:
            self._remember(low, high)
            return None
        known = np.array(self._low)
        usual = np.percentile(known, LOW, axis=0, method="lower")
        finite = np.where(np.isfinite(known), known, 0.0)
        scatter = NORMAL * np.median(np.abs(finite - np.median(finite, axis=0)), axis=0)
        padded = np.pad(usual - np.maximum(MARGIN, SIGMAS * scatter), 1, constant_values=np.inf)
        limit = np.minimum(np.minimum(padded[:-2], padded[2:]), padded[1:-1])  # edges of objects are beside
        return Early(sweeps, sweeps.ranges < limit, usual)

    def learn(self, sweeps: Sweeps) -> None:
        """Remember a window that was clear."""
        self._remember(*_ends(sweeps))

    def _remember(self, low: Floats, high: Floats) -> None:
        self._low.append(low)
        self._high.append(high)

    def _has_moved(self, low: Floats) -> bool:
        """Tell whether many directions see nothing that is as near as what was always there."""
        highest = np.array(self._high)
        always = np.isfinite(highest).all(axis=0)
        farther = np.isfinite(low) & (low > highest.max(axis=0) + MARGIN)
        return bool(np.count_nonzero(farther & always) > MOVED * max(np.count_nonzero(always), 1))


def _ends(sweeps: Sweeps) -> tuple[Floats, Floats]:
    """Return the second nearest and the farthest range (d,) by direction, infinite where there is none."""
    r = np.sort(np.where(np.isnan(sweeps.ranges), np.inf, sweeps.ranges), axis=0)
    if not len(r):
        empty = np.full(sweeps.ranges.shape[1], np.inf)
        return empty, empty
    return r[min(1, len(r) - 1)], r[-1]


class BackgroundCheck(Check):
    """A check of what a laser that stands still sees in front of its usual background; it writes `judge`."""

    def reset(self) -> None:
        """Nothing is usual yet."""
        self._background = Background()

    def look(self, laser: Window[LaserScan], moving: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Find early returns and judge them; there is nothing usual while the robot moves."""
        if is_moving(moving):
            self._background.forget()
            return Unknown("MOVING", n=len(laser))
        sweeps = self._background.lay_out(laser)
        early = self._background.compare(sweeps)
        if early is None:
            return Unknown("LEARNING", n=len(laser))
        if early.share <= CLEAR:
            self._background.learn(sweeps)
        return self.judge(early, len(laser))

    def judge(self, early: Early, n: int) -> Finding:
        """Return what the early returns of a window of n scans mean."""
        raise NotImplementedError
