"""S07: can latitude and longitude be what they are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import angle_turned
from transect.integrity.windows import Window
from transect.types import Imu, NavFix, Odometry

NEAR = 0.002
"""rad, some 13 km: two receivers of one robot are nearer."""
SPAN_S = 30.0
"""Over which turns are compared."""
STEP_S, STEP_M = 1.0, 0.3
"""Seconds from one course to the next, and metres that the robot must go in them for it to have one."""
LEAST_TURN, LEAST_COURSES = 0.5, 8
"""rad that courses turn back and forth in all, and courses, for turns to be compared."""
SWAPPED = "latitude and longitude are exchanged; exchange their columns"


class Coordinates(Check, id="S07", group="signal", version=2):
    """Positions that are none, or earlier ones or another receiver's, exchanged; courses that turn wrong.

    ``|lat| > 90 deg`` cannot be. Exchanged coordinates are a mirror image: the course between fixes turns
    right where wheels or gyroscopes turn left. `mirrored` is ``|dc - dh|^2 / |dc + dh|^2`` over half a
    minute, of courses c and headings h. The smallest of all peers counts. With a single peer it cannot be
    told whether that one turns the wrong way: then the check is SUSPECT at most.

    Motive: ROS, KML and GeoJSON write longitude first or last.
    """

    outside = Limit(0.0, 0.01, "RANGE_LIMIT", "", "part of the fixes that are nowhere on Earth")
    exchanged = Limit(0.0, 1.0, "DISAGREE", "", "1 if another receiver, or it before, has them exchanged")
    mirrored = Limit(3.0, 6.0, "DISAGREE", "", "how much better courses fit if they are mirrored")

    def reset(self) -> None:
        """It was nowhere yet."""
        self._place: Floats | None = None

    def look(
        self, fixes: Window[NavFix], others: Sequence[Window[NavFix | Odometry | Imu]] = ()
    ) -> Finding | Unknown:
        """Judge the numbers themselves, then other receivers, then turns."""
        points = fixes.array("lat", "lon")
        known = points[np.isfinite(points).all(axis=1)]
        if not len(known):
            return Unknown("NAN", n=len(fixes))
        outside = (np.abs(known[:, 0]) > np.pi / 2 + 1e-9) | (np.abs(known[:, 1]) > 2 * np.pi + 1e-9)
        statistics = {"outside": float(outside.mean())}
        if outside.any():
            return Finding(statistics, len(fixes), note=SWAPPED)
        middle = np.median(known, axis=0)
        told = _tell(middle, [_place_of(each) for each in others if issubclass(each.stream.type, NavFix)])
        told = told or _tell(middle, [self._place])  # where nobody else tells, it itself did before
        statistics["exchanged"] = float(bool(told) and all(told))
        self._place = self._place if statistics["exchanged"] else middle
        ratios = {w.stream.name: r for w in others if (r := _mirror(fixes.history(SPAN_S), w)) is not None}
        if ratios:
            statistics["mirrored"] = min(ratios.values())
        wrong = statistics["exchanged"] > 0 or statistics.get("mirrored", 0.0) > self.mirrored.warn
        alone = len(ratios) == 1 and not statistics["exchanged"]
        note = SWAPPED if wrong else ""
        return Finding(statistics, len(fixes), note=note, peers=tuple(ratios), floor=0.2 if alone else 0.0)


def _tell(middle: Floats, places: Sequence[Floats | None]) -> list[bool]:
    """Return what places tell of one: whether it is exchanged; those that tell nothing are left out."""
    answers = [_is_exchanged(middle, place) for place in places if place is not None]
    return [answer for answer in answers if answer is not None]


def _place_of(other: Window[Any]) -> Floats | None:
    """Return the latitude and longitude (2,) where a receiver is, rad; None where it has no fix."""
    points = other.array("lat", "lon") if other.has("lat", "lon") else np.zeros((0, 2))
    points = points[np.isfinite(points).all(axis=1)]
    return np.median(points, axis=0) if len(points) else None


def _is_exchanged(middle: Floats, there: Floats) -> bool | None:
    """Tell whether a place (2,) is another one with its coordinates exchanged; None: neither."""
    if np.abs(there - middle).max() < NEAR:
        return False
    return True if np.abs(there[::-1] - middle).max() < NEAR else None


def _mirror(fixes: Window[Any], peer: Window[Any]) -> float | None:
    """Return how much better the peer's turns fit a mirrored course than the course; None without turns."""
    turns = angle_turned(peer.history(SPAN_S))
    if turns is None:
        return None
    t, turned = turns
    points = fixes.array("lat", "lon")
    ok = np.isfinite(points).all(axis=1)
    at, first = np.unique(np.rint((fixes.t_ns[ok] - fixes.t0_ns) / 1e9 / STEP_S), return_index=True)
    if len(at) < LEAST_COURSES:
        return None
    places, times = points[ok][first], fixes.t_ns[ok][first]
    steps = np.diff(places, axis=0) * 6_371_000.0 * np.array([1.0, np.cos(places[0, 0])])
    moved = np.linalg.norm(steps, axis=1) > STEP_M
    course = -np.arctan2(steps[:, 1], steps[:, 0])  # to the left, as gyroscopes count
    change = (np.diff(course) + np.pi) % (2 * np.pi) - np.pi
    middle = times[:-1] + np.diff(times) // 2
    heading = np.interp(middle, t, turned, left=np.nan, right=np.nan)
    good = moved[1:] & moved[:-1] & np.isfinite(np.diff(heading)) & (np.diff(at)[1:] == 1)
    change, turn = change[good], np.diff(heading)[good]
    size = float(np.sum(np.abs(turn)))
    if len(turn) < LEAST_COURSES or size < LEAST_TURN or float(np.sum(np.abs(change))) < LEAST_TURN:
        return None
    floor = 1e-3 * len(turn)
    return float((np.sum((change - turn) ** 2) + floor) / (np.sum((change + turn) ** 2) + floor))
