"""Columns of text: the patterns of data types, numbers, special constants and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Bytes, Floats, Ints, Mask
from transect.recording.arrow import from_numpy, offsets_of

from ..problems import ValidationProblem, problem

IS_BLANK = np.zeros(256, bool)
IS_BLANK[[9, 10, 11, 12, 13, 32]] = True
QUOTE_BYTE = 0x22


@dataclass(frozen=True)
class TextColumn:
    """The values of one field."""

    data: Bytes  # (bytes,) the file, or the part of it that holds the table
    # (rows,) first byte of each value, and the one after its last
    starts: Ints
    ends: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def lengths(self) -> Ints:
        """Bytes of each value."""
        return self.ends - self.starts

    def text(self, row: int) -> str:
        """Return one value, as people are shown it."""
        return self.data[self.starts[row] : self.ends[row]].tobytes().decode("utf-8", "replace")

    def trimmed(self) -> TextColumn:
        """Return the values without blanks around them."""
        starts, ends = self.starts.copy(), self.ends.copy()
        rows = np.flatnonzero((ends > starts) & IS_BLANK[self.data[np.minimum(starts, len(self.data) - 1)]])
        while rows.size:
            starts[rows] += 1
            rows = rows[starts[rows] < ends[rows]]
            rows = rows[IS_BLANK[self.data[starts[rows]]]]
        rows = np.flatnonzero((ends > starts) & IS_BLANK[self.data[ends - 1]])
        while rows.size:
            ends[rows] -= 1
            rows = rows[starts[rows] < ends[rows]]
            rows = rows[IS_BLANK[self.data[ends[rows] - 1]]]
        return TextColumn(self.data, starts, ends)

    def unquoted(self) -> tuple[TextColumn, Mask]:
        """Return the values without the quotation marks around them, and which had them."""
        long = self.lengths >= 2
        first = self.data[np.minimum(self.starts, len(self.data) - 1)] == QUOTE_BYTE
        quoted = long & first & (self.data[self.ends - 1] == QUOTE_BYTE)
        return TextColumn(self.data, self.starts + quoted, self.ends - quoted), quoted

    def where(self, rows: Mask) -> TextColumn:
        """Return some of the values."""
        return TextColumn(self.data, self.starts[rows], self.ends[rows])

    def strings(self) -> Any:
        """Return an Arrow array of bytes, one value after the other."""
        import pyarrow as pa

        lengths = self.lengths
        offsets = offsets_of(lengths)
        places = np.arange(offsets[-1]) + np.repeat(self.starts - offsets[:-1], lengths)
        flat = np.ascontiguousarray(self.data[places])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(flat)]
        return pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers)


def matches(strings: Any, pattern: str) -> Mask:
    """Return which values a pattern describes from their first to their last byte."""
    import pyarrow.compute as pc

    found: Any = pc.match_substring_regex(strings, pattern=rf"\A(?:{pattern})\z")  # pyright: ignore[reportAttributeAccessIssue]
    bits = np.frombuffer(found.buffers()[1], np.uint8)
    return np.unpackbits(bits, bitorder="little")[found.offset : found.offset + len(found)].astype(bool)


def numbers(strings: Any) -> tuple[Floats, Mask]:
    """Return values as numbers, NaN for what is none, and which are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    real = matches(strings, REAL)
    values = np.full(len(strings), np.nan)
    if real.any():
        some = strings if real.all() else strings.filter(from_numpy(real))
        text = some.cast(pa.large_string())
        bare: Any = pc.utf8_ltrim(text, characters="+")  # pyright: ignore[reportAttributeAccessIssue]
        parsed = bare.cast(pa.float64())
        values[real] = np.frombuffer(parsed.buffers()[1], np.float64)[
            parsed.offset : parsed.offset + len(parsed)
        ]
    return values, real


REAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[Ee][+-]?[0-9]+)?"


_Z, _OR_Z = "Z", "Z?"
_HOUR, _MINUTE, _SECOND = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]", "(?:[0-5][0-9]|60)"
_YEAR = r"-?[0-9]{4}"
_DAY = r"(?:00[1-9]|0[1-9][0-9]|[12][0-9][0-9]|3[0-5][0-9]|36[0-6])"
_MONTH = r"(?:0[1-9]|1[0-2])"
_DATE = rf"{_MONTH}-(?:0[1-9]|[12][0-9]|3[01])"
_LID = r"urn(?::[0-9a-z._-]+){3,5}"
_VID = r"[1-9][0-9]*\.[0-9]+"
_FILE = r"[A-Za-z0-9]*[A-Za-z0-9_.-]*[A-Za-z0-9]\.[A-Za-z0-9]+"
_FOLDER = r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?"


def _time(decimals: str) -> str:
    midnight = rf"24(?::00(?::00(?:\.0{decimals})?)?)?"
    return rf"{_HOUR}(?::{_MINUTE}(?::{_SECOND}(?:\.[0-9]{decimals})?)?)?|{midnight}"


_TIME = _time("{1,6}")


def _doy(zone: str) -> str:
    return rf"{_YEAR}(?:-{_DAY}(?:T(?:{_TIME}))?)?{zone}"


def _ymd(zone: str) -> str:
    return rf"{_YEAR}(?:-{_MONTH}|-{_DATE}(?:T(?:{_TIME}))?)?{zone}"


PATTERNS = {
    "ASCII_Integer": r"[+-]?[0-9]+",
    "ASCII_NonNegative_Integer": r"\+?[0-9]+",
    "ASCII_Real": REAL,
    "ASCII_Numeric_Base2": "[01]{1,255}",
    "ASCII_Numeric_Base8": "[0-7]{1,255}",
    "ASCII_Numeric_Base16": "[0-9a-fA-F]{1,255}",
    "ASCII_MD5_Checksum": "[0-9a-fA-F]{32}",
    "ASCII_Boolean": "true|false|1|0",
    "ASCII_AnyURI": r"[^\s<>\"{}|\\^`]+",
    "ASCII_DOI": r"10\.\S+/\S+",
    "ASCII_LID": _LID,
    "ASCII_LIDVID": rf"{_LID}::{_VID}",
    "ASCII_LIDVID_LID": rf"{_LID}(?:::{_VID})?",
    "ASCII_VID": r"[1-9][0-9]*\.[0-9]+(?:\.[0-9]+){0,2}",
    "ASCII_Date_DOY": rf"{_YEAR}(?:-{_DAY})?Z?",
    "ASCII_Date_YMD": rf"{_YEAR}(?:-{_MONTH}|-{_DATE})?Z?",
    "ASCII_Date_Time_DOY": _doy(_OR_Z),
    "ASCII_Date_Time_DOY_UTC": _doy(_Z),
    "ASCII_Date_Time_YMD": _ymd(_OR_Z),
    "ASCII_Date_Time_YMD_UTC": _ymd(_Z),
    "ASCII_Time": rf"(?:{_time('+')})Z?",
    "ASCII_Directory_Path_Name": rf"/?{_FOLDER}(?:/{_FOLDER})*/?",
    "ASCII_File_Name": _FILE,
    "ASCII_File_Specification_Name": rf"/?(?:{_FOLDER}/)*{_FILE}",
    "ASCII_BibCode": r"[0-9]{4}[A-Za-z0-9.&]{5}[A-Za-z0-9.]{9}[A-Z]",
    "ASCII_String": r"[\x00-\x7f]*",
    "ASCII_Short_String_Collapsed": r"[\x00-\x7f]{0,255}",
    "ASCII_Short_String_Preserved": r"[\x00-\x7f]{0,255}",
    "ASCII_Text_Collapsed": r"[\x00-\x7f]*",
    "ASCII_Text_Preserved": r"[\x00-\x7f]*",
}  # fmt: skip
"""Patterns of RE2 by data type; a type that is missing here takes any text."""

NUMERIC = frozenset({"ASCII_Integer", "ASCII_NonNegative_Integer", "ASCII_Real"})
DATES = frozenset(name for name in PATTERNS if name.startswith(("ASCII_Date", "ASCII_Time")))
NO_NUMBER = r"(?i)[+-]?(?:inf(?:inity)?|nan)"
"""Which only real numbers may be."""
LARGEST = {"ASCII_Integer": (-(2**63), 2**63 - 1), "ASCII_NonNegative_Integer": (0, 2**64 - 1)}

FORMAT = r"%([+,-])?([0-9]+)(?:\.([0-9]+))?([doxfeEs])"
"""`field_format`: justification, width, precision, kind."""
FORMATS = {
    "e": r"[+-]?[0-9](?:\.[0-9]*)?[Ee][+-]?[0-9]+",
    "f": r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)",
    "d": r"[+-]?[0-9]+",
    "o": r"\+?[0-7]+",
    "x": r"\+?[0-9a-fA-F]+",
}


LIMITS = ("valid_minimum", "valid_maximum")
SATURATIONS = ("high_instrument_saturation", "high_representation_saturation", "low_instrument_saturation",
               "low_representation_saturation")  # fmt: skip


def constant_value(text: str) -> float | None:
    """Return a special constant as a number: decimal, or its bits as `0x..` or `16#..#`."""
    try:
        if text.lower().startswith("0x"):
            return float(int(text, 16))
        if text.startswith("16#"):
            return float(int(text.strip("#")[3:], 16))
        return float(text)
    except ValueError:
        return None


def bit_pattern(text: str) -> int | None:
    """Return the bits that a special constant spells, if it spells bits."""
    digits = (
        text[2:] if text.lower().startswith("0x") else text.strip("#")[3:] if text.startswith("16#") else ""
    )
    try:
        return int(digits, 16) if digits else None
    except ValueError:
        return None


def is_constant(values: Any, constants: Mapping[str, str]) -> Mask:
    """Return which numbers are special constants; their limits are none.

    Parameters
    ----------
    values : (n,) array of numbers
    constants : mapping of str
        As the label spells them: a number, or its bits in hexadecimal.
    """
    found = np.zeros(values.shape, bool)
    for name, text in constants.items():
        if name in LIMITS:
            continue
        bits, number = bit_pattern(text), constant_value(text)
        if bits is not None and values.dtype.kind in "fiu" and bits < 2 ** (8 * values.dtype.itemsize):
            unsigned = values.astype(values.dtype.newbyteorder("=")).view(f"u{values.dtype.itemsize}")
            found |= unsigned == np.array(bits, unsigned.dtype)
        elif number is not None and np.isnan(number):
            found |= np.isnan(values)
        elif number is not None:
            found |= _equal(values, number)
    return found


def _equal(values: Any, number: float) -> Mask:
    """Compare as it is stored: -1e32 in four bytes is the constant -1.0E32, -1 without a sign all ones."""
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values == values.dtype.newbyteorder("=").type(number)
    if values.dtype.kind == "u" and number < 0:
        number += 2.0 ** (8 * values.dtype.itemsize)
    return values == number


def constant_problems(
    constants: Mapping[str, str], dtype: np.dtype[Any], group: str
) -> Iterator[ValidationProblem]:
    """Yield special constants that no binary number of a type can be.

    Parameters
    ----------
    group : str
        `field` or `array`, with which the name of the problem begins.
    """
    for name, text in constants.items():
        value, bits = constant_value(text), bit_pattern(text)
        if value is None:
            why = "is no number"
        elif bits is not None:
            why = "has too many bits" if bits >= 2 ** (8 * dtype.itemsize) else ""
        elif dtype.kind in "iu":
            low, high = np.iinfo(f"i{dtype.itemsize}").min, np.iinfo(dtype).max  # -1 stands for all ones, too
            why = "" if low <= value <= high else "does not fit"
        else:
            why = ""
        if why:
            yield problem(
                f"{group}.invalid_special_constant", f"{name} {text!r} {why} (stored as {dtype.name})"
            )


def range_problems(
    values: Any,
    checked: Mask,
    limits: tuple[float | None, float | None],
    constants: Mapping[str, str],
    group: str,
    shown: Callable[[int], str],
) -> Iterator[ValidationProblem]:
    """Yield what is outside of the statistics, and of the valid range that the special constants say.

    Parameters
    ----------
    values : (n,) array of numbers
    checked : (n,) bool
        Which are numbers, and no special constants.
    limits : (minimum, maximum)
        Of the statistics, None if the label has none.
    group : str
        `table.field_value` or `array.value`, with which the names of the problems begin.
    shown : callable
        Returns a value as text, by its place.
    """
    valid = tuple(constant_value(constants.get(name, "")) for name in LIMITS)
    named = (("minimum", "maximum"), LIMITS)
    for (low, high), names, kind in zip(
        (limits, valid), named, ("out_of_min_max_range", "out_of_special_constant_min_max_range"), strict=True
    ):
        for bound, below, name in ((low, True, names[0]), (high, False, names[1])):
            if bound is None:
                continue
            with np.errstate(invalid="ignore"):
                outside = checked & ((values < bound) if below else (values > bound))
            if outside.any():
                yield _outside(values, outside, bound, below, name, f"{group}_{kind}", shown)


def _outside(
    values: Any, outside: Mask, bound: float, below: bool, name: str, kind: str, shown: Callable[[int], str]
) -> ValidationProblem:
    rows = np.flatnonzero(outside)
    extreme = rows[np.argmin(values[rows]) if below else np.argmax(values[rows])]
    side = "below" if below else "above"
    count = len(rows)
    what = f"{shown(int(rows[0]))} is {side} the {name} {bound:.17g}"
    more = f", and {count - 1} more; the farthest is {shown(int(extreme))}" if count > 1 else ""
    return problem(kind, what + more, record=int(rows[0]) + 1, count=count)
