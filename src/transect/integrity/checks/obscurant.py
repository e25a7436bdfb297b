"""C02: is what a laser sees too early a cloud, and not an object."""

from __future__ import annotations

from transect.integrity.lasers import BackgroundCheck, Early
from transect.integrity.model import Finding, Limit


class Obscurant(BackgroundCheck, id="C02", group="content", least=5):
    """Part of the beams that come back early and from no surface.

    An early return (C01) is from a surface if two neighbours in its sweep are within 0.15 m, and two in the
    sweeps before and after within 0.2 m. In a cloud they scatter: Q is the median difference of early returns
    from those beside, J that from one sweep to the next. Few early returns, most of them alone, are rain
    (C03). Returns of the cloud are masked.

    Motive: Document 004, 5.1: dust and smoke are "random points in the laser scans".
    """

    share = Limit(0.004, 0.03, "OBSCURANT", "", "part of the beams that come back from dust or smoke")

    def judge(self, early: Early, n: int) -> Finding:
        """Count early beams that scatter."""
        beside, since = early.roughness
        found = {"early": early.share, "Q_m": beside, "J_m": since}
        if early.is_rain:
            return Finding({"share": 0.0}, n, found)
        cloud = early.which & ~early.solid
        share = early.sweeps.share(cloud)
        return Finding({"share": share}, n, found, region=early.sweeps.region(cloud))
