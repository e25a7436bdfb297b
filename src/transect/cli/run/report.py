"""Output of `transect run`: the wiring and the results, as text or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from transect.base import clocks
from transect.cli.shared.output import show_table, show_text
from transect.cli.shared.results import show_results
from transect.engine.wiring import HEADINGS

if TYPE_CHECKING:
    from transect.engine import Replay, Run
    from transect.engine.digest import Difference
    from transect.errors import TransectError
    from transect.evaluation.result import Result
    from transect.evaluation.runs import JudgedRun
    from transect.recording import Loss


def show_wiring(replay: Replay) -> None:
    """Print the stream of each input, and notes on the playback."""
    click.echo(f"{replay.playback.compound.name} on {replay.recording.name}\n")
    show_table(HEADINGS, replay.playback.wiring.rows, prose=(3,))
    for note in (
        *replay.playback.wiring.notes,
        *(text for _, _, text in replay.notes.log),
    ):  # logged before it plays
        show_text(f"note: {note}")
    if replay.playback.clock_note:
        show_text(f"note: {replay.playback.clock_note}")
    if replay.playback.wiring.used_truth:
        show_text("note: the result uses ground truth, and cannot be evaluated against it")
    if replay.verdicts is not None and replay.verdicts.describe()["hindsight"]:
        show_text("note: the result uses verdicts in hindsight, i.e. from later data")
    for conclusion in replay.notes.conclusions:
        show_text(f"warning: {conclusion.text}")
    for mapping in replay.playback.mappings.values():
        show_text(f"offset: {mapping}")
    click.echo("")


def show_result(run: Run, golden: Difference | None, *, stats: bool) -> None:
    """Print the outputs, problems, the digest, and with `stats` the computing time of each node."""
    from transect.engine.runs import silent_outputs

    show_failures(run)
    show_noise(run)
    rows = [
        (name, output["type"], str(output["samples"]), _files(output["files"]))
        for name, output in _outputs(run).items()
    ]
    if rows:
        show_table(("output", "type", "samples", "files"), rows, right=frozenset((2,)))
        click.echo("")
    if run.stats:
        if stats:
            click.echo(str(run.stats))
        else:
            show_text(run.stats.summary())
    silent: dict[str, list[str]] = {}
    for name, reasons in silent_outputs(run).items():
        silent.setdefault(reasons, []).append(name)
    for reasons, names in silent.items():
        show_text(f"no output of {', '.join(names)}: {reasons}")
    if run.log:
        where = f"see {run.folder / 'log.txt'}" if run.folder else "-o DIR keeps it"
        click.echo(f"nodes logged {_lines(len(run.log))}: {where}")
    click.echo(f"digest {run.digest}")
    if golden is not None and not golden:
        click.echo(f"identical to the golden run in all {len(golden.equal)} ports")


def show_evaluation(judged: JudgedRun) -> None:
    """Print the errors against the ground truth, if there are any."""
    if judged.error is not None:
        click.echo(f"not evaluated: {judged.error}", err=True)
    if judged.results:
        click.echo("")
        show_results(judged.results)


def show_conclusion(run: Run, judged: JudgedRun) -> None:
    """Print the summary: distance, accuracy, and the output folder."""
    show_judgement(run)
    if run.folder is None:
        click.echo("no outputs were written; -o DIR writes them to a folder")
        return
    click.echo("")
    if summary := judged.summary():
        bad = "BAD, see above: " if run.failures else ""
        show_text(f"{bad}{summary}", bold=True)
    click.echo(f"wrote {run.folder}")
    if drawn := [run.folder / name for name in judged.figures]:
        click.echo(f"figures in {drawn[0].parent}: {', '.join(path.name for path in drawn)}")


def show_failures(run: Run) -> None:
    """Print in red why the result is not trustworthy, before the result."""
    for text in run.failures:
        show_text(f"BAD: {text}", colour="red")
    if run.failures:
        click.echo("")


def show_noise(run: Run) -> None:
    """Print the sensor noise that was used: declared, estimated, or assumed."""
    said = [each.text for each in run.conclusions if each.noise]
    for text in said:
        show_text(f"noise: {text}")
    if said:
        click.echo("")


def show_judgement(run: Run) -> None:
    """Print further conclusions of nodes."""
    for each in run.conclusions:
        if not (each.bad or each.noise):
            show_text(each.text)


def _outputs(run: Run) -> dict[str, dict[str, Any]]:
    from transect.engine.output_files import describe_outputs

    return describe_outputs(run.replay.kept) if run.replay else {}


def _files(files: Sequence[str]) -> str:
    if len(files) <= 2:
        return ", ".join(files) or "-"
    return f"{files[0]} ... {files[-1]}, {len(files)} files"


def _lines(number: int) -> str:
    return "1 line" if number == 1 else f"{number} lines"


def document(
    run: Run,
    golden: Difference | None,
    golden_folder: object,
    losses: Sequence[Loss] = (),
    judged: Sequence[Result] = (),
) -> dict[str, Any]:
    """Return a run as one JSON document."""
    return {
        "name": run.name,
        "status": run.status,
        "digest": run.digest,
        "ports": dict(run.ports),
        "outputs": _outputs(run),
        "wiring": run.config["wiring"],
        "used_truth": run.config["used_truth"],
        "verdicts": run.config.get("verdicts"),
        "time": run.config["time"],
        "parameters": run.config["parameters"],
        "statistics": run.stats.to_dict() if run.stats else None,
        "errors": [_error(error) for error in run.errors],
        "conclusions": [asdict(each) for each in run.conclusions],
        "losses": [loss.to_dict() for loss in losses],
        "folder": str(run.folder) if run.folder else None,
        "evaluation": [result.to_dict() for result in judged],
        "golden": None if golden is None else _golden(golden, golden_folder),
    }


def _error(error: TransectError) -> dict[str, Any]:
    place = {key: getattr(error, key) for key in ("node", "port", "t_ns") if hasattr(error, key)}
    return {"what": error.what, "where": error.where, "why": error.why, "hint": error.hint, **place}


def _golden(found: Difference, folder: object) -> dict[str, Any]:
    """Return whether a run equals the golden one, and its first difference."""
    ports = [
        {
            "port": port.port,
            "first_ns": port.first_ns,
            "samples": list(port.samples),
            "differing": port.differing,
        }
        for port in found.ports
    ]
    settings = {name: list(values) for name, values in found.settings.items()}
    return {"folder": str(folder), "same": not found, "differ": ports, "settings": settings}


def where_it_is(replay: Replay) -> str:
    """Return the current time of a replay, on its clock and since the recording's first sample."""
    now, origin = replay.flow.now_ns, replay.recording.spans().get(replay.playback.clock, (0, 0))[0]
    if replay.playback.span is None or now < replay.playback.span[0]:
        return "before the first sample"
    since = clocks.decimal_from_ns(now - origin, 3)
    return f"{clocks.text_from_ns(now, replay.playback.clock)} ({'' if now < origin else '+'}{since} s)"
