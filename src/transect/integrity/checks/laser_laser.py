"""X03: do two lasers measure the same surface at the same position."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.geometry.robust import SIGMA_PER_MAD
from transect.integrity.baselines import Baseline
from transect.integrity.lasers.overlap import surface_distances
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import LaserScan, PointCloud


@dataclass(frozen=True)
class LaserLaserSettings:
    """Numbers of the comparison of two lasers."""

    min_points: int = 10  # Points on surfaces that both see.
    min_windows: int = 5  # Windows that determine the usual distance, ...
    min_spread_m: float = 0.01  # ... and its minimum sigma.
    # Consecutive windows with another distance: what passes while the robot drives is gone by then.
    changed_windows: int = 5
    # Consecutive windows with a distance: all points of a window may be of one edge, as two planes
    # intersect in a line.
    apart_windows: int = 2
    min_sigma_m: float = 0.03  # Sigma of a distance: two ranges of a SICK, and the accuracy of the mounts.


class LaserLaser(Check, id="X03", group="cross", version=3, min_samples=3, k_on=1):
    """Median distance, in sigmas, of a surface seen by two lasers, or by a laser and a lidar.

    The scan of one laser intersects the plane of the other at points that both see, if the neighbouring
    beams of both are on one surface. The distance is ``|n (p - p_peer)|``, with p what the laser sees in
    the direction of the peer's point, and n the normal of the surface, across both curves. A point that
    is hidden from the laser does not count. Sigma is the scatter of the distances in the window, at least
    3 cm: rough ground scatters, while a wrong range or mount does not, and persists: the smaller value of
    two windows counts. Of several peers the one that agrees best counts, as of three lasers two may be
    right. With one peer either may be wrong, and both are reported. A laser that turns in its own plane
    is found by X04. ``moved = |d - d_0| / sigma_d`` compares the median distance d with that of the first
    windows, with sigma_d of at least 1 cm: a range bias affects it little at grazing incidence.

    Motive: SDI has four lasers, which were calibrated together.
    """

    settings = LaserLaserSettings()

    off = Limit(3.0, 10.0, "DISAGREE", "", "sigmas of distance between the surfaces")
    moved = Limit(3.0, 10.0, "DISAGREE", "", "sigmas of change of that distance")

    def reset(self) -> None:
        """Start without a distance."""
        self._usual = Baseline(min_windows=self.settings.min_windows)
        self._moved: deque[float] = deque(
            [0.0] * self.settings.changed_windows, maxlen=self.settings.changed_windows
        )
        self._off: deque[float] = deque(
            [0.0] * self.settings.apart_windows, maxlen=self.settings.apart_windows
        )

    def evaluate(
        self, laser: Window[LaserScan], peers: Sequence[Window[LaserScan | PointCloud]]
    ) -> Finding | Unknown:
        """Compare ranges with those of each peer that sees the same surfaces."""
        best, count, used = None, 0, list[str]()
        for peer in peers:
            found = self._compare(laser, peer)
            if len(found) < self.settings.min_points:
                continue
            used.append(peer.stream.name)
            count += len(found)
            distance = _distance_in_sigmas(found, self.settings)
            best = distance if best is None or distance[0] < best[0] else best
        if best is None:
            return Unknown("NO_OVERLAP", "no peer sees a surface that it sees, too", len(laser))
        evidence = {"difference_m": best[1], "sigma_m": best[2], "places": float(count)}
        moved = abs(best[1] - self._usual.value) / max(self._usual.spread, self.settings.min_spread_m)
        if not moved > self.moved.warn:
            self._usual.learn(best[1])
        self._moved.append(moved)
        self._off.append(best[0])
        off = min(self._off)
        note = (
            f"it and {', '.join(used)} see the same surface at different distances"
            if off > self.off.warn
            else ""
        )
        statistics = {"off": off, "moved": min(self._moved)}
        return Finding(statistics, len(laser), evidence, note=note, peers=tuple(used))

    def _compare(self, laser: Window[Any], peer: Window[Any]) -> Floats:
        if not len(peer):
            return np.zeros(0)
        try:
            T = self.context.frames.lookup(laser.stream.frame, peer.stream.frame, laser.t1_ns)
        except TransectError:
            return np.zeros(0)
        return surface_distances(laser, peer, T, self.context)


def _distance_in_sigmas(found: Floats, settings: LaserLaserSettings) -> tuple[float, float, float]:
    """Return the median distance in sigmas, the same in metres, and sigma in metres."""
    middle = float(np.median(found))
    scatter = SIGMA_PER_MAD * float(np.median(np.abs(found - middle)))
    sigma = float(np.hypot(settings.min_sigma_m, scatter))
    return abs(middle) / sigma, middle, sigma
