"""How an unknown table is laid out, and what its columns are, by their names and by their numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect import types
from transect.base.arrays import Floats
from transect.base.units import G0, is_unit, unit_of
from transect.errors import ParseError, did_you_mean
from transect.recording.text import is_number

from .model import Reference

_NAME_UNIT = re.compile(r"(.*?)\s*[\[(]([^\[\]()]*)[\])]\s*")
_LIKE_DATE = re.compile(r"\d{1,4}[-/.:]\d{1,2}[-/.:]\d")
_LINES = 60


@dataclass(frozen=True)
class Text:
    """How a text is laid out.

    Attributes
    ----------
    delimiter : str
        One character, or a blank for any number of blanks and tabs.
    skip : int
        Lines before the first row.
    names : tuple of str
        The columns' names as they stand in the header; their numbers where there is none.
    """

    delimiter: str
    skip: int
    names: tuple[str, ...]

    def number(self, reference: Reference, file: str) -> int:
        """Return which column a name or number means; the unit in brackets need not be given."""
        if isinstance(reference, int):
            if 0 <= reference < len(self.names):
                return reference
            raise ParseError(f"{file} has no column {reference}", where=file, why=f"it has {len(self.names)}")
        bare = [split_unit(name)[0] for name in self.names]
        for known in (list(self.names), bare):
            if reference in known:
                return known.index(reference)
        raise ParseError(
            f"{file} has no column {reference!r}", where=file, hint=did_you_mean(reference, self.names)
        )


def split_unit(name: str) -> tuple[str, str]:
    """Return `acc_x [m/s2]` as its name and its unit; "" where it names none that is known."""
    match = _NAME_UNIT.fullmatch(name)
    return (match[1], match[2]) if match and is_unit(match[2]) else (name, "")


def layout_of(head: bytes, delimiter: str = "", header: int | None = None) -> Text:
    """Find out how a text is laid out from its first bytes, as far as it is not told.

    Rows begin with the first line that is half numbers; the line before has the names if it has as many
    fields as the rows.
    """
    lines = head.decode("utf-8-sig", "replace").splitlines()[:_LINES]
    delimiter = delimiter or _delimiter(lines)
    rows = [fields_of(line, delimiter) for line in lines]
    skip = _first_row(rows) if header is None else header
    width = len(rows[skip]) if skip < len(rows) else max((len(row) for row in rows), default=0)
    above = fields_of(lines[skip - 1].lstrip("#% "), delimiter) if 0 < skip <= len(lines) else []
    names = [w.strip('"') for w in above] if len(above) == width else [str(i) for i in range(width)]
    return Text(delimiter, skip, tuple(names))


def fields_of(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line; a delimiter between quotation marks is none."""
    if delimiter == " ":
        return line.split()
    if '"' in line:
        return [field.strip() for field in next(csv.reader([line], delimiter=delimiter), [])]
    return [field.strip() for field in line.split(delimiter)]


def _delimiter(lines: Sequence[str]) -> str:
    """Return the sign that splits the lines into the same number of fields, or a blank."""
    sample = [line for line in lines if line.strip()]
    sample = sample[len(sample) // 2 :]
    sample = sample[:-1] or sample  # the last one may be cut
    counts = {sign: {line.count(sign) for line in sample} for sign in (",", ";", "\t", "|")}
    steady = [sign for sign, found in counts.items() if len(found) == 1 and 0 not in found]
    often = [sign for sign, found in counts.items() if found and 0 not in found]
    return (steady or often or [" "])[0]


def _first_row(rows: Sequence[Sequence[str]]) -> int:
    for number, fields in enumerate(rows):
        if any(fields) and 2 * sum(is_value(field) for field in fields) >= len(fields):
            return number
    return min(1, max(len(rows) - 1, 0))


def is_value(text: str) -> bool:
    """Tell whether a field is a number, a date or nothing at all."""
    return is_number(text) or not text or _LIKE_DATE.match(text) is not None


ROWS = 500
"""Rows of a table that are looked at."""
_MEANINGS = tuple(
    (re.compile(pattern.replace("AXIS", "(x|y|z)")), name)
    for pattern, name in (
        (r"(?:lin(?:ear)?)?(?:acc(?:el(?:eration|erometer)?)?|a)AXIS", "acc_{}"),
        (r"(?:gyro(?:scope)?|ang(?:ular)?(?:vel(?:ocity)?|rate)?|omega|w|g)AXIS", "gyro_{}"),
        (r"mag(?:netometer|neticfield)?AXIS", "mag_{}"),
        (r"lat(?:itude)?", "lat"),
        (r"lon(?:gitude|g)?", "lon"),
        (r"alt(?:itude)?|height|elevation", "alt"),
        (r"(?:pos(?:ition)?|p|t|translation)?AXIS", "{}"),
        (r"(?:q|quat(?:ernion)?|orientation)(x|y|z|w)", "q{}"),
        (r"(?:lin(?:ear)?)?(?:vel(?:ocity)?|v)AXIS", "v{}"),
        (r"temp(?:erature)?", "temperature"),
        (r"(roll|pitch|yaw)", "{}"),
    )
)
_VECTORS = {
    "Imu": (("acc_x", "acc_y", "acc_z"), ("gyro_x", "gyro_y", "gyro_z")),
    "NavFix": (("lat", "lon"),),
    "Pose": (("x", "y", "z"),),
    "Twist": (("vx", "vy", "vz"), ("vx", "vy"), ("vx",)),
}
"""Columns of which a type needs one set, in the order in which types are tried."""
_TIME = re.compile(
    r"(unix|utc|epoch|header|ros|gps)?(time|stamp|timestamp|t|sec|secs|seconds|epoch)(stamp)?(s|ms|us|ns)?"
)
_DATE, _OF_DAY = re.compile(r"\d{4}-\d{2}-\d{2}"), re.compile(r"\d{1,2}:\d{2}:\d{2}(\.\d+)?")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?")
_UNIX = (("s", 1e9), ("ms", 1e12), ("us", 1e15), ("ns", 1e18))


@dataclass(frozen=True, eq=False)
class Sample:
    """The first rows of a text.

    Attributes
    ----------
    text : Text
    rows : list of list of str
        Those with all their fields.
    values : (rows, columns) array
        NaN where a field is not a number.
    """

    text: Text
    rows: list[list[str]]
    values: Floats

    def source(self, number: int) -> int | str:
        """Return how a column is best called: by its name where that is one and its own."""
        name = self.text.names[number]
        return name if self.text.names.count(name) == 1 and not name.isdigit() and name else number

    def is_text(self, number: int) -> bool:
        """Tell whether a column holds anything that is not a number."""
        return any(row[number] and not is_number(row[number]) for row in self.rows)

    def matches(self, number: int, pattern: re.Pattern[str]) -> bool:
        """Tell whether all fields of a column are of a pattern."""
        return all(pattern.fullmatch(row[number].strip('"')) for row in self.rows)

    @property
    def is_table(self) -> bool:
        """Whether it is rows of several fields, with numbers among them."""
        return len(self.text.names) > 1 and bool(np.isfinite(self.values).any())


def sample_of(head: bytes, text: Text | None = None) -> Sample:
    """Return the first rows of a text, those of the usual number of fields."""
    text = text or layout_of(head)
    lines = head.decode("utf-8-sig", "replace").splitlines()[text.skip : text.skip + ROWS]
    rows = [fields_of(line, text.delimiter) for line in lines if line.strip()]
    whole = [row for row in rows[:-1] or rows if len(row) == len(text.names)]
    if 2 * len(whole) < len(rows) or b"\0" in head:
        whole = []
    values = [[float(f) if is_number(f) else np.nan for f in row] for row in whole]
    return Sample(text, whole, np.array(values).reshape(len(whole), len(text.names)))


def described_columns(sample: Sample) -> tuple[str, dict[str, dict[str, Any]], list[str]]:
    """Return a table's type, its columns as a description has them, and why their units are what they are."""
    titles = [_name_and_unit(name) for name in sample.text.names]
    meanings = [_meaning(name) if not sample.is_text(i) else "" for i, (name, _) in enumerate(titles)]
    kind = _type_of(set(meanings))
    canonical: dict[str, str] = getattr(types, kind).units()
    columns: dict[str, dict[str, Any]] = {}
    said: list[str] = []
    for number, ((name, unit), meaning) in enumerate(zip(titles, meanings, strict=True)):
        named = f"column_{number}" if not name or name.isdigit() else name
        key = meaning if meaning in canonical and meaning not in columns else named
        key = key if key not in columns else f"{key}_{number}"
        column: dict[str, Any] = {"source": sample.source(number)}
        if sample.is_text(number):
            column["text"] = True
        elif unit and (key not in canonical or unit_of(unit).si == canonical[key]):
            column["unit"] = unit
        columns[key] = column
    for names, unit, sentence in _units_by_magnitude(sample, kind, columns):
        for name in names:
            columns[name]["unit"] = unit
        said.append(sentence)
    return kind, columns, said


def _name_and_unit(title: str) -> tuple[str, str]:
    """Return `gyro_x [deg/s]`, `gyro_x_dps` and `speed (km/h)` as name and unit."""
    name, unit = split_unit(title)
    base, _, last = name.rpartition("_")
    if not unit and base and len(last) > 1 and is_unit(last) and last.lower() not in ("in", "turn", "none"):
        return base, last
    return name, unit


def _meaning(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]", "", name.lower().removeprefix("imu").removeprefix("gps"))
    for pattern, meaning in _MEANINGS:
        if match := pattern.fullmatch(plain):
            return meaning.format(*match.groups())
    return ""


def _type_of(meanings: set[str]) -> str:
    for kind, sets in _VECTORS.items():
        if any(set(names) <= meanings for names in sets):
            return kind
    return "Record"


def _units_by_magnitude(
    sample: Sample, kind: str, columns: dict[str, dict[str, Any]]
) -> list[tuple[list[str], str, str]]:
    """Return columns, a unit and the reason, for canonical columns whose unit the header does not say."""
    found: list[tuple[list[str], str, str]] = []

    def values_of(*names: str) -> Floats | None:
        if not all(n in columns and "unit" not in columns[n] for n in names):
            return None
        return sample.values[:, [_number(sample, columns[n]["source"]) for n in names]]

    if kind == "Imu":
        if (acc := values_of("acc_x", "acc_y", "acc_z")) is not None:
            found.append((["acc_x", "acc_y", "acc_z"], *_acceleration(acc)))
        if (gyro := values_of("gyro_x", "gyro_y", "gyro_z")) is not None:
            found.append((["gyro_x", "gyro_y", "gyro_z"], *_rate(gyro)))
    if kind == "NavFix" and (place := values_of("lat", "lon")) is not None:
        found.append((["lat", "lon"], *_angle(place, "latitude and longitude", np.pi)))
    angles = [n for n in ("roll", "pitch", "yaw") if values_of(n) is not None]
    if angles and kind == "NavFix" and (values := values_of(*angles)) is not None:
        found.append((angles, *_angle(values, "the attitude", 2 * np.pi)))
    return found


def _number(sample: Sample, source: int | str) -> int:
    return source if isinstance(source, int) else sample.text.names.index(source)


def _acceleration(values: Floats) -> tuple[str, str]:
    norm = float(np.nanmedian(np.linalg.norm(values, axis=1)))
    for unit, gravity in (("g", 1.0), ("milli-g", 1000.0)):
        if 0.7 * gravity < norm < 1.4 * gravity:
            return unit, f"accelerations are taken to be in {unit}: their norm is {norm:.3g}"
    sure = "" if 0.7 * G0 < norm < 1.4 * G0 else ", which is not gravity: check it"
    return "m/s2", f"accelerations are taken to be in m/s2: their norm is {norm:.3g}{sure}"


def _rate(values: Floats) -> tuple[str, str]:
    largest = float(np.nanmax(np.abs(values)))
    unit = "deg/s" if largest > 35 else "rad/s"
    return unit, f"turn rates are taken to be in {unit}: the largest is {largest:.3g}"


def _angle(values: Floats, what: str, turn: float) -> tuple[str, str]:
    largest = float(np.nanmax(np.abs(values)))
    unit = "deg" if largest > turn else "rad"
    return unit, f"{what} are taken to be in {unit}: the largest is {largest:.6g}"


def described_time(sample: Sample) -> tuple[dict[str, Any], set[int | str], str]:
    """Return the time of a table as a description has it, the columns it takes, and why."""
    count = len(sample.text.names)
    for number in range(count):
        if sample.matches(number, _ISO):
            column = sample.source(number)
            return (
                {"column": column, "unit": "iso", "clock": "utc"},
                {column},
                f"`{column}` is a date and time",
            )
    dates = [i for i in range(count) if sample.matches(i, _DATE)]
    clocks = [i for i in range(count) if sample.matches(i, _OF_DAY)]
    if dates and clocks:
        pair = [sample.source(dates[0]), sample.source(clocks[0])]
        said = f"`{pair[0]}` and `{pair[1]}` are date and time of day"
        return {"columns": pair, "unit": "iso", "clock": "utc"}, set(pair), said
    named = [i for i in range(count) if _is_time_name(sample.text.names[i])]
    for number in [*named, *(i for i in range(count) if i not in named)]:
        if _grows(sample.values[:, number]) and (number in named or _may_be_time(sample.values[:, number])):
            return _numeric_time(sample, number, number in named)
    return {}, set(), "no column is a time: rows are counted"


def _is_time_name(title: str) -> bool:
    return _TIME.fullmatch(re.sub(r"[^a-z]", "", split_unit(title)[0].lower())) is not None


def _grows(values: Floats) -> bool:
    """Tell whether a column is numbers that hardly ever go back, and do go on."""
    if not np.isfinite(values).all() or len(values) < 2:
        return False
    steps = np.diff(values)
    return bool((steps >= 0).mean() > 0.9 and values[-1] > values[0])


def _may_be_time(values: Floats) -> bool:
    """Tell whether a growing column of any name is unix time, or grows evenly but is no counter."""
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


def _numeric_time(sample: Sample, number: int, named: bool) -> tuple[dict[str, Any], set[int | str], str]:
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
    return last if last in ("s", "ms", "us", "ns") else ""


def _unit_by_step(values: Floats) -> str:
    """Return the unit in which whole-numbered steps make a usual rate; anything with decimals is seconds."""
    if not np.array_equal(values, np.trunc(values)):
        return "s"
    step = float(np.median(np.diff(values)))
    return "ms" if 1 < step < 2e3 else "us" if 2e3 <= step < 2e6 else "ns" if step >= 2e6 else "s"
