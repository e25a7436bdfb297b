"""What `transect run` prints: how it is wired before it plays, and what came of it; for people or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from transect.base import clocks

if TYPE_CHECKING:
    from transect.engine import Replay, Run
    from transect.engine.comparing import Difference
    from transect.engine.graph import Graph
    from transect.errors import TransectError
    from transect.evaluation.result import Result
    from transect.recording import Loss


def show_wiring(replay: Replay) -> None:
    """Print which stream feeds which input, and what a person should know of that."""
    click.echo(f"{replay.compound.name} on {replay.recording.name}\n")
    click.echo(str(replay.wiring))
    for note in replay.wiring.notes:
        click.echo(f"note: {note}")
    if replay.wiring.used_truth:
        click.echo("note: the result uses truth, and cannot be judged by it")
    for mapping in replay.mappings.values():
        click.echo(f"offset: {mapping}")
    click.echo("")


def show_result(run: Run, golden: Difference | None) -> None:
    """Print the statistics, the outputs, the digest, and where all that is."""
    from ._tables import show_table

    click.echo(f"{run.stats}\n")
    rows = [
        (name, output["type"], str(output["samples"]), _files(output["files"]))
        for name, output in _outputs(run).items()
    ]
    if rows:
        show_table(("output", "type", "samples", "files"), rows, right=frozenset((2,)))
        click.echo("")
    for name, reasons in silent_outputs(run).items():
        click.echo(f"nothing came out of {name}: {reasons}")
    if run.log:
        where = f"{run.folder / 'log.txt'} has them" if run.folder else "-o DIR keeps them"
        click.echo(f"nodes said {_lines(len(run.log))}: {where}")
    click.echo(f"digest {run.digest}")
    if golden is not None and not golden:
        click.echo(f"the same as the golden run: all {len(golden.equal)} ports are equal")
    click.echo(f"wrote {run.folder}" if run.folder else "nothing is kept: -o DIR would write it to a folder")


def silent_outputs(run: Run) -> dict[str, str]:
    """Return outputs that gave nothing, and why: what the nodes say on which each depends."""
    if run.replay is None:
        return {}
    graph, samples = run.replay.graph, {name: output["samples"] for name, output in _outputs(run).items()}
    nodes = {name: _node(graph.outputs[name]) for name in samples}
    spoke = {nodes[name] for name, number in samples.items() if number}
    said: dict[str, str] = {}
    for name in (name for name, number in samples.items() if not number):
        node = nodes[name]
        gave_others = node in spoke
        reasons = _said(run, [node] if gave_others else _before(graph, node))
        said[name] = f"{node} gave others; {reasons}" if gave_others else reasons
    return said


def is_silent(run: Run) -> bool:
    """Tell whether the first output that is declared, which a compound is there for, gave nothing."""
    declared = run.replay.compound.text.outputs if run.replay else {}
    return next(iter(declared), None) in silent_outputs(run)


def _said(run: Run, nodes: Sequence[str]) -> str:
    """Return why nodes skipped samples."""
    counts = run.stats.nodes if run.stats else {}
    said = [
        f"{node}: {reason} ({number} of {counts[node].calls} times)"
        for node in nodes
        if node in counts
        for reason, number in counts[node].skipped.items()
    ]
    return "; ".join(said) or "no node gave a reason"


def _before(graph: Graph, node: str) -> list[str]:
    """Return a node and all that it depends on, in the order in which they run."""
    found, waiting = set[str](), [node]
    while waiting:
        part = waiting.pop()
        if part in graph.parts and part not in found:
            found.add(part)
            waiting += [_node(feed.source) for feed in graph.parts[part].feeds.values()]
    return [part for part in graph.parts if part in found]


def _node(channel: str) -> str:
    return channel.rpartition(".")[0]


def _outputs(run: Run) -> dict[str, dict[str, Any]]:
    from transect.engine.kept import described

    return described(run.replay.kept) if run.replay else {}


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
        "time": run.config["time"],
        "parameters": run.config["parameters"],
        "statistics": run.stats.to_dict() if run.stats else None,
        "errors": [_error(error) for error in run.errors],
        "losses": [loss.to_dict() for loss in losses],
        "folder": str(run.folder) if run.folder else None,
        "evaluation": [result.to_dict() for result in judged],
        "golden": None if golden is None else _golden(golden, golden_folder),
    }


def _error(error: TransectError) -> dict[str, Any]:
    place = {key: getattr(error, key) for key in ("node", "port", "t_ns") if hasattr(error, key)}
    return {"what": error.what, "where": error.where, "why": error.why, "hint": error.hint, **place}


def _golden(found: Difference, folder: object) -> dict[str, Any]:
    """Return whether a run is the same as the golden one, and where it first is not."""
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
    """Return the time that a replay has come to, on its clock and since the recording's first sample."""
    now, origin = replay.flow.now_ns, replay.recording.spans().get(replay.clock, (0, 0))[0]
    if replay.span is None or now < replay.span[0]:
        return "before the first sample"
    since = clocks.decimal_from_ns(now - origin, 3)
    return f"{clocks.text_from_ns(now, replay.clock)} ({'' if now < origin else '+'}{since} s)"
