"""`transect table traverse PATH...`: Table 6 of the AMEDS paper, for any recording with positions."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import click

from transect.cli.shared.options import json_option
from transect.cli.shared.output import all_option
from transect.cli.shared.recordings import Opening, opening

if TYPE_CHECKING:
    from transect.evaluation.traverse import Traverse


@click.command()
@opening("times")
@click.option(
    "--stop-speed",
    type=click.FloatRange(min=0.0),
    default=0.05,
    show_default=True,
    metavar="M/S",
    help="Speed below which the robot counts as stopped.",
)
@click.option(
    "--stream", metavar="NAME", help="Stream of positions; default: the most accurate measured one."
)
@all_option
@json_option
def command(opening: Opening, stop_speed: float, stream: str | None, as_json: bool) -> int:
    """Print length, height, duration and speeds of traverses.

    The fraction of time with RTK is printed as well.

    One row for each PATH, and their total; published values are below the row of a recording.

    Lengths are those of a track filtered from measured positions, and from the receiver's velocities if
    available. Ground truth is used only if --stream names it.
    """
    from transect.cli.shared.output import ProgressDisplay
    from transect.cli.shared.recordings import report_losses
    from transect.evaluation.traverse import find_published, total, traverse_of

    progress = ProgressDisplay(quiet=as_json)
    whole = [one.open(progress) for one in opening.each()]
    measured = [traverse_of(opening.cut(r), stream, stop_speed) for r in whole]
    # A part of a traverse is not what was published.
    printed = [None if opening.start or opening.end else find_published(recording) for recording in whole]
    summed = total(measured) if len(measured) > 1 else None
    (_show_json if as_json else _show_rows)(measured, printed, summed)
    return max(report_losses(recording) for recording in whole)


def _show_json(
    measured: list[Traverse], printed: list[dict[str, Any] | None], summed: Traverse | None
) -> None:
    from transect.cli.shared.output import show_json

    rows = [{**_facts(t), "published": p} for t, p in zip(measured, printed, strict=True)]
    show_json({"traverses": rows, "total": None if summed is None else _facts(summed)})


def _facts(traverse: Traverse) -> dict[str, Any]:
    facts = dataclasses.asdict(traverse) | {
        "mean_speed": traverse.mean_speed,
        "moving_speed": traverse.moving_speed,
        "rtk_covered": traverse.covered,
    }
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in facts.items()}


def _show_rows(
    measured: list[Traverse], printed: list[dict[str, Any] | None], summed: Traverse | None
) -> None:
    from transect.cli.shared.output import show_table
    from transect.evaluation.positions.streams import MIN_RTK_RATIO
    from transect.evaluation.traverse import HEADINGS, STRIDE_S, published_row, remarks_of, row_of

    rows: list[tuple[str, ...]] = []
    for traverse, table in zip(measured, printed, strict=True):
        rows.append(row_of(traverse))
        rows += [published_row(table)] if table else []
    rows += [row_of(summed)] if summed else []
    # RTK and speeds are left out first where the terminal is narrow.
    show_table(HEADINGS, rows, right=frozenset(range(1, 8)), order=(0, 1, 5, 3, 2, 9, 8, 4, 7, 6))
    click.echo("\nheight: from the lowest to the highest point")
    click.echo(f"moving: without stops, i.e. slower than {measured[0].stop_speed:g} m/s over {STRIDE_S:g} s")
    if any(t.rtk is not None for t in measured):
        click.echo(f"RTK: yes if at least {MIN_RTK_RATIO:.0%} of the fixes are RTK fixed or float")
    if any(t.dimensions == 2 for t in measured):
        click.echo("(2-D): the height was not measured")
    for traverse in measured:
        for remark in remarks_of(traverse):
            click.echo(f"{traverse.name}: {remark}")
