"""Records of a fixed length, of text: their number, their ends, their fields, and what lies between these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from transect.base.arrays import Bytes, Ints

from ..causes import fitting_layout, whole_lines
from ..options import Options
from ..problems import Problem, problem
from .columns import Column
from .definition import TableDef
from .fields import field_problems
from .records import CR, LF, ends_problem


def fixed_problems(
    table: TableDef, data: Bytes, options: Options, beyond: list[Problem]
) -> Iterator[Problem]:
    """Give what is wrong with a `Table_Character`.

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
    ends = list(_ends(table, body))
    short = [too_short(table, available)] if count < table.records else []
    first = [*beyond, *short, *ends]
    cause = fitting_layout(table, data) if first else ""
    lines = whole_lines(table, data) if first and not cause and not beyond else None
    if lines is not None:
        yield replace(first[0], cause=lines.cause, count=1)
        yield from _fields(table, Rows(data, lines.starts, lines.rows), options)
    elif cause or beyond or short:
        yield replace(first[0], cause=cause or first[0].cause, count=1, **_kind(cause, short))
        yield from delimiter_problems(table, data)
    else:
        yield from ends
        yield from _fields(
            table, Rows(data, table.offset + np.arange(count) * size, np.arange(count)), options
        )


class Rows(NamedTuple):
    """Records that can be read: where they begin, and which ones they are, from 0."""

    data: Bytes
    starts: Ints
    numbers: Ints


def _fields(table: TableDef, rows: Rows, options: Options) -> Iterator[Problem]:
    for each in table.fields:
        column = Column(rows.data, rows.starts + each.start, rows.starts + each.end)
        yield from field_problems(each, column, delimited=False, rows=rows.numbers, formats=options.formats)
    if options.strict_fields:
        yield from _between(table, rows)


def _kind(cause: str, short: list[Problem]) -> dict[str, str]:
    return {"kind": "table.record_length_mismatch"} if "record_length should" in cause and not short else {}


def delimiter_problems(table: TableDef, data: Bytes) -> Iterator[Problem]:
    """Give a problem if lines end in other signs than the label says, wherever its records would end."""
    feeds = table.offset + np.flatnonzero(data[table.offset :] == LF)[: table.records]
    both = data[np.maximum(feeds - 1, 0)] == CR
    every = np.ones(len(feeds), bool)
    if len(table.record_delimiter) == 2:
        yield from ends_problem(
            ~both, "missing_CRLF", "carriage return and line feed", every, "line feed alone"
        )
    else:
        yield from ends_problem(both, "missing_LF", "line feed alone", both, "carriage return and line feed")


def _ends(table: TableDef, body: Bytes) -> Iterator[Problem]:
    if not len(body):
        return
    feed = body[:, -1] == LF
    both = feed & (body[:, -2] == CR) if body.shape[1] > 1 else np.zeros(len(body), bool)
    if len(table.record_delimiter) == 2:
        yield from ends_problem(
            ~both, "missing_CRLF", "carriage return and line feed", feed, "line feed alone"
        )
    else:
        yield from ends_problem(
            ~feed | both, "missing_LF", "line feed alone", both, "carriage return and line feed"
        )


def too_short(table: TableDef, available: int) -> Problem:
    """Return the problem of a file that cannot hold the records of a table."""
    size, wanted = table.record_length, table.records * table.record_length
    text = (f"{table.records} records of {size} bytes are {wanted}, but the file has {available} from byte "
            f"{table.offset} on: {available // size if size else 0} records fit")  # fmt: skip
    return problem("label.table_definition_problem", text)


def _between(table: TableDef, rows: Rows) -> Iterator[Problem]:
    """Give a warning if something other than blanks stands between two fields."""
    for a, b in pairwise(table.fields):
        gap = Column(rows.data, rows.starts + a.end, rows.starts + max(a.end, b.start)).trimmed()
        filled = np.flatnonzero(gap.lengths)
        if filled.size:
            first = int(filled[0])
            text = (
                f"{gap.text(first)!r} stands between fields {a.title} and {b.title}, in {len(filled)} records"
            )
            record = int(rows.numbers[first]) + 1
            yield problem("table.characters_between_fields", text, record=record, field=a.title)
            return
