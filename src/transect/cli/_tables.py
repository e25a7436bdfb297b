"""Tables and JSON on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from transect.base.tables import table_lines


def show_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()
) -> None:
    """Print rows under headings in aligned columns; the headings are bold on a terminal."""
    head, *lines = table_lines([headings, *rows], right)
    click.echo(click.style(head, bold=True) if sys.stdout.isatty() else head)
    for line in lines:
        click.echo(line)


def show_json(document: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, indent=2, default=str))
