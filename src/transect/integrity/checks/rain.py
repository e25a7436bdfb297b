"""C03: does a laser see drops."""

from __future__ import annotations

from collections import deque

import numpy as np

from transect.base.arrays import Floats
from transect.engine.nodes import param
from transect.integrity.lasers.background import Early
from transect.integrity.lasers.obscurants import BackgroundCheck
from transect.integrity.model import Finding, Limit

TOGETHER = 4
"""Windows of a slow laser that count together: of one, drops are too few to be told."""
APART = np.radians(10.0)
"""Between the directions of drops: somebody far away is one beam of each sweep, but always over there."""


class Rain(BackgroundCheck, id="C03", group="content", least=3, version=4):
    """Part of the beams that come back early and alone: no other early return is around.

    Around is two directions to each side, one sweep before and after, and 0.3 m. It is rain if at least half
    of the early returns from no surface are alone, they are fewer than 3 % of all beams, and come from all
    over the place: those at the edge of a cloud do not, and where one was just now it is that cloud. One or
    two are insects. Of a slow laser that moves a drop is half a metre before what the beams beside it see,
    the sweeps around saw through its place, four windows count together, and those in ten degrees as one.
    Rain leaves a laser usable: the score is 0.7 at least, and the drops are masked.

    Motive: Document 004, 5.2: drops are "isolated, spatially and temporally"; the lasers are "not
    significantly affected".
    """

    rate = Limit(0.0005, 0.01, "RAIN", "", "part of the beams that hit single drops")
    insects: int = param(2, ge=0, doc="drops in a window that are none")

    def reset(self) -> None:
        """Nothing was seen yet."""
        self._seen: deque[tuple[Floats, int]] = deque(maxlen=TOGETHER)

    def judge(self, early: Early, n: int) -> Finding:
        """Count early beams that are alone."""
        alone = early.sweeps.share(early.isolated)
        found = {"early": early.share, "isolated": alone / early.share if early.share else np.nan}
        if not early.is_rain:
            self._seen.clear()
            return Finding({"rate": 0.0}, n, found)
        rate, places = self._count(early)
        if places <= self.insects:
            return Finding({"rate": 0.0}, n, found)
        region = early.sweeps.region(early.isolated)
        return Finding({"rate": rate}, n, found, region=region, floor=0.7)

    def _count(self, early: Early) -> tuple[float, int]:
        """Return the part of the beams that hit drops, and in how many directions; of few beams, of late."""
        asked = early.sweeps.asked
        if early.lone is None:
            drops = int(np.count_nonzero(early.isolated & asked))
            return drops / max(int(asked.sum()), 1), drops
        self._seen.append((early.sweeps.angles[np.nonzero(early.isolated & asked)[1]], int(asked.sum())))
        angles = np.concatenate([each for each, _ in self._seen])
        places = len(np.unique(np.floor(angles / APART)))
        return len(angles) / max(sum(beams for _, beams in self._seen), 1), places
