"""Where the body is, by matching each scan with the walls that the last ones saw."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS

from ..registration.planar_poses import compose, lift_covariance, lift_pose, relate
from ..registration.scan_matching import FLOOR, ScanMatch, SearchWindow
from .laser_drift import Drift, Stride, spread_blind, spread_match
from .laser_local_map import SPACING, Key, LaserLocalMap
from .laser_scans import THINNED, thin, walls_of
from .laser_visibility import LaserView

REACH, REACH_SHARE = 0.1, 0.15
"""A scan is looked for within 0.1 m and 15 % of the way since the last one, and in angle alike."""
TURN, TURN_SHARE = 0.04, 0.15
WIDE_REACH, WIDE_TURN = 0.6, 0.5
"""Where odometry is missing, or led nowhere: m and rad."""
MOVED, TURNED, WAIT_NS = 0.05, 0.03, NS
"""A scan is matched after so many metres, radians or nanoseconds since the last one that was."""
LEAST, LEAST_POINTS = 0.5, 10
"""Score below which a match is not believed, and points of a scan that it needs."""
LED, LED_FLOOR = (0.1, 0.2), np.array([0.02, 0.02, 0.02])
"""Sigma of odometry between two matches: parts of the way and of the turn, and m, m and rad at least."""
GOES_ON = np.array([0.1, 0.1, 0.1])
"""The same of a speed that goes on, where there is no odometry."""
LOST_SCANS, LOST_WAY, LOST_TURN = 10, 1.0, 1.0
"""Scans, metres or radians without a match after which the local map begins anew."""
SLIPPED = 12.0
"""Squared sigmas from which on wheels slipped, or a scan found the wrong place."""
SURE, LEARNT, FORGOTTEN = 0.85, 0.05, 0.005
"""Part of the usual score with which a scan overrules wheels; the weight of a better and of a worse one in
what is usual: among trees all scans fit halfway, and none tells that wheels slip."""
PAUSE = 3.0
"""Usual periods of scans: in a longer one the recorder paused, and odometry may have missed the way."""
STEADY = 0.8
"""Part of the last scans that must have fitted where one overrules wheels."""


@dataclass(frozen=True, eq=False)
class LaserMotion:
    """Where the body is by its scans.

    Attributes
    ----------
    pose : (3,)
        x, y and heading from where the first scan was taken.
    covariance : (6, 6)
        Of the motion since the last sample, in the axes of the body.
    joined : bool
        Whether it is known how the body came here from the last sample.
    """

    pose: Floats
    covariance: Floats
    joined: bool = True


class LaserOdometer:
    """Follows a body by its scans, led by odometry where there is some.

    Parameters
    ----------
    beam : float
        Angle between neighbouring beams, rad.
    view : LaserView
        Where the laser is, and which way it looks.
    wary : bool
        Whether a motion is as unsure as scans contradict wheels: for a robot that has to say when it is lost.
        A map that is made has its loops to tell who was right.
    stride : Stride, optional
        What is known of the odometry so far, and is learnt further.
    """

    def __init__(
        self, beam: float, view: LaserView, wary: bool = False, stride: Stride | None = None
    ) -> None:
        self.beam, self.view, self.wary = beam, view, wary
        self.stride = Stride() if stride is None else stride
        self.drift = Drift(self.stride)
        self.pose = self.last = np.zeros(3)
        self.known: Floats | None = None
        self.speed = np.zeros(3)
        self.matched_ns = self.t_ns = 0
        self.since, self.refused = np.zeros(3), np.zeros(3)
        self.period = self.untold = 0.0
        self.map: LaserLocalMap | None = None
        self.match: ScanMatch | None = None
        self.failed = self.matches = self.missed = self.contradicted = 0
        self.usual, self.steady = LEAST, 1.0

    def step(self, t_ns: int, points: Floats, known: Floats | None, *, complete: bool = False) -> LaserMotion:
        """Take a scan's returns (n, 2), and the pose (3,) of the odometry at its time where there is one.

        Parameters
        ----------
        complete : bool
            Whether odometry is taken to have the whole motion since the scan before, however long that took.
        """
        motion = self._predict(t_ns, known)
        if not complete:
            self._count_untold(t_ns, motion)
        self.known, self.t_ns = known, t_ns
        self.pose = compose(self.pose, motion)
        if self.map is None:
            self._keep(points)
            return LaserMotion(self.pose, lift_covariance(np.diag(FLOOR**2), 0.0))
        self.since = self.since + np.array([np.hypot(*motion[:2]), 0.0, abs(motion[2])])
        way, turn = self.since[0] + self.untold, self.since[2]
        due = way >= MOVED or turn >= TURNED or t_ns - self.matched_ns >= WAIT_NS
        if not (due or known is None):
            return LaserMotion(self.pose, self._spread(motion))
        found, self.match = self._match(self.map, points)
        self.steady += LEARNT * ((self.match is not None) - self.steady)
        spread = self._spread(motion)
        if found is None or self.match is None:
            return LaserMotion(self.pose, spread, not self._restart(t_ns, points) or known is not None)
        self._follow(t_ns, self.match)
        if self.map.is_left(self.pose):
            self._learn_stride(self.map.last, found)
            self._keep(points)
        return LaserMotion(self.pose, spread)

    def _predict(self, t_ns: int, known: Floats | None) -> Floats:
        """Return the motion (3,) since the last scan: by odometry, else as fast as before."""
        if known is not None and self.known is not None:
            return relate(self.known, known) * np.array([self.stride.share, self.stride.share, 1.0])
        if known is None and self.t_ns:
            return self.speed * (t_ns - self.t_ns) / NS
        return np.zeros(3)

    def _count_untold(self, t_ns: int, motion: Floats) -> None:
        """Count the metres by which a body may have gone on while nothing was recorded, nor told since."""
        passed = (t_ns - self.t_ns) / NS if self.t_ns else 0.0
        if self.period and passed > PAUSE * self.period:
            self.untold += max(float(np.hypot(*self.speed[:2]) * passed - np.hypot(*motion[:2])), 0.0)
        elif passed:
            self.period += (LEARNT if self.period else 1.0) * (passed - self.period)

    def _spread(self, motion: Floats) -> Floats:
        """Return the covariance (6, 6) of a motion (3,): of the last match, and of what wheels decided."""
        added = self.drift.add(motion, self.known is not None)
        if self.match is not None:
            return spread_match(self.match, motion, added)
        doubted = np.maximum(np.abs(self.refused), [self.untold, self.untold, 0.0])
        return spread_blind(motion, added + self.drift.doubt(doubted))

    def _match(self, known: LaserLocalMap, points: Floats) -> tuple[ScanMatch | None, ScanMatch | None]:
        """Look for a scan where it is expected, and if it does not fit well there in a wider window.

        After so long a way that it may be outside both, it may only fit elsewhere. Returned as it was found,
        and weighed with odometry: None if it fits nowhere, or is not believed.
        """
        reach = REACH + REACH_SHARE * self.since[0] + self.untold
        turn, widest = TURN + TURN_SHARE * self.since[2], WIDE_REACH + self.untold
        scan, self.refused = thin(walls_of(points, self.beam, SPACING), THINNED), np.zeros(3)
        used = scan[known.covers(scan, self.pose, reach)]
        self.matches += 1
        near = wide = None
        if reach <= widest and turn <= WIDE_TURN and len(used) >= LEAST_POINTS:
            led = self.known is not None
            near = search(known, used, SearchWindow(self.pose, reach, turn), LEAST) if led else None
            if near is None or near.score < SURE * self.usual:
                least = LEAST if near is None else near.score
                wide = search(known, used, SearchWindow(self.pose, widest, WIDE_TURN), least)
        for match in (wide, near):
            weighed = None if match is None else self._weigh(known, match, used)
            if weighed is not None:
                return match, weighed
        self.failed += 1
        self.contradicted += len(used) >= LEAST_POINTS  # there was enough of the map in sight
        return near or wide, None

    def _restart(self, t_ns: int, points: Floats) -> bool:
        """Begin a new local map once the last one is left behind unmatched; return whether it was."""
        self.missed += 1
        if self.missed < LOST_SCANS and self.since[0] < LOST_WAY and self.since[2] < LOST_TURN:
            return False
        self.map, self.since, self.speed = None, np.zeros(3), np.zeros(3)
        self.matched_ns, self.missed = t_ns, 0
        self._keep(points)
        return True

    def _weigh(self, known: LaserLocalMap, match: ScanMatch, points: Floats) -> ScanMatch | None:
        """Return a match of points (n, 2) weighed with odometry, or with the speed so far if there is none.

        Along a corridor scans do not tell the way. One that contradicts wheels is returned as it is if they
        slipped, else None; a speed may change.
        """
        off, sigma = self._compare(match)
        weight = np.linalg.inv(np.diag(sigma**2) + match.covariance)
        if off @ weight @ off > SLIPPED:
            if self.known is not None and not self._is_slip(known, match, points):
                self.refused = off
                return None
            return replace(match, overruled=off) if self.wary else match
        self.usual += (LEARNT if match.score > self.usual else FORGOTTEN) * (match.score - self.usual)
        gain = np.diag(sigma**2) @ weight
        led = np.eye(3) - gain
        return replace(match, pose=self.pose + gain @ off, covariance=gain @ match.covariance, led=led)

    def _compare(self, match: ScanMatch) -> tuple[Floats, Floats]:
        """Return how far a match is off the odometry, and the odometry's sigmas: (3,) each, m, m and rad."""
        way, turn = self.since[0], self.since[2]
        off = match.pose - self.pose
        off[2] = (off[2] + np.pi) % (2 * np.pi) - np.pi
        if self.known is None:
            return off, GOES_ON
        ahead = LED[0] * way + self.untold
        return off, np.array([ahead, ahead, LED[1] * turn + LED[0] * way]) + LED_FLOOR

    def _is_slip(self, known: LaserLocalMap, match: ScanMatch, points: Floats) -> bool:
        """Tell whether a match that contradicts the wheels is better than they are.

        It must fit as well as others do, where most of the last ones did, for among trees a scan fits halfway
        in many places; and clearly more of its points (n, 2) than fit where the wheels have them.
        """
        if match.score < SURE * self.usual or self.steady < STEADY:
            return False
        near = known.field.climb(points, self.pose)
        off, sigma = self._compare(near)
        there = near.score if (off**2 / sigma**2).sum() <= SLIPPED else known.field.score(points, self.pose)
        return len(points) * (match.score - there) >= LEAST_POINTS

    def _follow(self, t_ns: int, match: ScanMatch) -> None:
        seconds = (t_ns - self.matched_ns) / NS
        if self.matched_ns and seconds > 0:
            self.speed = relate(self.last, match.pose) / seconds
        self.pose = self.last = match.pose
        self.matched_ns, self.since, self.missed, self.untold = t_ns, np.zeros(3), 0, 0.0
        self.drift.end(match)

    def _learn_stride(self, start: Key, match: ScanMatch) -> None:
        """Learn how far the body goes for what odometry tells, by a match before it was weighed with it."""
        if self.known is None or start.known is None:
            return
        told, went = relate(start.known, self.known)[:2], relate(start.pose, match.pose)[:2]
        ahead = lift_pose(start.pose)[:2, :2] @ went / max(float(np.hypot(*went)), 1e-9)
        variance = 2.0 * float(ahead @ match.covariance[:2, :2] @ ahead)  # of the match at each end
        self.stride.learn(float(np.hypot(*told)), float(np.hypot(*went)), variance)

    def _keep(self, points: Floats) -> None:
        """Make a scan part of the local map."""
        self.last = self.pose
        walls = walls_of(points, self.beam, SPACING)
        key = Key(self.pose, walls, self.view.sight_of(points), self.known)
        self.map = LaserLocalMap([*(self.map.keys if self.map else ()), key])


def search(known: LaserLocalMap, points: Floats, window: SearchWindow, least: float) -> ScanMatch | None:
    """Return where points (n, 2) of a scan fit a map best in a window; None if not as well as `least`."""
    match = known.field.search(points, window, least)
    return None if match is None or match.score < least else known.field.doubt(match)
