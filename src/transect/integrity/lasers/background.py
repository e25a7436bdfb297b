"""Early returns of a laser, which are nearer than its range background, and their classification.

Dust, rain and objects all cause early returns; they differ in how the returns scatter.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.geometry.robust import SIGMA_PER_MAD

from .returns import depth_spread, find_unstable
from .sweeps import SETTINGS as SWEEPS
from .sweeps import Sweeps, count_close_neighbours


@dataclass(frozen=True)
class BackgroundSettings:
    """Numbers of the background and of the classification of early returns; ratios are of all beams."""

    max_clear_windows: int = 30  # Maximum number of clear windows of the background.
    min_clear_windows: int = 3  # Minimum number of clear windows of the background.
    # Percentile of the windows' minimum ranges, so that moving leaves do not count as early returns.
    background_percentile: float = 20.0
    margin_m: float = 0.5  # Minimum distance of an early return in front of the background.
    margin_sigmas: float = 5.0  # The same in sigmas of the background; the larger one applies.
    porous_margin_m: float = 0.2  # The margin if other beams cross the position.
    max_clear_ratio: float = 0.004  # Maximum early returns of a window that updates the background.
    min_isolated_ratio: float = 0.5  # Rain: minimum ratio of isolated returns among the scattered ones.
    min_dense_ratio: float = 0.03  # Minimum scattered returns of a dense cloud; rain has fewer.
    # Minimum scattered returns of a cloud for a moving laser with low scan rate; passing objects scatter too.
    min_cloud_ratio_slow: float = 0.01
    sectors: int = 8  # Number of sectors in which isolated returns are counted to find the edge of a cloud.
    min_clustered_ratio: float = 0.75  # Edge of a cloud: minimum ratio of isolated returns in two sectors.
    min_clustered_returns: int = 10  # Edge of a cloud: minimum number of isolated returns.
    # Above this ratio of directions with larger ranges than ever, the laser or the scene has moved.
    max_farther_ratio: float = 0.05
    isolation_m: float = 0.3  # Distance to the neighbours of an isolated return.
    # Scattered returns that edges cause, relative to the returns from their surfaces: up to 0.5 for legs and
    # door frames; a dense smoke has 1, dust 3.
    edge_ratio: float = 0.5
    min_excess_ratio: float = 0.1  # Cloud: minimum ratio of early returns not explained by edges or leaves.
    min_directions: int = 5  # Minimum directions with scattered returns: one or two are an edge.
    # Scattered returns that leaves cause, relative to the usual unstable returns: hedges that a car passes
    # have up to 0.4, a cloud 1 to 2.
    foliage_ratio: float = 0.5
    min_roughness_m: float = 0.2  # Minimum range difference of neighbours in a cloud.
    object_slack_m: float = 0.1  # Range noise of an object between sweeps.
    object_speed_m_s: float = 2.0  # Maximum speed of an object.
    # Maximum ratio of unstable returns in clear air, at rest: in buildings 0.3 % (median) to 2 %
    # (90th percentile), up to 4 % in front of bushes.
    max_unstable_ratio: float = 0.05
    # The same of a moving laser; pose errors cause 8 % (99th percentile of real drives).
    max_unstable_ratio_moving: float = 0.1
    cloud_ratio: float = 0.1  # Minimum unstable returns of a cloud without a background, at rest.
    cloud_ratio_moving: float = 0.25  # The same of a moving laser.
    # Minimum range spread of a cloud; edges and the outer leaves of trees spread less.
    min_cloud_depth_m: float = 0.5
    # Above this ratio of stable returns in front of the reference, it shows another scene.
    max_misfit_ratio: float = 0.2
    max_vehicle_speed_m_s: float = 30.0  # Maximum speed of a passing vehicle, which moves uniformly.


SETTINGS = BackgroundSettings()


@dataclass(frozen=True, eq=False)
class EarlyReturnMask:
    """Returns of a window that are nearer than the background; masks are (sweeps, directions)."""

    sweeps: Sweeps
    mask: Mask  # early returns
    in_front: Mask  # returns nearer than usual by any margin; if moving, from cells not known to be occupied
    moving: bool = False  # the laser moves, so that directions of successive sweeps differ
    repeated: Mask | None = None  # returns that the neighbouring sweeps have as well, if moving
    cloud_expected: bool = False  # there was a cloud a moment ago, or other lasers of a moving robot see one
    peers: tuple[str, ...] = ()  # names of these lasers
    porous: Mask | None = None  # in a cloud: returns from porous positions that do not persist
    isolated_in_free_space: Mask | None = None  # low scan rate, moving: returns that other sweeps saw through
    has_background: bool = True  # otherwise `mask` contains the unstable returns
    unstable: Mask | None = None  # unstable returns, if moving and computed
    usual_unstable_ratio: float = 0.0  # of the beams in clear air, if moving; 0 while unknown

    @cached_property
    def ratio(self) -> float:
        """Ratio of all beams that are early."""
        return self.sweeps.ratio(self.mask)

    @cached_property
    def neighbours_in_time(self) -> Ints:
        """(sweeps, directions) number of early neighbours in adjacent sweeps at nearly the same range."""
        return self._count(-1, self._object_step_m) + self._count(1, self._object_step_m)

    @cached_property
    def solid(self) -> Mask:
        """(sweeps, directions) early returns from surfaces: neighbours agree in space and, at rest, in time.

        While the laser moves either is enough, as fewer beams meet the same surface again.
        """
        on_surface = self.mask & self.sweeps.surface
        if self.moving:
            return on_surface if self.repeated is None else on_surface | (self.mask & self.repeated)
        return on_surface & ((self.neighbours_in_time >= SWEEPS.neighbours) | self._passing_objects)

    @property
    def _passing_objects(self) -> Mask:
        """(sweeps, directions) early returns halfway between those before and after: of a passing vehicle."""
        r = np.where(self.mask, self.sweeps.ranges, np.nan)
        found = np.zeros(r.shape, dtype=bool)
        is_uniform_motion = np.abs(r[:-2] + r[2:] - 2 * r[1:-1]) < 2 * SETTINGS.object_slack_m
        found[1:-1] = is_uniform_motion & (
            np.abs(r[2:] - r[:-2]) < 2 * SETTINGS.max_vehicle_speed_m_s * self.sweeps.period_s
        )
        found[:-1] |= found[1:] & self.mask[:-1]
        found[1:] |= found[:-1] & self.mask[1:]
        return found

    @cached_property
    def isolated(self) -> Mask:
        """(sweeps, directions) early returns from no surface without another around them, such as drops."""
        if self.isolated_in_free_space is not None:
            return self.isolated_in_free_space
        around = sum(
            (self._count(sweep_offset, SETTINGS.isolation_m) for sweep_offset in (-1, 0, 1)),
            np.zeros(self.mask.shape, int),
        )
        return self.scattered & (around == 0)

    @cached_property
    def is_conclusive(self) -> bool:
        """Whether the returns can be classified: by a background, a previous cloud, or their number."""
        ratio = SETTINGS.cloud_ratio_moving if self.moving else SETTINGS.cloud_ratio
        return self.has_background or self.cloud_expected or self.ratio >= ratio

    @property
    def is_rain(self) -> bool:
        """Whether scattered returns are mostly isolated, few, and in all directions."""
        scattered = self.sweeps.ratio(self.scattered)
        mostly_isolated = (
            self.sweeps.ratio(self.isolated) >= SETTINGS.min_isolated_ratio * scattered
            and scattered < SETTINGS.min_dense_ratio
        )
        is_sparse = (
            mostly_isolated
            if self.isolated_in_free_space is None
            else scattered < SETTINGS.min_cloud_ratio_slow
        )
        return is_sparse and not self.cloud_expected and not self.is_clustered

    @property
    def is_clustered(self) -> bool:
        """Whether most isolated returns are in a few directions, as at the edge of a cloud."""
        direction = np.nonzero(self.isolated)[1]
        sectors = np.bincount(
            direction * SETTINGS.sectors // max(self.mask.shape[1], 1), minlength=SETTINGS.sectors
        )
        return len(direction) >= SETTINGS.min_clustered_returns and np.sort(sectors)[
            -2:
        ].sum() >= SETTINGS.min_clustered_ratio * len(direction)

    @cached_property
    def scattered(self) -> Mask:
        """(sweeps, directions) early returns from no surface."""
        return self.mask & ~self.solid

    @property
    def excess(self) -> float:
        """Ratio of beams with scattered early returns beyond those of edges and leaves."""
        if np.count_nonzero(self.scattered.any(axis=0)) < SETTINGS.min_directions:
            return 0.0
        explained = max(
            SETTINGS.edge_ratio * self.sweeps.ratio(self.solid),
            SETTINGS.foliage_ratio * self.usual_unstable_ratio,
        )
        return max(0.0, self.sweeps.ratio(self.scattered) - explained)

    @cached_property
    def unexplained(self) -> Mask:
        """(sweeps, directions) returns of a moving laser from unobserved cells and from no surface."""
        rough = self.in_front & ~self.sweeps.surface
        return rough if self.repeated is None else rough & ~self.repeated

    @property
    def is_dense(self) -> bool:
        """Whether there is a cloud that is dense enough to be reported to other lasers."""
        return (
            self.is_cloud
            and not self.is_rain
            and self.sweeps.ratio(self.scattered) >= SETTINGS.min_dense_ratio
        )

    @property
    def cloud(self) -> Mask:
        """(sweeps, directions) returns that a map should omit in a cloud: all but smooth, persistent ones."""
        if not self.moving:
            cloud = self.mask & ~self.solid
            return cloud if self.porous is None else cloud | self.porous
        persistent = self.sweeps.surface if self.repeated is None else self.sweeps.surface & self.repeated
        return self.mask & ~persistent if self.porous is None else self.porous

    @cached_property
    def roughness(self) -> tuple[float, float]:
        """Median range difference of scattered returns to neighbours, and to the previous sweep, m."""
        r = np.where(self.mask, self.sweeps.ranges, np.nan)
        medians: list[float] = []
        for axis in (1, 0):
            either = self.scattered | np.roll(self.scattered, -1, axis)
            differences = np.abs(np.diff(r, axis=axis))[either[:, :-1] if axis else either[:-1]]
            known = differences[np.isfinite(differences)]
            medians.append(float(np.median(known)) if known.size else np.nan)
        return medians[0], medians[1]

    @property
    def is_rough(self) -> bool:
        """Whether scattered returns differ as much as those of a cloud: legs of people scatter less."""
        neighbour_difference, sweep_difference = self.roughness
        if not self.moving and sweep_difference < SETTINGS.min_roughness_m:
            return False  # range constant between sweeps: an object at rest
        smooth = neighbour_difference < SETTINGS.min_roughness_m and (
            self.moving or not sweep_difference >= self._object_step_m
        )
        return not smooth

    @property
    def is_cloud(self) -> bool:
        """Whether early returns scatter as those of a cloud do."""
        min_ratio = (
            SETTINGS.max_clear_ratio
            if self.isolated_in_free_space is None or self.cloud_expected
            else SETTINGS.min_cloud_ratio_slow
        )
        return self.excess > max(min_ratio, SETTINGS.min_excess_ratio * self.ratio) and self.is_rough

    @property
    def _object_step_m(self) -> float:
        """Range change of an object from one sweep to the next, m."""
        return SETTINGS.object_slack_m + SETTINGS.object_speed_m_s * self.sweeps.period_s

    def _count(self, sweep_offset: int, max_difference_m: float) -> Ints:
        return count_close_neighbours(
            np.where(self.mask, self.sweeps.ranges, np.nan), sweep_offset, max_difference_m
        )


def find_cloud(sweeps: Sweeps, poses: Floats | None = None) -> EarlyReturnMask | None:
    """Return a possible cloud by its unstable returns, without a background; None without one.

    `poses` (n, 4, 4) are ``T_world_laser`` of the scans; without them the laser is at rest.
    """
    unstable = find_unstable(sweeps, poses)
    max_ratio = SETTINGS.max_unstable_ratio if poses is None else SETTINGS.max_unstable_ratio_moving
    if sweeps.ratio(unstable) <= max_ratio or depth_spread(sweeps, unstable) < SETTINGS.min_cloud_depth_m:
        return None
    return EarlyReturnMask(sweeps, unstable, unstable, moving=poses is not None, has_background=False)


class RangeBackground:
    """Usual ranges of a laser at rest in each direction.

    It consists of the minimum ranges of clear windows. Dust and objects reduce ranges, never increase
    them: if many directions see farther than before, the laser has moved, and the background is rebuilt. A
    window with many unstable returns is skipped, as a recording may begin in a cloud.
    """

    def __init__(self) -> None:
        self._from_reference = False
        self._low: deque[Floats] = deque(maxlen=SETTINGS.max_clear_windows)
        self._high: deque[Floats] = deque(maxlen=SETTINGS.max_clear_windows)

    def forget(self) -> None:
        """Restart after a motion of the laser."""
        self._from_reference = False
        self._low.clear()
        self._high.clear()

    def compare(self, sweeps: Sweeps) -> EarlyReturnMask | None:
        """Return the early returns of a window; None while the background is being learned.

        While learning, a window with many unstable returns is skipped and they are returned as early.
        """
        low, high = _range_extremes(sweeps)
        if len(self._low) >= SETTINGS.min_clear_windows and self._has_moved(low):
            self.forget()
        if (
            len(self._low) >= SETTINGS.min_clear_windows
            and self._from_reference
            and self._is_of_another_scene(sweeps)
        ):
            self.forget()
        if len(self._low) < SETTINGS.min_clear_windows:
            cloud = find_cloud(sweeps)
            if cloud is None:
                self._remember(low, high)
            return cloud
        limit, usual = self._limits()
        return EarlyReturnMask(
            sweeps, sweeps.ranges < limit, sweeps.ranges < usual - SETTINGS.porous_margin_m
        )

    def _limits(self) -> tuple[Floats, Floats]:
        """Return the ranges (d,) below which a return is early, and the usual ranges (d,)."""
        known = np.array(self._low)
        usual = np.percentile(known, SETTINGS.background_percentile, axis=0, method="lower")
        finite = np.where(np.isfinite(known), known, 0.0)
        scatter = SIGMA_PER_MAD * np.median(np.abs(finite - np.median(finite, axis=0)), axis=0)
        padded = np.pad(
            usual - np.maximum(SETTINGS.margin_m, SETTINGS.margin_sigmas * scatter), 1, constant_values=np.inf
        )
        return np.minimum(np.minimum(padded[:-2], padded[2:]), padded[1:-1]), usual  # edges of neighbours

    def learn(self, sweeps: Sweeps) -> None:
        """Add a clear window."""
        self._remember(*_range_extremes(sweeps))

    def learn_reference(self, sweeps: Sweeps) -> None:
        """Add a window of a recording in clear air at the same position."""
        if find_cloud(sweeps) is None:
            self._from_reference = True
            self.learn(sweeps)

    def _remember(self, low: Floats, high: Floats) -> None:
        self._low.append(low)
        self._high.append(high)

    def _is_of_another_scene(self, sweeps: Sweeps) -> bool:
        """Return whether many returns from persistent surfaces are in front of the reference."""
        stable = np.isfinite(sweeps.ranges) & sweeps.surface & ~find_unstable(sweeps)
        misfits = stable & (sweeps.ranges < self._limits()[0])
        return bool(np.count_nonzero(misfits) > SETTINGS.max_misfit_ratio * max(np.count_nonzero(stable), 1))

    def _has_moved(self, low: Floats) -> bool:
        """Return whether many directions see farther than ever before."""
        highest = np.array(self._high)
        always = np.isfinite(highest).all(axis=0)
        farther = np.isfinite(low) & (low > highest.max(axis=0) + SETTINGS.margin_m)
        return bool(
            np.count_nonzero(farther & always) > SETTINGS.max_farther_ratio * max(np.count_nonzero(always), 1)
        )


def _range_extremes(sweeps: Sweeps) -> tuple[Floats, Floats]:
    """Return the second smallest and the largest range (d,) by direction, infinite without a return."""
    r = np.sort(np.where(np.isnan(sweeps.ranges), np.inf, sweeps.ranges), axis=0)
    if not len(r):
        empty = np.full(sweeps.ranges.shape[1], np.inf)
        return empty, empty
    return r[min(1, len(r) - 1)], r[-1]
