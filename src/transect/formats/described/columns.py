"""Types, units and time of the columns of an unknown table, from their names and values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS, ns_from_iso
from transect.base.units import G0, is_unit, unit_of
from transect.errors import TimeError
from transect.recording.text import is_number

from ..shared.column_names import ROS_STAMP, ROS_TIME, is_time_name, meaning_of, sensor_of, split_unit
from .layout import Text, fields_of, layout_of, with_points
from .model import ANGLES, units_of

HEAD_ROWS, LATER_ROWS = 500, 200
"""Rows of a table that are inspected, at its start and in each later piece."""
_PLACE, _SPEED = ("x", "y", "z"), ("vx", "vy", "vz")
_VECTORS: dict[str, tuple[tuple[str, ...], ...]] = {
    "Odometry": (("x", "y", "vx", "wz"),),
    "NavFix": (("lat", "lon"),),
    "Pose": (_PLACE, ("x", "y")),
    "Imu": (("acc_x", "acc_y", "acc_z"), ("gyro_x", "gyro_y", "gyro_z")),
    "Twist": (_SPEED, ("vx", "vy"), ("vx",)),
}
"""Alternative sets of required columns of a type; the first type of a table gets the other columns."""
_SENSOR_NAMES = {"acc": "accelerometer", "gyro": "gyroscope", "mag": "magnetometer"}
_MIN_PLAUSIBLE_NS = 946_684_800 * NS
"""2000-01-01: earlier dates come from a clock that was not set."""
_DATE, _OF_DAY = re.compile(r"\d{4}-\d{2}-\d{2}"), re.compile(r"\d{1,2}:\d{2}:\d{2}(\.\d+)?")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?")
MAX_BACKWARD_RATIO, MAX_REPEATED_RATIO = 0.1, 0.5
"""Largest ratio of dates that are earlier than, or equal to, the previous one."""
_CLOCK_NAMES = {"millis": "ms", "micros": "us", "nanos": "ns"}
"""Units of the counters of microcontrollers, by name."""
_UNIX = (("s", 1e9), ("ms", 1e12), ("us", 1e15), ("ns", 1e18))


@dataclass(frozen=True, eq=False)
class TableSample:
    """Rows of a text."""

    text: Text
    rows: list[list[str]]  # The first complete rows
    values: Floats  # (rows, columns), NaN if a field is not a number
    spread: Floats  # (n, columns), values from the whole text, because a robot may stand still at first

    def source(self, number: int) -> int | str:
        """Return the name of a column if it is unique, else its number."""
        name = self.text.names[number]
        return name if self.text.names.count(name) == 1 and not name.isdigit() and name else number

    def is_text(self, number: int) -> bool:
        """Return whether a column has fields that are not numbers."""
        return any(row[number] and not is_number(row[number]) for row in self.rows)

    def matches(self, number: int, pattern: re.Pattern[str]) -> bool:
        """Return whether all fields of a column match a pattern."""
        return all(pattern.fullmatch(row[number].strip('"')) for row in self.rows)

    @property
    def is_table(self) -> bool:
        """Whether it has rows of several fields with numbers."""
        return len(self.text.names) > 1 and bool(np.isfinite(self.values).any())


def sample_of(head: bytes, text: Text | None = None, later: Sequence[bytes] = ()) -> TableSample:
    """Return the rows of a text with the expected number of fields.

    Parameters
    ----------
    head : bytes
        First bytes of the text.
    text : Text, optional
        Its layout, if known.
    later : sequence of bytes
        Later pieces, which may start and end in the middle of a line.
    """
    text = text or layout_of(head)
    rows = _rows_of(head, text, text.skip, HEAD_ROWS)
    whole = [row for row in rows[:-1] or rows if len(row) == len(text.names)]
    if 2 * len(whole) < len(rows) or b"\0" in head:
        whole = []
    pieces = [_rows_of(piece, text, 1, LATER_ROWS)[:-1] for piece in later] if whole else []
    behind = [row for piece in pieces for row in piece if len(row) == len(text.names)]
    values, others = _numbers_of(whole, text), _numbers_of(behind, text)
    return TableSample(text, whole, values, np.vstack([values, others]))


def _rows_of(piece: bytes, text: Text, skip: int, count: int) -> list[list[str]]:
    piece = with_points(piece) if text.decimal == "," else piece
    lines = piece.decode("utf-8-sig", "replace").splitlines()[skip : skip + count]
    return [fields_of(line, text.delimiter) for line in lines if line.strip()]


def _numbers_of(rows: Sequence[Sequence[str]], text: Text) -> Floats:
    values = [[float(f) if is_number(f) else np.nan for f in row] for row in rows]
    return np.array(values).reshape(len(rows), len(text.names))


def describe_columns(
    sample: TableSample, title: str = ""
) -> list[tuple[str, dict[str, dict[str, Any]], list[str]]]:
    """Return the streams in a table: type, columns for a description, and the reasons for their units.

    One table may have several sensors, such as a receiver and an IMU. Other columns are in the first stream.
    x, y, z of a table whose title names an inertial sensor are its axes.
    """
    titles = [_name_and_unit(name) for name in sample.text.names]
    meanings = [meaning_of(name) if not sample.is_text(i) else "" for i, (name, _) in enumerate(titles)]
    if {"x", "y"} <= set(meanings) and not {"z", "lat"} & set(meanings):
        meanings = ["z" if meaning == "alt" else meaning for meaning in meanings]  # easting, northing, height
    sensor = sensor_of(title) if set(_PLACE) <= set(meanings) and "qw" not in meanings else ""
    if sensor:
        meanings = [f"{sensor}_{meaning}" if meaning in _PLACE else meaning for meaning in meanings]
    kinds = _types_of(set(meanings))
    if kinds[0] == "NavFix" and "yaw" not in meanings:
        meanings = ["yaw" if meaning == "heading" else meaning for meaning in meanings]
    found: list[tuple[str, dict[str, dict[str, Any]], list[str]]] = []
    left = list(range(len(titles)))
    for kind in [*kinds[1:], kinds[0]]:
        known = units_of(kind)
        mine = [i for i in left if kind == kinds[0] or meanings[i] in known]
        left = [i for i in left if i not in mine]
        columns = _columns_of(sample, known, {i: (*titles[i], meanings[i]) for i in mine})
        notes: list[str] = []
        if sensor and kind == kinds[0]:
            notes.append(f"x, y, z are taken to be of the {_SENSOR_NAMES[sensor]}, by the name of the file")
        for names, unit, sentence in _units_by_magnitude(sample, kind, columns):
            for name in names:
                columns[name]["unit"] = unit
            notes.append(sentence)
        found.append((kind, columns, notes))
    return [found[-1], *found[:-1]]


def _columns_of(
    sample: TableSample, canonical: dict[str, str], titles: dict[int, tuple[str, str, str]]
) -> dict[str, dict[str, Any]]:
    """Return columns by their canonical or own name; `titles` are name, unit and meaning by number."""
    columns: dict[str, dict[str, Any]] = {}
    for number, (name, unit, meaning) in titles.items():
        named = f"column_{number}" if not name or name.isdigit() else name
        key = meaning if meaning in canonical and meaning not in columns else named
        key = key if key not in columns else f"{key}_{number}"
        column: dict[str, Any] = {"source": sample.source(number)}
        if sample.is_text(number):
            column["text"] = True
        elif unit and (key not in canonical or unit_of(unit).si == canonical[key]):
            column["unit"] = unit
        columns[key] = column
    return columns


def _name_and_unit(title: str) -> tuple[str, str]:
    """Return `gyro_x [deg/s]`, `gyro_x_dps`, `ax_g` and `speed (km/h)` as name and unit.

    One letter is a unit only if it matches the meaning of the rest of the name: `altitude_m`, not `row_m`.
    """
    name, unit = split_unit(title)
    base, _, last = name.rpartition("_")
    if unit or not base or not is_unit(last) or last.lower() in ("in", "turn", "none"):
        return name, unit
    if len(last) > 1 or unit_of(last).si in {units_of(kind).get(meaning_of(base)) for kind in _VECTORS}:
        return base, last
    return name, ""


def _types_of(meanings: set[str]) -> list[str]:
    """Return the types in a table; velocities and turn rates belong to a position, if there is one."""
    found = [kind for kind, sets in _VECTORS.items() if any(set(names) <= meanings for names in sets)]
    if "Odometry" in found:
        return ["Odometry"]
    beside = {"NavFix", "Pose", *(["Imu"] if "acc_x" in meanings else [])}
    return [kind for kind in found if kind in beside or kind == found[0]] or ["Record"]


def _units_by_magnitude(
    sample: TableSample, kind: str, columns: dict[str, dict[str, Any]]
) -> list[tuple[list[str], str, str]]:
    """Return columns, unit and reason for canonical columns without a unit in the header."""
    found: list[tuple[list[str], str, str]] = []

    def values_of(*names: str) -> Floats | None:
        if not all(n in columns and "unit" not in columns[n] for n in names):
            return None
        return sample.spread[:, [_number(sample, columns[n]["source"]) for n in names]]

    if kind == "Imu":
        if (acc := values_of("acc_x", "acc_y", "acc_z")) is not None:
            found.append((["acc_x", "acc_y", "acc_z"], *_acceleration(acc)))
        if (gyro := values_of("gyro_x", "gyro_y", "gyro_z")) is not None:
            found.append((["gyro_x", "gyro_y", "gyro_z"], *_rate(gyro)))
    if kind == "NavFix" and (place := values_of("lat", "lon")) is not None:
        found.append((["lat", "lon"], *_angle(place, "latitude and longitude", np.pi)))
    angles = [n for n in ANGLES if values_of(n) is not None]
    if angles and kind in ("NavFix", "Pose") and (values := values_of(*angles)) is not None:
        found.append((angles, *_angle(values, "attitude angles", 2 * np.pi)))
    return found


def _number(sample: TableSample, source: int | str) -> int:
    return source if isinstance(source, int) else sample.text.names.index(source)


def _acceleration(values: Floats) -> tuple[str, str]:
    norm = float(np.nanmedian(np.linalg.norm(values, axis=1)))
    for unit, gravity in (("g", 1.0), ("milli-g", 1000.0)):
        if 0.7 * gravity < norm < 1.4 * gravity:
            return unit, f"accelerations are taken to be in {unit}: their norm is {norm:.3g}"
    sure = "" if 0.7 * G0 < norm < 1.4 * G0 else ", which is not gravity: check it"
    return "m/s2", f"accelerations are taken to be in m/s2: their norm is {norm:.3g}{sure}"


def _rate(values: Floats) -> tuple[str, str]:
    largest = _largest(values)
    unit = "deg/s" if largest > 35 else "rad/s"
    sure = ", and could be deg/s: check it" if 3.5 < largest <= 35 else ""
    return unit, f"turn rates are taken to be in {unit}: they reach {largest:.3g}{sure}"


def _largest(values: Floats) -> float:
    """Return the 99.9th percentile of the absolute values, which ignores outliers."""
    return float(np.nanpercentile(np.abs(values), 99.9))


def _angle(values: Floats, what: str, turn: float) -> tuple[str, str]:
    largest = _largest(values)
    unit = "deg" if largest > turn else "rad"
    return unit, f"{what} are taken to be in {unit}: they reach {largest:.6g}"


def describe_time(sample: TableSample) -> tuple[dict[str, Any], set[int | str], str]:
    """Return the time of a table for a description, the columns used for it, and the reason."""
    count = len(sample.text.names)
    moments = [i for i in range(count) if sample.matches(i, _ISO)]
    broken: dict[int, str] = {}
    for number in moments:
        if why := _fault_of_dates(sample, number):
            broken[number] = why
        else:
            return _dated(sample, number)
    dates = [i for i in range(count) if sample.matches(i, _DATE)]
    clocks = [i for i in range(count) if sample.matches(i, _OF_DAY)]
    if dates and clocks:
        pair = [sample.source(dates[0]), sample.source(clocks[0])]
        said = f"`{pair[0]}` and `{pair[1]}` are date and time of day"
        return {"columns": pair, "unit": "iso", "clock": "utc"}, set(pair), said
    named = [i for i, name in enumerate(sample.text.names) if name == ROS_STAMP]
    named += [i for i in range(count) if is_time_name(sample.text.names[i])]
    for number in [*named, *(i for i in range(count) if i not in named)]:
        values = sample.values[:, number]
        if not _grows(values):
            continue
        if number in named or (_unix_unit(values) if broken else _may_be_time(values)):
            time, used, said = _numeric_time(sample, number, number in named)
            why = [f"`{sample.source(i)}` is not taken: {fault}" for i, fault in broken.items()]
            return time, used, "; ".join([said, *why])
    if readable := [i for i, fault in broken.items() if fault != UNREADABLE]:
        time, used, said = _dated(sample, readable[0])
        return time, used, f"{said}, but {broken[readable[0]]}"
    return {}, set(), "no column is a time: rows are counted"


UNREADABLE = "it has dates that do not exist"


def _dated(sample: TableSample, number: int) -> tuple[dict[str, Any], set[int | str], str]:
    column = sample.source(number)
    return {"column": column, "unit": "iso", "clock": "utc"}, {column}, f"`{column}` is a date and time"


def _fault_of_dates(sample: TableSample, number: int) -> str:
    """Return the problem of a column of dates, judged by its first rows; "" without a problem."""
    try:
        times = np.array([ns_from_iso(row[number].strip('"')) for row in sample.rows], dtype=np.int64)
    except (TimeError, OverflowError):
        return UNREADABLE
    if len(times) < 2:
        return ""
    steps = np.diff(times)
    if (times < _MIN_PLAUSIBLE_NS).any():
        return "its clock was not set"
    if (steps < 0).mean() > MAX_BACKWARD_RATIO:
        return "it goes back"
    return "it rarely changes" if (steps == 0).mean() > MAX_REPEATED_RATIO else ""


def describe_log_time(sample: TableSample, time: dict[str, Any]) -> dict[str, Any]:
    """Return the log time for a description if the `time` is that of the measurement."""
    names = sample.text.names
    if time.get("column") != ROS_STAMP or ROS_TIME not in names:
        return {}
    log_time = _numeric_time(sample, names.index(ROS_TIME), True)[0]
    return log_time if log_time["clock"] == time["clock"] else {}


def _grows(values: Floats) -> bool:
    """Return whether a column is numeric and increases, with at most 10 % backward steps."""
    if not np.isfinite(values).all() or len(values) < 2:
        return False
    steps = np.diff(values)
    return bool((steps >= 0).mean() > 0.9 and values[-1] > values[0])


def _may_be_time(values: Floats) -> bool:
    """Return whether an increasing column is Unix time, or has even steps other than 1."""
    if _unix_unit(values):
        return True
    if len(values) < 10:
        return False
    steps = np.diff(values)
    middle = float(np.median(steps))
    return middle > 0 and middle != 1 and bool((np.abs(steps - middle) < 0.5 * middle).mean() > 0.9)


def _unix_unit(values: Floats) -> str:
    middle = float(np.median(values))
    return next((unit for unit, start in _UNIX if start <= middle < 4 * start), "")


def _numeric_time(
    sample: TableSample, number: int, named: bool
) -> tuple[dict[str, Any], set[int | str], str]:
    column, values = sample.source(number), sample.values[:, number]
    by = "by its name" if named else "since it grows evenly"
    unit = _unix_unit(values)
    if unit:
        said = f"`{column}` is unix time in {unit} ({by} and size)"
        return {"column": column, "unit": unit, "clock": "utc"}, {column}, said
    told = _find_unit(sample.text.names[number])
    unit = told or _unit_by_step(values)
    reason = "as its name says" if told else f"its step is {float(np.median(np.diff(values))):.3g}"
    said = f"`{column}` is the time ({by}) in {unit} ({reason}), on a clock of its own"
    return {"column": column, "unit": unit, "clock": "device"}, {column}, said


def _find_unit(title: str) -> str:
    name, unit = split_unit(title)
    last = unit or re.split(r"[_\s]", name.lower())[-1]
    return _CLOCK_NAMES.get(last, last if last in ("s", "ms", "us", "ns") else "")


def _unit_by_step(values: Floats) -> str:
    """Return the unit in which integer steps give a common rate; numbers with decimals are seconds."""
    if not np.array_equal(values, np.trunc(values)):
        return "s"
    step = float(np.median(np.diff(values)))
    return "ms" if 1 < step < 2e3 else "us" if 2e3 <= step < 2e6 else "ns" if step >= 2e6 else "s"
