"""C03: does a laser see drops."""

from __future__ import annotations

import numpy as np

from transect.engine.params import param
from transect.integrity.lasers import BackgroundCheck, Early
from transect.integrity.model import Finding, Limit


class Rain(BackgroundCheck, id="C03", group="content", least=5, version=2):
    """Part of the beams that come back early and alone: no other early return is around.

    Around is two directions to each side, one sweep before and after, and 0.3 m. It is rain if at least half
    of the early returns from no surface are alone, they are fewer than 3 % of all beams, and come from all
    over the place: those at the edge of a cloud do not, and where one was just now it is that cloud. One or
    two are insects. Rain leaves a laser usable: the score is 0.7 at least, and the drops are masked.

    Motive: Document 004, 5.2: drops are "isolated, spatially and temporally"; the lasers are "not
    significantly affected".
    """

    rate = Limit(0.0005, 0.01, "RAIN", "", "part of the beams that hit single drops")
    insects: int = param(2, ge=0, doc="drops in a window that are none")

    def judge(self, early: Early, n: int) -> Finding:
        """Count early beams that are alone."""
        rate = early.sweeps.share(early.isolated)
        found = {"early": early.share, "isolated": rate / early.share if early.share else np.nan}
        if not early.is_rain or np.count_nonzero(early.isolated) <= self.insects:
            return Finding({"rate": 0.0}, n, found)
        region = early.sweeps.region(early.isolated)
        return Finding({"rate": rate}, n, found, region=region, floor=0.7)
