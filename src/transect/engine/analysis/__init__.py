"""What keeps a compound from running, or contradicts itself, found before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from transect.errors import TransectError, did_you_mean

from ..description import CompoundText, ImplementationText, PortText
from .faces import Description, Faces, Finding
from .flow import check_flow, flow_of
from .types import kind_of, known_names


def find_problems(text: CompoundText, faces: Faces) -> Iterator[Finding]:
    """Yield everything that keeps a compound from running, and some hints.

    `transect graph check` and a run ask the same, so that one accepts what the other does.
    """
    yield from find_wrong_names(text) if text.file else ()
    also: set[type] = set()
    for implementation in text.implementations.values():
        flow, findings = flow_of(text, implementation, faces)
        also |= flow.types
        yield from findings
        yield from check_flow(flow)
    yield from find_wrong_types(text, also)
    yield from _nesting(text, faces)


def find_wrong_types(text: Description, also: Iterable[type] = ()) -> Iterator[Finding]:
    """Types of ports and operations that are not known."""
    operations = text.operations if isinstance(text, CompoundText) else ()
    typed = [(port.line, port.name, port.type) for port in list_ports(text)]
    typed += [(each.line, each.name, each.output_type) for each in operations if each.output_type != "void"]
    typed += [(port.line, port.name, port.type) for each in operations for port in each.inputs]
    for line, name, kind in typed:
        if kind and kind_of(kind, also) is None:
            yield Finding(line, f"{name}: unknown type {kind!r}", did_you_mean(kind, known_names(kind)))


def _nesting(text: CompoundText, faces: Faces) -> Iterator[Finding]:
    """Compounds that contain themselves, directly or through others."""
    for implementation in text.implementations.values():
        for use in implementation.nodes.values():
            if way := _way_to(text.name, use.node, faces, ()):
                chain = " > ".join((text.name, *way))
                yield Finding(use.line, f"{text.name} contains itself: {chain}")


def _way_to(goal: str, name: str, faces: Faces, passed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the compounds that lead from one to another, () if none do."""
    if name in passed:
        return ()
    if name == goal:
        return (*passed, name) if _implementations(name, faces) else ()
    inside = {use.node for each in _implementations(name, faces) for use in each.nodes.values()}
    ways = (_way_to(goal, each, faces, (*passed, name)) for each in sorted(inside))
    return next(filter(None, ways), ())


def _implementations(name: str, faces: Faces) -> Iterable[ImplementationText]:
    """Return the implementations of a compound; none of a node, or of a file that is itself reported."""
    try:
        compound = faces.compound(name)
    except TransectError:
        return ()
    return compound.implementations.values() if compound else ()


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def find_wrong_names(text: Description) -> Iterator[Finding]:
    """Names that cannot be names in Python, as ports and nodes are."""
    for line, called, name in _names(text):
        if not NAME.fullmatch(name):
            better = re.sub(r"\W+", "", name)
            hint = f"write {better}" if NAME.fullmatch(better) else "letters, digits and _"
            yield Finding(line, f"{name!r} cannot be the name of {called}", hint)


def _names(text: Description) -> Iterator[tuple[int, str, str]]:
    """Yield line, what it names, and name; those left out were reported when the file was read."""
    if text.name:
        yield text.line, "a compound" if isinstance(text, CompoundText) else "a node", text.name
    yield from ((port.line, "a port", port.name) for port in list_ports(text))
    if isinstance(text, CompoundText):
        for each in text.implementations.values():
            if each.name not in ("", text.name):
                yield each.line, "an implementation", each.name
            yield from ((use.line, "a node", use.id) for use in each.nodes.values())
    else:
        others = (name for name in text.implementations if name != text.name)
        yield from ((text.line, "an implementation", name) for name in others)


def list_ports(text: Description) -> list[PortText]:
    """Return all ports of a description."""
    return [*text.inputs.values(), *text.outputs.values()]
