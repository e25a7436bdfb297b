"""What follows from a graph's shape: which nodes samples lead to, how late they may come, and never meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from transect.errors import TransectError

from .graph import Graph, Part
from .inboxes import NS, Inbox, inbox_for
from .policies import AtPolicy, Synced
from .ports import Port
from .statistics import NodeCount


def downstream(graph: Graph) -> dict[str, set[str]]:
    """Return, by channel and by node, the nodes that it leads to within a wave."""
    consumers = graph.consumers()
    found: dict[str, set[str]] = {}
    for part in reversed(list(graph.parts.values())):
        for channel, _ in part.channels():
            found[channel] = _below(consumers.get(channel, ()), found)
        found[part.id] = set[str]().union(*(found[channel] for channel, _ in part.channels()))
    for name in graph.inputs:
        found[name] = _below(consumers.get(name, ()), found)
    return found


def _below(ids: Iterable[str], found: Mapping[str, set[str]]) -> set[str]:
    return set[str]().union(*({name} | found[name] for name in ids))


def own_wait(part: Part, late: Mapping[str, int], reorder_ns: int) -> int:
    """Return for how long (ns of recording time) a node's triggers may wait for other ports."""
    longest = 0
    for name, feed in part.feeds.items():
        policy, lag = part.node.inputs[name].policy, late.get(feed.source, 0)
        if isinstance(policy, AtPolicy):
            longest = max(longest, reorder_ns + lag)
        elif isinstance(policy, Synced):
            longest = max(longest, round(policy.seconds * NS) + lag)
    return longest


def lags(graph: Graph, reorder_ns: int) -> dict[str, int]:
    """Return, by channel, how long after their own time (ns) its samples may come."""
    found = dict.fromkeys(graph.inputs, 0)
    for part in graph.parts.values():
        before = max((found.get(feed.source, 0) for feed in part.feeds.values()), default=0)
        own = own_wait(part, found, reorder_ns)
        found.update({channel: before + own for channel, _ in part.channels()})
    return found


def inboxes_of(part: Part, count: NodeCount, late: Mapping[str, int], reorder_ns: int) -> list[Inbox | None]:
    """Return an inbox for each input of a node, None where nothing feeds it."""
    inputs = part.node.inputs
    triggers = [late[feed.source] for name, feed in part.feeds.items() if part.is_trigger(inputs[name])]
    slack = max(triggers, default=0) + own_wait(part, late, reorder_ns)
    return [
        _inbox(port, part, count, (late[part.feeds[name].source], slack), reorder_ns)
        if name in part.feeds
        else None
        for name, port in inputs.items()
    ]


def _inbox(port: Port, part: Part, count: NodeCount, lags: tuple[int, int], reorder_ns: int) -> Inbox:
    held = part.feeds[port.name].held
    return inbox_for(port, part.is_trigger(port), count.samples, lags, reorder_ns, held)


def never_paired(part: Part, count: NodeCount) -> TransectError | None:
    """A node with several triggers that got samples and never ran is an error, not a quiet nothing.

    Where a node before it gave nothing, that one counted why.
    """
    triggers = [name for name in part.feeds if part.is_trigger(part.node.inputs[name])]
    arrived = {name: sum(n for (port, _), n in count.samples.items() if port == name) for name in triggers}
    starved = any("." in part.feeds[name].source and not number for name, number in arrived.items())
    if len(triggers) < 2 or count.calls or count.skipped or starved or not any(arrived.values()):
        return None
    return TransectError(
        f"the node {part.id!r} never ran: its inputs never came together",
        where=part.id,
        why=", ".join(f"{name} got {number}" for name, number in arrived.items()) + " samples",
        hint="Annotated[T, Synced(seconds)] pairs samples whose times are not equal",
    )
