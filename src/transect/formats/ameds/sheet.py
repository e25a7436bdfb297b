"""How a CSV file begins: its header, its first row, its delimiter, and its unit of time."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from transect.base import clocks
from transect.errors import TimeError
from transect.recording.source import HEAD, Buffer
from transect.recording.text import is_number

_DELIMITERS = ",;\t"
_COMMENT = "#% "
_NEWLINE = re.compile("\r\n|\r|\n")
_TIME_UNITS = ((10**17, 1), (10**14, 10**3), (10**11, 10**6), (0, clocks.NS))
"""From which value on a unix time must be in ns, us or ms: as seconds it would lie beyond the year 5000."""


@dataclass(frozen=True)
class Sheet:
    """How a CSV file begins.

    Attributes
    ----------
    header : list of str or None
    first : list of str
        Fields of the first row of data; empty if there is none.
    skip : int
        Lines before the data.
    delimiter : str
    """

    header: list[str] | None
    first: list[str]
    skip: int
    delimiter: str

    @property
    def width(self) -> int:
        """Number of columns: that of the data, if there are any."""
        return len(self.first) or len(self.header or ())


def sniff(head: Buffer) -> Sheet:
    """Return how a CSV file begins, from its first bytes."""
    text = bytes(head[:HEAD]).decode("utf-8-sig", "replace")
    lines = [(n, line.strip()) for n, line in enumerate(_NEWLINE.split(text), 1) if line.strip()]
    rows = [(n, line) for n, line in lines if line[0] not in _COMMENT]
    # A header may itself be written as a comment.
    titles = [t.lstrip(_COMMENT) for n, t in lines if t[0] in _COMMENT and (not rows or n < rows[0][0])]
    if not rows:
        return Sheet(None, [], len(lines), ",")
    delimiter = max(_DELIMITERS, key=rows[0][1].count)
    fields = [_fields(line, delimiter) for _, line in rows[:3]]
    if not _is_header(fields[0]):
        header = _fields(titles[-1], delimiter) if titles else None
        return Sheet(header, fields[0], rows[0][0] - 1, delimiter)
    # A second line without any number says the units.
    below = 2 if len(fields) > 1 and not any(map(is_number, fields[1])) else 1
    first = next((f for f in fields[below:]), [])
    return Sheet(fields[0], first, rows[below - 1][0], delimiter)


def _fields(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line; quotation marks hide delimiters only where they come in pairs."""
    quoting = csv.QUOTE_MINIMAL if line.count('"') % 2 == 0 else csv.QUOTE_NONE
    return [field.strip() for field in next(csv.reader([line], delimiter=delimiter, quoting=quoting))]


def _is_header(fields: list[str]) -> bool:
    """Tell whether a line is no data: a damaged first field alone does not make a header."""
    return not is_number(fields[0]) and sum(map(is_number, fields)) * 2 <= len(fields)


def unix_unit(text: str) -> int | None:
    """Return the unit in ns of a unix time as its size tells it; None if it is no unix time after 1973."""
    try:
        value = clocks.ns_from_decimal(text, 1)
    except TimeError:
        return None
    return next(unit for limit, unit in _TIME_UNITS if value >= limit) if value >= 10**8 else None
