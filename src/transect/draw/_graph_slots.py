"""The pieces of a graph's drawing: slots in columns for boxes and passing wires, and the wires' parts.

A wire that goes right is links from column to column, with a slot of its own in each column that it passes.
A wire that goes back leaves its pin to the right, turns up into a lane above its box, passes the columns
leftwards, and turns down from a lane above the other box to its pin; a loop needs one lane only.
Wires from the same pin share their way as far as they have one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar

from ._graph_data import Edge, Graph
from ._graph_sizes import LANE, Shape, shape_of

T = TypeVar("T")
WIRE_HEIGHT = 8.0


class Net(NamedTuple):
    """All wires from one pin; those that deliver later, and those that go back, are apart."""

    source: str
    pin: str
    dashed: bool
    back: bool


class End(NamedTuple):
    """A place on a slot, `dy` below its top."""

    slot: int
    dy: float


class Link(NamedTuple):
    """A part of a net between neighbouring columns."""

    net: Net
    left: End
    right: End


class Turn(NamedTuple):
    """A part of a net that leaves a column and comes back to it, on one side."""

    net: Net
    side: Literal["left", "right"]
    start: End
    end: End


@dataclass(frozen=True)
class Slot:
    """A place in a column: for the box of that number, or for a wire if it is None."""

    layer: int
    height: float
    box: int | None = None


@dataclass
class Pieces:
    """Everything that has to be placed.

    Attributes
    ----------
    slots : list of Slot
        Those of the boxes first, in their order.
    shapes : list of Shape
        Of the boxes, their lanes included.
    links, turns : list
    across : list of (Net, End)
        Where a net passes a column.
    arrows : list of (Net, End)
        Where a net arrives.
    """

    slots: list[Slot]
    shapes: list[Shape]
    links: list[Link] = field(default_factory=list[Link])
    turns: list[Turn] = field(default_factory=list[Turn])
    across: list[tuple[Net, End]] = field(default_factory=list[tuple[Net, End]])
    arrows: list[tuple[Net, End]] = field(default_factory=list[tuple[Net, End]])

    def columns(self) -> list[list[int]]:
        """Return the numbers of the slots of each column, those without wires last."""
        wired = {end.slot for link in self.links for end in (link.left, link.right)}
        wired |= {turn.start.slot for turn in self.turns}
        columns: list[list[int]] = [[] for _ in range(1 + max(slot.layer for slot in self.slots))]
        for number in sorted(range(len(self.slots)), key=lambda number: number not in wired):
            columns[self.slots[number].layer].append(number)
        return columns


def pieces_of(graph: Graph, layers: Sequence[int]) -> Pieces:
    """Return the slots of all boxes and the parts of all wires, not yet placed."""
    return _Cutter(graph, layers).pieces


class _Cutter:
    """Cuts wires into pieces."""

    def __init__(self, graph: Graph, layers: Sequence[int]) -> None:
        self.index = {box.id: i for i, box in enumerate(graph.boxes)}
        self.layers = layers
        self.lanes = self._lanes(graph.edges)
        counts = Counter(box for box, _ in self.lanes)
        shapes = [shape_of(box).with_lanes(counts[i]) for i, box in enumerate(graph.boxes)]
        slots = [Slot(layers[i], shape.height, i) for i, shape in enumerate(shapes)]
        self.pieces = Pieces(slots, shapes)
        self.passed: dict[tuple[Net, str, int], int] = {}
        for edge in graph.edges:
            self._cut(edge)

    def _net(self, edge: Edge) -> Net:
        back = self.layers[self.index[edge.target]] <= self.layers[self.index[edge.source]]
        return Net(edge.source, edge.source_pin, edge.dashed, back)

    def _lanes(self, edges: Sequence[Edge]) -> dict[tuple[int, Net], float]:
        """Return the heights of the lanes above boxes, by box and net."""
        lanes: dict[tuple[int, Net], float] = {}
        counts: Counter[int] = Counter()
        for edge in edges:
            net = self._net(edge)
            for box in self._laned(edge) if net.back else ():
                if (box, net) not in lanes:
                    lanes[box, net] = (counts[box] + 0.5) * LANE
                    counts[box] += 1
        return lanes

    def _laned(self, edge: Edge) -> list[int]:
        """Return the boxes above which a wire that goes back has a lane."""
        source, target = self.index[edge.source], self.index[edge.target]
        return [source] if self.layers[source] == self.layers[target] else [source, target]

    def _cut(self, edge: Edge) -> None:
        net = self._net(edge)
        source, target = self.index[edge.source], self.index[edge.target]
        start = End(source, self.pieces.shapes[source].outputs[edge.source_pin])
        end = End(target, self.pieces.shapes[target].inputs[edge.target_pin])
        if not net.back:
            self._chain(net, start, end, "")
        else:
            lanes = [End(box, self.lanes[box, net]) for box in self._laned(edge)]
            _add(self.pieces.turns, Turn(net, "right", start, lanes[0]))
            _add(self.pieces.turns, Turn(net, "left", lanes[-1], end))
            for lane in lanes:
                _add(self.pieces.across, (net, lane))
            if len(lanes) == 2:
                self._chain(net, lanes[1], lanes[0], edge.target)
        _add(self.pieces.arrows, (net, end))

    def _chain(self, net: Net, left: End, right: End, branch: str) -> None:
        """Link two ends through the columns between them; branches of a net do not share slots."""
        first, last = self.layers[left.slot], self.layers[right.slot]
        for layer in range(first + 1, last):
            key = net, branch, layer
            if key not in self.passed:
                self.passed[key] = len(self.pieces.slots)
                self.pieces.slots.append(Slot(layer, WIRE_HEIGHT))
            way = End(self.passed[key], WIRE_HEIGHT / 2)
            _add(self.pieces.across, (net, way))
            _add(self.pieces.links, Link(net, left, way))
            left = way
        _add(self.pieces.links, Link(net, left, right))


def _add(pieces: list[T], piece: T) -> None:
    """Add a piece once, however many wires of a net share it."""
    if piece not in pieces:
        pieces.append(piece)
