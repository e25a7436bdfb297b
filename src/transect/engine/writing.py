"""Compounds written back as YAML, in our form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .description import CompoundText, ImplementationText, NodeUse, Operation, PortText

MAP = "tag:yaml.org,2002:map"


class _OneLine(dict[str, Any]):
    """A mapping that is written `{key: value}`."""


def to_yaml(compound: CompoundText) -> str:
    """Return a compound as YAML in our form; reading it again gives the same but for its lines and file.

    Whatever form it was read from: only what Code Sample 2 says of all implementations at once (the one named
    "") stays as it is there, since no other form can say it. Comments that a person wrote are lost.
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
    """Return a mapping without what says nothing."""
    return {key: value for key, value in document.items() if value or key in keep}


def _port(port: PortText, ends: Iterable[str] = ()) -> dict[str, Any]:
    """Return a port, with the other ends of the wires that Code Sample 2 writes under it."""
    connections = [_OneLine(zip(("dfn", "port"), end.split("."), strict=True)) for end in ends]
    extras = {"doc": port.doc, "tag": port.tag, "unit": port.unit, "frame": port.frame}
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
