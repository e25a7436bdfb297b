"""Checks of impossible values: missing numbers, units, coordinates (S04, S06, S07)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.engine.nodes import param
from transect.integrity.checks._signals import Signals, names_in
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import EARTH_RADIUS_M, angle_turned
from transect.integrity.windows import Window
from transect.recording.plausibility import ACCELERATION, CHECKS, RATE, STANDARD_GRAVITY
from transect.types import Imu, NavFix, Odometry

INVALID_CONSTANTS = (-99999.0, -9999.0, 99999.0, 1e30, -1e30, 2147483647.0, -2147483648.0)
"""Numbers that logs write for missing values."""


class Invalid(Check, id="S04", group="signal"):
    """Fraction of the numbers that are NaN, infinite, or one of the constants that mean `no value`.

    A column that never had a value is not measured, and does not count; nor does a receiver that reports
    no fix.

    Motive: InSight SIS: `<invalid_constant>` in the labels of its tables.
    """

    share = Limit(0.001, 0.05, "NAN", "", "fraction of the numbers that are missing or invalid")

    def reset(self) -> None:
        """Start without a column that had a value."""
        self._seen: set[str] = set()

    def evaluate(self, stream: Window[Signals]) -> Finding | Unknown:
        """Count invalid numbers, in columns that had valid ones."""
        ratio, count = 0.0, 0
        for name in names_in(stream):
            values = stream.array(name)
            wrong = ~np.isfinite(values) | np.isin(values, INVALID_CONSTANTS)
            if not wrong.all():
                self._seen.add(name)
            if name in self._seen:
                ratio, count = max((ratio, count), (float(wrong.mean()), int(wrong.sum())))
        if not self._seen:
            return Unknown("NO_NUMBERS", n=len(stream))
        return Finding({"share": ratio}, len(stream), {"invalid": float(count)})


@dataclass(frozen=True)
class UnitSettings:
    """Numbers of the test for rest, and the schedule of the unit tests."""

    span_s: float = 30.0  # Past that is judged.
    first_judged_window: int = 5  # Window after which units are judged first, ...
    judge_interval: int = 10  # ... and windows from one judgement to the next.
    max_rest_change: float = 0.05  # Turn rate in rad/s, and change of the acceleration in m/s2, at rest.
    max_repeated_ratio: float = 0.5  # Ratio of repeated samples; beyond it the sensor is stuck (S01).
    min_gravity_ratio: float = 0.3  # Below it gravity was subtracted from the accelerations.


class UnitSanity(Check, id="S06", group="signal", version=3, min_samples=5):
    """At rest ``||a| - g|``; the 99th percentile of the turn rate; and units that contradict each other.

    The latter are the tests of `transect info`: gravity of 1 (in g), rates that contradict the motion of
    gravity (in deg/s), stamps that are too fast or too slow (in ms, us). Accelerations without gravity
    are valid.

    Motive: AMEDS has rates in deg/s beside rad/s; Rosario prints 8.27 rad/s/sqrt(Hz).
    """

    settings = UnitSettings()

    weight = Limit(0.3, 1.0, "UNIT", "m/s2", "difference of the acceleration at rest from gravity")
    turn = Limit(15.0, 20.0, "UNIT", "rad/s", "99th percentile of the turn rate")
    units = Limit(0.0, 1.0, "UNIT", "", "contradictions to the declared units")
    gravity: float = param(STANDARD_GRAVITY, gt=0.0, unit="m/s2", doc="local gravity; 3.71 on Mars")

    def reset(self) -> None:
        """Start without contradictions."""
        self._windows, self._found = 0, ""

    def evaluate(self, imu: Window[Imu]) -> Finding | Unknown:
        """Measure gravity and rates of the window; regularly judge the units of the last half minute."""
        self._windows += 1
        if (
            self._windows == self.settings.first_judged_window
            or self._windows % self.settings.judge_interval == 0
        ):
            self._found = _judge_units(imu.history(self.settings.span_s))
        statistics = {"units": float(bool(self._found))}
        if imu.has(*RATE):
            statistics["turn"] = float(np.percentile(np.linalg.norm(imu.array(*RATE), axis=1), 99))
        if imu.has(*ACCELERATION):
            statistics["weight"] = self._gravity(imu)
        return Finding(statistics, len(imu), note=self._found)

    def _gravity(self, imu: Window[Any]) -> float:
        """Return how far the mean acceleration at rest is from gravity; NaN in motion."""
        half = len(imu) // 2
        forces = imu.array(*ACCELERATION)
        change = np.linalg.norm(forces[:half].mean(axis=0) - forces[half:].mean(axis=0))
        turn = np.linalg.norm(imu.array(*RATE).mean(axis=0)) if imu.has(*RATE) else 0.0
        size = float(np.linalg.norm(forces.mean(axis=0)))
        stuck = (
            np.mean((np.diff(forces, axis=0) == 0).all(axis=1)) > self.settings.max_repeated_ratio
        )  # not at rest but stuck, see S01
        if (
            stuck
            or change > self.settings.max_rest_change
            or turn > self.settings.max_rest_change
            or size < self.settings.min_gravity_ratio * self.gravity
        ):
            return float("nan")
        return abs(size - self.gravity)


def _judge_units(past: Window[Any]) -> str:
    """Return in words what contradicts the declared units; "" if nothing does."""
    stream = past.as_stream()
    found = [str(finding) for judge in CHECKS if (finding := judge(stream)) is not None]
    return "; ".join(found)


SWAPPED = "latitude and longitude are exchanged; exchange their columns"


@dataclass(frozen=True)
class CoordinatesSettings:
    """Numbers of the comparison with other receivers and with turns."""

    same_position_rad: float = 0.002  # Some 13 km: two receivers of one robot are nearer.
    span_s: float = 30.0  # Time over which turns are compared.
    step_s: float = 1.0  # Time from one course to the next, ...
    min_step_m: float = 0.3  # ... in which the robot must move this far.
    min_turn_rad: float = 0.5  # Sum of the absolute turns, ...
    min_courses: int = 8  # ... and number of courses, for turns to be compared.


class ImplausibleCoordinates(Check, id="S07", group="signal", version=2):
    """Impossible or exchanged coordinates, and courses that turn the wrong way.

    ``|lat| > 90 deg`` is impossible. Exchanged coordinates are found by another receiver or earlier
    fixes, or as a mirror image: the course between fixes turns right where wheels or gyroscopes turn
    left. `mirrored` is ``|dc - dh|^2 / |dc + dh|^2`` over half a minute, for courses c and headings h;
    the smallest of all peers counts. With a single peer either may turn the wrong way, and the check is
    SUSPECT at most.

    Motive: ROS, KML and GeoJSON write longitude first or last.
    """

    settings = CoordinatesSettings()

    outside = Limit(0.0, 0.01, "RANGE_LIMIT", "", "fraction of the fixes with impossible coordinates")
    exchanged = Limit(
        0.0,
        1.0,
        "DISAGREE",
        "",
        "1 if latitude and longitude are exchanged against another receiver or earlier fixes",
    )
    mirrored = Limit(3.0, 6.0, "DISAGREE", "", "times better fit of the courses if they are mirrored")

    def reset(self) -> None:
        """Start without a position."""
        self._position: Floats | None = None

    def evaluate(
        self, fixes: Window[NavFix], others: Sequence[Window[NavFix | Odometry | Imu]] = ()
    ) -> Finding | Unknown:
        """Judge the numbers, then compare with other receivers, then with turns."""
        points = fixes.array("lat", "lon")
        known = points[np.isfinite(points).all(axis=1)]
        if not len(known):
            return Unknown("NAN", n=len(fixes))
        outside = (np.abs(known[:, 0]) > np.pi / 2 + 1e-9) | (np.abs(known[:, 1]) > 2 * np.pi + 1e-9)
        statistics = {"outside": float(outside.mean())}
        if outside.any():
            return Finding(statistics, len(fixes), note=SWAPPED)
        middle = np.median(known, axis=0)
        swapped = _compare_positions(
            middle,
            [_position_of(each) for each in others if issubclass(each.stream.type, NavFix)],
            self.settings,
        )
        swapped = swapped or _compare_positions(
            middle, [self._position], self.settings
        )  # without another receiver, compare with earlier fixes
        statistics["exchanged"] = float(bool(swapped) and all(swapped))
        self._position = self._position if statistics["exchanged"] else middle
        ratios = {
            w.stream.name: r
            for w in others
            if (r := _mirror(fixes.history(self.settings.span_s), w, self.settings)) is not None
        }
        if ratios:
            statistics["mirrored"] = min(ratios.values())
        wrong = statistics["exchanged"] > 0 or statistics.get("mirrored", 0.0) > self.mirrored.warn
        alone = len(ratios) == 1 and not statistics["exchanged"]
        note = SWAPPED if wrong else ""
        return Finding(
            statistics, len(fixes), note=note, peers=tuple(ratios), min_score=0.2 if alone else 0.0
        )


def _compare_positions(
    middle: Floats, positions: Sequence[Floats | None], settings: CoordinatesSettings
) -> list[bool]:
    """Return for each known position whether it is this one with its coordinates exchanged."""
    answers = [_is_exchanged(middle, position, settings) for position in positions if position is not None]
    return [answer for answer in answers if answer is not None]


def _position_of(other: Window[Any]) -> Floats | None:
    """Return the latitude and longitude (2,) of a receiver, rad; None without a fix."""
    points = other.array("lat", "lon") if other.has("lat", "lon") else np.zeros((0, 2))
    points = points[np.isfinite(points).all(axis=1)]
    return np.median(points, axis=0) if len(points) else None


def _is_exchanged(middle: Floats, there: Floats, settings: CoordinatesSettings) -> bool | None:
    """Return whether a position (2,) is another one with its coordinates exchanged; None for neither."""
    if np.abs(there - middle).max() < settings.same_position_rad:
        return False
    return True if np.abs(there[::-1] - middle).max() < settings.same_position_rad else None


def _mirror(fixes: Window[Any], peer: Window[Any], settings: CoordinatesSettings) -> float | None:
    """Return how much better the peer's turns fit a mirrored course than the course; None without turns."""
    turns = angle_turned(peer.history(settings.span_s))
    if turns is None:
        return None
    t, turned = turns
    points = fixes.array("lat", "lon")
    ok = np.isfinite(points).all(axis=1)
    at, first = np.unique(np.rint((fixes.t_ns[ok] - fixes.t0_ns) / 1e9 / settings.step_s), return_index=True)
    if len(at) < settings.min_courses:
        return None
    positions, times = points[ok][first], fixes.t_ns[ok][first]
    steps = np.diff(positions, axis=0) * EARTH_RADIUS_M * np.array([1.0, np.cos(positions[0, 0])])
    moved = np.linalg.norm(steps, axis=1) > settings.min_step_m
    course = -np.arctan2(steps[:, 1], steps[:, 0])  # to the left, as gyroscopes count
    change = (np.diff(course) + np.pi) % (2 * np.pi) - np.pi
    middle = times[:-1] + np.diff(times) // 2
    heading = np.interp(middle, t, turned, left=np.nan, right=np.nan)
    good = moved[1:] & moved[:-1] & np.isfinite(np.diff(heading)) & (np.diff(at)[1:] == 1)
    change, turn = change[good], np.diff(heading)[good]
    size = float(np.sum(np.abs(turn)))
    if (
        len(turn) < settings.min_courses
        or size < settings.min_turn_rad
        or float(np.sum(np.abs(change))) < settings.min_turn_rad
    ):
        return None
    floor = 1e-3 * len(turn)
    return float((np.sum((change - turn) ** 2) + floor) / (np.sum((change + turn) ** 2) + floor))
