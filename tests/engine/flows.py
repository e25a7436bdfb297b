"""Small flows for tests: nodes that note what they were given, and samples given by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from transect.engine import Node
from transect.engine.compounds import compound
from transect.engine.flow import Flow
from transect.engine.inboxes import NS


def ns(seconds: float) -> int:
    """Seconds as nanoseconds."""
    return round(seconds * NS)


def flow_of(
    nodes: Mapping[str, Any],
    wires: Sequence[str],
    *,
    every: Mapping[str, float] | None = None,
    **options: Any,
) -> Flow:
    """Return a flow of nodes and wires."""
    return Flow(compound("test", nodes, wires, every=every).graph(), **options)


def play(flow: Flow, samples: Iterable[tuple[float, str, Any]], end: bool = True) -> Flow:
    """Give samples (seconds, input, value) to a flow, those of equal time as one wave."""
    ordered = sorted(samples, key=lambda s: (s[0], s[1]))
    for t, same in groupby(ordered, key=lambda s: s[0]):
        flow.wave(ns(t), [(flow.channels.index[name], value) for _, name, value in same])
    if end:
        flow.end()
    return flow


def emitted(flow: Flow, channel: str) -> list[tuple[float, Any]]:
    """Return a list that fills with (seconds, value) of what a port emits."""
    seen: list[tuple[float, Any]] = []
    flow.tap(channel, lambda t_ns, value: seen.append((t_ns / NS, value)))
    return seen


class Double(Node):
    """Twice its input."""

    def process(self, x: float) -> float:
        return 2 * x


class Add(Node):
    """The sum of two inputs that both trigger."""

    def process(self, p: float, q: float) -> float:
        return p + q


class Pair(Node):
    """Two inputs that both trigger, side by side."""

    def process(self, p: float, q: float) -> tuple:
        return (p, q)
