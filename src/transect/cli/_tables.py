"""Tables and JSON on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click


def show_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()
) -> None:
    """Print rows under headings in aligned columns; the headings are bold on a terminal."""
    table = [list(headings), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(headings))]
    for number, row in enumerate(table):
        cells = (
            c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        line = "  ".join(cells).rstrip()
        click.echo(click.style(line, bold=True) if number == 0 and sys.stdout.isatty() else line)


def show_json(document: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, indent=2, default=str))
