"""Rows of tables as lines of SDI logs: the inverse of `tables` and `payload`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.base.units import DEGREES, unit_of
from transect.recording import arrow
from transect.recording.arrow import T_NS
from transect.types.returns import BEYOND_MAXIMUM, NO_RETURN, NOT_VALID

from .._rows import from_si_exactly, invert
from . import text
from .lines import Problems
from .payload import LINES, SENSOR_WORD, SENSORS, Line, Sensor
from .tables import (
    LASER_WORD,
    MILLIMETRES,
    NAV_COLUMNS,
    NAV_WORD,
    RADAR_WORD,
    STATES,
    bin_widths,
    in_units,
    known_units,
    metres,
    radar,
)

_METRES = 3
"""RangeUnitType of ranges whose table does not say in which unit they were recorded."""


def _get(table: pa.Table, name: str, default: float = np.nan) -> Floats:
    """Return a column, or the default where the table has none."""
    return arrow.numbers(table, name) if name in table.column_names else np.full(table.num_rows, default)


def laser_lines(table: pa.Table) -> pa.Array:
    """Return laser scans as RANGE_DATA lines, ranges in the unit they were recorded in.

    Where nothing came back stands the code that the laser sent, or that of a SICK laser; where there is no
    range for another reason and no code, `nan`.
    """
    ranges, offsets = arrow.lists_of(table, "ranges")
    start, increment, counts = _get(table, "start_angle"), _get(table, "angle_increment"), np.diff(offsets)
    end = _get(table, "end_angle") if "end_angle" in table.column_names else start + increment * (counts - 1)
    unit = _unit_types(table)
    given = _in_unit(ranges, np.repeat(unit, counts))
    if "range_error" in table.column_names:
        given = _with_codes(given, arrow.lists_of(table, "range_error")[0], np.repeat(unit, counts))
    head = [text.numbers(values) for values in (start, increment, end, unit, counts)]
    stamps = text.stamps(arrow.numbers(table, T_NS))
    return text.lines(stamps, LASER_WORD.decode(), *head, text.lists(text.numbers(given), offsets))


def _with_codes(given: Floats, errors: NDArray[Any], unit: NDArray[Any]) -> Floats:
    """Return numbers as logged, with a SICK laser's code where its range is NaN."""
    code = np.where(np.isin(errors, NO_RETURN) & (errors < BEYOND_MAXIMUM), NOT_VALID, errors)
    number = np.where(unit == MILLIMETRES, code, in_units(code / 100, unit))
    return np.where(np.isnan(given) & (code >= BEYOND_MAXIMUM), number, given)


def _unit_types(table: pa.Table) -> NDArray[np.int64]:
    unit = _get(table, "range_unit", _METRES)
    return np.where(known_units(unit), unit, _METRES).astype(np.int64)


def _in_unit(ranges: Floats, unit: NDArray[Any]) -> Floats:
    return invert(metres, ranges, in_units(ranges, unit), unit)


def radar_lines(table: pa.Table) -> pa.Array:
    """Return radar ranges as RANGE_REFLECTIVITY_DATA lines: one range, no increment, the end is the start."""
    unit, angle = _unit_types(table), text.numbers(_get(table, "angle"))
    distance = text.numbers(_in_unit(_get(table, "range"), unit))
    stamps, reflectivity = text.stamps(arrow.numbers(table, T_NS)), text.numbers(_get(table, "reflectivity"))
    return text.lines(
        stamps, RADAR_WORD.decode(), angle, "0", angle, text.numbers(unit), "1", distance, reflectivity
    )


def spectrum_lines(table: pa.Table) -> pa.Array:
    """Return radar spectra as lines: the angle in degrees, then the bins."""
    reflectivity, offsets = arrow.lists_of(table, "reflectivity")
    angle = _get(table, "angle")
    degrees = from_si_exactly(angle, DEGREES)
    stamps, bins = text.stamps(arrow.numbers(table, T_NS)), text.lists(text.numbers(reflectivity), offsets)
    return text.lines(stamps, text.numbers(degrees), bins)


def is_this_radar(table: pa.Table) -> bool:
    """Tell whether spectra have the bin width and offset that a reader of SDI lines will give them."""
    _, offsets = arrow.lists_of(table, "reflectivity")
    expected = bin_widths(np.maximum(np.diff(offsets), 1), Problems(""))
    width, offset = _get(table, "bin_width"), _get(table, "range_offset")
    return bool(
        np.allclose(width, expected, rtol=1e-9) and np.allclose(offset, radar().range_offset, rtol=1e-9)
    )


def nav_lines(table: pa.Table) -> pa.Array:
    """Return poses as NAV_DATA lines; what the table does not have is NaN."""
    known = {**_nav_from_pose(table), **{n: _get(table, n) for n in NAV_COLUMNS if n in table.column_names}}
    values = np.column_stack([known[name] for name in NAV_COLUMNS])
    covariance = np.full((len(values), STATES**2), np.nan)
    if "covariance" in table.column_names:
        recorded = arrow.numbers(table, "covariance")
        if recorded.shape == covariance.shape:
            covariance = recorded
    stamps = text.stamps(arrow.numbers(table, T_NS))
    return text.lines(stamps, NAV_WORD.decode(), text.rows(np.hstack([values, covariance])))


def _nav_from_pose(table: pa.Table) -> dict[str, Floats]:
    """Return the twelve states from the canonical columns of a pose and its velocities."""
    from transect.geometry import rotations

    q = np.column_stack([_get(table, name) for name in ("qx", "qy", "qz", "qw")])
    roll, pitch, yaw = rotations.euler_from_quaternion("rpy", q).T
    wx, wy, wz = (_get(table, name) for name in ("wx", "wy", "wz"))
    with np.errstate(divide="ignore", invalid="ignore"):
        droll = (wx * np.cos(yaw) + wy * np.sin(yaw)) / np.cos(pitch)
    dpitch, dyaw = wy * np.cos(yaw) - wx * np.sin(yaw), wz + droll * np.sin(pitch)
    moved = [_get(table, name) for name in ("x", "y", "z", "vx", "vy", "vz")]
    return dict(zip(NAV_COLUMNS, [*moved, roll, pitch, yaw, droll, dpitch, dyaw], strict=True))


def payload_lines(tables: Mapping[str, pa.Table]) -> pa.Array:
    """Return the tables of the Payload streams as one log: by time, each stream's rows in their order."""
    texts = [_payload_rows(line, tables[line.stream]) for line in LINES if line.stream in tables]
    texts += [_sensor_rows(i, s, tables[s.stream]) for i, s in enumerate(SENSORS) if s.stream in tables]
    names = [part.stream for part in (*LINES, *SENSORS) if part.stream in tables]
    # A clock that jumps back must not reorder a stream: rows are merged by the latest time so far.
    latest = [np.maximum.accumulate(arrow.numbers(tables[name], T_NS)) for name in names]
    order = np.argsort(np.concatenate(latest), kind="stable")
    return pa.concat_arrays(texts).take(arrow.from_numpy(order))


def _payload_rows(line: Line, table: pa.Table) -> pa.Array:
    values = [text.numbers(_get(table, name)) for name in line.columns]
    return text.lines(text.stamps(arrow.numbers(table, T_NS)), line.word.decode(), *values)


def _sensor_rows(number: int, sensor: Sensor, table: pa.Table) -> pa.Array:
    si = _get(table, sensor.column)
    value = from_si_exactly(si, unit_of(sensor.unit))
    stamps = text.stamps(arrow.numbers(table, T_NS))
    return text.lines(stamps, SENSOR_WORD.decode(), str(number), text.numbers(value))
