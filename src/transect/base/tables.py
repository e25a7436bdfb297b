"""Tables as text with aligned columns that fit a given width."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

GAP = "  "
ELLIPSIS = "…"
MIN_CELL_WIDTH = 16
"""Characters to which cells of text are shortened before a column is omitted."""


class FittedTable(NamedTuple):
    """Lines of a table that fit a width, and the headings of omitted columns."""

    lines: list[str]
    left_out: tuple[str, ...] = ()


def table_lines(rows: Iterable[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return rows as lines of aligned columns; columns in `right` are right-aligned."""
    table = [tuple(row) for row in rows]
    widths = _widths(table)
    return [
        GAP.join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def fit_table(
    rows: Iterable[Sequence[str]],
    right: Collection[int] = (),
    *,
    width: int | None = None,
    order: Sequence[int] = (),
    prose: Collection[int] = (),
    names: Collection[int] = (),
) -> FittedTable:
    """Return a table that is at most `width` characters wide, if possible.

    Long cells of text are shortened in the middle, or wrapped. If necessary, columns are omitted, the least
    important first. Right-aligned columns of numbers are never shortened, and the first column is kept.

    Parameters
    ----------
    rows : iterable of sequence of str
        The headings, then the rows.
    right : collection of int
        Right-aligned columns.
    width : int, optional
        Characters of a line; None for no limit.
    order : sequence of int
        Columns from the most to the least important; others follow from left to right.
    prose : collection of int
        Columns of sentences, which are wrapped instead of shortened.
    names : collection of int
        Columns of names to type, which are not shortened below half of the width.
    """
    table = [tuple(row) for row in rows]
    if not table:
        return FittedTable([])
    headings = table[0]
    kept = [*dict.fromkeys([*order, *range(len(headings))])]
    shortest = {number: max(MIN_CELL_WIDTH, (width or 0) // 2) for number in names}
    least = [
        width_
        if number in right
        else min(width_, max(shortest.get(number, MIN_CELL_WIDTH), len(headings[number])))
        for number, width_ in enumerate(_widths(table))
    ]
    left_out: list[int] = []
    while width is not None and len(kept) > 1 and _total([least[number] for number in kept]) > width:
        left_out.append(kept.pop(max(k for k, number in enumerate(kept) if number != 0)))
    columns = sorted(kept)
    table = [tuple(row[number] for number in columns) for row in table]
    texts = [k for k, number in enumerate(columns) if number not in right]
    if width is not None:
        wrapped = [k for k, number in enumerate(columns) if number in prose]
        table = _narrow(table, texts, wrapped, [least[number] for number in columns], width)
    aligned = [k for k in range(len(columns)) if k not in texts]
    return FittedTable(table_lines(table, aligned), tuple(headings[number] for number in sorted(left_out)))


def html_table(title: str, rows: Iterable[Sequence[str]], foot: Iterable[str] = ()) -> str:
    """Return a table as HTML for a notebook: a title, headings and rows, lines below; all text is escaped."""
    from html import escape

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)

    head, *body = rows
    listed = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in body)
    below = "".join(f"<div>{escape(line)}</div>" for line in foot)
    table = f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{listed}</tbody></table>"
    return f"<div><b>{escape(title)}</b></div>{table}{below}"


def shorten(text: str, length: int) -> str:
    """Return a text of at most `length` characters, shortened in the middle."""
    if len(text) <= length:
        return text
    head = (length - len(ELLIPSIS) + 1) // 2
    tail = length - len(ELLIPSIS) - head
    return f"{text[:head]}{ELLIPSIS}{text[len(text) - tail :]}"


def size_text(count: float) -> str:
    """Format a number of bytes: `12 kB`, `3.4 GB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _narrow(
    table: Sequence[tuple[str, ...]],
    texts: Sequence[int],
    wrapped: Sequence[int],
    least: Sequence[int],
    width: int,
) -> list[tuple[str, ...]]:
    """Narrow the columns of text until the table fits, none below its least width.

    Columns to be wrapped are narrowed first; their cells may need several rows.
    """
    widths = _widths(table)
    while _total(widths) > width:
        able = [k for k in wrapped if widths[k] > least[k]] or [k for k in texts if widths[k] > least[k]]
        if not able:
            break
        widths[max(able, key=lambda k: widths[k])] -= 1
    rows: list[tuple[str, ...]] = []
    for row in table:
        cells = [
            (textwrap.wrap(cell, widths[k]) or [""]) if k in wrapped else [shorten(cell, widths[k])]
            for k, cell in enumerate(row)
        ]
        rows += zip_longest(*cells, fillvalue="")
    return rows


def _widths(table: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*table, strict=True)]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)
