"""Detection of the layout of a text of numbers: delimiter, decimal separator, header and column names."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

from transect.errors import ParseError, did_you_mean
from transect.recording.text import is_number

from ..shared.column_names import split_titles, split_unit
from .model import Reference

_DATE = re.compile(r"\d{1,4}[-/.:]\d{1,2}[-/.:]\d")
_SAMPLE_LINES = 60
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_DECIMAL_COMMA_BYTES = re.compile(rb"(?<=\d),(?=\d)")


@dataclass(frozen=True)
class Text:
    """Layout of a text."""

    delimiter: str  # One character, or a blank for any number of blanks and tabs
    skip: int  # Lines before the first row
    names: tuple[str, ...]  # Column names of the header, or numbers without a header
    decimal: str = "."  # Decimal separator: a point or a comma

    def number(self, reference: Reference, file: str) -> int:
        """Return the index of a column given by name (with or without unit) or number."""
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


def with_points(text: bytes) -> bytes:
    """Return a text of the same length with a point for each comma between digits."""
    return _DECIMAL_COMMA_BYTES.sub(b".", text)


def layout_of(head: bytes, delimiter: str = "", header: int | None = None, decimal: str = "") -> Text:
    """Detect the layout of a text from its first bytes, except for given properties.

    The first row is the first line with at least half its fields numbers; the line before has the names if it
    has as many fields.
    """
    lines = head.decode("utf-8-sig", "replace").rstrip().splitlines()[:_SAMPLE_LINES]
    delimiter = delimiter or _delimiter(lines)
    decimal = decimal or _decimal(lines, delimiter)
    if decimal == ",":
        lines = [_DECIMAL_COMMA.sub(".", line) for line in lines]
    rows = [fields_of(line, delimiter) for line in lines]
    skip = _first_row(rows) if header is None else header
    width = len(rows[skip]) if skip < len(rows) else max((len(row) for row in rows), default=0)
    header_line = lines[skip - 1].lstrip("#% ") if 0 < skip <= len(lines) else ""
    above = fields_of(header_line, delimiter)
    if len(above) > width and delimiter != " ":
        above = split_titles(header_line, delimiter)
    names = [w.strip('"') for w in above] if len(above) == width else [str(i) for i in range(width)]
    return Text(delimiter, skip, tuple(names), decimal)


def fields_of(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line; delimiters between quotation marks are text."""
    if delimiter == " ":
        return line.split()
    if '"' in line:
        return [field.strip() for field in next(csv.reader([line], delimiter=delimiter), [])]
    return [field.strip() for field in line.split(delimiter)]


def _delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that splits the lines into the same number of fields, or a blank.

    Of several candidates, the one with the most numeric fields is chosen, because a comma may be a decimal
    separator.
    """
    sample = _later_lines(lines)
    counts = {sign: {line.count(sign) for line in sample} for sign in (",", ";", "\t", "|")}
    steady = [sign for sign, found in counts.items() if len(found) == 1 and 0 not in found]
    often = [sign for sign, found in counts.items() if found and 0 not in found]
    found = steady or often or [" "]
    return found[0] if len(found) == 1 else max(found, key=lambda sign: _value_ratio(sample, sign))


def _later_lines(lines: Sequence[str]) -> Sequence[str]:
    """Return the second half of the lines, which has no header."""
    sample = [line for line in lines if line.strip()]
    sample = sample[len(sample) // 2 :]
    return sample[:-1] or sample  # the last one may be cut


def _value_ratio(lines: Sequence[str], sign: str) -> float:
    if sign != ",":
        lines = [_DECIMAL_COMMA.sub(".", line) for line in lines]
    fields = [field for line in lines for field in fields_of(line, sign)]
    return sum(is_value(field) for field in fields) / max(len(fields), 1)


def _decimal(lines: Sequence[str], delimiter: str) -> str:
    """Return the decimal separator: a comma only if it makes all fields with commas numbers."""
    if delimiter == ",":
        return "."
    fields = [field for line in _later_lines(lines) for field in fields_of(line, delimiter)]
    commas = [field for field in fields if "," in field]
    return "," if commas and all(is_number(_DECIMAL_COMMA.sub(".", field)) for field in commas) else "."


def _first_row(rows: Sequence[Sequence[str]]) -> int:
    for number, fields in enumerate(rows):
        if any(fields) and 2 * sum(is_value(field) for field in fields) >= len(fields):
            return number
    named = [number for number, fields in enumerate(rows) if any(fields)]
    return named[0] + 1 if named else 0  # a header alone


def is_value(text: str) -> bool:
    """Return whether a field is a number, a date or empty."""
    return is_number(text) or not text or _DATE.match(text) is not None
