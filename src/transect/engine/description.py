"""What a description file says, whichever of the three forms it is written in; plain data, nothing resolved.

`reading` makes these from YAML, `checking` finds what is wrong with them, `build` makes a flow of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class PortText:
    """A port as a file declares it.

    Attributes
    ----------
    name, type, doc : str
        `type` as written: `Image`, `asn1SccFrame`, `bool`, ...
    tag : str
        Of a compound's input: which of several streams alike is wired to it (left, right, ...).
    unit, frame : str
        Where declared; "" for any.
    line : int
        Counted from 1; 0 where it was not read from a file.
    """

    name: str
    type: str
    doc: str = ""
    tag: str = ""
    unit: str = ""
    frame: str = ""
    line: int = 0


@dataclass(frozen=True)
class NodeUse:
    """A node, or a compound used as one, inside a compound.

    Attributes
    ----------
    id : str
        Its name in wires and `--set`.
    node : str
        Name of the interface, or of a compound.
    implementation : str
        "" for the only one.
    params : mapping
    every : float or None
        Seconds between firings; None runs it on its inputs.
    trigger : str
        The one input that makes it run (`activation: input_triggered`); "" for what its signature says.
    """

    id: str
    node: str
    implementation: str = ""
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    every: float | None = None
    trigger: str = ""
    line: int = 0


@dataclass(frozen=True)
class Wire:
    """From `id.port`, or an input of the compound, to `id.port`, or an output of the compound.

    Attributes
    ----------
    source, target : str
    delayed : bool
        Written `~>`: delivers in the next wave.
    """

    source: str
    target: str
    delayed: bool = False
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source} {'~>' if self.delayed else '->'} {self.target}"


@dataclass(frozen=True)
class ImplementationText:
    """One way to do what the compound promises.

    Attributes
    ----------
    nodes : dict of str to NodeUse
        By id.
    wires : tuple of Wire
    controller : str
        `module:Class`, or `file.py:Class` beside the description; "" for pure dataflow.
    complete : bool
        False where a file only names it, as Code Sample 2 does: it cannot run.
    """

    name: str
    nodes: Mapping[str, NodeUse] = field(default_factory=dict[str, NodeUse])
    wires: tuple[Wire, ...] = ()
    controller: str = ""
    complete: bool = True
    line: int = 0

    def mentions(self, name: str) -> bool:
        """Tell whether a name is a node of it, or the target of one of its wires."""
        return name in self.nodes or any(wire.target == name for wire in self.wires)

    def vary(self, change: ImplementationText, without: Collection[str] = ()) -> ImplementationText:
        """Return this implementation with what differs in another one.

        Parameters
        ----------
        change : ImplementationText
            Its nodes take the place of those with the same id, its wires the place of those with the same
            target; the others are added. Its controller, if it has one, takes the place of this one's.
        without : collection of str
            Nodes that are left out together with their wires, and targets whose wires are left out.
        """
        nodes = {name: use for name, use in self.nodes.items() if name not in without} | dict(change.nodes)
        new = {wire.target: wire for wire in change.wires}
        kept = [
            wire
            for wire in self.wires
            if wire.target in new or not ({*_ends(wire), wire.target} & {*without})
        ]
        places = {wire.target for wire in kept}
        return replace(
            change,
            nodes=nodes,
            wires=(
                *(new.get(wire.target, wire) for wire in kept),
                *(wire for wire in change.wires if wire.target not in places or new[wire.target] != wire),
            ),
            controller=change.controller or self.controller,
        )


def _ends(wire: Wire) -> set[str]:
    """Return the ids of the nodes that a wire joins."""
    return {end.partition(".")[0] for end in (wire.source, wire.target) if "." in end}


@dataclass(frozen=True)
class Operation:
    """Something a compound does on demand, such as `getPointCloud(maxPoints)`."""

    name: str
    inputs: tuple[PortText, ...] = ()
    output_type: str = "void"
    doc: str = ""
    line: int = 0


@dataclass(frozen=True)
class NodeText:
    """An interface of nodes as a file describes it (CDFF's DFN description).

    Attributes
    ----------
    implementations : tuple of str
        Names.
    file : str
        Where it was read, "" if nowhere.
    """

    name: str
    doc: str = ""
    inputs: Mapping[str, PortText] = field(default_factory=dict[str, PortText])
    outputs: Mapping[str, PortText] = field(default_factory=dict[str, PortText])
    implementations: tuple[str, ...] = ()
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class CompoundText:
    """A compound as a file describes it (CDFF's DFPC description).

    Attributes
    ----------
    inputs, outputs : dict of str to PortText
    implementations : dict of str to ImplementationText
    operations : tuple of Operation
    file : str
        Where it was read, "" if nowhere; nodes and controllers beside it are found by that.
    """

    name: str
    doc: str = ""
    inputs: Mapping[str, PortText] = field(default_factory=dict[str, PortText])
    outputs: Mapping[str, PortText] = field(default_factory=dict[str, PortText])
    implementations: Mapping[str, ImplementationText] = field(default_factory=dict[str, ImplementationText])
    operations: tuple[Operation, ...] = ()
    file: str = ""
    line: int = 0
