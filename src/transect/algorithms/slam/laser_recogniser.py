"""Known places by planar scans: each is matched with the walls that were seen around an old keyframe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.types.places import Observation, PlaceMap

from ..odometry.laser_local_map import SPACING, place_walls
from ..odometry.laser_scans import THINNED, count_across, thin, walls_of
from ..odometry.laser_visibility import LaserView
from ..registration.planar_poses import flatten_pose, lift_covariance, lift_pose, relate
from ..registration.scan_matching import LikelihoodField, ScanMatch, SearchWindow
from .place_recognition import Guess, Loop

LOOP_FLOOR = np.array([0.02, 0.02, 0.005])
"""What a loop is worse than a match with the last scans: m, m and rad. Its submap bends as odometry did."""
LEAST, RIVAL = 0.6, 0.9
"""Least score of a known place, and the part of it that no other pose in the window may have."""
SLIDES = 0.15
"""Metres: sigma from which on a match tells too little of where along a wall it is."""
SIGMAS, SLACK, SLACK_TURN = 3.0, 0.3, 0.06
"""A place is looked for within three sigmas, and a bit more: m and rad."""
MOST_REACH = 8.0
"""Metres around where the graph has it in which a body is looked for; where it is less sure, it is lost."""
LOST_REACH = 4.0
"""Metres around a keyframe in which a body is looked for of which little is known."""
SEEN, LOST_SEEN = 0.4, 0.75
"""Part of the walls in view from a known place that must have been seen; and where little else is known."""
BESIDE, TURNED, ACROSS = 1.0, 0.5, 5.0
"""Beyond so many metres or radians from the old place, so many points of walls across others must fit."""
AROUND, MOST = 4.0, 8
"""A submap: scans within so many metres of a keyframe, so many before and after it at most. A body further
away sees too little of it; where the graph is less sure, places further along are tried as well."""
APART = 2.0
"""Metres between candidates: nearer ones have the same submap."""
KEPT_FIELDS = 24
BINS, BIN = 40, 0.5
ALIKE = 12
"""Places that look most alike are tried, where nothing is known."""


@dataclass(frozen=True, eq=False)
class Place:
    """What was seen from a keyframe: returns (n, 2), pose (3,) by the front end, its segment, its looks."""

    points: Floats
    pose: Floats
    segment: float
    looks: Floats


class LaserRecogniser:
    """Keeps the scans of all keyframes; submaps are made of them when they are asked for."""

    def __init__(self, beam: float, view: LaserView) -> None:
        self.beam, self.view = beam, view
        self.places: dict[int, Place] = {}
        self._fields: dict[int, LikelihoodField] = {}

    def __deepcopy__(self, memo: object) -> LaserRecogniser:
        other = LaserRecogniser(self.beam, self.view)
        other.places = dict(self.places)
        return other

    def add(self, k: int, observation: Observation) -> None:
        """Store the scan of keyframe `k`, and discard the cached submaps that it belongs to."""
        points = np.asarray(observation["points"], np.float64)
        front = np.asarray(observation["front"], np.float64)[0]
        self.places[k] = Place(points, front[:3], float(front[3]), looks_of(points))
        added = self.places[k]
        self._fields = {old: field for old, field in self._fields.items() if added not in self._around(old)}

    def candidates(self, observation: Observation, allowed: Ints) -> Sequence[int]:
        """Return the first of the places that are allowed, a few metres apart; all those that look alike."""
        chosen: list[int] = []
        for k in allowed.tolist():
            if not any(self._are_near(k, other) for other in chosen):
                chosen.append(k)
        looks = looks_of(np.asarray(observation["points"], np.float64))
        alike = sorted(chosen[2:], key=lambda k: -float(self.places[k].looks @ looks))
        return [*chosen[:2], *alike[:ALIKE]]

    def verify(self, old: int, observation: Observation, guess: Guess | None) -> Loop | None:
        """Return where a scan fits into the walls around an old keyframe, if it fits nowhere else.

        Of a lost body what fits, and proves little, is told as well: it may be at another place then.
        """
        points = np.asarray(observation["points"], np.float64)
        if len(points) < 20:
            return None
        window = window_of(guess)
        scan = thin(walls_of(points, self.beam, SPACING), THINNED)
        field = self._field(old)
        match = field.search(scan, window, LEAST, RIVAL)
        if match is None or match.score < LEAST or match.rival >= RIVAL:
            return None
        seen = self.view.share_seen(points, self._walls_around(old), match.pose)
        lost, away = is_lost(guess), float(np.hypot(*match.pose[:2])) > AROUND
        weak = away or slides(match, scan[field.fits(scan, match.pose)])
        if seen < SEEN or (weak and not lost):
            return None
        return replace(loop_of(match), sure=not (lost and (weak or seen < LOST_SEEN)))

    def _are_near(self, a: int, b: int) -> bool:
        first, second = self.places[a], self.places[b]
        moved = relate(first.pose, second.pose)
        return first.segment == second.segment and float(np.hypot(*moved[:2])) < APART and abs(moved[2]) < 1.0

    def _field(self, old: int) -> LikelihoodField:
        """Return the walls around an old keyframe, in its axes."""
        if old not in self._fields:
            while len(self._fields) >= KEPT_FIELDS:
                self._fields.pop(next(iter(self._fields)))
            self._fields[old] = LikelihoodField(self._walls_around(old))
        return self._fields[old]

    def _walls_around(self, old: int) -> Floats:
        return place_walls(
            (relate(self.places[old].pose, each.pose), walls_of(each.points, self.beam, SPACING))
            for each in self._around(old)
        )

    def _around(self, old: int) -> list[Place]:
        here = self.places[old]
        numbers = list(self.places)
        at = numbers.index(old)
        near = [self.places[k] for k in numbers[max(at - MOST, 0) : at + MOST + 1]]
        return [
            each
            for each in near
            if each.segment == here.segment and np.hypot(*(each.pose - here.pose)[:2]) <= AROUND
        ]


def slides(match: ScanMatch, fitting: Floats) -> bool:
    """Tell whether a scan, whose points (n, 2) fit there, could as well be elsewhere along a wall.

    Of one straight wall its ends tell where along it the body is. From beside the old place, or from another
    side, other parts of it are hidden, and the ends are others.
    """
    if np.linalg.eigvalsh(match.covariance[:2, :2])[-1] > SLIDES**2:
        return True
    moved = np.hypot(*match.pose[:2]) > BESIDE or np.cos(match.pose[2]) < np.cos(TURNED)
    return bool(moved and count_across(fitting) < ACROSS)


def is_lost(guess: Guess | None) -> bool:
    """Tell whether a body may be further from where the graph has it than it can be looked for."""
    return guess is None or SIGMAS * np.sqrt(np.linalg.eigvalsh(guess.covariance[:3, :3])[-1]) > MOST_REACH


def window_of(guess: Guess | None) -> SearchWindow:
    """Return where to look for a body of which the graph says so much; a lost one around the keyframe."""
    if guess is None:
        return SearchWindow(np.zeros(3), LOST_REACH, np.pi)
    spread, pose = guess.covariance, flatten_pose(guess.T_old_new)
    turn = min(SLACK_TURN + SIGMAS * np.sqrt(spread[5, 5]), np.pi)
    if is_lost(guess):
        return SearchWindow(np.array([0.0, 0.0, pose[2]]), LOST_REACH, turn)
    return SearchWindow(pose, SLACK + SIGMAS * np.sqrt(np.linalg.eigvalsh(spread[:2, :2])[-1]), turn)


def looks_of(points: Floats) -> Floats:
    """Return how often points (n, 2) are how far from each other (40,): the same however they are turned."""
    few = points[:: max(len(points) // 90, 1)]
    away = np.linalg.norm(few[:, None] - few[None], axis=-1)[np.triu_indices(len(few), 1)]
    counts = np.histogram(away, BINS, (0.0, BINS * BIN))[0].astype(np.float64)
    return np.sqrt(counts / max(counts.sum(), 1.0))


def max_segment(observations: Sequence[Observation]) -> float:
    """Return the largest number of a segment in a map."""
    return max((float(each["front"][0, 3]) for each in observations if len(each["front"])), default=0.0)


def separate(first: PlaceMap, second: PlaceMap) -> list[Observation]:
    """Return what was seen in a second map, its segments numbered after those of a first one."""
    after = np.array([0.0, 0.0, 0.0, max_segment(first.observations)])
    return [{**seen, "front": seen["front"] + after} for seen in second.observations]


def recogniser_of(calibration: Mapping[str, Any]) -> LaserRecogniser:
    """Return a new recogniser for the laser that a map tells of."""
    return LaserRecogniser(float(calibration["beam"]), LaserView.of(calibration))


def loop_of(match: ScanMatch) -> Loop:
    """Return a match in the frame of an old keyframe as a loop."""
    spread = match.covariance + np.diag(LOOP_FLOOR**2)
    return Loop(lift_pose(match.pose), lift_covariance(spread, float(match.pose[2])), match.score)
