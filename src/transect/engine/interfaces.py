"""Ports and parameters of the nodes named in a description: of a class, a description, or a compound."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from transect.errors import TransectError, did_you_mean

from .catalogue import Catalogue, key_of, keys_of
from .description import CompoundText, NodeText, NodeUse, PortText
from .nodes import Node, NotExecutedError
from .port_types import Kind, Sizes, kind_of, shape_of
from .ports import Port

Description = CompoundText | NodeText


class DescriptionFinding(NamedTuple):
    """A finding in a file: a problem if it is grave, else a hint."""

    line: int
    what: str
    hint: str = ""
    grave: bool = True


class Socket(NamedTuple):
    """A port as a wire sees it."""

    name: str
    kind: Kind
    unit: str = ""
    frame: str = ""
    needed: bool | None = None  # whether an input must be fed; None where its description does not say
    shape: Sizes = ()  # of its arrays, where that is said


@dataclass(frozen=True)
class Face:
    """An interface, or a compound used as a node."""

    name: str
    inputs: Mapping[str, Socket] = field(default_factory=dict[str, Socket])
    outputs: Mapping[str, Socket] = field(default_factory=dict[str, Socket])
    implementations: Collection[str] = ()
    node: type[Node] | None = None  # the class that is run, where there is one
    readable: bool = True  # false for a description that cannot be read: its ports are not known


class Given:
    """The descriptions that are checked together, by their names and those of their files."""

    def __init__(self) -> None:
        self.texts: dict[str, Description] = {}
        self.files: dict[str, Description | None] = {}

    def add(self, file: Path, description: Description | None) -> None:
        """Add the description of a file; None if it could not be read."""
        if description is not None:
            self.texts.setdefault(description.name, description)
        for key in keys_of(file):
            self.files.setdefault(key, description)

    def find(self, name: str) -> Description | None:
        """Return the description of a name."""
        return self.texts.get(name) or self.files.get(key_of(name))

    def unreadable(self, name: str) -> bool:
        """Return whether a file stands for the name, and cannot be read."""
        return self.find(name) is None and key_of(name) in self.files

    def implementing(self, name: str) -> list[str]:
        """Return the interfaces that list an implementation of this name."""
        return [each.name for each in self.texts.values() if name in each.implementations]


@dataclass(frozen=True)
class Faces:
    """Finds faces: what is given first, then what the catalogue has."""

    given: Given
    catalogue: Catalogue

    def of(self, name: str, implementation: str = "") -> Face | None:
        """Return the face of a name, None if it is nowhere; a class goes before a compound of its name.

        Raises
        ------
        TransectError
            If the file that should have it cannot be imported or read.
        """
        if self.given.unreadable(name):
            return Face(name, readable=False)
        text = self.given.find(name)
        node = self._class(name, implementation)
        if isinstance(text, CompoundText):
            return _of_text(text) if node is None else _of_class(node)
        if text is None and node is None:
            text = self.catalogue.text(name) or self.catalogue.compound(name)
        if node is not None and (text is None or _agree(text, node)):
            return _of_class(node)
        return None if text is None else _of_text(text)

    def compound(self, name: str) -> CompoundText | None:
        """Return the compound that is used under a name, if it is one."""
        if self.given.unreadable(name) or self.catalogue.node(name) is not None:
            return None
        text = self.given.find(name) or self.catalogue.compound(name)
        return text if isinstance(text, CompoundText) else None

    def hint(self, name: str) -> str:
        """Return a suggestion for an unknown name."""
        if owners := self.given.implementing(name):
            return f"it is an implementation of {owners[0]}"
        return did_you_mean(name, {*self.given.texts, *self.catalogue.names()} - {name})

    def _class(self, name: str, implementation: str) -> type[Node] | None:
        return self.catalogue.implementation(name, implementation) or self.catalogue.node(name)


def faces_of(
    uses: Iterable[NodeUse], faces: Faces
) -> tuple[dict[str, Face | None], list[DescriptionFinding]]:
    """Return the face of each node in use, by id, and findings for those that were not found."""
    found: dict[str, Face | None] = {}
    findings: list[DescriptionFinding] = []
    for use in uses:
        try:
            found[use.id] = faces.of(use.node, use.implementation)
        except TransectError as error:
            found[use.id] = Face(use.node, readable=False)
            grave = not isinstance(error, NotExecutedError)
            hint = f"see {error.where}" if grave else error.hint
            findings.append(DescriptionFinding(use.line, f"{error.what}: {error.why}", hint, grave))
    return found, findings


def socket_of(port: PortText, also: Iterable[type] = ()) -> Socket:
    """Return a port of a description as a wire sees it."""
    return Socket(port.name, kind_of(port.type, also), port.unit, port.frame, shape=shape_of(port.type))


def _of_text(text: Description) -> Face:
    inputs = {name: socket_of(port) for name, port in text.inputs.items()}
    outputs = {name: socket_of(port) for name, port in text.outputs.items()}
    return Face(text.name, inputs, outputs, _runnable(text))


def _runnable(text: Description) -> list[str]:
    """Return the implementations of a description; of a compound those that are more than a name."""
    if isinstance(text, NodeText):
        return list(text.implementations)
    return [name for name, each in text.implementations.items() if each.complete]


def _of_class(node: type[Node]) -> Face:
    inputs = {name: _of_port(port) for name, port in node.inputs.items()}
    outputs = {name: _of_port(port) for name, port in node.outputs.items()}
    known = dict.fromkeys(node.interface.implementations)
    if node is not node.interface:
        known[node.__name__] = None  # one that was read and not executed is not among them
    return Face(node.interface.__name__, inputs, outputs, list(known), node)


def _of_port(port: Port) -> Socket:
    shape = port.shape.sizes if port.shape else ()
    return Socket(port.name, port.type, port.unit, port.frame, port.needed, shape)


def _agree(text: Description, node: type[Node]) -> bool:
    """Return whether a class is the one that a description means, and not another of the same name."""
    return set(text.inputs) <= set(node.inputs) and set(text.outputs) <= set(node.outputs)
