"""X03: do two lasers that see the same surface agree on where it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.geometry.robust import NORMAL
from transect.integrity.baselines import Usual
from transect.integrity.lasers.overlap import differences
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import LaserScan, PointCloud

LEAST = 10
"""Places that both see, for anything to be said."""
LEARNED, LEAST_MOVED, LASTING = 5, 0.01, 5
"""Windows that tell the usual distance, its smallest deviation, m, and windows in a row in which it is other:
what comes by while the robot drives is gone by then."""
STAYING = 2
"""Windows in a row in which surfaces must be apart: two lasers meet at a place or two, so that all that a
window tells is of one edge or slope, however often it was measured. So what stays is declared at once."""
LEAST_SIGMA = 0.03
"""Metres; the deviation of a distance, at least: two ranges of a SICK, and what the mounts are known to."""


class LaserLaser(Check, id="X03", group="cross", version=3, least=3, k_on=1):
    """Median of ``|n (p - p_peer)|`` in deviations, where two lasers, or a laser and a lidar, see a surface.

    The sweep of one laser goes through the plane of the other at places that both see; beams beside such a
    place must be on one surface for both. There p is what the laser sees in the direction of what the peer
    saw, and n the normal of the surface, across both curves. A place that something hides from the laser does
    not count. The deviation is the scatter of the differences
    in the window, and 3 cm at least: rough ground scatters, a wrong range or mount does not, and it stays:
    the smaller one of two windows counts. Of several
    peers the one that agrees best counts: of three lasers, two may be right. With one peer it cannot be told
    which is wrong, so both are named. A laser that turns in its own plane leaves walls that it looks at where
    they were: X04 sees that. ``moved = |d - d_0| / sigma_d`` compares the median distance d with that of the
    first windows, of deviation sigma_d (1 cm at least): a bias of ranges is small in it where beams are flat.

    Motive: Document 004 has four lasers, which were calibrated together.
    """

    off = Limit(3.0, 10.0, "DISAGREE", "", "median distance of the surfaces over its deviation")
    moved = Limit(3.0, 10.0, "DISAGREE", "", "change of that distance since the first windows, in deviations")

    def reset(self) -> None:
        """No distance is known yet."""
        self._usual = Usual(least=LEARNED)
        self._moved: deque[float] = deque([0.0] * LASTING, maxlen=LASTING)
        self._off: deque[float] = deque([0.0] * STAYING, maxlen=STAYING)

    def look(
        self, laser: Window[LaserScan], peers: Sequence[Window[LaserScan | PointCloud]]
    ) -> Finding | Unknown:
        """Compare ranges with those of each peer that sees the same."""
        best, count, used = None, 0, list[str]()
        for peer in peers:
            found = self._compare(laser, peer)
            if len(found) < LEAST:
                continue
            used.append(peer.stream.name)
            count += len(found)
            off = _off(found)
            best = off if best is None or off[0] < best[0] else best
        if best is None:
            return Unknown("NO_OVERLAP", "no peer sees a surface that it sees", len(laser))
        evidence = {"difference_m": best[1], "sigma_m": best[2], "places": float(count)}
        moved = abs(best[1] - self._usual.value) / max(self._usual.spread, LEAST_MOVED)
        if not moved > self.moved.warn:
            self._usual.learn(best[1])
        self._moved.append(moved)
        self._off.append(best[0])
        off = min(self._off)
        note = f"it and {', '.join(used)} see a surface at two places" if off > self.off.warn else ""
        statistics = {"off": off, "moved": min(self._moved)}
        return Finding(statistics, len(laser), evidence, note=note, peers=tuple(used))

    def _compare(self, laser: Window[Any], peer: Window[Any]) -> Floats:
        if not len(peer):
            return np.zeros(0)
        try:
            T = self.about.frames.lookup(laser.stream.frame, peer.stream.frame, laser.t1_ns)
        except TransectError:
            return np.zeros(0)
        return differences(laser, peer, T, self.about)


def _off(found: Floats) -> tuple[float, float, float]:
    """Return the median difference in deviations, the same in metres, and the deviation in metres."""
    middle = float(np.median(found))
    scatter = NORMAL * float(np.median(np.abs(found - middle)))
    sigma = float(np.hypot(LEAST_SIGMA, scatter))
    return abs(middle) / sigma, middle, sigma
