"""What `eval`, `compare` and `run` have in common: how results are shown, written and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import add_options
from .output import all_option, show_json, show_table, show_text

if TYPE_CHECKING:
    from transect.evaluation.result import Result

figure_options = add_options(
    click.option(
        "--figure", type=click.Path(path_type=Path), metavar="DIR", help="Draw figures into this folder."
    ),
    click.option(
        "--map",
        "ground",
        metavar="MAP|MAP:STREAM|RUN:PORT",
        help="A map in the reference's frame, for the figures.",
    ),
)

format_options = add_options(
    click.option(
        "--format", "written_as", type=click.Choice(["table", "latex", "markdown", "csv"]), default="table",
        show_default=True, help="How the table is written.",
    ),
    click.option(
        "--layout", type=click.Choice(["metrics", "sequences", "traverses", "runs"]), default="metrics",
        show_default=True, help="A row per estimate; Rosario's Table 4; AMEDS's Table 6; CDFF's Table 5.",
    ),
    all_option,
)  # fmt: skip


FIRST = (
    "ATE rmse [m]",
    "of path [%]",
    "RPE rmse [m]",
    "segments [%]",
    "drift [%]",
    "map rmse [m]",
    "found",
    "pairs",
)
"""Columns that matter most, where there is no room for all."""


def show_results(
    results: Sequence[Result], written_as: str = "table", layout: str = "metrics", *, as_json: bool = False
) -> None:
    """Print results: a JSON document, a table for a paper, or a table and what to know of it."""
    from transect.evaluation.result import WARNING
    from transect.evaluation.tables import remarks, table_of, text_of

    if as_json:
        show_json({"results": [result.to_dict() for result in results]})
        return
    if layout == "metrics" and not any(result.reference for result in results):
        layout = "runs"  # no truth: what there is to compare is what the runs took and gave
    table = table_of(results, layout)  # pyright: ignore[reportArgumentType]
    if written_as != "table":
        click.echo(text_of(table, written_as), nl=False)  # pyright: ignore[reportArgumentType]
        for note in dict.fromkeys(note for result in results for note in result.notes):
            if note.startswith(WARNING):  # a table for a paper has no place for it
                click.echo(note, err=True)
        return
    numbers = range(table.names, len(table.headings))
    first = [table.headings.index(name) for name in FIRST if name in table.headings]
    show_table(table.headings, table.texts(), frozenset(numbers), (*range(table.names), *first))
    click.echo("")
    for line in remarks(results):
        show_text(line)


def draw_figures(results: Sequence[Result], figure: Path | None, ground: str | None) -> None:
    """Draw figures into a folder, if one is named, and say what was written."""
    if figure is None:
        if ground is not None:
            from transect.errors import UsageError

            raise UsageError("--map is for figures", hint="--figure DIR")
        return
    from transect.evaluation.figures import draw_results

    for path in draw_results(results, figure, ground):
        click.echo(f"wrote {path}", err=True)
