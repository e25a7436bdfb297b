"""Delimited text read with pyarrow: exact time stamps; bad rows are located, counted and left out.

The whole file is first read at once with the declared types. If that fails, it is read again in blocks, and
blocks that fail are read row by row to find the rows that do not conform; all others are used.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
from numpy.typing import NDArray

from transect.base.clocks import NS, ns_from_decimal
from transect.base.file_bytes import Content
from transect.errors import TimeError

from .. import arrow
from ..losses import Loss
from .lines import TextPiece, count_line_ends, whole_piece

_NULLS = ["", "nan", "NaN", "NAN", "-nan", "null", "NULL", "None", "N/A", "n/a"]
_DIGITS = {1: 0, 10**3: 3, 10**6: 6, NS: 9}
"""Number of decimals with which a number in each unit has the resolution of 1 ns."""
_SIGN = np.arange(256) == ord("+")
_SIGN[ord("-")] = True  # np.isin would import masked arrays
_LONG_NUMBER = re.compile(rb"[0-9]{300}")
"""A number with this many digits may exceed the range of a double."""
_LINE_END = re.compile(rb"\r\n|\r|\n")
BLOCK_BYTES = 1 << 22
_RETRY_BYTES = 1 << 20
"""Size of the blocks of the second attempt; as Python strings they take ten times the memory."""

_Lost = dict[str, tuple[int, int]]
"""First line and number of lost lines for each reason."""


@dataclass(frozen=True, eq=False)
class Csv:
    """Table and losses of a delimited text."""

    table: pa.Table  # The columns of the layout; time columns are int64 nanoseconds
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class CsvLayout:
    """Columns and separators of a delimited text."""

    names: Sequence[str]  # Column names, in order
    # Columns that are times, with their unit in ns (`10**9` for seconds); they become int64 ns
    times: Mapping[str, int] = field(default_factory=dict[str, int])
    texts: Sequence[str] = ()  # Columns that are text. All others are float64.
    skip: int = 1  # Lines before the first data line (header, comments)
    delimiter: str = ","

    def types(self) -> dict[str, pa.DataType]:
        """Return the Arrow type each column is read as."""
        times = {name: pa.decimal128(38, _DIGITS[unit]) for name, unit in self.times.items()}
        texts = dict.fromkeys(self.texts, pa.large_string())
        return {name: times.get(name) or texts.get(name) or pa.float64() for name in self.names}


def read_csv(text: Content | TextPiece, layout: CsvLayout, file: str) -> Csv:
    """Read a delimited text, or a piece of it; rows with invalid fields or of another length are losses."""
    piece = text if isinstance(text, TextPiece) else whole_piece(text, file)
    view, layout = memoryview(piece.data), replace(layout, skip=max(0, layout.skip - piece.before))
    table = _read_fast(view, layout, layout.skip)
    if table is not None:
        return Csv(table, piece.losses)
    table, lost = _read_in_pieces(view, layout)
    found = (Loss(file, why, line=piece.before + line, count=count) for why, (line, count) in lost.items())
    return Csv(table, (*found, *piece.losses))


def _read_fast(view: memoryview, layout: CsvLayout, skip: int) -> pa.Table | None:
    """Read with Arrow; None if any row does not conform."""
    if _has_large_exponents(view):
        return None
    try:
        table = _finish(_arrow_read(view, layout, skip), layout)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return None if _has_infinities(table) and _LONG_NUMBER.search(view) else table


def _has_infinities(table: pa.Table) -> bool:
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    return any(np.isinf(arrow.numbers(table, name)).any() for name in floats)


def _has_large_exponents(view: memoryview) -> bool:
    """Return whether any number may have an exponent of 30 or more, or of three digits.

    Arrow converts such times incorrectly, or aborts the process; such values become infinite.
    """
    data = np.frombuffer(view, np.uint8)
    for start in range(0, len(data), BLOCK_BYTES):
        block = np.append(data[start : start + BLOCK_BYTES + 5], np.zeros(5, np.uint8))
        at = np.flatnonzero((block[: len(block) - 5] | 0x20) == ord("e")) + 1
        at += _SIGN[block[at]]
        at += block[at] == ord("0")  # some write e-005
        first, second, third = (block[at + i] - ord("0") for i in range(3))  # values below 0 wrap around
        if np.any((first <= 9) & (second <= 9) & ((first >= 3) | (third <= 9))):
            return True
    return False


def _arrow_read(view: memoryview, layout: CsvLayout, skip: int) -> pa.Table:
    return pv.read_csv(
        arrow.reader_of(view),
        read_options=pv.ReadOptions(
            column_names=list(layout.names), skip_rows=skip, block_size=BLOCK_BYTES, use_threads=True
        ),
        # In numeric texts a quotation mark is damage; as a quote it would hide all lines up to the next one.
        parse_options=pv.ParseOptions(delimiter=layout.delimiter, quote_char='"' if layout.texts else False),
        convert_options=pv.ConvertOptions(
            column_types=layout.types(),
            null_values=_NULLS,
            strings_can_be_null=False,
            quoted_strings_can_be_null=False,
        ),
    )


def _read_in_pieces(view: memoryview, layout: CsvLayout) -> tuple[pa.Table, _Lost]:
    """Read in blocks, row by row only if Arrow refuses a block: Python strings are large and slow."""
    tables: list[pa.Table] = []
    lost: _Lost = {}
    before = 0
    for piece in _pieces(view):
        table = _read_fast(piece, layout, max(0, layout.skip - before))
        if table is None:
            table = _table_of(_rows_that_fit(piece, layout, before, lost), layout)
        tables.append(table)
        before += count_line_ends(piece)
    return pa.concat_tables(tables), lost


def _pieces(view: memoryview) -> Iterator[memoryview]:
    """Split a text at line ends as defined by Arrow, including a lone carriage return."""
    start = 0
    while True:
        found = _LINE_END.search(view, start + _RETRY_BYTES)
        end = found.end() if found else len(view)
        yield view[start:end]
        if end == len(view):
            return
        start = end


def _rows_that_fit(view: memoryview, layout: CsvLayout, before: int, lost: _Lost) -> list[list[str]]:
    """Return the fields of the valid rows, and add the others to `lost`.

    `before` is the number of lines of the file before this part.
    """
    rows: list[list[str]] = []
    for number, line in enumerate(_LINE_END.split(bytes(view)), before + 1):
        if number <= layout.skip or not line.strip():
            continue
        fields, reason = _row(line.decode("utf-8", "replace"), layout)
        if reason:
            first, count = lost.get(reason, (number, 0))
            lost[reason] = first, count + 1
        else:
            rows.append(fields)
    return rows


def _row(line: str, layout: CsvLayout) -> tuple[list[str], str]:
    """Return the fields of a line, and why they are invalid ("" if they are valid)."""
    try:
        fields = _split(line, layout)
    except csv.Error as error:
        return [], str(error)
    if len(fields) != len(layout.names):
        return [], f"{len(fields)} fields where {len(layout.names)} are expected"
    named = zip(layout.names, fields, strict=True)
    fields = [text if name in layout.texts else _bare(text) for name, text in named]
    return fields, _unfit(fields, layout)


def _split(line: str, layout: CsvLayout) -> list[str]:
    """Split a line as Arrow does, except that an unpaired quotation mark is text."""
    if layout.texts and '"' in line and line.count('"') % 2 == 0:
        return next(csv.reader([line], delimiter=layout.delimiter))
    return line.split(layout.delimiter)


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text


def _unfit(fields: Sequence[str], layout: CsvLayout) -> str:
    for name, text in zip(layout.names, fields, strict=True):
        if name in layout.texts:
            continue
        if name in layout.times:
            if not _is_time(text, layout.times[name]):
                return f"{name} is not a time"
        elif not _is_number(text):
            return f"{name} is not a number"
    return ""


def _is_time(text: str, unit: int) -> bool:
    try:
        return _is_plain(text) and abs(ns_from_decimal(text, unit)) < 2**63
    except TimeError:
        return False


def _is_number(text: str) -> bool:
    if text in _NULLS:
        return True
    try:
        value = float(text)
    except ValueError:
        return False
    return _is_plain(text) and (math.isfinite(value) or not any(c.isdigit() for c in text))


def _is_plain(text: str) -> bool:
    """Return whether a text has no characters that only Python accepts in numbers: `1_000`, other scripts."""
    return "_" not in text and text.isascii()


def _table_of(rows: Sequence[Sequence[str]], layout: CsvLayout) -> pa.Table:
    named = enumerate(layout.names)
    return pa.table({name: _convert([row[i] for row in rows], name, layout) for i, name in named})


def _convert(texts: list[str], name: str, layout: CsvLayout) -> pa.Array:
    if name in layout.texts:
        return arrow.strings(texts)
    if name in layout.times:
        exact = [ns_from_decimal(t, layout.times[name]) for t in texts]
        return arrow.from_numpy(np.array(exact, dtype=np.int64))
    return arrow.from_numpy(np.array([np.nan if t in _NULLS else float(t) for t in texts], dtype=np.float64))


def _finish(table: pa.Table, layout: CsvLayout) -> pa.Table:
    """Convert decimal time columns to int64 ns, and nulls to NaN."""
    columns: list[Any] = []
    for name in table.column_names:
        values = table.column(name)
        if name in layout.times and pa.types.is_decimal(values.type):
            values = _ns_of_decimals(values)
        elif pa.types.is_floating(values.type) and values.null_count:
            values = arrow.from_numpy(arrow.numbers(table, name))
        columns.append(values)
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def _ns_of_decimals(values: pa.ChunkedArray) -> pa.Array:
    """Return decimals as int64 nanoseconds, which are their low words because of the chosen scale."""
    chunks = [_low_words(chunk) for chunk in values.chunks if len(chunk)]
    return arrow.from_numpy(np.concatenate(chunks) if chunks else np.zeros(0, np.int64))


def _low_words(chunk: pa.Array) -> NDArray[np.int64]:
    if chunk.null_count:
        raise pa.ArrowInvalid("a time is missing")
    words = np.frombuffer(chunk.buffers()[1], dtype=np.int64).reshape(-1, 2)
    part = words[chunk.offset : chunk.offset + len(chunk)]
    if not np.array_equal(part[:, 1], part[:, 0] >> 63):
        raise pa.ArrowInvalid("a time does not fit in 64 bits of nanoseconds")
    return part[:, 0]
