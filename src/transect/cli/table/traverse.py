"""`transect table traverse PATH...`: Table 6 of the AMEDS paper, for any recording with positions."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import click

from transect.cli._opening import Opening, opening
from transect.cli._options import json_option
from transect.cli._tables import all_option

if TYPE_CHECKING:
    from transect.evaluation.traverse import Traverse
    from transect.recording import Recording

HEADINGS = (
    "traverse",
    "length [m]",
    "height [m]",
    "duration",
    "speed [m/s]",
    "moved [m]",
    "moved for",
    "moving [m/s]",
    "RTK",
    "positions from",
)


@click.command()
@opening("times")
@click.option(
    "--stop-speed",
    type=click.FloatRange(min=0.0),
    default=0.05,
    show_default=True,
    metavar="M/S",
    help="A second in which the robot is slower is a stop.",
)
@click.option(
    "--stream", metavar="NAME", help="Positions from this stream alone; default: the best measured ones."
)
@all_option
@json_option
def command(opening: Opening, stop_speed: float, stream: str | None, as_json: bool) -> int:
    """Print length, height, duration and speeds of traverses.

    The share of the time with RTK is printed as well.

    One row for each PATH, and their total. What was published of a recording stands below its row.

    Lengths are those of one track, filtered from what was measured: positions, and the receiver's velocities
    where it gives them. Truth is used only if --stream names it.
    """
    from transect.cli._opening import report_losses
    from transect.cli._progress import Progress
    from transect.evaluation.traverse import total, traverse_of

    progress = Progress(quiet=as_json)
    whole = [one.open(progress) for one in opening.each()]
    measured = [traverse_of(opening.cut(r), stream, stop_speed) for r in whole]
    # A part of a traverse is not what was published.
    printed = [None if opening.start or opening.end else find_published(recording) for recording in whole]
    summed = total(measured) if len(measured) > 1 else None
    (_show_json if as_json else _show_rows)(measured, printed, summed)
    return max(report_losses(recording) for recording in whole)


def find_published(recording: Recording) -> dict[str, Any] | None:
    """Return what the catalogue of a recording's data set says of its traverse, or None."""
    from transect.formats._catalogues import ameds, rosario

    if recording.format == "ameds" and (entry := ameds.entry_of(recording.name)) and entry.length_m:
        return {
            "table": "AMEDS Table 6",
            "length_m": entry.length_m,
            "height_m": entry.height_m,
            "duration_s": entry.duration_s,
            "mean_velocity_m_s": entry.velocity_m_s,
            "rtk": entry.rtk,
        }
    if recording.format.startswith("rosario") and (sequence := rosario.entry_of(recording.name)):
        minutes = sequence.duration_min
        return {"table": "Rosario", "length_m": sequence.length_m, "duration_s": minutes * 60}
    return None


def _show_json(
    measured: list[Traverse], printed: list[dict[str, Any] | None], summed: Traverse | None
) -> None:
    from transect.cli._tables import show_json

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
    from transect.cli._tables import show_table
    from transect.evaluation.positions import COVERED
    from transect.evaluation.traverse import STRIDE

    rows: list[tuple[str, ...]] = []
    for traverse, table in zip(measured, printed, strict=True):
        rows.append(_row(traverse))
        rows += [_published_row(table)] if table else []
    rows += [_row(summed)] if summed else []
    # RTK and speeds are left out first where the terminal is narrow.
    show_table(HEADINGS, rows, right=frozenset(range(1, 8)), order=(0, 1, 5, 3, 2, 9, 8, 4, 7, 6))
    click.echo("\nheight: from the lowest to the highest place")
    click.echo(f"moved: without stops, slower than {measured[0].stop_speed:g} m/s over {STRIDE:g} s")
    if any(t.rtk is not None for t in measured):
        click.echo(f"RTK: yes from {COVERED:.0%} of the fixes on, fixed or float")
    if any(t.dimensions == 2 for t in measured):
        click.echo("(2-D): the height was not measured")
    for traverse in measured:
        for remark in _remarks(traverse):
            click.echo(f"{traverse.name}: {remark}")


def _remarks(traverse: Traverse) -> list[str]:
    """Return what a reader should know of a length before believing it."""
    from transect.evaluation.positions import COVERED

    if traverse.role == "truth":
        return [f"{traverse.stream} is truth, not a measurement"]
    alone = traverse.rtk is not None and traverse.rtk < COVERED and not traverse.velocities
    if alone and traverse.type == "NavFix":
        return ["few RTK fixes and no velocities: the length may be off by a fifth"]
    if traverse.type == "Odometry":
        return [f"{traverse.stream} counts slip as way"]
    return []


def _row(traverse: Traverse) -> tuple[str, ...]:
    rtk, covered = traverse.rtk, "yes" if traverse.covered else "no"
    return (
        traverse.name,
        _number(traverse.length_m, 1),
        _number(traverse.height_m, 1),
        _minutes(traverse.duration_s),
        _number(traverse.mean_speed, 2),
        _number(traverse.moving_m, 1),
        _minutes(traverse.moving_s),
        _number(traverse.moving_speed, 2),
        "-" if rtk is None else f"{covered} ({rtk:.0%})",
        traverse.source + (" (2-D)" if traverse.dimensions == 2 else ""),
    )


def _published_row(table: dict[str, Any]) -> tuple[str, ...]:
    rtk = table.get("rtk")
    return (
        "  as published",
        _number(table["length_m"], 1),
        _number(table.get("height_m"), 1),
        _minutes(table["duration_s"]),
        "-",
        "-",
        "-",
        # It is not length / duration, so it stands where it probably belongs (see errata).
        _number(table.get("mean_velocity_m_s"), 2),
        "-" if rtk is None else "yes" if rtk else "no",
        table["table"],
    )


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def _minutes(seconds: float) -> str:
    """Return mm:ss, as the paper has it."""
    if math.isnan(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:02d}:{rest:02d}"
