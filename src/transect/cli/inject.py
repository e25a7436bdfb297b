"""`transect inject PATH --fault NAME --severity S -o DIR`: a recording with a labelled fault."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .shared.options import from_option, json_option, streams_option, to_option
from .shared.output import all_option
from .shared.recordings import Opening, opening

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transect.recording import Recording
    from transect.simulation.faults import Fault
    from transect.simulation.faults.written import WrittenFault


@click.command()
@opening(required=False)
@click.option("--fault", metavar="NAME", help="The fault; without it, faults are listed.")
@click.option("--severity", type=float, default=0.5, show_default=True, help="From 0 (no effect) to 1.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random numbers.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A parameter of the fault.")
@streams_option
@from_option
@to_option
@click.option(
    "--format",
    "format_name",
    metavar="NAME",
    help="Format to write; by default that of the recording, if it can hold the fault.",
)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="New folder to write.")
@all_option
@json_option
def command(
    opening: Opening,
    fault: str | None,
    severity: float,
    seed: int,
    settings: tuple[str, ...],
    streams: tuple[str, ...],
    start: str | None,
    end: str | None,
    format_name: str | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Inject a labelled fault into a recording, simulated or real.

    DIR/truth/faults.parquet labels every modified sample; other ground truth is copied. The result is read
    back, and labels that its format did not preserve are dropped. If the recording's format cannot hold the
    fault, parquet is written.

    Without --fault, all faults are listed, or with PATH those that apply to the recording. With --fault and
    without PATH, that fault is described. For faults of files, --streams names files.
    """
    from .shared.options import new_folder
    from .shared.output import ProgressDisplay
    from .shared.recordings import cut_times, report_losses

    if fault is None:
        _list_faults(opening.open() if opening.paths else None, as_json)
        return 0
    if not opening.paths:
        if out is not None:
            raise click.UsageError("nothing to open: give the path of a recording")
        _describe_fault(fault, as_json)
        return 0
    how = _read_how(fault, severity, settings, start, end)
    target = new_folder(out)
    progress = ProgressDisplay(quiet=as_json)
    recording = opening.open(progress)
    cut_times(recording, start, end)
    expected = sum(len(s) if s.loader else 1 for s in recording)
    with progress.of_files(expected, "writing"):
        written = _write(recording, target, fault, seed, streams, format_name, how)
    code = _report(written, recording.format, as_json)
    return report_losses(recording) or code


def _list_faults(recording: Recording | None, as_json: bool) -> None:
    """Print the faults, or those that apply to a recording, and to which of its streams."""
    from transect.simulation.faults import FAULTS, find_able

    from .shared.output import show_json, show_table

    able = {name: None if recording is None else find_able(recording, f) for name, f in FAULTS.items()}
    chosen = {name: streams for name, streams in able.items() if streams is None or streams}
    if as_json:
        show_json({"faults": [_facts(FAULTS[name], streams) for name, streams in chosen.items()]})
        return
    rows = [
        (name, FAULTS[name].what, *([] if streams is None else [", ".join(streams)]))
        for name, streams in chosen.items()
    ]
    headings = ("fault", "effect", *(() if recording is None else ("streams",)))
    show_table(headings, rows, prose=(1, 2))
    click.echo("transect inject --fault NAME describes a fault, its severity and parameters", err=True)


def _facts(fault: Fault, streams: Sequence[str] | None = None) -> dict[str, Any]:
    """Return a fault for JSON, with the streams of a recording that it applies to."""
    return {
        "name": fault.name,
        "what": fault.what,
        "types": [kind.__name__ for kind in fault.types if kind is not object],
        "needs": fault.needs,
        "severity_1": fault.severity,
        "severity_unit": fault.unit,
        "lasts": list(fault.lasts),
        "parameters": dict(fault.parameters),
        "reasons": list(fault.reasons),
        **({} if streams is None else {"streams": list(streams)}),
    }


def _describe_fault(name: str, as_json: bool) -> None:
    from transect.simulation.faults import fault_named, target_of

    from .shared.output import show_json, show_table

    fault = fault_named(name)
    if as_json:
        show_json(_facts(fault))
        return
    first, last = (f"{part:.0%}" for part in fault.lasts)
    when = f"from {first} to {last} of the recording, unless set by --from and --to"
    settings = ", ".join(f"--set {key}={value:g}" for key, value in fault.parameters.items())
    rows = [
        ("effect", fault.what),
        ("streams", target_of(fault)),
        ("severity 1", fault.severity),
        ("unit of severity", fault.unit),
        ("time", "not applicable to files" if fault.damage else "always" if fault.remount else when),
        ("parameters", settings or "none"),
        ("detected as", " or ".join(fault.reasons) or "a loss reported by the reader"),
    ]
    show_table(("fault", fault.name), rows, prose=(1,))


def _read_how(
    fault: str, severity: float, settings: tuple[str, ...], start: str | None, end: str | None
) -> dict[str, Any]:
    from transect.errors import UsageError
    from transect.simulation.faults import fault_named

    from .shared.options import parse_pairs

    fault_named(fault)
    parameters: dict[str, float] = {}
    for key, value in parse_pairs(settings, "--set", "wind=2.5").items():
        try:
            parameters[key] = float(value)
        except ValueError:
            raise UsageError(f"--set {key}={value} is not a number") from None
    return {"severity": severity, "start": start, "end": end, "parameters": parameters}


def _write(
    recording: Recording,
    target: Path,
    fault: str,
    seed: int,
    streams: tuple[str, ...],
    format_name: str | None,
    how: dict[str, Any],
) -> WrittenFault:
    from transect import formats
    from transect.errors import UsageError
    from transect.simulation.faults import EVERYTHING
    from transect.simulation.faults.written import write_injected

    if format_name and format_name not in formats.writing_names():
        able = ", ".join(formats.writing_names())
        raise UsageError(f"the format {format_name} cannot be written", hint=f"--format NAME, one of {able}")
    return write_injected(
        recording, target, fault, seed=seed, format=format_name, streams=streams or EVERYTHING, **how
    )


def _report(written: WrittenFault, own: str, as_json: bool) -> int:
    from collections import Counter

    from transect.recording import arrow

    from .shared.output import show_json
    from .shared.recordings import report_left_out

    touched = Counter(arrow.texts(written.labels, "stream"))
    code = report_left_out(written.said)
    if as_json:
        carried = {"touched": dict(touched), "not_carried": list(written.said)}
        facts = {"path": str(written.path), "format": written.format, "labels": written.labels.num_rows}
        show_json({**facts, **carried})
        return code
    for name, count in touched.items():
        click.echo(f"{name}: {count} samples modified")
    wrote = f"wrote {written.path}" + (f" as {written.format}" if written.format != own else "")
    click.echo(wrote if touched else f"{wrote}; no sample was modified")
    return code
