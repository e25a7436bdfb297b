"""`transect table faults [PATH]`: every fault of InSight's arm and its rule, or those in a recording."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from transect.cli import BAD_VERDICT
from transect.cli.shared.options import json_option
from transect.cli.shared.output import all_option
from transect.cli.shared.recordings import Opening, opening

if TYPE_CHECKING:
    from transect.datasets.insight.robot.faults import Findings, Group, Row
    from transect.recording import Recording


@click.command()
@opening(required=False)
@click.option(
    "--letter",
    is_flag=True,
    help="Every rule by the letter of the SIS; each stream and each fault by itself.",
)
@all_option
@json_option
def command(opening: Opening, letter: bool, as_json: bool) -> int:
    """List faults of InSight's arm, or find them in a recording.

    Without PATH: every fault that the flight software knows, with its parameters as the SIS prints them, how
    many samples in a row declare it, and the section that says so.

    With PATH: which of them the telemetry shows under the parameters of that recording, the worst first, and
    which could not be looked for. A potentiometer is at fault if it stands while the encoder moves; by the
    letter of the SIS (--letter) it is at fault in every long move. The exit code is 4 if a fault is found.
    """
    from transect.cli.shared.output import show_json

    if not opening.paths:
        from transect.datasets.insight.robot.faults import table_of_faults
        from transect.datasets.insight.robot.parameters import Parameters

        rows = table_of_faults(Parameters.printed())
        if as_json:
            show_json([row._asdict() for row in rows])
        else:
            _show_rules(rows)
        return 0
    from transect.cli.shared.output import Progress
    from transect.cli.shared.recordings import report_losses

    recording = opening.open(Progress(quiet=as_json))
    found, groups = _find(recording, letter)
    if as_json:
        streams = {name: asdict(findings) for name, findings in found.items()}
        show_json({"letter": letter, "groups": [asdict(group) for group in groups], "streams": streams})
    elif letter:
        for name, findings in found.items():
            _show_findings(recording, name, findings)
    else:
        _show_groups(recording, found, groups)
    lost = report_losses(recording)
    return BAD_VERDICT if groups else lost


def _find(recording: Recording, letter: bool) -> tuple[dict[str, Findings], list[Group]]:
    """Look for faults in each stream by itself, since runs are counted in its samples; and group them."""
    from transect.datasets.insight.robot.faults import (
        FAULTS,
        OPERATOR_FAULTS,
        detect,
        group_faults,
        streams_of,
        telemetry_of,
    )
    from transect.datasets.insight.robot.parameters import Parameters
    from transect.errors import StreamError

    names = streams_of(recording)
    if not names:
        raise StreamError(
            f"{recording.name} has no telemetry of InSight's arm",
            hint="it needs SciHi, SciLo, status or history products (SIS Table 8)",
        )
    parameters, faults = Parameters.of(recording), FAULTS if letter else OPERATOR_FAULTS
    found = {name: detect(telemetry_of(recording, name), parameters, faults) for name in names}
    return found, group_faults(found, parameters, faults)


def _show_groups(recording: Recording, found: dict[str, Findings], groups: list[Group]) -> None:
    from transect.base import clocks
    from transect.cli.shared.output import show_table

    checked = {name for findings in found.values() for name in findings.checked}
    if groups:
        headings = ("fault", "where", "times", "first declared", "worst", "limit", "in a row", "seen in")
        rows = [
            (
                group.fault,
                group.part,
                str(group.times),
                clocks.text_from_ns(group.first_ns, recording[group.streams[0]].clock),
                f"{group.value:g} {group.unit}".rstrip(),
                f"{group.limit:g}",
                str(group.samples),
                ", ".join(group.streams),
            )
            for group in groups
        ]
        show_table(headings, rows, right=frozenset({2, 4, 5, 6}))
        click.echo()
        kinds = {group.fault: group.what + (": the arm is safed" if group.safes else "") for group in groups}
        show_table(("fault", "a sample is an anomaly when"), list(kinds.items()), prose=(1,))
        click.echo()
    count = f"{len(groups) or 'no'} fault{'' if len(groups) == 1 else 's'}"
    click.echo(f"{count}; {len(checked)} kinds looked for in {', '.join(found)}")
    reasons: dict[str, str] = {}
    for entry in (entry for findings in found.values() for entry in findings.unchecked):
        if entry.fault not in checked:
            reasons[entry.fault] = min(reasons.get(entry.fault, entry.reason), entry.reason, key=len)
    if reasons:
        click.echo()
        show_table(("not looked for", "why"), list(reasons.items()), prose=(1,))


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
    from transect.cli.shared.output import show_table

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
