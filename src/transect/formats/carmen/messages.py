"""CARMEN's messages, read: a word, numbers, then `ipc_timestamp host logger_timestamp`.

=================== ==========================================================================================
FLASER RLASER LASERn num_readings [readings] x y theta odom_x odom_y odom_theta
RAWLASERn            laser_type start_angle field_of_view angular_resolution maximum_range accuracy
                     remission_mode num_readings [readings] num_remissions [remissions]
ROBOTLASERn          as RAWLASERn, then laser_x laser_y laser_theta robot_x robot_y robot_theta tv rv
                     forward_safety_dist side_safety_dist turn_axis
ODOM                 x y theta tv rv accel
TRUEPOS              true_x true_y true_theta odom_x odom_y odom_theta
=================== ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.recording import Loss, Parsed, arrow
from transect.recording.text import Tokens, bad_stamp
from transect.types import LaserScan, Odometry, Pose
from transect.types.returns import BEYOND_MAXIMUM, TOO_FAR, Errors, sick_errors

from ..shared.rows import lines_lost, token_stamps
from . import PLANAR, POSES, SCANS, CarmenLogForm

MAX_SICK_RANGE_M = BEYOND_MAXIMUM / 100
"""Readings of a SICK at or above this are codes."""
MAX_SICK_LIMIT_M = 82.0
"""A laser with a larger limit is not a SICK LMS 2xx."""
LINE = "line"
"""Column with the line number of each message, until the log times are known."""
STAMP_TOKENS = 3
"""Tokens after the values: `ipc_timestamp host logger_timestamp`."""
_METRES = ("x", "y", "odom_x", "odom_y", "accuracy", "forward_safety_dist", "side_safety_dist")
_RADIANS = ("theta", "odom_theta", "field_of_view")
_UNITS = {
    **dict.fromkeys(_METRES, "m"),
    **dict.fromkeys(_RADIANS, "rad"),
    "tv": "m/s",
    "rv": "rad/s",
    "accel": "m/s2",
    "logger_ns": "ns",
}


def parse_messages(tokens: Tokens, file: str, others: dict[str, int]) -> dict[str, Parsed]:
    """Return the scans and planar messages of a text by keyword; count other keywords in `others`."""
    words = np.array(tokens.words(0), dtype=str)
    parsed: dict[str, Parsed] = {}
    for word in sorted(set(words.tolist())):
        lines = np.flatnonzero(words == word)
        if word in SCANS:
            parsed[word] = _scans(tokens, lines, file, SCANS[word])
        elif word in PLANAR:
            parsed[word] = _planar(tokens, lines, file, word)
        elif not word.startswith("#"):
            others[word] = others.get(word, 0) + len(lines)
    return parsed


def _planar(tokens: Tokens, lines: Ints, file: str, word: str) -> Parsed:
    six = np.full(len(lines), 7)
    times = _time(tokens, lines, six, _sound(tokens, lines, six), file)
    x, y, theta, *rest = np.ascontiguousarray(tokens.block(1, 6, times.lines).T)
    nothing = np.zeros_like(x)
    columns = {"x": x, "y": y, "z": nothing, "theta": theta, "qx": nothing, "qy": nothing}
    columns |= {"qz": np.sin(theta / 2), "qw": np.cos(theta / 2)}
    if word == "ODOM":
        columns |= {"vx": rest[0], "vy": nothing, "vz": nothing, "wx": nothing, "wy": nothing}
        columns |= {"wz": rest[1], "accel": rest[2]}
        return times.parsed(columns, Odometry.units())
    return times.parsed({**columns, **dict(zip(POSES[3:], rest, strict=True))}, Pose.units())


def _scans(tokens: Tokens, lines: Ints, file: str, form: CarmenLogForm) -> Parsed:
    """Parse scans; the numbers of readings and of remissions must agree with the length of the line."""
    shape = _shape(tokens, lines, form)
    good = (shape.readings >= 0) & (shape.remissions >= 0) & _sound(tokens, lines, shape.stamps)
    times = _time(tokens, lines, shape.stamps, good, file)
    shape = _shape(tokens, times.lines, form)
    first = tokens.first[times.lines]
    ranges, offsets = tokens.ragged(shape.at + 1, shape.readings, times.lines)
    columns = dict(zip(form.head, tokens.block(1, len(form.head), times.lines).T, strict=True))
    columns = columns or sick_geometry(shape.readings)
    limit = np.repeat(columns.get("range_max", np.full(len(first), MAX_SICK_RANGE_M)), shape.readings)
    errors = range_errors(ranges, limit)
    tail = tokens.values[(first + shape.stamps - len(form.tail))[:, None] + np.arange(len(form.tail))]
    scan = {
        "ranges": arrow.ragged_from_offsets(np.where(errors, np.nan, ranges), offsets),
        **columns,
        "range_error": arrow.ragged_from_offsets(errors, offsets),
    }
    if form.remissions:
        after = shape.at + shape.readings + 2
        found = tokens.ragged(after, shape.remissions, times.lines)
        scan["remission"] = arrow.ragged_from_offsets(*found)
    return times.parsed({**scan, **dict(zip(form.tail, tail.T, strict=True))}, LaserScan.units())


def range_errors(ranges: Floats, limit: float | Floats) -> Errors:
    """Return the error codes of readings in metres, 0 for returns.

    A reading at the limit, or beyond it, says that nothing did. The codes of a SICK are known by themselves,
    since logs also have limits just above them; only lasers that see farther can have measured such ranges.
    """
    errors = np.where(np.asarray(limit) <= MAX_SICK_LIMIT_M, sick_errors(ranges * 100), 0)
    return np.where((errors == 0) & (ranges >= limit), TOO_FAR, errors).astype(np.uint16)


def sick_geometry(readings: Ints) -> dict[str, Floats]:
    """Return the angles of old messages, which lack them: a SICK covers 180 degrees (100 with 401 beams)."""
    view = np.where(readings == 401, np.radians(100.0), np.pi)
    steps = np.where(readings % 2, readings - 1, readings).clip(1)
    return {"start_angle": -view / 2, "angle_increment": view / steps}


@dataclass(frozen=True, eq=False)
class _Shape:
    """Token positions in scan lines, counted from the keyword; -1 for invalid lines."""

    at: int
    readings: Ints
    remissions: Ints
    stamps: Ints


def _shape(tokens: Tokens, lines: Ints, form: CarmenLogForm) -> _Shape:
    at = 1 + len(form.head)
    readings = _count(tokens, lines, np.full(len(lines), at))
    nothing = np.zeros(len(lines), np.int64)
    remissions = _count(tokens, lines, at + 1 + readings) if form.remissions else nothing
    values = at + 1 + readings + form.remissions * (1 + remissions)
    return _Shape(at, readings, remissions, values + len(form.tail))


def _count(tokens: Tokens, lines: Ints, at: Ints) -> Ints:
    """Return token `at` of each line as a count; -1 if it is not a count, or exceeds the line."""
    length = tokens.counts[lines]
    value = tokens.values[tokens.first[lines] + at.clip(0, length - 1)]
    good = (at < length) & (value >= 0) & (value < length) & (value == np.trunc(value))
    return np.where(good, value, -1).astype(np.int64)


def _sound(tokens: Tokens, lines: Ints, stamps: Ints) -> NDArray[np.bool_]:
    """Return which lines end with stamps and have no words except the keyword and the host name."""
    length = tokens.counts[lines]
    host = tokens.is_word[tokens.first[lines] + (length - 2).clip(0)]
    return (length == stamps + STAMP_TOKENS) & (tokens.word_counts[lines] - 1 - host == 0)


@dataclass(frozen=True, eq=False)
class _Timed:
    """Complete lines with both times."""

    lines: Ints
    numbers: Ints
    t_ns: Ints
    logger_ns: Ints
    losses: tuple[Loss, ...]

    def parsed(self, columns: Mapping[str, Any], units: Mapping[str, str]) -> Parsed:
        flat = {k: np.ascontiguousarray(v) if isinstance(v, np.ndarray) else v for k, v in columns.items()}
        own = {"logger_ns": self.logger_ns, LINE: self.numbers}
        return Parsed(arrow.table(self.t_ns, {**flat, **own}, units={**_UNITS, **units}), self.losses)


def _time(tokens: Tokens, lines: Ints, stamps: Ints, good: NDArray[np.bool_], file: str) -> _Timed:
    lost = lines_lost(tokens, lines[~good], "the number of fields is wrong, or one is text", file)
    first = (tokens.first[lines] + stamps)[good]
    t_ns, logger_ns = token_stamps(tokens, first), token_stamps(tokens, first + 2)
    bad = bad_stamp(t_ns) | bad_stamp(logger_ns)
    lost += lines_lost(tokens, lines[good][bad], "the time cannot be read", file)
    kept = lines[good][~bad]
    return _Timed(kept, tokens.line[kept].astype(np.int64), t_ns[~bad], logger_ns[~bad], tuple(lost))
