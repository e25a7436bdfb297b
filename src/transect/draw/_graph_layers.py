"""Which column each box of a graph stands in: wires go right, and as short a way as they can."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ._graph_data import Box, Edge, Graph

_LEFTWARDS = 1e-3
"""Weight that draws a box to the left where the lengths of its wires do not decide."""


def layers_of(graph: Graph) -> list[int]:
    """Return the column of each box, counted from 0.

    The columns minimise the sum of all wires' lengths (Gansner et al. 1993, section 2), a linear program
    whose solution is whole. Inputs stand in the first column and outputs in the last, alone.
    """
    from scipy.optimize import linprog

    index = {box.id: i for i, box in enumerate(graph.boxes)}
    forward = [(index[e.source], index[e.target]) for e in _without_cycles(graph.edges)]
    count, last = len(graph.boxes), len(graph.boxes)  # the number of the last column is one more unknown
    steps = forward + _around(graph.boxes, last)
    rows = np.zeros((len(steps), count + 1))
    for row, (before, after) in zip(rows, steps, strict=True):
        row[before], row[after] = row[before] + 1, row[after] - 1
    cost = np.full(count + 1, _LEFTWARDS)
    for source, target in forward:
        cost[source] -= 1
        cost[target] += 1
    bounds = [(0, 0) if box.kind == "input" else (0, None) for box in graph.boxes]
    gaps = np.array([_gap(graph.boxes, step, last) for step in steps])
    solved = linprog(cost, rows if steps else None, -gaps if steps else None, bounds=[*bounds, (0, None)])
    return _compacted([round(x) for x in solved.x[:count]])


def _around(boxes: Sequence[Box], last: int) -> list[tuple[int, int]]:
    """Return what keeps inputs before all nodes, and outputs behind them in one column."""
    nodes = [i for i, box in enumerate(boxes) if box.kind == "node"]
    outputs = [i for i, box in enumerate(boxes) if box.kind == "output"]
    first = next((i for i, box in enumerate(boxes) if box.kind == "input"), None)
    steps = [(first, i) for i in (*nodes, *outputs)] if first is not None else []
    steps += [(i, last) for i in nodes]
    return steps + [pair for i in outputs for pair in ((i, last), (last, i))]


def _gap(boxes: Sequence[Box], step: tuple[int, int], last: int) -> int:
    """Return how many columns must lie between: none for the last column itself."""
    before, after = step
    if after == last:
        return 1 if boxes[before].kind == "node" and any(box.kind == "output" for box in boxes) else 0
    return 0 if before == last else 1


def _without_cycles(edges: Iterable[Edge]) -> list[Edge]:
    """Return the edges that need not go back: those that deliver at once are asked first."""
    after: dict[str, set[str]] = {}
    kept: list[Edge] = []
    for edge in sorted(edges, key=lambda e: e.dashed):
        if edge.source not in _reached(edge.target, after):
            after.setdefault(edge.source, set()).add(edge.target)
            kept.append(edge)
    return kept


def _reached(start: str, after: dict[str, set[str]]) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        new = after.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def _compacted(layers: Sequence[int]) -> list[int]:
    """Return the layers without empty ones."""
    numbers = {layer: i for i, layer in enumerate(sorted(set(layers)))}
    return [numbers[layer] for layer in layers]
