"""Ports and parameters of compounds and nodes, as plain data for tables and pages."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from transect.base import plugins
from transect.base.field_docs import read_field_comments
from transect.errors import TransectError, UsageError, did_you_mean

from .catalogue import SPEC, Catalogue, catalogue_for, compound_named, node_named
from .description import CompoundText, ImplementationText, NodeUse, PortText
from .nodes import Node, Parameter
from .ports import Port, outputs_class, type_name


@dataclass(frozen=True)
class PortListing:
    """One input or output."""

    name: str
    type: str
    doc: str = ""
    # How an input of a node takes its samples (`trigger`, `latest`, ...); "" for outputs and compounds
    policy: str = ""
    tag: str = ""  # of a compound's input: which of several streams alike it takes (left, right, ...)
    # "" for any
    unit: str = ""
    frame: str = ""
    shape: str = ""
    optional: bool = False  # whether an input of a node has a default and need not be wired
    # Whether an input of a compound takes all streams of its type that no other input takes
    many: bool = False
    # Of a compound's input: those with the same word stand for each other, and one of them is needed
    one_of: str = ""


@dataclass(frozen=True)
class ParameterListing:
    """One parameter of a node."""

    name: str
    type: str
    default: Any  # what the node's class says
    value: Any  # what the compound sets; the default where it sets nothing
    unit: str = ""
    range: str = ""  # the values that are allowed, such as `>= 3, odd`; "" for any
    doc: str = ""


@dataclass(frozen=True)
class NodeListing:
    """One node of an implementation."""

    id: str  # as in `--set ID.PARAMETER=VALUE`; `compound.node` inside a compound that is used as a node
    # Name of the interface and of the class
    node: str
    implementation: str
    doc: str  # first line of the class's description
    parameters: tuple[ParameterListing, ...]


@dataclass(frozen=True)
class ImplementationListing:
    """One way to do what a compound or an interface promises."""

    name: str
    # Names of the ports that it uses
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[NodeListing, ...]  # all nodes of a compound; the one node itself where a node is described


@dataclass(frozen=True)
class CompoundListing:
    """A compound without its nodes."""

    name: str
    doc: str
    inputs: tuple[PortListing, ...]
    outputs: tuple[PortListing, ...]
    implementations: tuple[str, ...]


@dataclass(frozen=True)
class NodeSummary:
    """A node by name."""

    group: str  # what it is for: `image`, `stereo`, `features`,
    name: str
    doc: str  # first line of its description
    implementations: tuple[str, ...]  # those in its own file


@dataclass(frozen=True)
class Listing:
    """Ports, parameters and implementations of a compound or a node."""

    kind: str  # `compound` or `node`
    name: str
    doc: str
    file: str  # the description, or the Python file; "" where there is none
    inputs: tuple[PortListing, ...]
    outputs: tuple[PortListing, ...]
    implementations: tuple[ImplementationListing, ...]


def list_compounds() -> list[CompoundListing]:
    """Return the compounds of transect and of installed packages by name; no node is imported."""
    catalogue = catalogue_for()
    found = [catalogue.compound(name) for name in catalogue.compound_names()]
    return [
        CompoundListing(
            text.name, text.doc, _text_ports(text.inputs), _text_ports(text.outputs), tuple(_describe(text))
        )
        for text in found
        if text is not None
    ]


def list_nodes() -> list[NodeSummary]:
    """Return the nodes by group and name; they are read as text, and none is imported."""
    found = (_summarise(name, value) for name, value in plugins.strings("nodes").items())
    return sorted((each for each in found if each is not None), key=lambda each: (each.group, each.name))


def _summarise(name: str, dotted: str) -> NodeSummary | None:
    """Return the summary of a node from its module, None if it is not a class there."""
    module = dotted.partition(":")[0]
    classes = _read_classes(module)
    named = next((part for part in classes if part.name == name), None)
    if named is None:
        return None
    bases = {part.name: {base.id for base in part.bases if isinstance(base, ast.Name)} for part in classes}
    known = [each for each, above in bases.items() if name in above]
    doc = (ast.get_docstring(named) or "").partition("\n")[0]
    first, *rest = module.removeprefix("transect.").split(".")
    group = rest[0] if first == "nodes" and rest else first
    return NodeSummary(group, name, doc, tuple(known or [name]))


@cache
def _read_classes(module: str) -> list[ast.ClassDef]:
    file = plugins.file_of_module(module)
    body = ast.parse(file.read_bytes()).body if file is not None else []
    return [part for part in body if isinstance(part, ast.ClassDef)]


def describe(name: str) -> Listing:
    """Return ports and parameters of a compound or a node; foreign Python files are only read.

    Parameters
    ----------
    name : str
        `Name`, `Name/Implementation` or `file.yaml` of a compound; `Name`, `Name/Implementation`, `file.py`
        or `file.py/Name` of a node. A compound goes before a node of the same name.

    Raises
    ------
    UsageError
        If there is no such compound or node, or it has no such implementation.
    """
    catalogue = catalogue_for(execute=False)
    kind = node_named(name, catalogue)
    if kind is not None:
        return _describe_node(kind)
    match = SPEC.fullmatch(name)
    base = match["name"] if match else name
    if not Path(base).suffix and not Path(base).is_file() and catalogue.compound(base) is None:
        raise UsageError(f"there is no compound or node {base!r}", hint=did_you_mean(base, catalogue.names()))
    text, chosen = compound_named(name, catalogue)
    return _describe_compound(text, chosen, catalogue_for(text.file or None, execute=False))


def _describe_compound(text: CompoundText, chosen: str, catalogue: Catalogue) -> Listing:
    names = [chosen] if chosen else _describe(text)
    implementations = [_describe_flow(text.implementations[name], text, catalogue) for name in names]
    inputs, outputs = _text_ports(text.inputs), _text_ports(text.outputs)
    return Listing("compound", text.name, text.doc, text.file, inputs, outputs, tuple(implementations))


def _describe(text: CompoundText) -> list[str]:
    return [name for name, each in text.implementations.items() if each.complete]


def _describe_flow(
    flow: ImplementationText, text: CompoundText, catalogue: Catalogue
) -> ImplementationListing:
    sources, targets = ({getattr(wire, end) for wire in flow.wires} for end in ("source", "target"))
    return ImplementationListing(
        flow.name,
        tuple(name for name in text.inputs if name in sources or flow.controller),
        tuple(name for name in text.outputs if name in targets or flow.controller),
        tuple(_nodes_of(flow, catalogue, "")),
    )


def _nodes_of(flow: ImplementationText, catalogue: Catalogue, prefix: str) -> Iterator[NodeListing]:
    """Yield the nodes of an implementation, those of compounds in it in their place."""
    for use in flow.nodes.values():
        kind = catalogue.implementation(use.node, use.implementation)
        inner = None if kind else catalogue.compound(use.node)
        if kind is not None:
            yield _list_node(kind, prefix + use.id, use.params)
        elif inner is not None and (known := _describe(inner)):
            name = use.implementation or known[0]
            yield from _nodes_of(inner.implementations[name], catalogue, f"{prefix}{use.id}.")
        else:
            raise _not_found(use, catalogue)


def _not_found(use: NodeUse, catalogue: Catalogue) -> TransectError:
    named = f"{use.node}/{use.implementation}" if use.implementation else use.node
    hint = did_you_mean(use.node, catalogue.names())
    return UsageError(f"there is no node {named!r}", where=f"node {use.id!r}", hint=hint)


def _describe_node(kind: type[Node]) -> Listing:
    interface = kind.interface
    known = interface.implementations if kind is interface else {kind.__name__: kind}
    implementations = [
        ImplementationListing(name, tuple(each.inputs), tuple(each.outputs), (_list_node(each, ""),))
        for name, each in known.items()
    ]
    inputs, outputs = _class_ports(kind)
    file = inspect.getsourcefile(interface) or ""
    return Listing("node", interface.__name__, _doc_of(kind), file, inputs, outputs, tuple(implementations))


def _list_node(kind: type[Node], name: str, params: Mapping[str, Any] | None = None) -> NodeListing:
    values = params or {}
    parameters = [_list_parameter(each, values) for each in kind.parameters.values()]
    return NodeListing(name, kind.interface.__name__, kind.__name__, _doc_of(kind), tuple(parameters))


def _list_parameter(known: Parameter, values: Mapping[str, Any]) -> ParameterListing:
    value = values.get(known.name, known.default)
    return ParameterListing(
        known.name, known.type.__name__, known.default, value, known.unit, known.allowed, known.doc
    )


def _text_ports(ports: Mapping[str, PortText]) -> tuple[PortListing, ...]:
    return tuple(
        PortListing(
            p.name, p.type, p.doc, tag=p.tag, unit=p.unit, frame=p.frame, many=p.many, one_of=p.one_of
        )
        for p in ports.values()
    )


def _class_ports(kind: type[Node]) -> tuple[tuple[PortListing, ...], tuple[PortListing, ...]]:
    """Return the inputs and outputs of a class, with what its docstrings say of them."""
    said_inputs, said_outputs = (_read_port_docs(kind, section) for section in ("Inputs", "Outputs"))
    if (several := outputs_class(getattr(kind.interface, "process", None))) is not None:
        comments = {name: text for name, (_, text) in read_field_comments(several).items()}
        said_outputs = comments | _section(several, "Attributes")
    inputs = [_class_port(p, said_inputs, str(p.policy), not p.needed) for p in kind.inputs.values()]
    outputs = [_class_port(p, said_outputs) for p in kind.outputs.values()]
    return tuple(inputs), tuple(outputs)


def _class_port(port: Port, docs: Mapping[str, str], policy: str = "", optional: bool = False) -> PortListing:
    shape = str(port.shape) if port.shape else ""
    return PortListing(
        port.name,
        type_name(port.type),
        docs.get(port.name, ""),
        policy,
        unit=port.unit,
        frame=port.frame,
        shape=shape,
        optional=optional,
    )


def _doc_of(kind: type[Node]) -> str:
    """Return the first line of a class's own description."""
    return next(iter((inspect.getdoc(kind) or "").splitlines()), "")


def _read_port_docs(kind: type[Node], section: str) -> dict[str, str]:
    """Return what the interface, or the class itself, says of its ports."""
    return {**_section(kind.interface, section), **_section(kind, section)}


def _section(kind: type, title: str) -> dict[str, str]:
    """Return the entries of a section of a numpydoc docstring, by name; each text on one line."""
    lines = ((vars(kind).get("__doc__") and inspect.getdoc(kind)) or "").splitlines()
    found: dict[str, str] = {}
    names: list[str] = []
    for line in _lines_under(lines, title):
        if not line.startswith(" "):
            names = [part.strip() for part in line.partition(" : ")[0].split(",")]
        else:
            found.update({name: f"{found.get(name, '')} {line.strip()}".strip() for name in names})
    return found


def _lines_under(lines: list[str], title: str) -> Iterable[str]:
    """Yield the lines of a section, up to the next one."""
    underlined = [k for k, line in enumerate(lines) if line and set(line) == {"-"}]
    start = next((k + 1 for k in underlined if lines[k - 1] == title), len(lines))
    end = next((k - 1 for k in underlined if k > start), len(lines))
    return filter(str.strip, lines[start:end])
