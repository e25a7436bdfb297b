"""What the commands on two height maps have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._options import add_options, json_option

if TYPE_CHECKING:
    from transect.evaluation.maps.report import MapInput

ground_options = add_options(
    click.argument("reference", metavar="REF"),
    click.argument("moved", metavar="MAP"),
    click.option(
        "-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="A new folder for the results."
    ),
    click.option("--at", metavar="X,Y", help="Where MAP's middle is believed to be, in REF's coordinates."),
    click.option(
        "--cell", type=click.FloatRange(0, min_open=True), metavar="M",
        help="Cells of the maps that are made of clouds; by default by their points.",
    ),
    click.option("--no-tilt", is_flag=True, help="MAP does not lean."),
    json_option,
)  # fmt: skip


def open_both(reference: str, moved: str, cell: float | None) -> tuple[MapInput, MapInput, bool]:
    """Open two maps or clouds; say what could not be read, and return whether there was anything."""
    from transect.evaluation.maps.coregistration import open_ground

    opened = [open_ground(path, cell) for path in (reference, moved)]
    for path, (_, losses) in zip((reference, moved), opened, strict=True):
        if losses:
            click.echo(f"warning: a part of {path} could not be read: {losses[0].where}", err=True)
    return opened[0][0], opened[1][0], any(losses for _, losses in opened)


def parse_place(text: str | None) -> tuple[float, ...] | None:
    """Return x and y of X,Y; None of None."""
    from transect.errors import UsageError

    if text is None:
        return None
    try:
        parts = tuple(float(part) for part in text.split(","))
    except ValueError:
        parts = ()
    if len(parts) != 2:
        raise UsageError(f"--at {text} is not two coordinates", hint="--at 500012.5,4178800")
    return parts


def say_written(paths: list[Path]) -> None:
    """Name files that were written."""
    for path in paths:
        click.echo(f"wrote {path}", err=True)


def show_pairs(rows: list[tuple[str, Any]]) -> None:
    """Print names and values."""
    from .._tables import show_table

    show_table(("", ""), rows)
