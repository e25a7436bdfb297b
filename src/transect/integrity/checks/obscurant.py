"""C02: is what a laser sees too early a cloud, and not an object."""

from __future__ import annotations

from transect.base.arrays import Mask
from transect.integrity.lasers.background import Early
from transect.integrity.lasers.obscurants import BackgroundCheck
from transect.integrity.lasers.returns import grow
from transect.integrity.model import Finding, Limit


class Obscurant(BackgroundCheck, id="C02", group="content", least=3, version=8):
    """Part of the beams that come back early, from no surface, and more than edges of things would give.

    An early return (C01) is from a surface if two neighbours in its sweep are within 0.15 m, or those beside
    it in line with it, and two in the sweeps before and after within what 2 m/s make of the time between, and
    0.1 m; while the robot moves, if either holds. The others scatter: Q is their median difference from early
    returns beside, J that from one sweep to the next. In a cloud Q is at least 0.2 m, or J more than objects
    may differ. Few early returns, most of them alone, are rain (C03).

    While the robot moves, a dense cloud hides the space in which it would be early, and where nobody looked
    before none is known. Where a cloud is expected, as there was one in the four windows before, or another
    laser of the robot (its peer) has 3 % of its beams in one now, returns from places of which nothing is
    known count as early, too, if they are from no surface and at least 3 % of the beams.

    A cloud is porous. Of its returns those are masked from places through which at least half of the beams
    went on that reached them, up to 0.27 s before and after and 0.1 m beside; unless the return is from
    a surface that the sweeps before and after have, too. Where no other beam tells, it is masked if nothing
    was known to be there. While the laser stands only what is nearer than usual by 0.2 m is masked, and with
    it all that is early and scatters.

    Motive: Document 004, 5.1: dust and smoke are "random points in the laser scans".
    """

    share = Limit(0.004, 0.03, "OBSCURANT", "", "part of the beams that come back from dust or smoke")

    def judge(self, early: Early, n: int) -> Finding:
        """Count early beams that scatter."""
        beside, since = early.roughness
        found = {"early": early.share, "Q_m": beside, "J_m": since}
        if early.is_rain or not early.is_rough:
            return Finding({"share": 0.0}, n, found)
        if not (early.is_cloud or early.lingers):
            return Finding({"share": 0.0}, n, found)
        share, region = early.sweeps.share(early.scattered), early.sweeps.region(_grow(early))
        return Finding({"share": share}, n, found, peers=early.peers, region=region)


def _grow(early: Early) -> Mask:
    """Return the cloud (s, d), and while the laser stands early returns most of whose neighbours are its."""
    cloud = early.cloud
    return cloud if early.moving else cloud | (grow(cloud, early.sweeps.ranges) & early.which)
