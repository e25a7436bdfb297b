"""How far wheels err, and how unsure a motion is by the part that they have in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats

from ..registration.planar_poses import lift_covariance
from ..registration.scan_matching import ScanMatch
from .laser_local_map import KEY_DISTANCE, KEY_TURN

STRIDE, SLIP, UNTOLD = 0.1, 0.03, 0.5
"""Sigma of a stride that was not learnt yet, of any one on the next metres, and of a speed that goes on
without odometry: parts of the way."""
TURN_DRIFT, MOST_DRIFT = (0.01, 0.1), 1.0
"""Sigma of the heading by an odometry alone: rad per metre, part of the turn; and rad at most."""
LEAST_BLIND = 1e-3
"""Least sigma of a motion by odometry alone: m and rad."""
STAYS = 0.3
"""Part of a match's sigma that stays on the way: the local map is the mean of many scans."""
OVERRULED = 3.0
"""Times what a scan overrules of the wheels that the motion is unsure: smoke, too, goes with a laser."""
MOST_DOUBT = np.array([1.0, 1.0, 0.05])
"""Most that a scan which is not believed adds, m, m and rad: one that fits aslant by chance would make a
whole building unsure."""
CHANGES, SCATTER = 1e-3, 0.01
"""How much a stride changes from key to key; what a match errs over such a way beside its covariance, m."""
ODD = 12.0
"""Squared sigmas from which on nothing is learnt: wheels slipped, or a scan found the wrong place."""


@dataclass
class Stride:
    """How far a body goes for each metre that its odometry tells: wheels are worn, and slip on the ground.

    Attributes
    ----------
    share : float
    variance : float
    """

    share: float = 1.0
    variance: float = STRIDE**2

    @property
    def drift(self) -> float:
        """Sigma of a way that odometry tells, as a part of it."""
        return float(np.sqrt(self.variance + SLIP**2))

    def learn(self, told: float, went: float, variance: float) -> None:
        """Take a way that odometry told, m, and how far the body went, m with a variance.

        Where scans tell less than was known they tell nothing: along a corridor their errors are alike.
        """
        if told < KEY_DISTANCE / 2 or variance > (STRIDE * told) ** 2:
            return
        off, noise = went / told - self.share, (variance + SCATTER**2) / told**2
        self.variance += CHANGES**2
        if off**2 > ODD * (self.variance + noise):
            return
        gain = self.variance / (self.variance + noise)
        self.share += gain * off
        self.variance *= 1.0 - gain


def spread_match(match: ScanMatch, motion: Floats, added: Floats) -> Floats:
    """Return the covariance (6, 6) of a motion (3,) that ends in a match: its part of the way to a key.

    Parameters
    ----------
    added : (3,)
        Variances of the odometry's drift; the match has it along the wall that it can slide along, and in the
        heading, as far as odometry decided them.
    """
    share = np.clip(np.hypot(*motion[:2]) / KEY_DISTANCE + abs(motion[2]) / KEY_TURN, 1e-3, 1.0)
    doubt = OVERRULED**2 * np.outer(match.overruled, match.overruled)
    along, slid, _ = np.linalg.svd(match.led[:2, :2])
    drifted = np.zeros((3, 3))
    drifted[:2, :2] = slid[0] ** 2 * added[0] * np.outer(along[:, 0], along[:, 0])
    drifted[2, 2] = match.led[2, 2] ** 2 * added[2]
    spread = match.covariance * share * STAYS**2 + doubt + drifted
    return lift_covariance(spread, float(match.pose[2]))


def spread_blind(motion: Floats, added: Floats) -> Floats:
    """Return the covariance (6, 6) of a motion (3,) by odometry alone, whose drift adds variances (3,)."""
    aside = (
        (motion[0] ** 2 + motion[1] ** 2) * added[2] / 3.0
    )  # of a long motion whose heading drifts meanwhile
    return lift_covariance(np.diag(added + LEAST_BLIND**2 + np.array([aside, aside, 0.0])), 0.0)


class Drift:
    """What odometry decided so far, without scans or where they slide.

    Wheels err alike all the way, so that sigmas grow with it, however many samples it has.

    Attributes
    ----------
    stride : Stride
    decided : (3,)
        Metres of the way, metres and radians over which it decided the heading.
    doubted : (3,)
        How far scans that were not believed were off since the last one that was: m, m and rad.
    """

    def __init__(self, stride: Stride) -> None:
        self.stride, self.decided, self.doubted = stride, np.zeros(3), np.zeros(3)

    def add(self, motion: Floats, told: bool = True) -> Floats:
        """Take a motion (3,), told by odometry or not; return the variances (3,) that it adds, m and rad."""
        part = self.stride.drift if told else UNTOLD
        before, way = self._sigmas(part), np.hypot(*motion[:2])
        self.decided = self.decided + np.array([way, way, abs(motion[2])])
        return self._sigmas(part) ** 2 - before**2

    def doubt(self, off: Floats) -> Floats:
        """Take what a scan that was not believed is off (3,); return the variances (3,) that it adds."""
        before, self.doubted = self.doubted, np.maximum(self.doubted, np.minimum(np.abs(off), MOST_DOUBT))
        return self.doubted**2 - before**2

    def end(self, match: ScanMatch) -> None:
        """Leave of what was decided the part that is left in a match."""
        turned = abs(match.led[2, 2])
        self.decided = self.decided * (np.linalg.norm(match.led[:2, :2], 2), turned, turned)
        self.doubted = np.zeros(3)

    def _sigmas(self, part: float) -> Floats:
        way, aside, turn = self.decided
        ahead = part * way
        return np.array([ahead, ahead, min(TURN_DRIFT[0] * aside + TURN_DRIFT[1] * turn, MOST_DRIFT)])
