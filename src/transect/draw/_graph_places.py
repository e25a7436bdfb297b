"""Where boxes and wires stand: columns side by side, and in them heights that keep wires straight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ._graph_data import Graph
from ._graph_layers import layers_of
from ._graph_order import Order, ordered
from ._graph_slots import End, Link, Pieces, Turn, pieces_of

BETWEEN_BOXES, BETWEEN_WIRES = 26.0, 6.0
NARROWEST, WIDEST = 56.0, 190.0
"""Of the space between columns."""
TURN, TURN_STEP = 16.0, 7.0
"""How far a wire that goes back leaves its column; each further one a step more."""
_BALANCE, _COMPACT = 0.05, 0.02

Term = tuple[dict[int, float], float]
"""A sum of unknowns with their factors, and a number."""


@dataclass(frozen=True)
class Layout:
    """Where everything stands, in SVG pixels, x to the right and y down.

    Attributes
    ----------
    tops : list of float
        Of the slots.
    lefts, rights : list of float
        Of the columns.
    reach : dict of Turn to float
        How far a turn leaves its column.
    width, height : float
    """

    pieces: Pieces
    tops: list[float]
    lefts: list[float]
    rights: list[float]
    reach: dict[Turn, float]
    width: float
    height: float

    def y(self, end: End) -> float:
        """Return the height of a place on a slot."""
        return self.tops[end.slot] + end.dy

    def left(self, slot: int) -> float:
        """Return the left side of the column of a slot."""
        return self.lefts[self.pieces.slots[slot].layer]

    def right(self, slot: int) -> float:
        """Return the right side of the column of a slot."""
        return self.rights[self.pieces.slots[slot].layer]


def layout_of(graph: Graph) -> Layout:
    """Return the places of all boxes and wires of a graph with at least one box."""
    pieces = pieces_of(graph, layers_of(graph))
    order = ordered(pieces)
    tops = _tops(pieces, order)
    reach = _reach(pieces, tops)
    lefts, rights = _columns(pieces, order, tops, reach)
    last = _room(pieces, reach, len(order) - 1, "right")
    height = max(top + slot.height for top, slot in zip(tops, pieces.slots, strict=True))
    return Layout(pieces, tops, lefts, rights, reach, rights[-1] + last, height)


def _layer(pieces: Pieces, turn: Turn) -> int:
    return pieces.slots[turn.start.slot].layer


def _tops(pieces: Pieces, order: Order) -> list[float]:
    """Return the heights of all slots that keep wires straight, by a linear program.

    Wires that pass columns weigh most, so they are straight first (Gansner et al. 1993, section 4); where
    that leaves a choice a box stands in the middle of what it is wired to.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    count = len(pieces.slots)
    absolute = list(_wishes(pieces))
    unknowns = count + len(absolute) + 1  # tops, the size of each wish's failure, and the whole height
    bounds = list(_order_bounds(pieces, order, unknowns - 1))
    for i, (_, (terms, number)) in enumerate(absolute):
        bounds += [({**{k: s * v for k, v in terms.items()}, count + i: -1.0}, s * number) for s in (1, -1)]
    rows, columns, values = zip(
        *((r, k, v) for r, (terms, _) in enumerate(bounds) for k, v in terms.items()), strict=True
    )
    matrix = coo_array((values, (rows, columns)), shape=(len(bounds), unknowns)).tocsr()
    cost = np.concatenate([np.full(count, 1e-5), [weight for weight, _ in absolute], [_COMPACT]])
    solved = linprog(cost, matrix, [-number for _, number in bounds], method="highs-ds")
    return [round(2 * float(y)) / 2 for y in solved.x[:count]]


def _order_bounds(pieces: Pieces, order: Order, whole: int) -> Iterator[Term]:
    """Return sums that may not be more than nothing: slots follow each other, and end above the whole."""
    for column in order:
        for above, below in pairwise(column):
            wires = pieces.slots[above].box is None and pieces.slots[below].box is None
            space = BETWEEN_WIRES if wires else BETWEEN_BOXES
            yield {above: 1.0, below: -1.0}, pieces.slots[above].height + space
        yield {column[-1]: 1.0, whole: -1.0}, pieces.slots[column[-1]].height


def _wishes(pieces: Pieces) -> Iterator[tuple[float, Term]]:
    """Return sums that should be nothing, each with its weight."""
    by_slot: dict[int, list[tuple[End, End]]] = {}
    for link in pieces.links:
        yield _weight(pieces, link), _difference([(link.left, link.right)])
        by_slot.setdefault(link.left.slot, []).append((link.left, link.right))
        by_slot.setdefault(link.right.slot, []).append((link.right, link.left))
    for slot, pairs in by_slot.items():
        if pieces.slots[slot].box is not None and len(pairs) > 1:
            yield _BALANCE, _difference(pairs)


def _weight(pieces: Pieces, link: Link) -> float:
    passing = sum(pieces.slots[end.slot].box is None for end in (link.left, link.right))
    return (1.0, 2.0, 8.0)[passing]


def _difference(pairs: Sequence[tuple[End, End]]) -> Term:
    """Return how much lower, in the mean, the first ends stand than the second ones."""
    terms: dict[int, float] = {}
    for here, there in pairs:
        terms[here.slot] = terms.get(here.slot, 0.0) + 1 / len(pairs)
        terms[there.slot] = terms.get(there.slot, 0.0) - 1 / len(pairs)
    return terms, sum(here.dy - there.dy for here, there in pairs) / len(pairs)


def _reach(pieces: Pieces, tops: Sequence[float]) -> dict[Turn, float]:
    """Return how far each turn leaves its column: the shorter inside the longer, each net on its own."""
    reach: dict[Turn, float] = {}
    taken: dict[tuple[int, str], list[object]] = {}

    def span(turn: Turn) -> float:
        return abs(tops[turn.start.slot] + turn.start.dy - tops[turn.end.slot] - turn.end.dy)

    for turn in sorted(pieces.turns, key=span):
        nets = taken.setdefault((_layer(pieces, turn), turn.side), [])
        if turn.net not in nets:
            nets.append(turn.net)
        reach[turn] = TURN + TURN_STEP * nets.index(turn.net)
    return reach


def _columns(
    pieces: Pieces, order: Order, tops: Sequence[float], reach: dict[Turn, float]
) -> tuple[list[float], list[float]]:
    """Return the sides of all columns; the steeper the wires between two, the farther these are apart."""
    lefts: list[float] = []
    rights: list[float] = []
    steep = [0.0] * len(order)
    for link in pieces.links:
        layer = pieces.slots[link.left.slot].layer
        rise = abs(tops[link.left.slot] + link.left.dy - tops[link.right.slot] - link.right.dy)
        steep[layer] = max(steep[layer], rise)
    x = _room(pieces, reach, 0, "left")
    for i, column in enumerate(order):
        lefts.append(x)
        boxes = [pieces.slots[slot].box for slot in column]
        rights.append(x + max((pieces.shapes[b].width for b in boxes if b is not None), default=0.0))
        turns = _room(pieces, reach, i, "right") + _room(pieces, reach, i + 1, "left")
        x = rights[-1] + min(WIDEST, max(NARROWEST, 36 + 0.3 * steep[i])) + turns
    return lefts, rights


def _room(pieces: Pieces, reach: dict[Turn, float], layer: int, side: str) -> float:
    """Return how much room the turns on one side of a column need."""
    here = (far for turn, far in reach.items() if turn.side == side and _layer(pieces, turn) == layer)
    return max(here, default=0.0)
