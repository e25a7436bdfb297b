"""What a drawing of a graph is made of: boxes with named pins, and wires between pins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from transect.errors import UsageError

Kind = Literal["node", "input", "output"]
Use = Literal["used", "unused", "unknown"]


@dataclass(frozen=True)
class Pin:
    """A named place on a box where wires end.

    Attributes
    ----------
    name : str
    note : str
        Shown when the mouse rests on it: type, meaning.
    use : str
        `unused` ones are grey; `unknown` ones, which the box does not really have, red.
    """

    name: str
    note: str = ""
    use: Use = "used"


@dataclass(frozen=True)
class Box:
    """A node of the graph, or one of its inputs or outputs.

    Attributes
    ----------
    id : str
        Named by edges; unique.
    title : str
    subtitle : str
        Smaller, below the title; may have several lines.
    inputs, outputs : tuple of Pin
        On the left and on the right, top to bottom.
    kind : str
        `input` boxes stand in the first column, `output` boxes in the last.
    note : str
        Shown when the mouse rests on it.
    heat : float or None
        0 to 1: the colour of the box.
    heat_label : str
        Such as ``12 ms, 61 %``; its last line.
    double : bool
        With a double border: a graph of its own.
    missing : bool
        Red and dashed: named by a wire, or by another box, but not there.
    """

    id: str
    title: str
    subtitle: str = ""
    inputs: tuple[Pin, ...] = ()
    outputs: tuple[Pin, ...] = ()
    kind: Kind = "node"
    note: str = ""
    heat: float | None = None
    heat_label: str = ""
    double: bool = False
    missing: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """Return what is written below the title."""
        return tuple(line for line in (*self.subtitle.split("\n"), self.heat_label) if line)


@dataclass(frozen=True)
class Edge:
    """A wire from an output pin of a box to an input pin of a box, perhaps the same.

    Attributes
    ----------
    dashed : bool
        It delivers later; the only kind that may close a loop.
    """

    source: str
    source_pin: str
    target: str
    target_pin: str
    dashed: bool = False


@dataclass(frozen=True)
class Graph:
    """Boxes and wires, with what is written above and below them.

    Attributes
    ----------
    caption : tuple of str
        Lines below the drawing.
    legend : str
        What the heat of the boxes means.
    """

    title: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...] = ()
    subtitle: str = ""
    caption: tuple[str, ...] = ()
    legend: str = "share of the time"

    def __post_init__(self) -> None:
        if len({box.id for box in self.boxes}) < len(self.boxes):
            raise UsageError(f"two boxes of {self.title!r} have the same id")
        sources = {(box.id, pin.name) for box in self.boxes for pin in box.outputs}
        targets = {(box.id, pin.name) for box in self.boxes for pin in box.inputs}
        for edge in self.edges:
            _refuse_unknown((edge.source, edge.source_pin), sources, "output")
            _refuse_unknown((edge.target, edge.target_pin), targets, "input")


def _refuse_unknown(end: tuple[str, str], known: Iterable[tuple[str, str]], side: str) -> None:
    if end not in known:
        raise UsageError(f"a wire ends at {'.'.join(end)}, and there is no such {side}")
