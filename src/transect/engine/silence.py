"""Outputs of a run that gave nothing, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .context import Conclusion
from .graph import Graph
from .keeping import describe_outputs

if TYPE_CHECKING:
    from .run import Run


def silent_outputs(run: Run) -> dict[str, str]:
    """Return outputs that gave nothing, and why: what the nodes say on which each depends."""
    if run.replay is None:
        return {}
    graph = run.replay.graph
    samples = {name: output["samples"] for name, output in describe_outputs(run.replay.kept).items()}
    nodes = {name: _node(graph.outputs[name]) for name in samples}
    spoke = {nodes[name] for name, number in samples.items() if number}
    said: dict[str, str] = {}
    for name in (name for name, number in samples.items() if not number):
        node = nodes[name]
        gave_others = node in spoke
        reasons = _reasons(run, [node] if gave_others else _upstream(graph, node))
        said[name] = f"{node} gave others; {reasons}" if gave_others else reasons
    return said


def describe_silence(run: Run) -> list[Conclusion]:
    """Conclude that a run is bad if its first declared output, its main result, has no samples."""
    declared = run.replay.compound.text.outputs if run.replay else {}
    first = next(iter(declared), None)
    if first is None or first not in silent_outputs(run):
        return []
    return [Conclusion(first, f"nothing came out of {first}", bad=True)]


def _reasons(run: Run, nodes: Sequence[str]) -> str:
    """Return why nodes skipped samples."""
    counts = run.stats.nodes if run.stats else {}
    said = [
        f"{node}: {reason} ({number} of {counts[node].calls} times)"
        for node in nodes
        if node in counts
        for reason, number in counts[node].skipped.items()
    ]
    return "; ".join(said) or "no node gave a reason"


def _upstream(graph: Graph, node: str) -> list[str]:
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
