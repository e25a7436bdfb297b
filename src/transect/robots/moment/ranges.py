"""Views of lasers, radars and lidars for `transect draw moment`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats
from transect.draw.moment import OverTime, Points, Ranges, Spectrum, Together
from transect.errors import StreamError, UsageError
from transect.geometry import se3
from transect.geometry.planar import points_from_polar
from transect.recording import arrow
from transect.types import LaserScan, PointCloud, RadarRange, RadarSpectrum, Record

from ..overlay import points_of
from .sample import revolution

if TYPE_CHECKING:
    from transect.recording import Stream

    from .sample import Moment


FLAT = 0.05
"""A scan that is so much narrower than long, seen from above, is in a vertical plane."""
THING = ("kind", "x", "y", "z", "size")
"""Columns of a table of things, where they are in the world, and half their lengths, m."""
NEAR = 0.15
"""m: a return so near to a thing's surface is taken to be from it."""


# Points


def show_points(moment: Moment, streams: Sequence[Stream], side: bool | None = None) -> Points | Together:
    """Return what was there, from above or from the right side; None: only vertical scans from the side."""
    parts = [_points(moment, stream, side) for stream in streams if stream.type is not Record]
    if not parts:
        raise StreamError(f"{streams[0].name} has no points")
    if len(streams) == 1:
        return parts[0]
    things = _find_things(moment, streams, np.concatenate([part.points for part in parts]))
    said = "returns, and + where things are" if things else "returns"
    return Together(f"{moment.heading}{said}", tuple(parts), things)


def _points(moment: Moment, stream: Stream, side: bool | None) -> Points:
    T, frame = moment.placed(stream)
    if stream.type is PointCloud:
        value, dt = moment.sample(stream)
        found = points_of(value)
    else:
        dt = None if moment.window else moment.sample(stream)[1]
        found = _points_of_scans(_polar(moment, stream, lines=False)[0])
    points = moment.upright(T, found)
    if side is None:
        side = stream.type is LaserScan and _stands(points)
    return Points(moment.name(stream), points, dt, stream.type is PointCloud, frame, side)


def _points_of_scans(polar: Sequence[Floats]) -> Floats:
    angles, ranges = np.concatenate(polar).T
    return points_from_polar(ranges, angles)


def _stands(points: Floats) -> bool:
    there = points[np.isfinite(points).all(axis=1)]
    if len(there) < 2:
        return False
    spread = np.ptp(there, axis=0)
    return bool(spread[1] < FLAT * max(spread[0], spread[2]))


def _returned(moment: Moment, scan: LaserScan) -> Floats:
    """Return the ranges (n,) of a scan, NaN where nothing came back, for which SICK lasers say a maximum."""
    robot = moment.recording.robot
    laser = robot.constants.get("laser", {}) if robot is not None else {}
    limit = scan.range_max or float(laser.get("maximum_range", np.inf))
    return np.where(scan.ranges < limit, scan.ranges, np.nan)


def _find_things(moment: Moment, streams: Sequence[Stream], points: Floats) -> tuple[tuple[str, Floats], ...]:
    """Return names and places (3,) in the body of known things from which points (n, 3) came back."""
    found: list[tuple[str, Floats]] = []
    for stream in streams:
        if stream.type is not Record:
            continue
        if not {*THING} <= {*stream.columns} or moment.recording.truth is None:
            raise StreamError(f"{stream.name} has no {', '.join(THING)}, or there is no true trajectory")
        true = moment.recording.truth.at(moment.t_ns).value
        T_body_world = se3.invert(se3.from_quaternion(true.orientation, true.position))
        places = se3.apply(T_body_world, stream.array("x", "y", "z"))
        wide = np.asarray(stream.column("size"), dtype=np.float64)[:, :2].max(axis=1)
        for name, place, half in zip(arrow.texts(stream.table, "kind"), places, wide, strict=True):
            if (np.hypot(*(points - place)[:, :2].T) <= NEAR + half).any():
                found.append((name, place))
    return tuple(found)


# Range over bearing


def show_ranges(moment: Moment, streams: Sequence[Stream], lines: bool = False) -> Ranges:
    """Return ranges over bearing as dots or as lines, which go off the picture where no beam came back."""
    stream = streams[0]
    if extra := [other.name for other in streams[1:] if other.type is not Record]:
        raise UsageError(
            f"{', '.join(extra)} cannot be drawn into {stream.name}", hint="one --panel for each"
        )
    T, frame = moment.placed(stream)
    polar, word = _polar(moment, stream, lines)
    scans = [np.column_stack([moment.bearings(T, each[:, 0]), each[:, 1]]) for each in polar]
    said = f"{len(scans)} {word}{'s' if len(scans) > 1 else ''}"
    points = moment.upright(T, _points_of_scans(polar))
    sensor = moment.upright(T, np.zeros((1, 3)))[0]
    things: list[tuple[str, Floats]] = []
    for name, place in _find_things(moment, streams[1:], points):
        x, y, _ = place - sensor
        things.append((name, np.array([np.arctan2(y, x), np.hypot(x, y)])))
    return Ranges(moment.name(stream, said), scans, lines, None, frame, tuple(things))


def _polar(moment: Moment, stream: Stream, lines: bool) -> tuple[list[Floats], str]:
    """Return angle and range (n, 2) of each scan or turn, and the word for it."""
    part = moment.during(stream)
    if stream.type is RadarRange:
        found = part.array("angle", "range")
        turns = np.flatnonzero(np.abs(np.diff(found[:, 0])) > np.pi) + 1
        return np.split(found, turns), "turn"
    scans: list[LaserScan] = [sample.value for sample in part]
    polar = [np.column_stack([s.angles, s.ranges if lines else _returned(moment, s)]) for s in scans]
    return polar, "scan"


def show_scans_over_time(moment: Moment, streams: Sequence[Stream]) -> OverTime:
    """Return the range of each beam over time; of interleaved scans the nearest beam is taken."""
    stream = streams[0]
    part = moment.throughout(stream)
    T, _ = moment.placed(stream)
    scans = [sample.value for sample in part]
    grid = max((scan.angles for scan in scans), key=len)
    nearest = [np.abs(scan.angles - grid[:, None]).argmin(axis=1) for scan in scans]
    ranges = np.stack([_returned(moment, scan)[at] for scan, at in zip(scans, nearest, strict=True)])
    bearings = moment.bearings(T, grid)
    order = np.argsort(-bearings, kind="stable")
    name, seconds = moment.name(stream), moment.seconds(part)
    return OverTime(name, ranges[:, order], seconds, bearings[order], "bearing", "range / m")


# Spectra


def show_spectrum(moment: Moment, streams: Sequence[Stream]) -> Spectrum:
    """Return a turn of a radar, and what another stream found in it."""
    stream = streams[0]
    value, dt = moment.sample(stream)
    T, frame = moment.placed(stream)
    rows, angles = value.reflectivity, value.angle
    if rows.ndim == 1:
        turn = revolution(stream, moment.t_ns)
        rows, angles = turn.column("reflectivity"), turn.column("angle")
    bearings = moment.bearings(T, np.atleast_1d(angles))
    detected = _find_detected(moment, stream, T)
    return Spectrum(moment.name(stream), np.atleast_2d(rows), bearings, value.ranges, dt, detected, frame)


def _find_detected(moment: Moment, stream: Stream, T: Floats) -> Floats | None:
    """Return bearings and ranges (k, 2) that the vehicle's software found in the same turn."""
    for other in moment.recording.streams:
        if other.type is RadarRange and other.frame == stream.frame and len(other):
            found = revolution(other, moment.t_ns).array("angle", "range")
            return np.column_stack([moment.bearings(T, found[:, 0]), found[:, 1]])
    return None


def show_spectra_over_time(moment: Moment, streams: Sequence[Stream]) -> OverTime:
    """Return the spectra over time, whichever way the radar looked."""
    stream = streams[0]
    part = moment.throughout(stream)
    value: RadarSpectrum = part[0].value
    if value.reflectivity.ndim > 1:
        raise StreamError(f"{stream.name} has whole turns, whose lines have no times")
    rows = np.stack([sample.value.reflectivity for sample in part])
    return OverTime(moment.name(stream), rows, moment.seconds(part), value.ranges, "range", "reflectivity")
