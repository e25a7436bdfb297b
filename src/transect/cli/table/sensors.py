"""`transect table sensors PATH...`: which sensors suit which conditions."""

from __future__ import annotations

import textwrap

import click

from transect.cli.shared.options import json_option
from transect.cli.shared.output import all_option
from transect.cli.shared.recordings import Opening, opening


@click.command()
@opening("streams", "times")
@click.option(
    "--layout", type=click.Choice(["sensors", "matrix", "summary"]), default="sensors", show_default=True,
    help="A row per recording and sensor; sensors by recordings; tables 4.2.4 and 4.3.4 of SDI.",
)  # fmt: skip
@click.option(
    "--format", "written_as", type=click.Choice(["table", "latex", "markdown", "csv"]), default="table",
    show_default=True, help="Format of the table.",
)  # fmt: skip
@all_option
@json_option
def command(opening: Opening, layout: str, written_as: str, as_json: bool) -> int:
    """Print which sensors suit which conditions.

    Each PATH is a recording, e.g. one in clear air, one in dust, one in rain. For each sensor: mean score,
    fraction of time with state OK, and during airborne dust, smoke or rain its score and remaining
    measurements: valid returns and range of a laser, targets of a radar and their strength, image contrast.

    In the layout summary, X is a condition found by the checks, o one that is declared but was not found, ? a
    cloud that may be dust or smoke; then mean scores under these conditions.
    """
    from transect.cli.shared.output import ProgressDisplay, show_json, show_table
    from transect.cli.shared.recordings import report_losses
    from transect.evaluation.tables import text_of
    from transect.integrity import check
    from transect.integrity.sensor_suitability import (
        advise,
        matrix_table,
        measure_sensors,
        sensors_table,
        summary_table,
    )

    progress = ProgressDisplay(quiet=as_json)
    recordings = [each.cut(each.open(progress)) for each in opening.each()]
    judged = [(each, check(each)) for each in progress.over(recordings, "checking", lambda r: r.name)]
    rows = [row for recording, verdicts in judged for row in measure_sensors(recording, verdicts)]
    if as_json:
        show_json({"sensors": [row.to_dict() for row in rows], "advice": advise(rows)})
        return max(report_losses(recording) for recording in recordings)
    table = {
        "sensors": lambda: sensors_table(rows),
        "matrix": lambda: matrix_table(rows),
        "summary": lambda: summary_table(judged),
    }[layout]()
    if written_as == "table":
        show_table(table.headings, table.texts(), frozenset(range(table.names, len(table.headings))))
        for line in advise(rows):
            for part in textwrap.wrap(line, 80, subsequent_indent="  "):
                click.echo(part)
    else:
        click.echo(text_of(table, written_as), nl=False)  # pyright: ignore[reportArgumentType]
    return max(report_losses(recording) for recording in recordings)
