"""The picture of a compound: its description as boxes and wires for `transect.draw.graph`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from transect.base.yaml_parts import DescriptionProblem
from transect.draw.graph import GraphBox, GraphDrawing, GraphEdge, GraphPin
from transect.errors import TransectError, UsageError, did_you_mean

from .catalogue import Catalogue, catalogue_for
from .description import CompoundText, ImplementationText, NodeUse, PortText, Wire
from .reading import DescriptionError, examine, text_of

Stats = Mapping[str, tuple[float, str]]
"""By node id: its fraction of the time, 0 to 1, and a label such as ``12 ms, 61 %``."""


@dataclass
class _Ports:
    """The ports of a node by name, with what is known of them; None where the node itself is not known."""

    inputs: dict[str, str] | None = None
    outputs: dict[str, str] | None = None
    doc: str = ""
    is_compound: bool = False
    trouble: str = ""
    wired: dict[str, dict[str, None]] = field(default_factory=lambda: {"inputs": {}, "outputs": {}})


def picture_of(
    text: CompoundText,
    implementation: str = "",
    stats: Stats | None = None,
    catalogue: Catalogue | None = None,
    problems: Iterable[DescriptionProblem] = (),
) -> GraphDrawing:
    """Return the picture of one implementation of a compound.

    Parameters
    ----------
    text : CompoundText
    implementation : str
        "" for the first that is complete, or what Code Sample 2 says for all of them.
    stats : mapping, optional
        Colours the nodes by time.
    catalogue : Catalogue, optional
        Where ports of nodes are found, by default what belongs to the description's file, whose Python is
        read and not executed; a node that is not found has the ports that wires name.
    problems : iterable of Problem
        Found in the description; mentioned below the picture.

    Returns
    -------
    Graph
        What wires name and nothing declares is there too, marked as missing.
    """
    chosen = _choose(text, implementation)
    ports = _ports_by_node(chosen, catalogue or catalogue_for(text.file or None, execute=False))
    edges = tuple(dict.fromkeys(map(_make_edge, chosen.wires)))
    inputs = _port_boxes("input", text.inputs, [wire.source for wire in chosen.wires])
    outputs = _port_boxes("output", text.outputs, [wire.target for wire in chosen.wires])
    boxes = [*inputs, *_node_boxes(chosen, ports, stats or {}), *outputs]
    title = f"{text.name} / {chosen.name}" if chosen.name and chosen.name != text.name else text.name
    caption = tuple(_write_caption(text, chosen, boxes, list(problems)))
    return GraphDrawing(title, tuple(boxes), edges, " ".join(text.doc.split()), caption)


def read_picture(path: Path | str, implementation: str = "", also: Iterable[Path] = ()) -> GraphDrawing:
    """Return the picture of a compound's file; one with problems is drawn as far as it can be read.

    Parameters
    ----------
    path : path
    implementation : str
        As in `picture_of`.
    also : iterable of Path
        Descriptions and Python files in which nodes are found, in addition to those beside the file.
    """
    text, problems = examine(text_of(path), str(path))
    if text is None:
        raise DescriptionError(str(path), problems)
    if not isinstance(text, CompoundText):
        raise UsageError(
            f"{path} describes a node, not a compound", hint="transect graph draw needs nodes and wires"
        )
    return picture_of(
        text, implementation, catalogue=catalogue_for(path, also, execute=False), problems=problems
    )


def _choose(text: CompoundText, name: str) -> ImplementationText:
    known = text.implementations
    if name and name not in known:
        hint = did_you_mean(name, filter(None, known))
        raise UsageError(f"{text.name} has no implementation {name!r}", where=text.file, hint=hint)
    if name and (known[name].complete or "" not in known):
        return known[name]
    shared = known.get("", ImplementationText(""))
    return next((one for one in known.values() if one.complete), shared) if not name else shared


def _ports_by_node(chosen: ImplementationText, catalogue: Catalogue) -> dict[str, _Ports]:
    """Return the ports of all nodes, those among them that only wires name."""
    found = {use.id: _find_ports(use, catalogue) for use in chosen.nodes.values()}
    for wire in chosen.wires:
        for end, side in ((wire.source, "outputs"), (wire.target, "inputs")):
            node, _, port = end.rpartition(".")
            if node:
                found.setdefault(node, _Ports(trouble="not declared")).wired[side][port] = None
    return found


def _find_ports(use: NodeUse, catalogue: Catalogue) -> _Ports:
    """Return what the catalogue knows of a node; what is wrong with its file is said on its box."""
    try:
        kind = catalogue.implementation(use.node, use.implementation) or catalogue.node(use.node)
        if kind is not None:
            inputs = {name: str(port) for name, port in kind.inputs.items()}
            outputs = {name: str(port) for name, port in kind.outputs.items()}
            return _Ports(inputs, outputs, kind.__doc__ or "")
        described = catalogue.text(use.node) or catalogue.compound(use.node)
    except TransectError as error:
        return _Ports(trouble=str(error))
    if described is None:
        return _Ports()
    inputs, outputs = (
        {n: _describe_port(p) for n, p in ports.items()} for ports in (described.inputs, described.outputs)
    )
    return _Ports(inputs, outputs, described.doc, isinstance(described, CompoundText))


def _describe_port(port: PortText) -> str:
    """Return what a file says of a port, for a tooltip."""
    extras = [f"{key} {value}" for key in ("tag", "unit", "frame") if (value := getattr(port, key))]
    lines = (": ".join(part for part in (port.name, port.type) if part), *extras, " ".join(port.doc.split()))
    return "\n".join(line for line in lines if line)


def _pins(ports: _Ports, side: Literal["inputs", "outputs"]) -> tuple[GraphPin, ...]:
    known, wired = getattr(ports, side), ports.wired[side]
    if known is None:
        return tuple(GraphPin(name) for name in wired)
    pins = [GraphPin(name, note, "used" if name in wired else "unused") for name, note in known.items()]
    return (
        *pins,
        *(GraphPin(name, "there is no such port", "unknown") for name in wired if name not in known),
    )


def _node_boxes(chosen: ImplementationText, ports: Mapping[str, _Ports], stats: Stats) -> Iterable[GraphBox]:
    for id_, of in ports.items():
        use = chosen.nodes.get(id_, NodeUse(id_, id_))
        heat, label = stats.get(id_, (None, ""))
        yield GraphBox(
            f"node {id_}",
            id_,
            "\n".join(_write_subtitle(use)),
            _pins(of, "inputs"),
            _pins(of, "outputs"),
            note="\n".join(_write_note(use, of)),
            heat=heat,
            heat_label=label,
            double=of.is_compound,
            missing=id_ not in chosen.nodes or bool(of.trouble),
        )


def _write_subtitle(use: NodeUse) -> Iterable[str]:
    yield from (name for name in (use.node, use.implementation) if name and name != use.id)
    if use.every is not None:
        yield f"every {use.every:g} s"


def _write_note(use: NodeUse, of: _Ports) -> Iterable[str]:
    yield from filter(None, (of.trouble, " ".join(of.doc.split())))
    yield from (f"{name} = {value}" for name, value in use.params.items())
    if use.trigger:
        yield f"runs on {use.trigger}"


def _write_caption(
    text: CompoundText,
    chosen: ImplementationText,
    boxes: Iterable[GraphBox],
    problems: list[DescriptionProblem],
) -> Iterable[str]:
    named = [one.name for one in text.implementations.values() if one.name]
    if not chosen.complete and named:
        yield f"What {text.name} declares for all its implementations: {', '.join(named)}."
    elif len(named) > 1:
        yield f"Other implementations: {', '.join(name for name in named if name != chosen.name)}."
    if not chosen.wires:
        yield "It declares no connections."
    if chosen.controller:
        yield f"Controlled by {chosen.controller}."
    if text.operations:
        yield f"Operations: {', '.join(operation.name for operation in text.operations)}."
    if any(box.missing or any(pin.use == "unknown" for pin in (*box.inputs, *box.outputs)) for box in boxes):
        yield "Red: not there, or its file cannot be read."
    if problems:
        yield f"{len(problems)} of the file's parts could not be read: transect graph check says which."


def _port_boxes(
    kind: Literal["input", "output"], declared: Mapping[str, PortText], ends: Iterable[str]
) -> Iterable[GraphBox]:
    """Yield the declared inputs or outputs of the compound, then those that only wires name."""
    for name in dict.fromkeys((*declared, *(end for end in ends if "." not in end))):
        port = declared.get(name)
        note = _describe_port(port) if port else "not declared"
        pins = (GraphPin(name, note),)
        inputs, outputs = (pins, ()) if kind == "output" else ((), pins)
        type_ = port.type if port else ""
        yield GraphBox(f"{kind} {name}", name, type_, inputs, outputs, kind, note=note, missing=port is None)


def _make_edge(wire: Wire) -> GraphEdge:
    return GraphEdge(*_split_end(wire.source, "input"), *_split_end(wire.target, "output"), wire.delayed)


def _split_end(end: str, own: str) -> tuple[str, str]:
    """Return the box and the pin of a wire's end."""
    node, _, port = end.rpartition(".")
    return (f"node {node}" if node else f"{own} {port}"), port
