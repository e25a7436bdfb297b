"""Content of a description file in any of the three forms: plain data, nothing resolved.

`reading` makes these from YAML, `description_checks` finds what is wrong with them, `compound` makes a flow
of them; compounds are written back as YAML in our form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class PortText:
    """A port as a file declares it."""

    # `type` as written: `Image`, `asn1SccFrame`, `bool`,
    name: str
    type: str
    doc: str = ""
    tag: str = ""  # of a compound's input: which of several streams alike is wired to it (left, right, ...)
    # Where declared; "" for any
    unit: str = ""
    frame: str = ""
    many: bool = False  # of a compound's input: it takes all streams of its type that no other input takes
    # Of a compound's input: those with the same word stand for each other; the first that can be wired
    # is
    one_of: str = ""
    line: int = 0  # counted from 1; 0 where it was not read from a file


@dataclass(frozen=True)
class NodeUse:
    """A node, or a compound used as one, inside a compound."""

    id: str  # its name in wires and `--set`
    node: str  # name of the interface, or of a compound
    implementation: str = ""  # "" for the only one
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    every: float | None = None  # seconds between firings; None runs it on its inputs
    # The one input that makes it run (`activation: input_triggered`); "" for what its signature says
    trigger: str = ""
    line: int = 0


@dataclass(frozen=True)
class Wire:
    """From `id.port`, or an input of the compound, to `id.port`, or an output of the compound."""

    source: str
    target: str
    delayed: bool = False  # written `~>`: delivers in the next wave
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source} {'~>' if self.delayed else '->'} {self.target}"


@dataclass(frozen=True)
class ImplementationText:
    """One way to do what the compound promises."""

    name: str
    nodes: Mapping[str, NodeUse] = field(default_factory=dict[str, NodeUse])  # by id
    wires: tuple[Wire, ...] = ()
    controller: str = ""  # `module:Class`, or `file.py:Class` beside the description; "" for pure dataflow
    complete: bool = True  # false where a file only names it, as Code Sample 2 does: it cannot run
    line: int = 0

    def mentions(self, name: str) -> bool:
        """Return whether a name is a node of it, or the target of one of its wires."""
        return name in self.nodes or any(wire.target == name for wire in self.wires)

    def vary(self, change: ImplementationText, without: Collection[str] = ()) -> ImplementationText:
        """Return this implementation with the changes of another one.

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
        unchanged = [
            wire
            for wire in self.wires
            if wire.target in new or not ({*_ends(wire), wire.target} & {*without})
        ]
        targets = {wire.target for wire in unchanged}
        return replace(
            change,
            nodes=nodes,
            wires=(
                *(new.get(wire.target, wire) for wire in unchanged),
                *(wire for wire in change.wires if wire.target not in targets or new[wire.target] != wire),
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
    """An interface of nodes as a file describes it (CDFF's DFN description)."""

    name: str
    doc: str = ""
    inputs: Mapping[str, PortText] = field(default_factory=dict[str, PortText])
    outputs: Mapping[str, PortText] = field(default_factory=dict[str, PortText])
    implementations: tuple[str, ...] = ()  # names
    file: str = ""  # where it was read, "" if nowhere
    line: int = 0


@dataclass(frozen=True)
class CompoundText:
    """A compound as a file describes it (CDFF's DFPC description)."""

    name: str
    doc: str = ""
    inputs: Mapping[str, PortText] = field(default_factory=dict[str, PortText])
    outputs: Mapping[str, PortText] = field(default_factory=dict[str, PortText])
    implementations: Mapping[str, ImplementationText] = field(default_factory=dict[str, ImplementationText])
    operations: tuple[Operation, ...] = ()
    file: str = ""  # where it was read, "" if nowhere; nodes and controllers beside it are found by that
    line: int = 0


MAP = "tag:yaml.org,2002:map"


class _OneLine(dict[str, Any]):
    """A mapping that is written `{key: value}`."""


def to_yaml(compound: CompoundText) -> str:
    """Return a compound as YAML in our form; reading it again gives the same but for its lines and file.

    From any form: only the part of Code Sample 2 that applies to all implementations at once (the one named
    "") stays as it is there, since no other form can say it. Comments are lost.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    Dumper.add_representer(_OneLine, lambda d, data: d.represent_mapping(MAP, data, flow_style=True))
    document = _document(compound)
    return yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)


def _document(compound: CompoundText) -> dict[str, Any]:
    shared = compound.implementations.get("")
    wires = shared.wires if shared else ()
    document = {
        "name": compound.name,
        "doc": compound.doc,
        "dfns": [_OneLine(name=name) for name in shared.nodes] if shared else [],
        "input_ports": [
            _port(port, [w.target for w in wires if w.source == port.name])
            for port in compound.inputs.values()
        ],
        "output_ports": [
            _port(port, [w.source for w in wires if w.target == port.name])
            for port in compound.outputs.values()
        ],
        "operations": [_operation(each) for each in compound.operations],
        "implementations": [_implementation(text) for name, text in compound.implementations.items() if name],
    }
    # A file with neither nodes nor implementations is a compound by its operations.
    marks = {"dfns"} if shared else set[str]() if compound.implementations else {"operations"}
    return _drop_empty(document, keep={"name", *marks})


def _drop_empty(document: Mapping[str, Any], keep: Iterable[str] = ()) -> dict[str, Any]:
    """Return a mapping without empty values."""
    return {key: value for key, value in document.items() if value or key in keep}


def _port(port: PortText, ends: Iterable[str] = ()) -> dict[str, Any]:
    """Return a port, with the other ends of the wires that Code Sample 2 writes under it."""
    connections = [_OneLine(zip(("dfn", "port"), end.split("."), strict=True)) for end in ends]
    extras: dict[str, Any] = {
        key: getattr(port, key) for key in ("doc", "tag", "unit", "frame", "many", "one_of")
    }
    written = {"name": port.name, "type": port.type, **_drop_empty({**extras, "connections": connections})}
    return written if connections else _OneLine(written)


def _operation(operation: Operation) -> dict[str, Any]:
    inputs = [_port(port) for port in operation.inputs]
    extras = {"doc": operation.doc, "inputs": inputs, "output_type": operation.output_type}
    return {"name": operation.name, **_drop_empty(extras)}


def _implementation(text: ImplementationText) -> dict[str, Any]:
    if not text.complete:
        return {"name": text.name}
    return {
        "name": text.name,
        "nodes": {name: _use(use) for name, use in text.nodes.items()},
        "wires": [str(wire) for wire in text.wires],
        **_drop_empty({"controller": text.controller}),
    }


def _use(use: NodeUse) -> dict[str, Any]:
    extras = {
        "implementation": use.implementation,
        "params": dict(use.params),
        "every": use.every,
        "trigger": use.trigger,
    }
    return _OneLine(node=use.node, **_drop_empty(extras))
