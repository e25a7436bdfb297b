"""In which order boxes and wires stand in their columns, so that few wires cross."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ._graph_slots import End, Link, Pieces

SWEEPS = 24
"""Enough for the crossings to settle; the best order met is kept (Gansner et al. 1993, section 3)."""

Order = list[list[int]]


def ordered(pieces: Pieces) -> Order:
    """Return the slots of each column from top to bottom."""
    order = pieces.columns()
    gaps = _gaps(pieces, len(order))
    best, fewest = order, _crossings(order, gaps, pieces)
    for sweep in range(SWEEPS):
        order = _swept(order, gaps, pieces, rightwards=sweep % 2 == 0)
        count = _crossings(order, gaps, pieces)
        if count < fewest:
            best, fewest = order, count
    return _exchanged(best, gaps, pieces)


def _gaps(pieces: Pieces, columns: int) -> list[list[Link]]:
    """Return the links that begin in each column."""
    gaps: list[list[Link]] = [[] for _ in range(columns)]
    for link in pieces.links:
        gaps[pieces.slots[link.left.slot].layer].append(link)
    return gaps


def _places(column: Sequence[int]) -> dict[int, int]:
    return {slot: i for i, slot in enumerate(column)}


def _height(end: End, places: dict[int, int], pieces: Pieces) -> float:
    """Return where an end stands in its column: the slot's place, and how far down the slot it is."""
    return places[end.slot] + end.dy / (pieces.slots[end.slot].height + 1)


Heights = NDArray[np.float64]


def _heights(links: Sequence[Link], left: Sequence[int], right: Sequence[int], pieces: Pieces) -> Heights:
    """Return the heights of links' two ends, shape (n, 2)."""
    at_left, at_right = _places(left), _places(right)
    pairs = [(_height(k.left, at_left, pieces), _height(k.right, at_right, pieces)) for k in links]
    return np.array(pairs).reshape(-1, 2)


def _crossings(order: Order, gaps: Sequence[Sequence[Link]], pieces: Pieces) -> int:
    total = 0
    for i in range(len(order) - 1):
        left, right = _heights(gaps[i], order[i], order[i + 1], pieces).T
        total += int(np.sum((left[:, None] < left) & (right[:, None] > right)))
    return total


def _swept(order: Order, gaps: Sequence[Sequence[Link]], pieces: Pieces, rightwards: bool) -> Order:
    """Return an order in which each column follows the one that was sorted before it."""
    order = list(order)
    numbers = range(1, len(order)) if rightwards else range(len(order) - 2, -1, -1)
    for i in numbers:
        links = gaps[i - 1] if rightwards else gaps[i]
        near = _places(order[i - 1] if rightwards else order[i + 1])
        reached: dict[int, list[float]] = {}
        for link in links:
            own, other = (link.right, link.left) if rightwards else (link.left, link.right)
            reached.setdefault(own.slot, []).append(_height(other, near, pieces) - 1e-3 * own.dy)
        order[i] = _sorted_by({slot: float(np.mean(h)) for slot, h in reached.items()}, order[i])
    return order


def _sorted_by(heights: dict[int, float], column: Sequence[int]) -> list[int]:
    """Return a column sorted; a slot without wires on that side keeps its place."""
    moved = iter(sorted((slot for slot in column if slot in heights), key=lambda slot: heights[slot]))
    return [next(moved) if slot in heights else slot for slot in column]


def _exchanged(order: Order, gaps: Sequence[Sequence[Link]], pieces: Pieces) -> Order:
    """Return the order after exchanging neighbours as long as that uncrosses wires."""
    order = [list(column) for column in order]
    ends = _ends_by_slot(pieces)
    for _ in range(SWEEPS):
        changed = False
        for i, column in enumerate(order):
            beside = _places(order[i - 1]) if i else {}
            beside |= _places(order[i + 1]) if i + 1 < len(order) else {}
            for at in range(len(column) - 1):
                above, below = (_sides(ends.get(column[at + k], []), beside, pieces, i) for k in (0, 1))
                if _crossed(above, below) > _crossed(below, above):
                    column[at], column[at + 1] = column[at + 1], column[at]
                    changed = True
        if not changed:
            break
    return order


def _ends_by_slot(pieces: Pieces) -> dict[int, list[End]]:
    """Return the far ends of each slot's links."""
    ends: dict[int, list[End]] = {}
    for link in pieces.links:
        ends.setdefault(link.left.slot, []).append(link.right)
        ends.setdefault(link.right.slot, []).append(link.left)
    return ends


Sides = tuple[Heights, Heights]


def _sides(ends: Sequence[End], beside: dict[int, int], pieces: Pieces, layer: int) -> Sides:
    """Return the heights of ends in the column on the left, and in that on the right."""
    left = [_height(e, beside, pieces) for e in ends if pieces.slots[e.slot].layer < layer]
    right = [_height(e, beside, pieces) for e in ends if pieces.slots[e.slot].layer > layer]
    return np.array(left), np.array(right)


def _crossed(above: Sides, below: Sides) -> int:
    """Return how many wires of two neighbours cross, the first standing above the second."""
    return sum(int(np.sum(a[:, None] > b)) for a, b in zip(above, below, strict=True))
