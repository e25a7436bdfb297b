"""Compounds: nodes wired together, from a YAML file or made in Python (CDFF's DFPC)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transect.errors import UsageError

from .build import Settings, graph_of, naming
from .catalogue import Catalogue, catalogue_for, compound_named
from .description import CompoundText, ImplementationText, NodeUse, PortText, Wire
from .graph import Graph
from .node import Node, NodeFunction
from .ports import Port
from .reading import WIRE
from .writing import to_yaml


@dataclass(frozen=True)
class Compound:
    """A description, where its nodes are found, and which implementation is meant.

    Attributes
    ----------
    text : CompoundText
    catalogue : Catalogue
    implementation : str
        "" for the only one, or the first.
    """

    text: CompoundText
    catalogue: Catalogue
    implementation: str = ""

    @staticmethod
    def of(meant: Compound | str | Path) -> Compound:
        """Return the compound that is meant: itself, `Name`, `Name/Implementation`, or a YAML file."""
        if isinstance(meant, Compound):
            return meant
        text, implementation = compound_named(str(meant), catalogue_for())
        return Compound(text, catalogue_for(text.file or None), implementation)

    @property
    def _described(self) -> list[str]:
        return [name for name, each in self.text.implementations.items() if each.complete]

    def candidates(self) -> list[Compound]:
        """Return the implementation that is meant alone, or all that are described where none is named."""
        named = self.implementation or not self._described
        return [self] if named else [replace(self, implementation=name) for name in self._described]

    @property
    def name(self) -> str:
        """Its name, and the implementation's where there are several."""
        described = self._described
        chosen = self.implementation or next(iter(described), "")
        return f"{self.text.name}/{chosen}" if chosen and chosen != self.text.name else self.text.name

    def graph(self, settings: Settings | None = None) -> Graph:
        """Return its nodes in their places, checked, with parameters set.

        Raises
        ------
        CompoundError
            With all problems at once.
        """
        return graph_of(self.text, self.implementation, self.catalogue, settings)

    def to_yaml(self) -> str:
        """Return its description; reading that gives the same compound."""
        return to_yaml(self.text)


def compound(
    name: str,
    nodes: Mapping[str, Node | type[Node] | NodeFunction[..., Any]],
    wires: Iterable[str],
    *,
    every: Mapping[str, float] | None = None,
    doc: str = "",
) -> Compound:
    """Describe a compound in Python: what a YAML file would say, and where its nodes are found.

    Parameters
    ----------
    nodes : mapping
        By id: a node, whose parameters are kept, a class of nodes, or a function made a node.
    wires : iterable of str
        ``"imu -> norm.imu"``, ``"icp.pose ~> icp.guess"``. A name without a point is an input of the compound
        on the left, an output on the right; both have the type of the port at the other end.
    every : mapping of str to float
        By id: the period in seconds of a node that runs by the clock.
    """
    catalogue = Catalogue()
    made = {key: _as_node(key, value) for key, value in nodes.items()}
    uses: dict[str, NodeUse] = {}
    for key, node in made.items():
        kind = type(node)
        catalogue.register(kind)
        uses[key] = NodeUse(key, kind.__name__, kind.__name__, node.values, (every or {}).get(key))
    lines = tuple(_wire(text) for text in wires)
    inputs = {w.source: _end(made, w.target, "inputs", w.source) for w in lines if "." not in w.source}
    outputs = {w.target: _end(made, w.source, "outputs", w.target) for w in lines if "." not in w.target}
    text = CompoundText(name, doc, inputs, outputs, {name: ImplementationText(name, uses, lines)})
    return Compound(text, catalogue)


def _wire(text: str) -> Wire:
    found = WIRE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"{text!r} is not a wire", hint="write 'node.port -> other.port', or '~>' to deliver later"
        )
    source, arrow, target = found.groups()
    return Wire(source, target, arrow == "~>")


def _as_node(name: str, value: Node | type[Node] | NodeFunction[..., Any]) -> Node:
    if isinstance(value, NodeFunction):
        value = value.Class
    if isinstance(value, Node):
        return value
    with naming(name, value, {}):
        return value()


def _end(nodes: Mapping[str, Node], place: str, side: str, name: str) -> PortText:
    """Return a port of the compound, of the type of the node's port that it is wired to."""
    owner, _, port = place.partition(".")
    node = nodes.get(owner)
    found: Port | None = getattr(node, side).get(port) if node is not None else None
    if found is None:
        return PortText(name, "object")
    return PortText(name, found.type.__name__, unit=found.unit, frame=found.frame)
