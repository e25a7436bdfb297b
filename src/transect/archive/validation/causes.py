"""Root causes: one wrong number in a label makes every record look wrong; which would make all right."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from transect.base.arrays import Bytes, Ints

if TYPE_CHECKING:
    from .tables.definition import TableDef

LF, CR = 10, 13
FARTHEST = 64
"""Bytes that an offset is looked for around the one in the label."""


def fitting_layout(table: TableDef, data: Bytes) -> str:
    """Return which record length or offset would make all records of fixed length end as they should.

    Returns
    -------
    str
        `record_length should be 84, not 85: all 927 records then fit`; nothing if there is none, or the
        label's own numbers do.
    """
    feeds = np.flatnonzero(
        data[: min(len(data), table.offset + (table.records + 2) * (table.record_length + 64))] == LF
    )
    if not len(feeds):
        return ""
    length = _spacing(table, feeds)
    offset = _offset(table, feeds, length or table.record_length)
    said: list[str] = []
    if length and length != table.record_length:
        said.append(f"record_length should be {length}, not {table.record_length}")
    if offset is not None and offset != table.offset:
        said.append(f"offset should be {offset}, not {table.offset}")
    if not said or offset is None:
        return ""
    count = _fitting(feeds, offset, length or table.record_length, table.records)
    if count < max(table.records, 1) and count * 10 < table.records * 9:
        return ""
    return f"{' and '.join(said)}: {'all ' if count == table.records else ''}{count} records then fit"


class Lines(NamedTuple):
    """Lines of the length of a record: where they begin, which records they are, and why not all."""

    starts: Ints
    rows: Ints
    cause: str


def whole_lines(table: TableDef, data: Bytes) -> Lines | None:
    """Return the lines of the right length if only a few have another one; else None.

    One byte too many in one record shifts all that follow, though each of them is right.
    """
    feeds = table.offset + np.flatnonzero(data[table.offset :] == LF)[: table.records]
    starts = np.concatenate([[table.offset], feeds[:-1] + 1])[: len(feeds)]
    lengths = feeds + 1 - starts
    odd = np.flatnonzero(lengths != table.record_length)
    if not odd.size or odd.size > max(1, len(feeds) // 10) or len(feeds) < min(table.records, 3):
        return None
    rows = np.flatnonzero(lengths == table.record_length)
    more = f", and so have {odd.size - 1} others" if odd.size > 1 else ""
    first = f"record {odd[0] + 1} has {lengths[odd[0]]} bytes, not {table.record_length}"
    return Lines(starts[rows], rows, f"{first}{more}; the rest would fit")


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
    near = begins[np.abs(begins - table.offset) <= max(FARTHEST, length)]
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
