"""What the commands on two height maps have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..shared.options import add_options, json_option
from ..shared.output import all_option

if TYPE_CHECKING:
    from transect.evaluation.maps.report import MapInput


@dataclass(frozen=True)
class Asked:
    """What was typed for any command on two height maps, by the names of the options."""

    reference: str
    moved: str
    out: Path | None
    at: str | None
    cell: float | None
    turn: float
    no_tilt: bool
    overlap: float
    as_json: bool


def ground_options(turn: float, overlap: float) -> Callable[[Any], Any]:
    """Return the options of `Asked`; `turn` (deg) and `overlap` are those that hold if none is typed."""
    return add_options(
        click.argument("reference", metavar="REF"),
        click.argument("moved", metavar="MAP"),
        click.option(
            "-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="A new folder for results."
        ),
        click.option("--at", metavar="X,Y", help="Where the middle of MAP may be, in coordinates of REF."),
        click.option(
            "--cell", type=click.FloatRange(0, min_open=True), metavar="M",
            help="Cells of the maps that are made of clouds; by default by their points.",
        ),
        click.option(
            "--turn", type=click.FloatRange(0, 180), default=turn, show_default=True, metavar="DEG",
            help="How far MAP may be turned about the vertical.",
        ),
        click.option("--no-tilt", is_flag=True, help="MAP does not lean."),
        click.option(
            "--overlap", type=click.FloatRange(0, 1, min_open=True), default=overlap, show_default=True,
            metavar="X", help="Share of MAP that must lie on known ground of REF.",
        ),
        all_option,
        json_option,
    )  # fmt: skip


def bring_together(
    asked: Asked,
    find: Callable[..., Any],
    save: Callable[[Path, MapInput, MapInput, Any], list[Path]],
    tell: Callable[[Any], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
) -> int:
    """Open two maps, find how one lies in the other, write and show it; return the exit code.

    Parameters
    ----------
    find : callable
        Takes both maps, and `at`, `turn`, `tilt` and `overlap`.
    save : callable
        Writes what was found into a new folder, and returns the files.
    tell : callable
        Returns it as plain values, of which `show` prints a table.
    """
    from math import radians

    from .. import LOSSY
    from ..shared.options import new_folder
    from ..shared.output import show_json

    folder = None if asked.out is None else new_folder(asked.out)
    reference, moved, lost = open_both(asked.reference, asked.moved, asked.cell)
    found = find(
        reference.grid, moved.grid, at=parse_place(asked.at), turn=radians(asked.turn),
        tilt=not asked.no_tilt, overlap=asked.overlap,
    )  # fmt: skip
    if folder is not None:
        for path in save(folder, reference, moved, found):
            click.echo(f"wrote {path}", err=True)
    (show_json if asked.as_json else show)(tell(found))
    return LOSSY if lost else 0


def open_both(reference: str, moved: str, cell: float | None) -> tuple[MapInput, MapInput, bool]:
    """Open two maps or clouds; say what could not be read, and return whether there was anything."""
    from transect.evaluation.maps.coregistration import open_ground

    from ..shared.recordings import warn_of_run

    opened = [open_ground(path, cell) for path in (reference, moved)]
    warn_of_run(reference, moved)
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
