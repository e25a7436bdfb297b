"""Typelib definitions: the C++ types of a Rock log, as the XML in its stream declarations describes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MAX_XML = 1 << 24
MAX_DEPTH = 32
MAX_BYTES = 1 << 26
"""Size of one value without its containers; larger ones are taken for damage."""
_ARRAY = re.compile(r"(.+)\[(\d+)\]")
_NUMERIC = {"sint": "i", "uint": "u", "float": "f"}
_SIZES = {"i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (4, 8)}
ENUM = np.dtype("i4")


class Unknown(Exception):
    """A type that cannot be decoded: opaque, a pointer, not defined; never leaves the readers."""


@dataclass(frozen=True)
class Number:
    """A number, or an enumeration where it has names."""

    dtype: np.dtype[Any]
    names: Mapping[int, str] | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return self.dtype.itemsize


@dataclass(frozen=True)
class Array:
    """A fixed number of equal values."""

    of: Type
    count: int

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.count * self.of.size


@dataclass(frozen=True)
class Container:
    """A `std::vector` or `std::string`; in memory it has `size` bytes, in a log as many as it needs."""

    of: Type
    size: int
    text: bool = False


@dataclass(frozen=True)
class Compound:
    """A struct: name, offset and type of each field."""

    fields: tuple[tuple[str, int, Type], ...]
    size: int


Type = Number | Array | Container | Compound


@dataclass
class Registry:
    """The definitions of one stream, by name."""

    elements: dict[str, Any] = field(default_factory=dict[str, Any])
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    resolved: dict[str, Type] = field(default_factory=dict[str, Type])

    def resolve(self, name: str, depth: int = 0) -> Type:
        """Return a type by name; raise Unknown where it cannot be decoded."""
        if depth > MAX_DEPTH:
            raise Unknown(f"{name} is nested too deeply")
        name = self.aliases.get(name, name)
        if name not in self.resolved:
            self.resolved[name] = _checked(self._defined(name, depth + 1), name)
        return self.resolved[name]

    def _defined(self, name: str, depth: int) -> Type:
        element, array = self.elements.get(name), _ARRAY.fullmatch(name)
        if element is None and array is not None:
            return Array(self.resolve(array[1], depth), int(array[2]))
        if element is None:
            raise Unknown(f"{name} is not defined")
        try:
            return self._build(element, depth)
        except (KeyError, ValueError) as error:
            raise Unknown(f"the definition of {name} cannot be read ({error})") from error

    def _build(self, element: Any, depth: int) -> Type:
        attributes = element.attrib
        if element.tag == "numeric":
            return _number(attributes)
        if element.tag == "enum":
            names = {int(v.attrib["value"]): v.attrib["symbol"] for v in element.findall("value")}
            return Number(ENUM, names)
        if element.tag == "array":
            return Array(self.resolve(attributes["of"], depth), int(attributes["dimension"]))
        if element.tag == "container":
            of = self.resolve(attributes["of"], depth)
            return Container(of, int(attributes["size"]), attributes.get("kind", "") == "/std/string")
        if element.tag == "compound":
            fields = [
                (f.attrib["name"], int(f.attrib["offset"]), f.attrib["type"])
                for f in element.findall("field")
            ]
            ordered = sorted(fields, key=lambda item: item[1])
            resolved = tuple((name, at, self.resolve(kind, depth)) for name, at, kind in ordered)
            return Compound(resolved, int(attributes["size"]))
        raise Unknown(f"{attributes.get('name', '')} is {element.tag}")


def _number(attributes: Mapping[str, str]) -> Number:
    kind, size = _NUMERIC.get(attributes["category"], ""), int(attributes["size"])
    if size not in _SIZES.get(kind, ()):
        raise Unknown(f"{attributes['name']} is a {attributes['category']} of {size} bytes")
    return Number(np.dtype(f"{kind}{size}"))


def _checked(kind: Type, name: str) -> Type:
    if not 0 < kind.size <= MAX_BYTES:
        raise Unknown(f"{name} has {kind.size} bytes")
    return kind


def read_registry(xml: bytes) -> Registry:
    """Read the XML of a stream declaration; raise Unknown where it is none.

    No DTD is loaded, no entity expanded and nothing fetched.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    if len(xml) > MAX_XML:
        raise Unknown(f"its type definition has {len(xml)} bytes")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(xml, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise Unknown(f"its type definition is no XML ({error})") from error
    if root.getroottree().docinfo.doctype:
        raise Unknown("its type definition has a DTD")
    registry = Registry()
    for element in root.iterchildren(tag=etree.Element):
        name = element.attrib.get("name", "")
        if element.tag == "alias":
            registry.aliases[name] = element.attrib.get("source", "")
        else:
            registry.elements[name] = element
    return registry
