"""Where the body is, by matching each scan with the walls that the last ones saw."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS

from .field import FLOOR, Field, Match, Window, lift_covariance, lift_pose
from .scans import thin, walls_of

SPACING = 0.05
"""Metres between points of a wall."""
THINNED = 0.1
"""Metres: one point of a scan per square of this size is matched."""
REACH, REACH_SHARE = 0.1, 0.15
"""A scan is looked for within 0.1 m and 15 % of the way since the last one, and in angle alike."""
TURN, TURN_SHARE = 0.04, 0.15
WIDE_REACH, WIDE_TURN = 0.6, 0.5
"""Where odometry is missing, or led nowhere: m and rad."""
MOVED, TURNED, WAIT_NS = 0.05, 0.03, NS
"""A scan is matched after so many metres, radians or nanoseconds since the last one that was."""
KEY_DISTANCE, KEY_TURN, KEYS = 0.5, 0.3, 12
"""A scan becomes part of the local map after metres or radians; so many of them are kept."""
LEAST = 0.5
"""Score below which a match is not believed."""
LED, LED_FLOOR = (0.1, 0.2), np.array([0.02, 0.02, 0.02])
"""Sigma of odometry between two matches: parts of the way and of the turn, and m, m and rad at least."""
LOST_SCANS, LOST_WAY, LOST_TURN = 10, 1.0, 1.0
"""Scans, metres or radians without a match after which the local map begins anew."""
SLIPPED = 12.0
"""Squared sigmas from which on wheels slipped, or a scan found the wrong place."""
OVERRULED = 3.0
"""Times what a scan overrules of the wheels that the motion is unsure: smoke, too, goes with a laser."""
SURE, LEARNT = 0.9, 0.05
"""Part of the usual score with which a scan overrules wheels; the weight of the newest in what is usual."""
DRIFT, MOST_DRIFT = (0.1, 0.01, 0.1), 1.0
"""Sigma of an odometry alone, where no scan fits: part of the way, rad per metre, part of the turn; rad."""
LEAST_BLIND = 1e-3
"""Least sigma of any such motion: m and rad."""


@dataclass(frozen=True, eq=False)
class Moved:
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


class Odometer:
    """Follows a body by its scans, led by odometry where there is some.

    Parameters
    ----------
    beam : float
        Angle between neighbouring beams, rad.
    wary : bool
        Whether a motion is as unsure as scans contradict wheels: for a robot that has to say when it is lost.
        A map that is made has its loops to tell who was right.
    """

    def __init__(self, beam: float, wary: bool = False) -> None:
        self.beam, self.wary = beam, wary
        self.pose = np.zeros(3)
        self.known: Floats | None = None
        self.speed = np.zeros(3)
        self.matched_ns = self.t_ns = 0
        self.since, self.blind = np.zeros(3), np.zeros(2)
        self.keys: list[tuple[Floats, Floats]] = []
        self.field: LocalField | None = None
        self.failed = self.matches = self.missed = 0
        self.usual = LEAST

    def step(self, t_ns: int, points: Floats, known: Floats | None) -> Moved:
        """Take a scan's returns (n, 2), and the pose (3,) of the odometry at its time where there is one."""
        motion = self._predict(t_ns, known)
        self.known, self.t_ns = known, t_ns
        self.pose = compose(self.pose, motion)
        if self.field is None:
            self._keep(points)
            return Moved(self.pose, lift_covariance(np.diag(FLOOR**2), 0.0))
        before, way = self.blind, np.abs([np.hypot(*motion[:2]), motion[2]])
        self.since = self.since + np.array([way[0], 0.0, way[1]])
        self.blind = before + way
        due = self.since[0] >= MOVED or self.since[2] >= TURNED or t_ns - self.matched_ns >= WAIT_NS
        if not (due or known is None) or len(points) < 10:
            return Moved(self.pose, spread_blind(before, self.blind))
        match = self._match(points, known is not None)
        if match is not None and known is not None:
            match = self._weigh(match)
        if match is None:
            joined = not self._restart(t_ns, points) or known is not None
            return Moved(self.pose, spread_blind(before, self.blind), joined)
        spread = spread_match(match, motion)
        self._follow(t_ns, match)
        if self._is_far():
            self._keep(points)
        return Moved(self.pose, spread)

    def _predict(self, t_ns: int, known: Floats | None) -> Floats:
        """Return the motion (3,) since the last scan: by odometry, else as fast as before."""
        if known is not None and self.known is not None:
            return relate(self.known, known)
        if known is None and self.t_ns:
            return self.speed * (t_ns - self.t_ns) / NS
        return np.zeros(3)

    def _match(self, points: Floats, led: bool) -> Match | None:
        """Look for a scan where it is expected, then in a wider window; None if it fits nowhere.

        After so long a way that it may be outside both, it may only fit elsewhere.
        """
        assert self.field is not None
        reach, turn = REACH + REACH_SHARE * self.since[0], TURN + TURN_SHARE * self.since[2]
        near = Window(self.pose, reach, turn)
        wide = Window(self.pose, WIDE_REACH, WIDE_TURN)
        scan = thin(walls_of(points, self.beam, SPACING), THINNED)
        self.matches += 1
        windows = ((near, wide) if led else (wide,)) if reach <= WIDE_REACH and turn <= WIDE_TURN else ()
        for window in windows:
            match = self.field.field.search(scan, window, LEAST)
            if match is not None and match.score >= LEAST:
                return match
        self.failed += 1
        return None

    def _restart(self, t_ns: int, points: Floats) -> bool:
        """Begin a new local map once the last one is left behind unmatched; return whether it was."""
        self.missed += 1
        if self.missed < LOST_SCANS and self.since[0] < LOST_WAY and self.since[2] < LOST_TURN:
            return False
        self.keys, self.since, self.speed = [], np.zeros(3), np.zeros(3)
        self.matched_ns, self.missed = t_ns, 0
        self._keep(points)
        return True

    def _weigh(self, match: Match) -> Match | None:
        """Return a match weighed with what odometry says: along a corridor scans do not tell the way.

        One that contradicts it is believed if it fits as well as others do: wheels slip, and among trees a
        scan fits halfway in many places. Else None.
        """
        way, turn = self.since[0], self.since[2]
        sigma = np.array([LED[0] * way, LED[0] * way, LED[1] * turn + LED[0] * way]) + LED_FLOOR
        weight = np.linalg.inv(np.diag(sigma**2) + match.covariance)
        off = match.pose - self.pose
        off[2] = (off[2] + np.pi) % (2 * np.pi) - np.pi
        if off @ weight @ off > SLIPPED:
            if match.score < SURE * self.usual:
                return None
            return replace(match, overruled=off) if self.wary else match
        self.usual += LEARNT * (match.score - self.usual)
        gain = np.diag(sigma**2) @ weight
        return replace(match, pose=self.pose + gain @ off, covariance=gain @ match.covariance)

    def _follow(self, t_ns: int, match: Match) -> None:
        seconds = (t_ns - self.matched_ns) / NS
        if self.matched_ns and seconds > 0:
            moved = relate(self.last, match.pose)
            self.speed = moved / seconds
        self.pose = self.last = match.pose
        self.matched_ns, self.since, self.missed = t_ns, np.zeros(3), 0
        self.blind = np.zeros(2)

    def _is_far(self) -> bool:
        moved = relate(self.keys[-1][0], self.pose)
        return bool(np.hypot(*moved[:2]) >= KEY_DISTANCE or abs(moved[2]) >= KEY_TURN)

    def _keep(self, points: Floats) -> None:
        """Make a scan part of the local map."""
        self.last = self.pose
        self.keys = [*self.keys[1 - KEYS :], (self.pose, walls_of(points, self.beam, SPACING))]
        self.field = LocalField(self.keys)


class LocalField:
    """The field of the last scans; a copy of it may be shared, for it never changes."""

    def __init__(self, keys: list[tuple[Floats, Floats]]) -> None:
        self.field = Field(place_walls(keys))

    def __deepcopy__(self, memo: object) -> LocalField:
        return self


def spread_match(match: Match, motion: Floats) -> Floats:
    """Return the covariance (6, 6) of a motion (3,) that ends in a match: its part of the way to a key."""
    share = np.clip(np.hypot(*motion[:2]) / KEY_DISTANCE + abs(motion[2]) / KEY_TURN, 1e-3, 1.0)
    doubt = OVERRULED**2 * np.outer(match.overruled, match.overruled)
    return lift_covariance(match.covariance * share + doubt, float(match.pose[2]))


def spread_blind(before: Floats, after: Floats) -> Floats:
    """Return the covariance (6, 6) of a motion by odometry alone: what a longer way adds to its drift.

    Wheels err alike all the way, so that sigmas grow with it, however many samples it has.

    Parameters
    ----------
    before, after : (2,)
        Metres and radians since the last match, without and with the motion.
    """
    first, last = (_drift(*way) for way in (before, after))
    added = last**2 - first**2 + LEAST_BLIND**2
    aside = (after[0] - before[0]) ** 2 * added[2] / 3.0  # of a long motion whose heading drifts meanwhile
    return lift_covariance(np.diag(added + np.array([aside, aside, 0.0])), 0.0)


def _drift(way: float, turn: float) -> Floats:
    """Return sigmas (3,) after a way, m, and a turn, rad, by odometry alone."""
    ahead = DRIFT[0] * way
    return np.array([ahead, ahead, min(DRIFT[1] * way + DRIFT[2] * turn, MOST_DRIFT)])


def place_walls(keys: list[tuple[Floats, Floats]]) -> Floats:
    """Return the walls (n, 2) of scans at their poses (3,)."""
    placed = [walls @ lift_pose(pose)[:2, :2].T + pose[:2] for pose, walls in keys]
    return np.concatenate(placed)


def relate(first: Floats, second: Floats) -> Floats:
    """Return the motion (3,) from one pose (3,) to another in the axes of the first."""
    c, s = np.cos(first[2]), np.sin(first[2])
    x, y, turn = second - first
    return np.array([c * x + s * y, c * y - s * x, (turn + np.pi) % (2 * np.pi) - np.pi])


def compose(first: Floats, motion: Floats) -> Floats:
    """Return the pose (3,) after a motion (3,) in the axes of a pose (3,)."""
    c, s = np.cos(first[2]), np.sin(first[2])
    x, y, turn = motion
    return np.array([first[0] + c * x - s * y, first[1] + s * x + c * y, first[2] + turn])
