"""`transect table faults [PATH]`: every fault of InSight's arm and its rule, or those in a recording."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from transect.cli import BAD_VERDICT
from transect.cli._opening import Opening, opening
from transect.cli._options import json_option
from transect.cli._tables import all_option

if TYPE_CHECKING:
    from transect.recording import Recording
    from transect.robots.ida.faults import Findings, Row


@click.command()
@opening(required=False)
@all_option
@json_option
def command(opening: Opening, as_json: bool) -> int:
    """List the faults of InSight's arm, or look for them in a recording.

    Without PATH: every fault that the flight software knows, with its parameters as the SIS prints them, how
    many samples in a row declare it, and the section that says so.

    With PATH: which of them the telemetry shows under the parameters of that recording, and which could not
    be looked for. The exit code is 4 if one is found.
    """
    from transect.cli._tables import show_json

    if not opening.paths:
        from transect.robots.ida.faults import table_of_faults
        from transect.robots.ida.parameters import Parameters

        rows = table_of_faults(Parameters.printed())
        if as_json:
            show_json([row._asdict() for row in rows])
        else:
            _show_rules(rows)
        return 0
    from transect.cli._opening import report_losses
    from transect.cli._progress import Progress

    recording = opening.open(Progress(quiet=as_json))
    found = _find(recording)
    if as_json:
        show_json({name: asdict(findings) for name, findings in found.items()})
    else:
        for name, findings in found.items():
            _show_findings(recording, name, findings)
    lost = report_losses(recording)
    return BAD_VERDICT if any(findings.events for findings in found.values()) else lost


def _find(recording: Recording) -> dict[str, Findings]:
    """Look for faults in each stream by itself: runs are counted in its samples."""
    from transect.errors import StreamError
    from transect.robots.ida.faults import detect, streams_of, telemetry_of
    from transect.robots.ida.parameters import Parameters

    names = streams_of(recording)
    if not names:
        raise StreamError(
            f"{recording.name} has no telemetry of InSight's arm",
            hint="it needs SciHi, SciLo, status or history products (SIS Table 8)",
        )
    parameters = Parameters.of(recording)
    return {name: detect(telemetry_of(recording, name), parameters) for name in names}


def _show_rules(rows: list[Row]) -> None:
    """Print a paragraph a fault; side by side the parameters would need 250 columns."""
    for row in rows:
        click.echo(f"{row.name}  (SIS {row.section})")
        click.echo(f"  {row.what}" + (f"; {row.note}" if row.note else ""))
        click.echo(f"  declared {row.declared}")
        for parameter in filter(None, row.parameters.split("; ")):
            click.echo(f"  {parameter}")
        click.echo()


def _show_findings(recording: Recording, name: str, findings: Findings) -> None:
    from transect.base import clocks
    from transect.cli._tables import show_table

    click.echo(f"{name}: {len(findings.events) or 'no'} faults; {len(findings.checked)} kinds looked for")
    if findings.events:
        clock = recording[name].clock
        rows = [
            (
                clocks.text_from_ns(event.t_ns, clock),
                event.fault,
                event.part,
                f"{event.value:g} {event.unit}".rstrip(),
                f"{event.limit:g}",
                str(event.count),
            )
            for event in findings.events
        ]
        headings = ("declared", "fault", "where", "value", "limit", "samples in a row")
        show_table(headings, rows, right=frozenset({3, 4, 5}))
    for entry in findings.unchecked:
        click.echo(f"  not looked for: {entry.fault}: {entry.reason}")
