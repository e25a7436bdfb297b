"""Returns of a laser that come too early: from in front of what is usually there."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.geometry.robust import NORMAL

from .returns import depth_spread, find_unstable
from .sweeps import BESIDE, Sweeps, count_alike

REMEMBERED, LEAST = 30, 3
"""Clear windows that tell what is usual: at most, and at least before anything is said."""
LOW = 20.0
"""Percentile of the windows' low ranges that counts as usual: leaves that move in the wind are not early."""
MARGIN, SIGMAS = 0.5, 5.0
"""Metres, and deviations, by which a return must be nearer than usual to be early."""
CLOSE = 0.2
"""Metres by which it must be nearer if other beams go through the place where it is."""
CLEAR = 0.004
"""Part of the beams that may be early in a window that still tells what is usual."""
DROPS, THICK = 0.5, 0.03
"""Part of the early returns that are alone in rain, at least; part of the beams that are early, less than."""
SPARSE = 0.01
"""Part of the beams of a slow laser that moves from which on what scatters is a cloud: so do things that it
passes."""
SECTORS, GATHERED, TELLING = 8, 0.75, 10
"""Parts of the directions; of a cloud's edge two have so many of the returns; returns that tell it."""
MOVED = 0.05
"""Part of the directions that see farther than ever, from which on the laser or the scene has moved."""
APART_M = 0.3
"""Metres around a drop."""
EDGES, MIN_EXCESS_RATIO = 0.5, 0.1
"""Scattered returns that the edges of things explain, over those from their surfaces (legs and door frames
have up to 0.5, a dense smoke 1, dust 3); and least part of the early returns of a cloud beyond that."""
MIN_DIRECTIONS = 5  # In which something scatters at least: one or two are an edge, whatever their part is.
FOLIAGE = 0.5
"""Scattered returns that leaves explain, over the returns that are usually unstable in clear air: hedges that
a car passes have up to 0.4, a cloud 1 to 2."""
ROUGH_M = 0.2
"""Metres between neighbours in a cloud, at least."""
SOON_M, SPEED = 0.1, 2.0
"""Metres, and m/s, by which an object may differ from one sweep to the next."""
MAX_UNSTABLE_RATIO = 0.05
"""Ratio of unstable returns up to which a window of a laser at rest shows the background. In buildings it is
0.3 % (median) to 2 % (90th percentile), before bushes up to 4 %; a cloud that matters has more."""
MAX_UNSTABLE_RATIO_MOVING = 0.1
"""The same of a laser that moves. Errors of its poses make 8 % in the worst hundredth of real drives."""
CLOUD_RATIO, CLOUD_RATIO_MOVING = 0.1, 0.25
"""Ratio of unstable returns from which on they are a cloud though no baseline is known."""
CLOUD_DEPTH_M = 0.5
"""Spread of a cloud's returns along the beam, at least; edges and the outer leaves of trees spread less."""
MAX_MISFIT_RATIO = 0.2
"""Ratio of stable returns nearer than the reference from which on the reference shows another scene."""
FASTEST = 30.0
"""m/s of a vehicle that passes: from sweep to sweep its range changes evenly."""


@dataclass(frozen=True, eq=False)
class Early:
    """Returns of a window that are nearer than what is usually there.

    Attributes
    ----------
    sweeps : Sweeps
    which : (s, d) bool array
    before : (s, d) bool array
        Returns that are nearer than usual, however little; where it moves, where nothing was known to be.
    moving : bool
        The laser moves, so that a direction is another one in the next sweep.
    again : (s, d) bool array or None
        Returns that the sweeps before and after have, too, where it moves.
    lingers : bool
        A cloud is expected: there was one a moment ago, or other lasers of a robot that moves know one.
    peers : tuple of str
        Names of these lasers.
    porous : (s, d) bool array or None
        Returns from places through which other beams go, and that do not stay, if there is a cloud.
    lone : (s, d) bool array or None
        Returns of a slow laser that moves which hang alone where its other sweeps saw nothing.
    has_baseline : bool
        The background is known. Otherwise `which` are returns that are unstable by themselves.
    unstable : (s, d) bool array or None
        All returns that are unstable by themselves, where the laser moves and that was looked at.
    usual_unstable : float
        Part of the beams of which that is so in clear air, where the laser moves; 0 while that is not known.
    """

    sweeps: Sweeps
    which: Mask
    before: Mask
    moving: bool = False
    again: Mask | None = None
    lingers: bool = False
    peers: tuple[str, ...] = ()
    porous: Mask | None = None
    lone: Mask | None = None
    has_baseline: bool = True
    unstable: Mask | None = None
    usual_unstable: float = 0.0

    @cached_property
    def share(self) -> float:
        """Part of all beams that are early."""
        return self.sweeps.share(self.which)

    @cached_property
    def before_and_after(self) -> Ints:
        """(s, d) how many early neighbours in the sweeps before and after are at nearly the same range."""
        return self._count(-1, self._slack) + self._count(1, self._slack)

    @cached_property
    def solid(self) -> Mask:
        """(s, d) early returns from surfaces: neighbours agree in space and, while the laser stands, in time.

        While it moves either is enough: fewer beams meet the same again.
        """
        beside = self.which & self.sweeps.surface
        if self.moving:
            return beside if self.again is None else beside | (self.which & self.again)
        return beside & ((self.before_and_after >= BESIDE) | self._passing)

    @property
    def _passing(self) -> Mask:
        """(s, d) early returns that are halfway between those before and after: of what drives past."""
        r = np.where(self.which, self.sweeps.ranges, np.nan)
        found = np.zeros(r.shape, dtype=bool)
        even = np.abs(r[:-2] + r[2:] - 2 * r[1:-1]) < 2 * SOON_M
        found[1:-1] = even & (np.abs(r[2:] - r[:-2]) < 2 * FASTEST * self.sweeps.period_s)
        found[:-1] |= found[1:] & self.which[:-1]
        found[1:] |= found[:-1] & self.which[1:]
        return found

    @cached_property
    def isolated(self) -> Mask:
        """(s, d) early returns from no surface with no other around them, as from drops of rain."""
        if self.lone is not None:
            return self.lone
        around = sum((self._count(later, APART_M) for later in (-1, 0, 1)), np.zeros(self.which.shape, int))
        return self.scattered & (around == 0)

    @cached_property
    def is_decided(self) -> bool:
        """Whether it is known what the returns are: by a baseline, a cloud before, or their number."""
        ratio = CLOUD_RATIO_MOVING if self.moving else CLOUD_RATIO
        return self.has_baseline or self.lingers or self.share >= ratio

    @property
    def is_rain(self) -> bool:
        """Whether most early returns from no surface are alone, and they are few, and all over the place."""
        scattered = self.sweeps.share(self.scattered)
        alone = self.sweeps.share(self.isolated) >= DROPS * scattered and scattered < THICK
        few = alone if self.lone is None else scattered < SPARSE
        return few and not self.lingers and not self.is_gathered

    @property
    def is_gathered(self) -> bool:
        """Whether most isolated returns are in a few directions, as at the edge of a cloud."""
        direction = np.nonzero(self.isolated)[1]
        sectors = np.bincount(direction * SECTORS // max(self.which.shape[1], 1), minlength=SECTORS)
        return len(direction) >= TELLING and np.sort(sectors)[-2:].sum() >= GATHERED * len(direction)

    @cached_property
    def scattered(self) -> Mask:
        """(s, d) early returns that are from no surface."""
        return self.which & ~self.solid

    @property
    def excess(self) -> float:
        """Part of all beams that are early and scatter, beyond what edges of things and leaves explain."""
        if np.count_nonzero(self.scattered.any(axis=0)) < MIN_DIRECTIONS:
            return 0.0
        explained = max(EDGES * self.sweeps.share(self.solid), FOLIAGE * self.usual_unstable)
        return max(0.0, self.sweeps.share(self.scattered) - explained)

    @cached_property
    def loose(self) -> Mask:
        """(s, d) returns of a laser that moves from places of which nothing is known, and from no surface."""
        rough = self.before & ~self.sweeps.surface
        return rough if self.again is None else rough & ~self.again

    @property
    def is_dense(self) -> bool:
        """Whether there is a cloud, and so much of it that other lasers may be told."""
        return self.is_cloud and not self.is_rain and self.sweeps.share(self.scattered) >= THICK

    @property
    def cloud(self) -> Mask:
        """(s, d) what a map should leave out, if there is a cloud: all but what is smooth and stays."""
        if not self.moving:
            cloud = self.which & ~self.solid
            return cloud if self.porous is None else cloud | self.porous
        stays = self.sweeps.surface if self.again is None else self.sweeps.surface & self.again
        return self.which & ~stays if self.porous is None else self.porous

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
        if not self.moving and since < ROUGH_M:  # whatever it is, it stays where it is
            return False
        smooth = beside < ROUGH_M and (self.moving or not since >= self._slack)
        return not smooth

    @property
    def is_cloud(self) -> bool:
        """Whether early returns scatter as those of a cloud do."""
        least = CLEAR if self.lone is None or self.lingers else SPARSE
        return self.excess > max(least, MIN_EXCESS_RATIO * self.share) and self.is_rough

    @property
    def _slack(self) -> float:
        """Metres by which an object may differ from one sweep to the next."""
        return SOON_M + SPEED * self.sweeps.period_s

    def _count(self, later: int, within: float) -> Ints:
        return count_alike(np.where(self.which, self.sweeps.ranges, np.nan), later, within)


def find_cloud(sweeps: Sweeps, poses: Floats | None = None) -> Early | None:
    """Return what may be a cloud by its unstable returns alone, without a baseline; None if nothing may.

    Parameters
    ----------
    poses : (n, 4, 4) array, optional
        ``T_world_laser`` of the scans; without them the laser stands.
    """
    unstable = find_unstable(sweeps, poses)
    most = MAX_UNSTABLE_RATIO if poses is None else MAX_UNSTABLE_RATIO_MOVING
    if sweeps.share(unstable) <= most or depth_spread(sweeps, unstable) < CLOUD_DEPTH_M:
        return None
    return Early(sweeps, unstable, unstable, moving=poses is not None, has_baseline=False)


class Background:
    """What a laser that stands still usually sees in each direction, and what comes too early.

    Low ranges of clear windows are remembered. Dust and objects come nearer, never farther: where many
    directions see farther than before, the laser has moved, and all is learned anew. A window with many
    unstable returns is not learned: a recording may begin in a cloud.
    """

    def __init__(self) -> None:
        self._from_reference = False
        self._low: deque[Floats] = deque(maxlen=REMEMBERED)
        self._high: deque[Floats] = deque(maxlen=REMEMBERED)

    def forget(self) -> None:
        """Learn anew: the laser has moved."""
        self._from_reference = False
        self._low.clear()
        self._high.clear()

    def compare(self, sweeps: Sweeps) -> Early | None:
        """Return what is early in a window; None while a baseline is being learned.

        Until it is known, a window with many unstable returns is not learned, and these are returned.
        """
        low, high = _ends(sweeps)
        if len(self._low) >= LEAST and self._has_moved(low):
            self.forget()
        if len(self._low) >= LEAST and self._from_reference and self._is_other_scene(sweeps):
            self.forget()
        if len(self._low) < LEAST:
            cloud = find_cloud(sweeps)
            if cloud is None:
                self._remember(low, high)
            return cloud
        limit, usual = self._limits()
        return Early(sweeps, sweeps.ranges < limit, sweeps.ranges < usual - CLOSE)

    def _limits(self) -> tuple[Floats, Floats]:
        """Return the ranges (d,) below which a return is early, and those that are usual."""
        known = np.array(self._low)
        usual = np.percentile(known, LOW, axis=0, method="lower")
        finite = np.where(np.isfinite(known), known, 0.0)
        scatter = NORMAL * np.median(np.abs(finite - np.median(finite, axis=0)), axis=0)
        padded = np.pad(usual - np.maximum(MARGIN, SIGMAS * scatter), 1, constant_values=np.inf)
        return np.minimum(np.minimum(padded[:-2], padded[2:]), padded[1:-1]), usual  # edges are beside

    def learn(self, sweeps: Sweeps) -> None:
        """Remember a window that was clear."""
        self._remember(*_ends(sweeps))

    def learn_reference(self, sweeps: Sweeps) -> None:
        """Remember a window of a recording in clear air, in which the robot stands where it stands now."""
        if find_cloud(sweeps) is None:
            self._from_reference = True
            self.learn(sweeps)

    def _remember(self, low: Floats, high: Floats) -> None:
        self._low.append(low)
        self._high.append(high)

    def _is_other_scene(self, sweeps: Sweeps) -> bool:
        """Tell whether many returns from lasting surfaces are in front of what the reference shows."""
        stable = np.isfinite(sweeps.ranges) & sweeps.surface & ~find_unstable(sweeps)
        misfit = stable & (sweeps.ranges < self._limits()[0])
        return bool(np.count_nonzero(misfit) > MAX_MISFIT_RATIO * max(np.count_nonzero(stable), 1))

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
