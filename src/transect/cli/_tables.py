"""Tables and JSON on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from typing import Any

import click

from transect.base.tables import fit_table

ALL = "transect.all"
"""Where `--all` is kept in the context of a command."""

MOST_NAMED = 4
"""Largest number of columns without room that are named one by one."""


def _keep_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[ALL] = value


all_option = click.option(
    "--all", is_flag=True, expose_value=False, callback=_keep_all,
    help="Show all columns, however wide the terminal is.",
)  # fmt: skip


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: frozenset[int] = frozenset(),
    order: Sequence[int] = (),
    prose: Collection[int] = (),
    names: Collection[int] = (),
) -> None:
    """Print rows under headings in aligned columns that fit the terminal; the headings are bold there.

    Parameters
    ----------
    right : frozenset of int
        Columns that are aligned to the right: numbers.
    order : sequence of int
        Columns from the most to the least important; the last are left out where there is no room.
    prose : collection of int
        Columns of sentences, which are wrapped instead of shortened.
    names : collection of int
        Columns of names that people type, which are not shortened below half of the width.
    """
    terminal = sys.stdout.isatty()
    context = click.get_current_context(silent=True)
    asked: bool | None = context.meta.get(ALL) if context is not None else None
    whole = not terminal or asked
    width = None if whole else _terminal_width()
    table = fit_table([headings, *rows], right, width=width, order=order, prose=prose, names=names)
    head, *lines = table.lines
    click.echo(click.style(head, bold=True) if terminal else head)
    for line in lines:
        click.echo(line)
    if table.left_out:
        few = len(table.left_out) <= MOST_NAMED
        what = ", ".join(table.left_out) if few else f"{len(table.left_out)} more columns"
        # A command without the option has not kept it.
        click.echo(f"(no room for {what}: {'a wider terminal' if asked is None else '--all'})")


def _terminal_width() -> int:
    import shutil  # a pipe has no width, and need not wait for it

    return shutil.get_terminal_size().columns


def show_text(
    text: str, *, bold: bool = False, colour: str | None = None, indent: str = "", widest: int | None = None
) -> None:
    """Print a sentence, folded at the width of the terminal (80 columns where there is none), or before.

    Words are not broken, so that paths and options can be copied. Styles are for terminals.
    """
    import textwrap

    styled = sys.stdout.isatty()
    width = min(_terminal_width(), widest or sys.maxsize)
    for line in text.splitlines() or [""]:
        folded = textwrap.wrap(
            line, width, initial_indent=indent, subsequent_indent=f"{indent}  ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        for part in folded or [""]:
            click.echo(
                click.style(part, bold=bold or None, fg=colour) if styled and (bold or colour) else part
            )


def show_json(document: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, indent=2, default=str))
