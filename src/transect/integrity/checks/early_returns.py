"""C01: does a laser see anything in front of what is usually there."""

from __future__ import annotations

import numpy as np

from transect.integrity.lasers.background import Early
from transect.integrity.lasers.obscurants import BackgroundCheck
from transect.integrity.model import Finding, Limit


class EarlyReturns(BackgroundCheck, id="C01", group="content", least=3, version=4):
    """Part of the beams that come back early: ``mean(r < B - max(0.5 m, 5 sigma))``.

    B is what the direction and its neighbours usually see: a low percentile of the clear windows before. An
    early return alone does not tell a cloud from an object, so that this check is SUSPECT at most; where most
    of them are from surfaces (C02), or they do not scatter, it is an object, and the laser is right. While
    the robot moves nothing is usual: then a return is early if it comes from a place of half a metre through
    which beams went in the seconds before, and nothing was struck there or beside it. That takes the robot's
    poses.

    Motive: Document 004, 5.1: a cloud is "almost seen as an actual obstacle", its points are "located between
    the vehicle and the actual position of the obstacle".
    """

    share = Limit(0.004, 0.03, "OBSCURANT", "", "part of the beams that come back early")

    def judge(self, early: Early, n: int) -> Finding:
        """Count early beams, and those of them that are from surfaces."""
        solid = early.sweeps.share(early.solid)
        found = {"solid": solid, "nearest_m": float(np.nanmin(early.sweeps.ranges, initial=np.inf))}
        if solid >= early.share / 2 or not early.is_cloud:
            return Finding({"share": early.share}, n, found, "OBJECT", floor=0.7)
        return Finding({"share": early.share}, n, found, floor=0.2)
