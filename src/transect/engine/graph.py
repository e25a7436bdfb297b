"""A graph of nodes: its structure, which is fixed before the first sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter

from transect.errors import TransectError

from .inboxes import NS, Inbox, inbox_for
from .nodes import Node
from .ports import AtPolicy, Port, Synced
from .statistics import NodeCount


@dataclass(frozen=True)
class Feed:
    """Where an input gets its samples."""

    source: str  # an input of the graph, or `id.port` of a node's output
    delayed: bool = False  # delivers in the next wave
    held: bool = False  # delivers with the next sample of the source, see `hold_delayed`

    @property
    def orders(self) -> bool:
        """Whether the node that it feeds runs after its source, in the same wave."""
        return self.held or not self.delayed


@dataclass(frozen=True)
class PlacedNode:
    """A node in a graph, with its inputs and activation."""

    id: str
    node: Node
    # By input port; those left out take their default
    feeds: Mapping[str, Feed] = field(default_factory=dict[str, Feed])
    every_ns: int | None = None  # its period, if it runs by the clock and not on its inputs
    trigger: str = ""  # the one input that makes it run, "" for what its signature says

    def is_trigger(self, port: Port) -> bool:
        """Return whether a sample on an input triggers the node."""
        if self.every_ns is not None:
            return False
        return port.name == self.trigger if self.trigger else port.policy.triggers

    def channels(self) -> Iterator[tuple[str, Port]]:
        """Return its outputs by the names that feeds know them by."""
        return ((f"{self.id}.{name}", port) for name, port in self.node.outputs.items())


@dataclass(frozen=True)
class Graph:
    """Nodes wired together, checked, flat (compounds inside it are dissolved) and in topological order."""

    name: str
    inputs: Mapping[str, Port]  # wired to streams
    parts: Mapping[str, PlacedNode]  # by id, none before what feeds it; equal ranks by id
    # By name, the input or `id.port` that it shows
    outputs: Mapping[str, str] = field(default_factory=dict[str, str])
    # Which of several similar streams an input needs
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    many: frozenset[str] = frozenset()  # inputs that take all streams of their type that no other input takes
    # By input: the word that it has in common with inputs that stand for it
    choices: Mapping[str, str] = field(default_factory=dict[str, str])

    def consumers(self) -> dict[str, list[str]]:
        """Return, by channel, the ids of the nodes that it feeds in the same wave."""
        found: dict[str, list[str]] = {}
        for part in self.parts.values():
            for feed in part.feeds.values():
                if feed.orders:
                    found.setdefault(feed.source, []).append(part.id)
        return found

    def used_inputs(self) -> set[str]:
        """Return the inputs that feed something: those of other implementations do not."""
        fed = {feed.source for part in self.parts.values() for feed in part.feeds.values()}
        return {name for name in self.inputs if name in fed | set(self.outputs.values())}

    def inputs_behind(self) -> dict[str, tuple[str, ...]]:
        """Return, by channel, the inputs of the graph that its samples depend on, through any nodes."""
        behind: dict[str, tuple[str, ...]] = {name: (name,) for name in self.inputs}
        for part in self.parts.values():
            fed = [feed.source for feed in part.feeds.values() if feed.orders]
            found = tuple(dict.fromkeys(name for source in fed for name in behind.get(source, ())))
            behind.update({channel: found for channel, _ in part.channels()})
        return behind

    def needed_inputs(self) -> set[str]:
        """Return the inputs without which some node could never run."""
        return {
            feed.source
            for part in self.parts.values()
            for name, feed in part.feeds.items()
            if feed.source in self.inputs and part.node.inputs[name].needed
        }


def in_order(parts: Mapping[str, PlacedNode]) -> dict[str, PlacedNode]:
    """Return parts in topological order, equal ranks by id; raises `graphlib.CycleError`."""
    sorter = TopologicalSorter[str]()
    for name in sorted(parts):
        before = [f.source.rpartition(".")[0] for f in parts[name].feeds.values() if f.orders]
        sorter.add(name, *(other for other in before if other in parts))
    sorter.prepare()
    ordered: dict[str, PlacedNode] = {}
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        ordered.update({name: parts[name] for name in ready})
        sorter.done(*ready)
    return ordered


def hold_delayed(parts: Mapping[str, PlacedNode]) -> dict[str, PlacedNode]:
    """Return parts whose delayed wires hold a sample back where it would meet itself.

    With ``x -> a`` and ``x ~> b``, where a and b are ports of one node or lead to one, a wave of another
    stream would bring b the sample that a has. The delayed wire then delivers a sample with the next of x.
    Wires that close a loop deliver in the next wave: the node that gives x needs it there.
    """
    after: dict[str, set[str]] = {name: set() for name in parts}
    fed: dict[str, set[str]] = {}
    for part in parts.values():
        for feed in part.feeds.values():
            owner = feed.source.rpartition(".")[0]
            if owner in after:
                after[owner].add(part.id)
            if not feed.delayed:
                fed.setdefault(feed.source, set()).add(part.id)
    direct = {name: {t for c, _ in part.channels() for t in fed.get(c, ())} for name, part in parts.items()}

    def is_held(target: str, feed: Feed) -> bool:
        owner = feed.source.rpartition(".")[0]
        if not feed.delayed or owner in _reach({target}, after):
            return False
        return bool(_reach(fed.get(feed.source, set()), direct) & _reach({target}, direct))

    return {
        name: replace(
            part, feeds={p: replace(feed, held=is_held(name, feed)) for p, feed in part.feeds.items()}
        )
        for name, part in parts.items()
    }


def _reach(starts: Iterable[str], after: Mapping[str, set[str]]) -> set[str]:
    """Return nodes and all that follow them."""
    found, waiting = set[str](), list(starts)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += after[name]
    return found


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


def own_wait(part: PlacedNode, late: Mapping[str, int], reorder_ns: int) -> int:
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


def inboxes_of(
    part: PlacedNode, count: NodeCount, late: Mapping[str, int], reorder_ns: int
) -> list[Inbox | None]:
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


def _inbox(port: Port, part: PlacedNode, count: NodeCount, lags: tuple[int, int], reorder_ns: int) -> Inbox:
    held = part.feeds[port.name].held
    return inbox_for(port, part.is_trigger(port), count.samples, lags, reorder_ns, held)


def never_paired(part: PlacedNode, count: NodeCount) -> TransectError | None:
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
