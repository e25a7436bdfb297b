"""Delimited text through pyarrow: time stamps exact, bad rows found, counted and left out.

The fast way reads the whole file at once with the types that were asked for. Only if that fails is the file
read again as text, to find the rows that do not fit; the rest is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
from numpy.typing import NDArray

from transect.recording import Loss, arrow
from transect.recording.clocks import NS
from transect.recording.source import Buffer

from ._lines import whole_lines

_NULLS = ["", "nan", "NaN", "NAN", "-nan", "null", "NULL", "None", "N/A", "n/a"]
_DIGITS = {1: 0, 10**3: 3, 10**6: 6, NS: 9}
"""Decimals that make a number of each unit whole nanoseconds."""
_LINE_END = re.compile(rb"\r\n|\r|\n")
BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class Csv:
    """A delimited text, read.

    Attributes
    ----------
    table : pyarrow.Table
        The columns as asked for; time columns are int64 nanoseconds.
    losses : tuple of Loss
    """

    table: pa.Table
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class Layout:
    """How a delimited text is laid out.

    Attributes
    ----------
    names : sequence of str
        Column names, in order.
    times : mapping of str to int
        Columns that are times, with their unit in ns (`10**9` for seconds); they become int64 ns.
    texts : sequence of str
        Columns that are text. All others are float64.
    skip : int
        Lines before the first data line (header, comments).
    delimiter : str
    """

    names: Sequence[str]
    times: Mapping[str, int] = field(default_factory=dict[str, int])
    texts: Sequence[str] = ()
    skip: int = 1
    delimiter: str = ","

    def types(self) -> dict[str, pa.DataType]:
        """Return the Arrow type each column is read as."""
        times = {name: pa.decimal128(38, _DIGITS[unit]) for name, unit in self.times.items()}
        texts = dict.fromkeys(self.texts, pa.large_string())
        return {name: times.get(name) or texts.get(name) or pa.float64() for name in self.names}


def read_csv(buffer: Buffer, layout: Layout, file: str) -> Csv:
    """Read delimited text; rows with the wrong number of fields or a field that does not fit are losses."""
    size, cut = whole_lines(buffer, file)
    losses = [cut] if cut else []
    view = memoryview(buffer)[:size]
    try:
        return Csv(_finish(_arrow_read(view, layout), layout), tuple(losses))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        table, found = _read_all_that_fit(view, layout, file)
        return Csv(_finish(table, layout), (*found, *losses))


def _read_all_that_fit(view: memoryview, layout: Layout, file: str) -> tuple[pa.Table, list[Loss]]:
    """Read again, without the rows of another width if that is all that is wrong, else row by row."""
    refused: list[Any] = []

    def handle(row: Any) -> str:
        refused.append(row)
        return "skip"

    try:
        # Arrow shows refused rows to `handle` as text, and cannot show those that are none.
        str(view, "utf-8")
        table = _finish(_arrow_read(view, layout, handle), layout)
        return table, [_wrong_width(view, layout, file, len(refused))]
    except (UnicodeDecodeError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _read_carefully(view, layout, file)


def _arrow_read(
    view: memoryview, layout: Layout, invalid_row_handler: Callable[[Any], str] | None = None
) -> pa.Table:
    return pv.read_csv(
        pa.BufferReader(pa.py_buffer(view)),
        read_options=pv.ReadOptions(
            column_names=list(layout.names), skip_rows=layout.skip, block_size=BLOCK, use_threads=True
        ),
        # Between numbers a quotation mark is damage: believed, it would swallow all lines up to the next one.
        parse_options=pv.ParseOptions(
            delimiter=layout.delimiter,
            quote_char='"' if layout.texts else False,
            invalid_row_handler=invalid_row_handler,
        ),
        convert_options=pv.ConvertOptions(
            column_types=layout.types(),
            null_values=_NULLS,
            strings_can_be_null=False,
            quoted_strings_can_be_null=False,
        ),
    )


def _wrong_width(view: memoryview, layout: Layout, file: str, count: int) -> Loss:
    """Locate the first row with another number of fields; only called when there is one."""
    width = len(layout.names)
    mark = layout.delimiter.encode()
    for number, line in enumerate(_lines(view), 1):
        fields = line.count(mark) + 1
        if number > layout.skip and line.strip() and fields != width:
            return Loss(file, f"{fields} fields where {width} are expected", line=number, count=count)
    return Loss(file, f"rows without {width} fields", count=count)


def _lines(view: memoryview) -> list[bytes]:
    """Split a text where Arrow does: a lone carriage return ends a line, too."""
    return _LINE_END.split(bytes(view))


def _read_carefully(view: memoryview, layout: Layout, file: str) -> tuple[pa.Table, list[Loss]]:
    """Read all fields as text, keep the rows whose fields all convert, and locate the others."""
    numbered = [(n, line) for n, line in enumerate(_lines(view), 1) if n > layout.skip and line.strip()]
    width, mark = len(layout.names), layout.delimiter.encode()
    rows: list[list[str]] = []
    losses: dict[str, list[int]] = {}
    for number, line in numbered:
        fields = [_bare(f) for f in line.decode("utf-8", "replace").split(mark.decode())]
        reason = (
            f"{len(fields)} fields where {width} are expected"
            if len(fields) != width
            else _unfit(fields, layout)
        )
        if reason:
            losses.setdefault(reason, []).append(number)
        else:
            rows.append(fields)
    columns = {
        name: _converted([row[i] for row in rows], name, layout) for i, name in enumerate(layout.names)
    }
    found = [Loss(file, reason, line=where[0], count=len(where)) for reason, where in losses.items()]
    return pa.table(columns), found


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text


def _unfit(fields: Sequence[str], layout: Layout) -> str:
    for name, text in zip(layout.names, fields, strict=True):
        if name in layout.texts or (text in _NULLS and name not in layout.times):
            continue
        try:
            if name in layout.times:
                if not abs(Decimal(text) * layout.times[name]) < 2**63:
                    return f"{name} is not a time"
            else:
                float(text)
        except (ValueError, ArithmeticError):
            return f"{name} is not a {'time' if name in layout.times else 'number'}"
    return ""


def _converted(texts: list[str], name: str, layout: Layout) -> pa.Array:
    if name in layout.texts:
        return arrow.strings(texts)
    if name in layout.times:
        exact = [int(Decimal(t) * layout.times[name]) for t in texts]
        return arrow.from_numpy(np.array(exact, dtype=np.int64))
    return arrow.from_numpy(np.array([np.nan if t in _NULLS else float(t) for t in texts], dtype=np.float64))


def _finish(table: pa.Table, layout: Layout) -> pa.Table:
    """Turn decimal time columns into int64 ns, and nulls into NaN."""
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
    """Return decimals as int64 nanoseconds: their scale was chosen so that the low words are just that."""
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
