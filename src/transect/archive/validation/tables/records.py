"""Records of text or binary fields: where they begin and end, their number and their length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from transect.base.arrays import Bytes, Ints, Mask
from transect.formats.pds4.reading import BINARY

from ..options import ValidationOptions
from ..problems import ValidationProblem, located, problem
from .columns import LIMITS, QUOTE_BYTE, TextColumn, constant_problems, is_constant, range_problems
from .definition import FieldDef, TableDef
from .fields import field_problems

if TYPE_CHECKING:
    from .definition import TableDef

LF_BYTE, CR_BYTE = 10, 13
MAX_JOINED_LINES = 50
"""Largest number of lines of one quoted value."""


@dataclass(frozen=True)
class DelimitedRecords:
    """Records of a delimited table."""

    data: Bytes  # (bytes,) the file
    # (records,) first byte of each record, and the one after its last, without what ends it
    starts: Ints
    ends: Ints
    after: Ints  # (records,) byte after what ends it
    inside: Mask | None

    def __len__(self) -> int:
        return len(self.starts)


def split_records(table: TableDef, data: Bytes) -> DelimitedRecords:
    """Return the records that begin at the table's offset, at most as many as the label says.

    A line break inside quotation marks is part of a value. Where marks do not pair up, they are letters.
    """
    body = data[table.offset :]
    breaks = np.flatnonzero(body == LF_BYTE)
    inside = _find_quoted(body, breaks)
    if inside is not None:
        breaks = breaks[~inside[breaks]]
    after = breaks + 1
    if body.size and (not len(after) or after[-1] < body.size):
        after = np.append(after, body.size)  # the last one lacks what ends it
    after = after[: table.records]
    starts = np.concatenate([[0], after[:-1]]).astype(np.int64) if len(after) else np.zeros(0, np.int64)
    ends = after.copy()
    for sign in (LF_BYTE, CR_BYTE):
        cut = (ends > starts) & (body[np.maximum(ends - 1, 0)] == sign) if len(ends) else np.zeros(0, bool)
        ends = ends - cut
    base = table.offset
    inside_quotes = None if inside is None else np.concatenate([np.zeros(base, bool), inside])
    return DelimitedRecords(data, starts + base, ends + base, after + base, inside_quotes)


def _find_quoted(body: Bytes, breaks: Ints) -> Mask | None:
    """Return which bytes are inside quotation marks; None if there are none."""
    marks = body == QUOTE_BYTE
    if not marks.any():
        return None
    total = np.concatenate([[0], np.cumsum(marks, dtype=np.int64)])
    edges = np.concatenate([[0], breaks + 1, [body.size]])
    odd = np.flatnonzero(np.diff(total[edges]) % 2)
    pairs = len(odd) % 2 == 0 and bool(len(odd) == 0 or (np.diff(odd)[::2] <= MAX_JOINED_LINES).all())
    if not pairs:
        for line in odd:
            marks[edges[line] : edges[line + 1]] = False
        total = np.concatenate([[0], np.cumsum(marks, dtype=np.int64)])
    return (total[1:] % 2).astype(bool)


def record_problems(table: TableDef, records: DelimitedRecords, last: bool) -> Iterator[ValidationProblem]:
    """Yield problems of the number, the length and the ends of delimited records.

    Parameters
    ----------
    last : bool
        Whether the table should go on to the end of the file: an inventory does.
    """
    yield from _ends(table, records)
    if len(records) < table.records:
        text = f"records is {table.records}, but the file has {len(records)} from byte {table.offset} on"
        yield problem("table.records_mismatch", text)
    elif last and records.after.size and records.after[-1] < len(records.data):
        more = int(np.count_nonzero(records.data[records.after[-1] :] == LF_BYTE))
        if more:
            yield problem(
                "table.records_mismatch",
                f"records is {table.records}, but the file has {table.records + more}",
            )
    if table.max_record_length:
        lengths = records.after - records.starts
        long = np.flatnonzero(lengths > table.max_record_length)
        if long.size:
            largest = int(lengths.max())
            yield problem(
                "table.record_length_mismatch", record=int(long[0]) + 1, count=len(long),
                text=f"{len(long)} of {len(records)} records are longer than maximum_record_length "
                f"{table.max_record_length}: it should be at least {largest}",
            )  # fmt: skip


def _ends(table: TableDef, records: DelimitedRecords) -> Iterator[ValidationProblem]:
    wanted = len(table.record_delimiter)
    if not len(records):
        return
    data, after = records.data, records.after
    feed = data[after - 1] == LF_BYTE
    both = feed & (after - records.starts >= 2) & (data[np.maximum(after - 2, 0)] == CR_BYTE)
    if wanted == 2:
        yield from ends_problem(
            ~both, "missing_CRLF", "carriage return and line feed", feed, "line feed alone"
        )
    else:
        yield from ends_problem(
            ~feed | both, "missing_LF", "line feed alone", both, "carriage return and line feed"
        )


def ends_problem(wrong: Mask, kind: str, wanted: str, other: Mask, name: str) -> Iterator[ValidationProblem]:
    """Yield one problem for all records that do not end as the label says."""
    places = np.flatnonzero(wrong)
    if not places.size:
        return
    all_other = bool((wrong & other).sum() == len(wrong))
    word = "Line-Feed" if kind == "missing_CRLF" else "Carriage-Return Line-Feed"
    yield problem(
        f"table.{kind}", record=int(places[0]) + 1, count=len(places),
        text=f"{len(places)} of {len(wrong)} records do not end in {wanted}",
        cause=f"all records end in {name}: record_delimiter should be {word}" if all_other else "",
    )  # fmt: skip


def split_fields(
    table: TableDef, records: DelimitedRecords
) -> tuple[list[TextColumn], Ints, list[ValidationProblem]]:
    """Return a column for each field, which records they are of, and what is wrong with the others.

    Only records of the right number of fields are in the columns.
    """
    data = records.data
    signs = np.flatnonzero(data == table.field_delimiter[0])
    if records.inside is not None:
        signs = signs[~records.inside[signs]]
    first = np.searchsorted(signs, records.starts)
    found = np.searchsorted(signs, records.ends) - first + 1
    wanted = len(table.fields)
    right = np.flatnonzero(found == wanted)
    places = first[right][:, None] + np.arange(wanted - 1)[None, :]
    cuts = signs[places] if places.size else np.zeros((len(right), wanted - 1), np.int64)
    starts = np.concatenate([records.starts[right][:, None], cuts + 1], axis=1)
    ends = np.concatenate([cuts, records.ends[right][:, None]], axis=1)
    columns = [
        TextColumn(data, np.ascontiguousarray(starts[:, each]), np.ascontiguousarray(ends[:, each]))
        for each in range(wanted)
    ]
    return columns, right, _fields_mismatch(found, wanted)


def _fields_mismatch(found: Ints, wanted: int) -> list[ValidationProblem]:
    wrong = np.flatnonzero(found != wanted)
    if not wrong.size:
        return []
    number = int(found[wrong[0]])
    same = bool((found == number).all())
    return [
        problem(
            "table.fields_mismatch",
            record=int(wrong[0]) + 1,
            count=len(wrong),
            text=f"{len(wrong)} of {len(found)} records have not {wanted} fields; the first has {number}",
            cause=f"all records have {number} fields: the label should define this number" if same else "",
        )
    ]


MAX_OFFSET_ERROR_BYTES = 64
"""Search radius around an offset of the label."""


def fitting_layout(table: TableDef, data: Bytes) -> str:
    """Return which record length or offset would make all records of fixed length end as they should.

    Returns
    -------
    str
        `record_length should be 84, not 85: all 927 records then fit`; nothing if there is none, or the
        label's own numbers do.
    """
    feeds = np.flatnonzero(
        data[: min(len(data), table.offset + (table.records + 2) * (table.record_length + 64))] == LF_BYTE
    )
    if not len(feeds):
        return ""
    length = _spacing(table, feeds)
    offset = _offset(table, feeds, length or table.record_length)
    reasons: list[str] = []
    if length and length != table.record_length:
        reasons.append(f"record_length should be {length}, not {table.record_length}")
    if offset is not None and offset != table.offset:
        reasons.append(f"offset should be {offset}, not {table.offset}")
    if not reasons or offset is None:
        return ""
    count = _fitting(feeds, offset, length or table.record_length, table.records)
    if count < max(table.records, 1) and count * 10 < table.records * 9:
        return ""
    return f"{' and '.join(reasons)}: {'all ' if count == table.records else ''}{count} records then fit"


class LineLayout(NamedTuple):
    """Lines of the length of a record: where they begin, which records they are, and why not all."""

    starts: Ints
    rows: Ints
    cause: str


def whole_lines(table: TableDef, data: Bytes) -> LineLayout | None:
    """Return the lines of the right length if only a few have another one; else None.

    One byte too many in one record shifts all that follow, though each of them is right.
    """
    feeds = table.offset + np.flatnonzero(data[table.offset :] == LF_BYTE)[: table.records]
    starts = np.concatenate([[table.offset], feeds[:-1] + 1])[: len(feeds)]
    lengths = feeds + 1 - starts
    odd = np.flatnonzero(lengths != table.record_length)
    if not odd.size or odd.size > max(1, len(feeds) // 10) or len(feeds) < min(table.records, 3):
        return None
    rows = np.flatnonzero(lengths == table.record_length)
    more = f", and so have {odd.size - 1} others" if odd.size > 1 else ""
    first = f"record {odd[0] + 1} has {lengths[odd[0]]} bytes, not {table.record_length}"
    return LineLayout(starts[rows], rows, f"{first}{more}; the rest would fit")


def _spacing(table: TableDef, feeds: Ints) -> int:
    """Return the distance between line feeds from the table on, if it is always the same."""
    after = feeds[feeds >= table.offset][: table.records]
    if len(after) < 2:
        return int(after[0]) - table.offset + 1 if len(after) and table.records == 1 else 0
    steps = np.diff(after[:-1]) if len(after) > 2 else np.diff(after)
    return int(steps[0]) if (steps == steps[0]).all() else 0


def _offset(table: TableDef, feeds: Ints, length: int) -> int | None:
    """Return the offset nearest to the label's at which a record begins: first, or after a line feed."""
    begins = np.unique(np.concatenate([[0], feeds + 1, feeds[feeds >= length - 1] + 1 - length]))
    near = begins[np.abs(begins - table.offset) <= max(MAX_OFFSET_ERROR_BYTES, length)]
    fits = [int(each) for each in near if _fitting(feeds, int(each), length, table.records)]
    if not fits:
        return None
    best = max(_fitting(feeds, each, length, table.records) for each in fits)
    fits = [each for each in fits if _fitting(feeds, each, length, table.records) == best]
    return min(fits, key=lambda each: abs(each - table.offset))


def _fitting(feeds: Ints, offset: int, length: int, records: int) -> int:
    """Return how many records end in a line feed, one after the other, from an offset on."""
    ends = offset + length * np.arange(1, min(records, len(feeds)) + 1) - 1
    found = np.isin(ends, feeds)
    return int(len(found) if found.all() else np.argmin(found))


def fixed_problems(
    table: TableDef, data: Bytes, options: ValidationOptions, beyond: list[ValidationProblem]
) -> Iterator[ValidationProblem]:
    """Yield problems of a `Table_Character`.

    If no record ends where the label says, but all would with another offset or record length, that is said,
    and nothing of what follows from it.

    Parameters
    ----------
    beyond : list of Problem
        That the fields do not fit into the record.
    """
    size = table.record_length
    available = max(len(data) - table.offset, 0)
    count = min(table.records, available // size) if size else 0
    body = data[table.offset : table.offset + count * size].reshape(count, size)
    ends = list(_fixed_ends(table, body))
    short = [too_short(table, available)] if count < table.records else []
    first = [*beyond, *short, *ends]
    cause = fitting_layout(table, data) if first else ""
    lines = whole_lines(table, data) if first and not cause and not beyond else None
    if lines is not None:
        yield replace(first[0], cause=lines.cause, count=1)
        yield from _fields(table, FixedRows(data, lines.starts, lines.rows), options)
    elif cause or beyond or short:
        yield replace(first[0], cause=cause or first[0].cause, count=1, **_kind(cause, short))
        yield from delimiter_problems(table, data)
    else:
        yield from ends
        yield from _fields(
            table, FixedRows(data, table.offset + np.arange(count) * size, np.arange(count)), options
        )


class FixedRows(NamedTuple):
    """Records that can be read: where they begin, and which ones they are, from 0."""

    data: Bytes
    starts: Ints
    numbers: Ints


def _fields(table: TableDef, rows: FixedRows, options: ValidationOptions) -> Iterator[ValidationProblem]:
    for each in table.fields:
        column = TextColumn(rows.data, rows.starts + each.start, rows.starts + each.end)
        yield from field_problems(each, column, delimited=False, rows=rows.numbers, formats=options.formats)
    if options.strict_fields:
        yield from _between(table, rows)


def _kind(cause: str, short: list[ValidationProblem]) -> dict[str, str]:
    return {"kind": "table.record_length_mismatch"} if "record_length should" in cause and not short else {}


def delimiter_problems(table: TableDef, data: Bytes) -> Iterator[ValidationProblem]:
    """Yield a problem if lines end in other signs than the label says, wherever its records would end."""
    feeds = table.offset + np.flatnonzero(data[table.offset :] == LF_BYTE)[: table.records]
    both = data[np.maximum(feeds - 1, 0)] == CR_BYTE
    every = np.ones(len(feeds), bool)
    if len(table.record_delimiter) == 2:
        yield from ends_problem(
            ~both, "missing_CRLF", "carriage return and line feed", every, "line feed alone"
        )
    else:
        yield from ends_problem(both, "missing_LF", "line feed alone", both, "carriage return and line feed")


def _fixed_ends(table: TableDef, body: Bytes) -> Iterator[ValidationProblem]:
    if not len(body):
        return
    feed = body[:, -1] == LF_BYTE
    both = feed & (body[:, -2] == CR_BYTE) if body.shape[1] > 1 else np.zeros(len(body), bool)
    if len(table.record_delimiter) == 2:
        yield from ends_problem(
            ~both, "missing_CRLF", "carriage return and line feed", feed, "line feed alone"
        )
    else:
        yield from ends_problem(
            ~feed | both, "missing_LF", "line feed alone", both, "carriage return and line feed"
        )


def too_short(table: TableDef, available: int) -> ValidationProblem:
    """Return the problem of a file that cannot hold the records of a table."""
    size, wanted = table.record_length, table.records * table.record_length
    text = (f"{table.records} records of {size} bytes are {wanted}, but the file has {available} from byte "
            f"{table.offset} on: {available // size if size else 0} records fit")  # fmt: skip
    return problem("label.table_definition_problem", text)


def _between(table: TableDef, rows: FixedRows) -> Iterator[ValidationProblem]:
    """Yield a warning if something other than blanks stands between two fields."""
    for a, b in pairwise(table.fields):
        gap = TextColumn(rows.data, rows.starts + a.end, rows.starts + max(a.end, b.start)).trimmed()
        filled = np.flatnonzero(gap.lengths)
        if filled.size:
            first = int(filled[0])
            text = (
                f"{gap.text(first)!r} stands between fields {a.title} and {b.title}, in {len(filled)} records"
            )
            record = int(rows.numbers[first]) + 1
            yield problem("table.characters_between_fields", text, record=record, field=a.title)
            return


def binary_problems(table: TableDef, data: Bytes) -> Iterator[ValidationProblem]:
    """Yield problems of a `Table_Binary`: a short file, texts of other types, values out of range."""
    size = table.record_length
    count = min(table.records, max(len(data) - table.offset, 0) // size)
    if count < table.records:
        yield too_short(table, max(len(data) - table.offset, 0))
    body = data[table.offset : table.offset + count * size].reshape(count, size)
    base = table.offset + np.arange(count) * size
    for each in table.fields:
        kind = BINARY.get(each.data_type)
        if kind is None:
            yield from field_problems(
                each, TextColumn(data, base + each.start, base + each.end), delimited=False, formats=False
            )
        elif np.dtype(kind).itemsize != each.length:
            yield _wrong_length(table, each, np.dtype(kind).itemsize)
        else:
            wrong = constant_problems(each.constants, np.dtype(kind), "field")
            yield from located(wrong, field=each.title, line=each.line)
            yield from _numbers(each, body[:, each.start : each.end].copy().view(kind)[:, 0])


def _wrong_length(table: TableDef, each: FieldDef, size: int) -> ValidationProblem:
    return problem(
        "table.bad_field_read", line=each.line, part=table.name, field=each.title,
        text=f"field_length is {each.length}, but a {each.data_type} has {size} bytes",
    )  # fmt: skip


def _numbers(each: FieldDef, values: Any) -> Iterator[ValidationProblem]:
    if each.minimum is None and each.maximum is None and not any(name in each.constants for name in LIMITS):
        return
    if values.dtype.kind == "c":
        return
    checked = ~is_constant(values, each.constants)
    if values.dtype.kind == "f":
        checked &= ~np.isnan(values)
    limits = (each.minimum, each.maximum)
    for said in range_problems(
        values, checked, limits, each.constants, "table.field_value", lambda row: str(values[row])
    ):
        yield problem(
            said.kind, said.text, record=said.record, count=said.count, line=each.line, field=each.title
        )
