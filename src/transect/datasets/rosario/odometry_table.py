"""`transect table odometry PATH...`: wheel odometry compared with RTK, one row per recording."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import click

from transect.cli.shared.options import json_option
from transect.cli.shared.output import all_option
from transect.cli.shared.recordings import Opening, opening

if TYPE_CHECKING:
    from transect.recording import Recording
    from transect.robots.ackermann import Form

    from .robot.comparison import OdometryComparison

HEADINGS = (
    "recording",
    "odometry m",
    "RTK 2-D m",
    "RTK 3-D m",
    "truth 2-D m",
    "truth 3-D m",
    "paper m",
    "odometry/RTK",
    "ATE m",
    "at base_link",
    "turns m",
    "at base_link",
    "pairs",
)
LENGTHS = ("odometry_m", "rtk_2d_m", "rtk_3d_m", "truth_2d_m", "truth_3d_m", "paper_m")


@click.command()
@opening()
@click.option(
    "--form",
    type=click.Choice(["scripts", "paper"]),
    default="scripts",
    show_default=True,
    help="Form of the odometry if it is integrated from the wheels.",
)
@all_option
@json_option
def command(opening: Opening, form: Form, as_json: bool) -> int:
    """Compare wheel odometry of the weeding robot with RTK and truth.

    Ground truth is listed if it differs from the RTK track. There is a row for each PATH, or for each
    --option sequence=01 of a folder with several sequences. Errors are the residuals of an alignment to the
    ground truth, else to RTK, at the tracked point (the antenna for RTK) and, for comparison, without the
    lever arm from base_link to it. They have no effect on the exit code.
    """
    from transect.cli.shared.output import ProgressDisplay
    from transect.cli.shared.recordings import report_losses

    from .robot.comparison import compare

    code, rows = 0, list[dict[str, Any]]()
    for one in opening.each():
        for options in _by_sequence(opening.options):
            recording = dataclasses.replace(one, options=options).open(ProgressDisplay(quiet=as_json))
            rows.append(_row(recording, compare(recording, form)))
            code = max(code, report_losses(recording))
    _show(rows, as_json)
    return code


def _by_sequence(options: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the options for each named sequence, or unchanged."""
    sequences = [option for option in options if option.startswith("sequence=")]
    others = tuple(option for option in options if option not in sequences)
    return [(*others, sequence) for sequence in sequences] or [options]


def _row(recording: Recording, comparison: OdometryComparison) -> dict[str, Any]:
    """Return the values of one recording; the length of the paper is that of Table 3."""
    from .catalogue import entry_of

    of_weeder = recording.robot is not None and recording.robot.name == "weeder"
    entry = entry_of(recording.name) if of_weeder else None
    return {
        "name": recording.name,
        "paper_m": entry.length_m if entry else None,
        "odometry_to_rtk_2d": comparison.odometry_m / comparison.rtk_2d_m if comparison.rtk_2d_m else None,
        **dataclasses.asdict(comparison),
    }


def _show(rows: list[dict[str, Any]], as_json: bool) -> None:
    from transect.cli.shared.output import show_json, show_table

    if as_json:
        show_json([_without_nan(row) for row in rows])
        return
    show_table(HEADINGS, [_cells(row) for row in rows], right=frozenset(range(1, len(HEADINGS))))
    click.echo("")
    for row in rows:
        turning = row["turning"]
        click.echo(f"{row['name']}:")
        for line in (
            *row["notes"],
            f"ATE against {row['reference']} at {row['point']}: {row['whole']['alignment']}, whole track",
            f"turns: {turning['pieces']}, {turning['pairs']} pairs; {turning['alignment']}",
        ):
            click.echo(f"  {line}")


def _cells(row: dict[str, Any]) -> list[str]:
    lengths = [row[key] for key in LENGTHS]
    errors = [row[key]["rmse"] for key in ("whole", "whole_at_base", "turning", "turning_at_base")]
    return [
        row["name"],
        *(_number(length, 2) for length in lengths),
        _number(row["odometry_to_rtk_2d"], 4),
        *(_number(error, 2) for error in errors),
        str(row["whole"]["pairs"]),
    ]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def _without_nan(value: Any) -> Any:
    """Return a document with null in place of NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(part) for key, part in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value
