"""Tables from the lines of SDI logs (3.2.1 to 3.2.4 and 3.2.6), in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.base.units import to_si, unit_of
from transect.recording import arrow
from transect.recording.text import Tokens
from transect.robots import load
from transect.robots.fmcw_radar import Radar
from transect.types import LaserScan, RadarRange, RadarSpectrum, Record, RigidBodyState, Twist
from transect.types.returns import Errors, sick_errors

from .lines import LogProblems, find_valid_lines, is_whole_number, lines_of

TABLE = "table"
LASER_WORD, RADAR_WORD, NAV_WORD = b"RANGE_DATA", b"RANGE_REFLECTIVITY_DATA", b"NAV_DATA"

NAV_COLUMNS = (
    *("north", "east", "down", "dnorth", "deast", "ddown"),
    *("roll", "pitch", "yaw", "droll", "dpitch", "dyaw"),
)
"""The twelve numbers of a NAV_DATA line, in the order of the line and of its covariance matrix."""
_NAV_UNITS = dict(zip(NAV_COLUMNS, ["m"] * 3 + ["m/s"] * 3 + ["rad"] * 3 + ["rad/s"] * 3, strict=True))
STATES = len(NAV_COLUMNS)


class RangeUnit(IntEnum):
    """RangeUnitType of the logs."""

    MILLIMETRES = 1
    CENTIMETRES = 2
    METRES = 3
    KILOMETRES = 4


RANGE_UNITS = {1: unit_of("mm"), 2: unit_of("cm"), 3: unit_of("m"), 4: unit_of("km")}
_NO_UNIT = "RangeUnitType is none of 1 mm, 2 cm, 3 m, 4 km"


@cache
def radar() -> Radar:
    """Return the model of the Argo's radar, which converts bins to ranges (eq. 1)."""
    return Radar.of(load("argo"))


def nav_block(tokens: Tokens, problems: LogProblems) -> Mapping[str, pa.Table]:
    """Read NAV_DATA lines: the body in the Navigation frame (UTM north, east, down), and its covariance."""
    lines, t_ns = lines_of(tokens, NAV_WORD, problems, width=2 + STATES + STATES**2)
    values = tokens.block(2, STATES, lines)
    columns = dict(zip(NAV_COLUMNS, values.T, strict=True))
    q, w = attitude(values[:, 6:9], values[:, 9:12])
    canonical = np.column_stack([values[:, :3], q, values[:, 3:6], w])
    names = ("x", "y", "z", "qx", "qy", "qz", "qw", "vx", "vy", "vz", "wx", "wy", "wz")
    table = arrow.table(
        t_ns,
        {
            **dict(zip(names, canonical.T, strict=True)),
            "covariance": tokens.block(2 + STATES, STATES**2, lines),
            **columns,
        },
        units={**RigidBodyState.units(), **_NAV_UNITS},
    )
    return {TABLE: table}


def attitude(euler: Floats, rates: Floats) -> tuple[Floats, Floats]:
    """Return quaternions (n, 4) and angular velocities (n, 3) in the Navigation frame.

    Parameters
    ----------
    euler, rates : (n, 3) array
        Roll, pitch, yaw in rad, ``R = Rz Ry Rx``, and their derivatives in rad/s.
    """
    from transect.geometry import rotations

    with np.errstate(all="ignore"):  # an infinite angle gives an attitude of NaN
        sin_pitch, cos_pitch = np.sin(euler[:, 1]), np.cos(euler[:, 1])
        sin_yaw, cos_yaw = np.sin(euler[:, 2]), np.cos(euler[:, 2])
        droll, dpitch, dyaw = rates.T
        w = [
            droll * cos_pitch * cos_yaw - dpitch * sin_yaw,
            droll * cos_pitch * sin_yaw + dpitch * cos_yaw,
            dyaw - droll * sin_pitch,
        ]
        return rotations.quaternion_from_euler("rpy", euler), np.column_stack(w)


def laser_block(tokens: Tokens, problems: LogProblems) -> Mapping[str, pa.Table]:
    """Read RANGE_DATA lines, ragged; a line with a wrong NScans keeps the smaller number of ranges."""
    lines, t_ns = lines_of(tokens, LASER_WORD, problems, min_width=7)
    head = tokens.block(2, 5, lines)
    good = known_units(head[:, 3])
    problems.passed(tokens, lines, good, _NO_UNIT)
    is_count = is_whole_number(head[:, 4], minimum=0)
    problems.passed(tokens, lines, is_count | ~good, "NScans is not a whole number")
    good &= is_count
    lines, t_ns, head = lines[good], t_ns[good], head[good]
    present = tokens.counts[lines] - 7
    problems.passed(tokens, lines, head[:, 4] <= present, "there are fewer ranges than NScans says")
    problems.passed(tokens, lines, head[:, 4] >= present, "there are more ranges than NScans says")
    counts = np.minimum(head[:, 4], present).astype(np.int64)
    ranges, offsets = tokens.ragged(7, counts, lines)
    one_unit = len(lines) > 0 and bool((head[:, 3] == head[0, 3]).all())
    unit = head[:1, 3] if one_unit else np.repeat(head[:, 3], counts)
    in_metres = metres(ranges, unit)
    errors = range_errors(ranges, in_metres, unit)
    found = drop_unmeasured(in_metres, problems)
    found[errors > 0] = np.nan
    table = arrow.table(
        t_ns,
        {
            "ranges": arrow.ragged_from_offsets(found, offsets),
            "start_angle": head[:, 0],
            "angle_increment": head[:, 1],
            "end_angle": head[:, 2],
            "range_unit": head[:, 3].astype(np.int8),
            "range_error": arrow.ragged_from_offsets(errors, offsets),
        },
        units={**LaserScan.units(), "end_angle": "rad"},
    )
    return {TABLE: table}


def metres(ranges: Floats, unit_types: NDArray[Any]) -> Floats:
    """Return ranges in metres; RangeUnitType 1 mm, 2 cm, 3 m, 4 km, one for each range or one for all."""
    with np.errstate(over="ignore"):
        if len(unit_types) == 1:
            return RANGE_UNITS[int(unit_types[0])].to_si(ranges)
        return np.select(
            [unit_types == kind for kind in RANGE_UNITS],
            [u.to_si(ranges) for u in RANGE_UNITS.values()],
            np.nan,
        )


def range_errors(ranges: Floats, in_metres: Floats, unit_types: NDArray[Any]) -> Errors:
    """Return the error codes of the SICK lasers among logged ranges, 0 for measured ranges.

    In cm mode the code 8191 is 81.91 m, in any unit of the log. In mm mode, used for the calibration of the
    cameras (footnote 4), it is 8.191 m, and is recognised only if the unit is mm.
    """
    errors = sick_errors(ranges if (unit_types == RangeUnit.CENTIMETRES).all() else in_metres * 100)
    is_mm = unit_types == RangeUnit.MILLIMETRES
    return np.where(is_mm & (errors == 0), sick_errors(ranges), errors) if is_mm.any() else errors


def in_units(ranges: Floats, unit_types: NDArray[Any]) -> Floats:
    """Return ranges in metres in their RangeUnitTypes, one for each range."""
    kinds = [unit_types == kind for kind in RANGE_UNITS]
    return np.select(kinds, [unit.from_si(ranges) for unit in RANGE_UNITS.values()], np.nan)


def known_units(unit_types: Floats) -> NDArray[np.bool_]:
    """Return which RangeUnitTypes are known."""
    return (unit_types == 1) | (unit_types == 2) | (unit_types == 3) | (unit_types == 4)


def drop_unmeasured(ranges: Floats, problems: LogProblems) -> Floats:
    """Return ranges with NaN in place of negative and infinite ones."""
    if not len(ranges) or (ranges.min() >= 0 and ranges.max() < np.inf):
        return ranges
    bad = (ranges < 0) | np.isinf(ranges)
    problems.remark("a range is negative or infinite and counts as not measured", int(bad.sum()))
    return np.where(bad, np.nan, ranges)


def spectrum_block(tokens: Tokens, problems: LogProblems) -> Mapping[str, pa.Table]:
    """Read radar spectra: unlike in other logs, angles are in degrees, and lines have no TEXT_TYPE."""
    lines, t_ns = find_valid_lines(tokens, np.arange(len(tokens.line)), problems, words=0, min_width=3)
    bins = tokens.counts[lines] - 2
    reflectivity, offsets = tokens.ragged(2, bins, lines)
    table = arrow.table(
        t_ns,
        {
            "reflectivity": arrow.ragged_from_offsets(reflectivity, offsets),
            "angle": to_si(tokens.column(1, lines), "deg"),
            "bin_width": bin_widths(bins, problems),
            "range_offset": np.full(len(lines), radar().range_offset),
        },
        units=RadarSpectrum.units(),
    )
    return {TABLE: table}


def bin_widths(bins: NDArray[np.int64], problems: LogProblems) -> Floats:
    """Return the width of a range bin in metres by eq. 1, for lines with these numbers of bins.

    The FFT has 512 bins: other lines are truncated, and have the same width (errata).
    """
    width = radar().bin_width * radar().bins / bins
    plausible = np.abs(width - 0.28) <= 0.01
    for count in np.unique(bins[~plausible]):
        text = f"{count} bins would not be 0.28 m each, so the bin width of {radar().bins} bins is used"
        problems.remark(text, int((bins == count).sum()))
    return np.where(plausible, width, radar().bin_width)


def radar_block(tokens: Tokens, problems: LogProblems) -> Mapping[str, pa.Table]:
    """Read RANGE_REFLECTIVITY_DATA lines, one range each; EndAngleRads is StartAngleRads (errata)."""
    lines, t_ns = lines_of(tokens, RADAR_WORD, problems, width=9)
    good = known_units(tokens.column(5, lines))
    lines, t_ns = problems.passed(tokens, lines, good, _NO_UNIT), t_ns[good]
    start, increment, end, unit, scans, distance, reflectivity = tokens.block(2, 7, lines).T
    problems.passed(tokens, lines, scans == 1, "NScans is not 1, but the line has one range")
    problems.remark("AngleIncrRads is not 0", int((increment != 0).sum()))
    problems.remark("EndAngleRads is not StartAngleRads, which is used", int((end != start).sum()))
    table = arrow.table(
        t_ns,
        {
            "range": drop_unmeasured(metres(distance, unit), problems),
            "angle": start,
            "reflectivity": reflectivity,
            "range_unit": unit.astype(np.int8),
        },
        units=RadarRange.units(),
    )
    return {TABLE: table}


SENSOR_WORD = b"SENSOR_DATA"


@dataclass(frozen=True)
class PayloadLine:
    """A type of line with a separate stream: its TEXT_TYPE, and the columns of its numbers."""

    stream: str
    word: bytes
    columns: tuple[str, ...]
    type: type = Record


@dataclass(frozen=True)
class PayloadSensor:
    """A numbered sensor of SENSOR_DATA lines; `unit` is that of the log."""

    stream: str
    column: str
    unit: str
    type: type = Record


LINES = (
    PayloadLine("Payload/ServoSetpoint", b"SERVO_SETPOINT_DATA", ("choke_position", "throttle_position")),
    PayloadLine("Payload/VelocityTurnRate", b"VELOCITY_TURN_RATE_DATA", ("vx", "wz"), Twist),
    PayloadLine(
        "Payload/Brakes",
        b"BRAKE_DATA",
        ("left_position", "right_position", "left_pressure", "right_pressure"),
    ),
    PayloadLine(
        "Payload/ActuatorSetpoint",
        b"ACTUATOR_SETPOINT_DATA",
        ("choke", "throttle", "left_brake", "right_brake"),
    ),
)
SENSORS = (
    PayloadSensor("Payload/Engine", "angular_velocity", "rpm"),
    PayloadSensor("Payload/Gearbox", "angular_velocity", "rpm"),
    PayloadSensor("Payload/Battery12V", "voltage", "V"),
    PayloadSensor("Payload/Battery24V", "voltage", "V"),
    PayloadSensor("Payload/WheelLeft", "angular_velocity", "rad/s"),
    PayloadSensor("Payload/WheelRight", "angular_velocity", "rad/s"),
)
"""Sensors in the order of their numbers in the line."""


def payload_block(tokens: Tokens, problems: LogProblems) -> Mapping[str, pa.Table]:
    """Read payload lines into one table per stream."""
    kinds = {line.word: tokens.equals(1, line.word) for line in LINES}
    is_sensor = tokens.equals(1, SENSOR_WORD)
    known = np.logical_or.reduce([*kinds.values(), is_sensor])
    problems.passed(tokens, np.arange(len(tokens.line)), known, "the type of the line is unknown")
    tables = {line.stream: _table(tokens, np.flatnonzero(kinds[line.word]), line, problems) for line in LINES}
    return {**tables, **_sensor_tables(tokens, np.flatnonzero(is_sensor), problems)}


def _table(tokens: Tokens, lines: NDArray[np.int64], line: PayloadLine, problems: LogProblems) -> pa.Table:
    lines, t_ns = find_valid_lines(tokens, lines, problems, words=1, width=2 + len(line.columns))
    columns = {name: tokens.column(2 + i, lines) for i, name in enumerate(line.columns)}
    if line.type is Twist:
        unknown = np.full(len(lines), np.nan)
        columns = {name: columns.get(name, unknown) for name in ("vx", "vy", "vz", "wx", "wy", "wz")}
    return arrow.table(t_ns, columns, units=Twist.units() if line.type is Twist else None)


def _sensor_tables(tokens: Tokens, lines: NDArray[np.int64], problems: LogProblems) -> dict[str, pa.Table]:
    lines, t_ns = find_valid_lines(tokens, lines, problems, words=1, width=4)
    number, value = tokens.column(2, lines), tokens.column(3, lines)
    known = np.isin(number, range(len(SENSORS)))
    problems.passed(tokens, lines, known, f"the sensor's number is none of 0 to {len(SENSORS) - 1}")
    return {
        sensor.stream: arrow.table(
            t_ns[number == i],
            {sensor.column: to_si(value[number == i], sensor.unit)},
            units={sensor.column: unit_of(sensor.unit).si},
        )
        for i, sensor in enumerate(SENSORS)
    }
