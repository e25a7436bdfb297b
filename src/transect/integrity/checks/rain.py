"""C03: does a laser see drops."""

from __future__ import annotations

import numpy as np

from transect.integrity.lasers import BackgroundCheck, Early
from transect.integrity.model import Finding, Limit


class Rain(BackgroundCheck, id="C03", group="content", least=5):
    """Part of the beams that come back early and alone: no other early return is around.

    Around is two directions to each side, one sweep before and after, and 0.3 m. It is rain if at least half
    of the early returns are alone, and fewer than 3 % of all beams are early. Rain leaves a laser usable: the
    score is 0.7 at least, and the drops are masked.

    Motive: Document 004, 5.2: drops are "isolated, spatially and temporally"; the lasers are "not
    significantly affected".
    """

    rate = Limit(0.0005, 0.01, "RAIN", "", "part of the beams that hit single drops")

    def judge(self, early: Early, n: int) -> Finding:
        """Count early beams that are alone."""
        rate = early.sweeps.share(early.isolated)
        found = {"early": early.share, "isolated": rate / early.share if early.share else np.nan}
        if not early.is_rain:
            return Finding({"rate": 0.0}, n, found)
        region = early.sweeps.region(early.isolated)
        return Finding({"rate": rate}, n, found, region=region, floor=0.7)
