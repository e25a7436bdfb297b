"""Records of text: where they begin and end, and whether there are as many and as long as the label says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Bytes, Ints, Mask

from ..problems import Problem, problem
from .columns import QUOTE, Column
from .definition import TableDef

LF, CR = 10, 13
MOST_JOINED = 50
"""Largest number of lines over which one value in quotation marks may go."""


@dataclass(frozen=True)
class Records:
    """Records of a delimited table."""

    data: Bytes  # (bytes,) the file
    # (records,) first byte of each record, and the one after its last, without what ends it
    starts: Ints
    ends: Ints
    after: Ints  # (records,) byte after what ends it
    inside: Mask | None

    def __len__(self) -> int:
        return len(self.starts)


def split_records(table: TableDef, data: Bytes) -> Records:
    """Return the records that begin at the table's offset, at most as many as the label says.

    A line break inside quotation marks is part of a value. Where marks do not pair up, they are letters.
    """
    body = data[table.offset :]
    breaks = np.flatnonzero(body == LF)
    inside = _find_quoted(body, breaks)
    if inside is not None:
        breaks = breaks[~inside[breaks]]
    after = breaks + 1
    if body.size and (not len(after) or after[-1] < body.size):
        after = np.append(after, body.size)  # the last one lacks what ends it
    after = after[: table.records]
    starts = np.concatenate([[0], after[:-1]]).astype(np.int64) if len(after) else np.zeros(0, np.int64)
    ends = after.copy()
    for sign in (LF, CR):
        cut = (ends > starts) & (body[np.maximum(ends - 1, 0)] == sign) if len(ends) else np.zeros(0, bool)
        ends = ends - cut
    base = table.offset
    whole = None if inside is None else np.concatenate([np.zeros(base, bool), inside])
    return Records(data, starts + base, ends + base, after + base, whole)


def _find_quoted(body: Bytes, breaks: Ints) -> Mask | None:
    """Return which bytes are inside quotation marks; None if there are none."""
    marks = body == QUOTE
    if not marks.any():
        return None
    total = np.concatenate([[0], np.cumsum(marks, dtype=np.int64)])
    edges = np.concatenate([[0], breaks + 1, [body.size]])
    odd = np.flatnonzero(np.diff(total[edges]) % 2)
    pairs = len(odd) % 2 == 0 and bool(len(odd) == 0 or (np.diff(odd)[::2] <= MOST_JOINED).all())
    if not pairs:
        for line in odd:
            marks[edges[line] : edges[line + 1]] = False
        total = np.concatenate([[0], np.cumsum(marks, dtype=np.int64)])
    return (total[1:] % 2).astype(bool)


def record_problems(table: TableDef, records: Records, last: bool) -> Iterator[Problem]:
    """Give what is wrong with the number, the length and the ends of delimited records.

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
        more = int(np.count_nonzero(records.data[records.after[-1] :] == LF))
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


def _ends(table: TableDef, records: Records) -> Iterator[Problem]:
    wanted = len(table.record_delimiter)
    if not len(records):
        return
    data, after = records.data, records.after
    feed = data[after - 1] == LF
    both = feed & (after - records.starts >= 2) & (data[np.maximum(after - 2, 0)] == CR)
    if wanted == 2:
        yield from ends_problem(
            ~both, "missing_CRLF", "carriage return and line feed", feed, "line feed alone"
        )
    else:
        yield from ends_problem(
            ~feed | both, "missing_LF", "line feed alone", both, "carriage return and line feed"
        )


def ends_problem(wrong: Mask, kind: str, wanted: str, other: Mask, name: str) -> Iterator[Problem]:
    """Give one problem for all records that do not end as the label says."""
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


def split_fields(table: TableDef, records: Records) -> tuple[list[Column], Ints, list[Problem]]:
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
        Column(data, np.ascontiguousarray(starts[:, each]), np.ascontiguousarray(ends[:, each]))
        for each in range(wanted)
    ]
    return columns, right, _fields_mismatch(found, wanted)


def _fields_mismatch(found: Ints, wanted: int) -> list[Problem]:
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
            cause=f"all records have {number} fields: the label should define so many" if same else "",
        )
    ]
