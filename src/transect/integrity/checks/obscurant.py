"""C02: is what a laser sees too early a cloud, and not an object."""

from __future__ import annotations

from transect.integrity.growing import grow
from transect.integrity.lasers import BackgroundCheck, Early
from transect.integrity.model import Finding, Limit


class Obscurant(BackgroundCheck, id="C02", group="content", least=3, version=4):
    """Part of the beams that come back early and from no surface.

    An early return (C01) is from a surface if two neighbours in its sweep are within 0.15 m, or those beside
    it in line with it, and two in the sweeps before and after within what 2 m/s make of the time between, and
    0.1 m; while the robot moves, if either holds. The others scatter: Q is their median difference from early
    returns beside, J that from one sweep to the next. In a cloud Q is at least 0.2 m, or J more than objects
    may differ. Few early returns, most of them alone, are rain (C03). Returns of the cloud are masked, and
    early ones most of whose neighbours are; while the robot moves, so is what scatters where nobody looked
    before.

    Motive: Document 004, 5.1: dust and smoke are "random points in the laser scans".
    """

    share = Limit(0.004, 0.03, "OBSCURANT", "", "part of the beams that come back from dust or smoke")

    def judge(self, early: Early, n: int) -> Finding:
        """Count early beams that scatter."""
        beside, since = early.roughness
        found = {"early": early.share, "Q_m": beside, "J_m": since}
        if early.is_rain or not early.is_rough:
            return Finding({"share": 0.0}, n, found)
        share = early.sweeps.share(early.scattered)
        grown = early.cloud | (grow(early.cloud, early.sweeps.ranges) & early.which)
        return Finding({"share": share}, n, found, region=early.sweeps.region(grown))
