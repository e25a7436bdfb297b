"""Tables as text: aligned columns that fit where they are read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

GAP = "  "


def table_lines(rows: Iterable[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return rows as lines of aligned columns; those numbered in `right` are aligned to the right."""
    table = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        GAP.join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
