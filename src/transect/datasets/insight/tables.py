"""`transect table arm` and `transect table faults`: consistency and faults of recordings of InSight's arm."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transect.cli import ExitCode
from transect.cli.shared.options import json_option
from transect.cli.shared.output import all_option
from transect.cli.shared.recordings import Opening, opening

if TYPE_CHECKING:
    from collections.abc import Iterable

    from transect.datasets.insight.robot.consistency import ColumnResidual
    from transect.datasets.insight.robot.parameters import Parameters
    from transect.recording import Loss, Recording

    Tables = dict[str, tuple[ColumnResidual, ...]]
    from transect.datasets.insight.robot.faults import FaultGroup, FaultRow, Findings


HEADINGS = (
    "column",
    "tool",
    "rows",
    "outside",
    "largest",
    "rms",
    "bias",
    "tolerance",
    "unit",
    "basis",
    "verdict",
)

VERDICT_ORDER = ("disagrees", "undecided", "consistent", "not computed")
"""Verdicts from the worst; a column that one table does not determine is judged by the other."""


@click.command()
@opening()
@all_option
@json_option
@click.option(
    "--parameters",
    "parameter_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A parameter file of the arm, to be put over those of the recording.",
)
def arm_command(opening: Opening, as_json: bool, parameter_file: Path | None) -> int:
    """Check a SciHi or SciLo table of InSight's arm against itself.

    Tool poses, sag, rotor temperatures, velocities, torques and forces are recomputed from encoders,
    potentiometers, currents, voltages and temperatures, and compared with the columns that are in the file.
    The tolerance is the rounding error of inputs and outputs at the printed digits.

    The exit code is 4 if a column disagrees.
    """
    from transect.cli.shared.output import ProgressDisplay, show_json
    from transect.cli.shared.recordings import report_losses
    from transect.datasets.insight.robot.consistency import check_recording

    recording = opening.open(ProgressDisplay(quiet=as_json))
    parameters, lost = _parameters(recording, parameter_file, opening.strict)
    recording = recording.replace(reader_losses=(*recording.reader_losses, *lost))
    tables = check_recording(recording, parameters)
    if as_json:
        show_json(_document(recording, parameters, tables))
    else:
        _show(tables)
    if all(residual.verdict != "disagrees" for residual in _all(tables)):
        return report_losses(recording)
    if recording.losses:
        click.echo(f"warning: not all of {recording.name} could be read", err=True)
    return ExitCode.BAD_VERDICT


def _parameters(recording: Recording, file: Path | None, strict: bool) -> tuple[Parameters, list[Loss]]:
    from transect.datasets.insight.products.parameters import parse_parameters
    from transect.datasets.insight.robot.parameters import Parameters
    from transect.errors import UsageError

    known = Parameters.of(recording)
    if file is None:
        return known, []
    parsed = parse_parameters(file.read_bytes(), str(file))
    if strict and parsed.losses:
        raise parsed.losses[0].error()
    if not parsed.sets:
        raise UsageError(
            f"{file} has no parameters", hint="it needs lines such as: Parameter Set: RA_ARM_PARAMS"
        )
    return Parameters(((str(file), parsed.sets), *known.sources)), parsed.losses


def _all(tables: Tables) -> list[ColumnResidual]:
    return [residual for residuals in tables.values() for residual in residuals]


def _columns(tables: Tables) -> list[ColumnResidual]:
    """Return each column and tool once, with the worst verdict of all tables: SciLo repeats SciHi."""
    worst: dict[tuple[str, str], ColumnResidual] = {}
    for residual in _all(tables):
        key = residual.column, residual.tool
        if key not in worst or VERDICT_ORDER.index(residual.verdict) < VERDICT_ORDER.index(
            worst[key].verdict
        ):
            worst[key] = residual
    return list(worst.values())


def _show(tables: Tables) -> None:
    """Print a table per stream; long remarks are numbered below."""
    from transect.cli.shared.output import show_table
    from transect.datasets.insight.robot.consistency import BASES

    remarks = dict.fromkeys(residual.remark for residual in _all(tables) if residual.remark)
    numbers = {remark: f"[{i}]" for i, remark in enumerate(remarks, 1)}
    for stream, residuals in tables.items():
        click.echo(stream)
        rows = [[*_row(residual), numbers.get(residual.remark, "")] for residual in residuals]
        show_table((*HEADINGS, "remark"), rows, right=frozenset(range(2, 8)))
        click.echo("")
    used = {residual.basis for residual in _all(tables)}
    lines = [f"{number} {remark}" for remark, number in numbers.items()]
    lines += [f"{basis}: {meaning}" for basis, meaning in BASES.items() if basis in used]
    click.echo("\n".join([*lines, "", _summary(_columns(tables))]))


def _row(residual: ColumnResidual) -> list[str]:
    numbers = (residual.max_abs, residual.rms, residual.bias, residual.tolerance)
    return [
        residual.column,
        residual.tool,
        str(residual.rows),
        str(residual.outside),
        *("" if math.isnan(number) else f"{number:.2g}" for number in numbers),
        residual.unit,
        residual.basis,
        residual.verdict,
    ]


def _summary(residuals: Iterable[ColumnResidual]) -> str:
    """Return one sentence with the numbers of verdicts and the disagreeing columns."""
    known = list(residuals)
    counts = Counter(residual.verdict for residual in known)
    words = [f"{counts['consistent']} columns are consistent"]
    bad = [f"{r.column} ({r.tool})" if r.tool else r.column for r in known if r.verdict == "disagrees"]
    verb = "disagrees" if len(bad) == 1 else "disagree"
    words += [f"{len(bad)} {verb}: {', '.join(bad)}"] if bad else ["none disagrees"]
    words += [f"{counts['undecided']} undecided"] if counts["undecided"] else []
    words += [f"{counts['not computed']} not computed"] if counts["not computed"] else []
    return "; ".join(words) + "."


def _document(recording: Recording, parameters: Parameters, tables: Tables) -> dict[str, Any]:
    return {
        "name": recording.name,
        "parameters": [who for who, _ in parameters.sources],
        "tables": [
            {"stream": stream, "columns": [_plain(residual) for residual in residuals]}
            for stream, residuals in tables.items()
        ],
        "verdicts": dict(Counter(residual.verdict for residual in _columns(tables))),
        "losses": [loss.to_dict() for loss in recording.losses],
    }


def _plain(residual: ColumnResidual) -> dict[str, Any]:
    """Return the fields of a residual; NaN becomes null."""
    fields = asdict(residual).items()
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in fields}


@click.command()
@opening(required=False)
@click.option(
    "--letter",
    is_flag=True,
    help="Apply every rule as printed in the SIS; list each stream and each fault separately.",
)
@all_option
@json_option
def faults_command(opening: Opening, letter: bool, as_json: bool) -> int:
    """List faults of InSight's arm, or find them in a recording.

    Without PATH: every fault of the flight software, with its parameters as printed in the SIS, the number of
    consecutive samples that declare it, and the section.

    With PATH: the faults in the telemetry under the parameters of that recording, the worst first, and those
    that could not be tested. A potentiometer is faulty if it does not move while the encoder moves; as
    printed in the SIS (--letter) it is faulty in every long move. The exit code is 4 if a fault is found.
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
    from transect.cli.shared.output import ProgressDisplay
    from transect.cli.shared.recordings import report_losses

    recording = opening.open(ProgressDisplay(quiet=as_json))
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
    return ExitCode.BAD_VERDICT if groups else lost


def _find(recording: Recording, letter: bool) -> tuple[dict[str, Findings], list[FaultGroup]]:
    """Detect faults in each stream separately, since runs are counted in its samples, and group them."""
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


def _show_groups(recording: Recording, found: dict[str, Findings], groups: list[FaultGroup]) -> None:
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


def _show_rules(rows: list[FaultRow]) -> None:
    """Print a paragraph per fault: a table would need 250 columns."""
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
