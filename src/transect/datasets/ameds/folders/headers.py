"""Headers of CSV files: layout of the first lines, and meaning and unit of columns in any spelling.

`pos_x`, `Position X [m]` and `positionX` are all {position, x}; `roll-x` is {roll}; `stdVelNorth (m/s)` is
{std, velocity, x}. Case, blanks, underscores and brackets are ignored. A header with an unknown word has no
meaning, to avoid chance matches.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from transect.base import clocks
from transect.base.units import Unit, unit_of
from transect.errors import TimeError
from transect.recording.source import HEAD_BYTES, Buffer
from transect.recording.text import is_number

Meaning = frozenset[str]

_WORDS = {
    "time": "time timestamp stamp unix utc epoch unixtime unixseconds t",
    "device": "device hardware receiver",
    "x": "x north",
    "y": "y east west",
    "z": "z down up",
    "position": "position pos location translation ticks tick counts count encoder",
    "velocity": "velocity vel speed",
    "acceleration": "acceleration accelerometer accel acc",
    "angular": "angular ang gyroscope gyro gyr omega rate turnrate",
    "magnetic": "magnetometer magnetic magn mag field",
    "std": "std σ stddev stdev stdv sd sigma deviation uncertainty",
    "attitude": "attitude orientation euler rotation rot att",
    "roll": "roll",
    "pitch": "pitch",
    "yaw": "yaw heading hdg theta",
    "lat": "lat latitude",
    "lon": "lon long lng longitude",
    "alt": "alt altitude height elevation",
    "fix": "fix fixtype status quality",
    "temperature": "temperature temp",
    "pressure": "pressure press barometer barometric baro",
    "outside": "outside ambient external outdoor environment air",
    "joint": "joint",
    "angle": "angle",
    "drive": "drive driving traction",
    "steer": "steer steering",
    "cmd": "cmd command commanded setpoint target desired",
    **{digit: digit for digit in "01234567"},
    "1 ": "fl frontleft",
    "2 ": "rl bl rearleft",
    "3 ": "rr br rearright",
    "4 ": "fr frontright",
    "": "gnss gps ins imu ned nwu body frame geodetic world wgs wgs84 standard data value type of in the "
    "platform motor wheel main aux cam camera arm estimate est",
}
"""Words of each meaning. Wheels 1 to 4 are front left, rear left, rear right, front right (errata)."""

_KNOWN: dict[str, str] = {
    word: meaning.strip() for meaning, words in _WORDS.items() for word in words.split()
}
_VECTORS = {
    "v": "velocity",
    "w": "angular",
    "a": "acceleration",
    "p": "position",
    "g": "angular",
    "m": "magnetic",
}
_GLUED: dict[str, Meaning] = {
    letter + axis: frozenset((meaning, axis)) for letter, meaning in _VECTORS.items() for axis in "xyz"
}
_ATTITUDE = {"x": "roll", "y": "pitch", "z": "yaw"}
AXIS_OF = {angle: axis for axis, angle in _ATTITUDE.items()}

UNITS = {
    "rad": "rad deg",
    "rad/s": "rad/s radps deg/s dps",
    "m": "m mm cm km",
    "m/s": "m/s mps mm/s cm/s km/h",
    "m/s2": "m/s2 mps2 g mg",
    "T": "T mT uT nT G mG",
    "degC": "degC C K",
    "Pa": "Pa hPa mbar kPa bar",
    "s": "s ms us ns",
    "": "ticks tick",
}
"""Accepted units for each SI unit, ignoring case: `g` is G for a field in tesla."""

_LONG_UNITS = {
    **dict.fromkeys(("°", "º", "degrees", "degree"), "deg"),
    **dict.fromkeys(("radians", "radian"), "rad"),
    **dict.fromkeys(("unixseconds", "seconds", "second", "sec"), "s"),
    **dict.fromkeys(("meters", "metres", "meter", "metre"), "m"),
    **dict.fromkeys(("µ", "μ"), "u"),
    **dict.fromkeys(("per", "unix"), ""),
    "²": "2",
    "celsius": "c",
    "gauss": "g",
    "tesla": "t",
}
_BRACKETS = re.compile(r"[\[({]([^\])}]*)[\])}]")
_TOKEN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d|[^\W\d_a-zA-Z]+")


@dataclass(frozen=True)
class ColumnHeader:
    """Header of a column: its text, its meaning (empty if it is not understood), and its unit, if any."""

    text: str
    meaning: Meaning = frozenset()
    unit: str | None = None


def read_header(text: str, ignored: Iterable[str] = ()) -> ColumnHeader:
    """Return the meaning and the unit of a header.

    Parameters
    ----------
    text : str
        Text of the file.
    ignored : iterable of str
        Lower-case words without a meaning in this file.
    """
    words, unit = _split_unit(text)
    found: set[str] = set()
    for token in _TOKEN.findall(re.sub(r"(?i)2d", " ", words)):
        meanings = frozenset(("",)) if token.lower() in ignored else _meanings(token.lower())
        if meanings is None:
            return ColumnHeader(text, unit=unit)
        found |= meanings
    return ColumnHeader(text, simplify(found - {""}), unit)


def simplify(words: Iterable[str]) -> Meaning:
    """Return a meaning without implied words: `angular velocity` is angular, `roll-x` is roll."""
    meaning = set(words)
    angles = meaning & AXIS_OF.keys()
    if "angular" in meaning:
        meaning -= {"velocity", *angles}
        meaning |= {AXIS_OF[angle] for angle in angles}
    elif angles:
        meaning -= {"attitude", "angle", "x", "y", "z"}
    elif "attitude" in meaning and (axes := meaning & _ATTITUDE.keys()):
        meaning -= {"attitude", *axes}
        meaning |= {_ATTITUDE[axis] for axis in axes}
    if "device" in meaning:
        meaning.discard("time")
    if meaning & {"lat", "lon", "alt"}:
        meaning -= {"position", "x", "y", "z"}
    return frozenset(meaning)


def unit_from_header(si_unit: str, unit: str) -> Unit | None:
    """Return the unit of a column by its text; None if it cannot be converted to `si_unit`."""
    return _units()[si_unit].get(_plain(unit))


@cache
def _units() -> dict[str, dict[str, Unit]]:
    known = {si: {_plain(name): unit_of(name) for name in names.split()} for si, names in UNITS.items()}
    known[""] |= {"": Unit(""), "0-7": Unit("")}
    return known


def _split_unit(text: str) -> tuple[str, str | None]:
    """Return the words of a header, and its unit in brackets or at the end; None without a unit."""
    for inside in _BRACKETS.findall(text):
        if _is_unit(inside):
            return text.replace(inside, " "), inside.strip()
    parts = re.split(r"[\s_]+", text.strip())
    for count in (3, 2, 1):
        tail = "/".join(parts[-count:])
        if len(parts) > count and _is_unit(tail) and (tail.lower() not in _KNOWN or tail == "T"):
            return " ".join(parts[:-count]), tail
    return text, None


def _is_unit(text: str) -> bool:
    plain = _plain(text)
    return bool(plain) and any(plain in units for units in _units().values())


@cache
def _plain(unit: str) -> str:
    text = unit.strip().lower()
    for long, short in _LONG_UNITS.items():
        text = text.replace(long, short)
    text = re.sub(r"[\s/^*·._]", "", text)
    return text.replace("s-1", "s").replace("s-2", "s2")


@cache
def _meanings(token: str) -> Meaning | None:
    """Return the meanings of a word, or of the known words that it consists of; None if it is unknown."""
    if token in _KNOWN:
        return frozenset((_KNOWN[token],))
    if token in _GLUED:
        return _GLUED[token]
    for length in range(len(token) - 1, 0, -1):
        head, tail = _meanings_of_part(token[:length]), token[length:]
        if head is not None and (rest := _meanings(tail)) is not None:
            return head | rest
    return None


def _meanings_of_part(part: str) -> Meaning | None:
    """Return the meaning of the first part of a compound word of at least three letters."""
    return frozenset((_KNOWN[part],)) if len(part) > 2 and part in _KNOWN else None


_DELIMITERS = ",;\t"
_COMMENT = "#% "
_NEWLINE = re.compile("\r\n|\r|\n")
_TIME_UNITS = ((10**17, 1), (10**14, 10**3), (10**11, 10**6), (0, clocks.NS))
"""Smallest unix times in ns, us and ms, and their unit, ns: as seconds they would be after the year 5000."""


@dataclass(frozen=True)
class CsvHead:
    """Layout of the first lines of a CSV file."""

    header: list[str] | None
    first: list[str]  # fields of the first row of data; empty without data
    skip: int  # lines before the data
    delimiter: str

    @property
    def width(self) -> int:
        """Number of columns of the data, else of the header."""
        return len(self.first) or len(self.header or ())


def sniff(head: Buffer) -> CsvHead:
    """Return the layout of a CSV file from its first bytes."""
    text = bytes(head[:HEAD_BYTES]).decode("utf-8-sig", "replace")
    lines = [(n, line.strip()) for n, line in enumerate(_NEWLINE.split(text), 1) if line.strip()]
    rows = [(n, line) for n, line in lines if line[0] not in _COMMENT]
    # The header may be a comment.
    titles = [t.lstrip(_COMMENT) for n, t in lines if t[0] in _COMMENT and (not rows or n < rows[0][0])]
    if not rows:
        return CsvHead(None, [], len(lines), ",")
    delimiter = max(_DELIMITERS, key=rows[0][1].count)
    fields = [_fields(line, delimiter) for _, line in rows[:3]]
    if not _is_header(fields[0]):
        header = _fields(titles[-1], delimiter) if titles else None
        return CsvHead(header, fields[0], rows[0][0] - 1, delimiter)
    # A second line without any number contains the units.
    below = 2 if len(fields) > 1 and not any(map(is_number, fields[1])) else 1
    first = next((f for f in fields[below:]), [])
    return CsvHead(fields[0], first, rows[below - 1][0], delimiter)


def _fields(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line; quotation marks are used only if they are paired."""
    quoting = csv.QUOTE_MINIMAL if line.count('"') % 2 == 0 else csv.QUOTE_NONE
    return [field.strip() for field in next(csv.reader([line], delimiter=delimiter, quoting=quoting))]


def _is_header(fields: list[str]) -> bool:
    """Return whether a line is a header: not a number first, and at most half of the fields are numbers."""
    return not is_number(fields[0]) and sum(map(is_number, fields)) * 2 <= len(fields)


def unix_unit(text: str) -> int | None:
    """Return the unit of a unix time, ns, by its size; None if it is not a unix time after 1973."""
    try:
        value = clocks.ns_from_decimal(text, 1)
    except TimeError:
        return None
    return next(unit for limit, unit in _TIME_UNITS if value >= limit) if value >= 10**8 else None
