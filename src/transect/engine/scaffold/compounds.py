"""The files of a compound: its description in our form, stubs of its controllers, and a first test."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from transect.base.yaml_parts import DescriptionProblem, parse, problem_at

from ..description import CompoundText, ImplementationText, NodeUse, Wire, to_yaml
from ..reading import CONNECTION_KEYS
from .source import check_name, check_ports, fill, snake_case, write_docstring

OTHER_FORMS = frozenset({"dfns", "connections", *CONNECTION_KEYS})
"""Keys that only CDFF's forms have."""


def check_compound(text: CompoundText) -> Iterator[DescriptionProblem]:
    """Yield what keeps a description from becoming code."""
    yield from check_name(text.name, "compound", text.file, text.line)
    yield from check_ports(text)
    for one in text.implementations.values():
        place, _, name = one.controller.partition(":")
        path = PurePosixPath(place)
        if one.controller and (path.is_absolute() or ".." in path.parts or not name.isidentifier()):
            what = f"the controller {one.controller!r} is not file.py:Class beside the description"
            yield problem_at(text.file, one.line, what)


def is_ours(source: str, file: str) -> bool:
    """Return whether a description is written in our form."""
    return not _has_any(parse(source, file)[0], OTHER_FORMS)


def _has_any(data: Any, keys: frozenset[str]) -> bool:
    if isinstance(data, Mapping):
        return any(key in keys or (key != "params" and _has_any(value, keys)) for key, value in data.items())
    return isinstance(data, list) and any(_has_any(item, keys) for item in data)


def write_yaml(text: CompoundText, notes: list[str]) -> str:
    """Return a compound in our form.

    What Code Sample 2 says of all implementations becomes the first of them, or one named as the compound.
    """
    shared = text.implementations.get("")
    if shared is None:
        return to_yaml(text)
    others = {name: one for name, one in text.implementations.items() if name}
    first = next(iter(others), text.name)
    if len(others) > 1:
        notes.append(f"{first} has the nodes and wires; its siblings are only named, to be copied from it")
    return to_yaml(replace(text, implementations={**others, first: _copy_shared(shared, first)}))


def _copy_shared(shared: ImplementationText, name: str) -> ImplementationText:
    """Return what is shared as an implementation with ids of its own for its nodes."""
    nodes = {snake_case(id_): NodeUse(snake_case(id_), use.node) for id_, use in shared.nodes.items()}
    wires = tuple(Wire(_rename_end(wire.source), _rename_end(wire.target)) for wire in shared.wires)
    return ImplementationText(name, nodes, wires)


def _rename_end(end: str) -> str:
    node, dot, port = end.rpartition(".")
    return f"{snake_case(node)}{dot}{port}"


def write_controllers(text: CompoundText, notes: list[str]) -> dict[str, str]:
    """Return stubs of the controllers that are named as `file.py:Class`, by file."""
    stubs: dict[str, str] = {}
    for one in text.implementations.values():
        place, _, name = one.controller.partition(":")
        if one.controller and not place.endswith(".py"):
            notes.append(f"{one.name} is controlled by {one.controller}, which is to be written there")
        elif one.controller:
            head = fill("controllers.py", doc=write_docstring("", f"What controls {text.name}."))
            stubs[place] = stubs.get(place, head) + _write_controller(text, one, name)
    return {place: stub + "\n" for place, stub in stubs.items()}


def _write_controller(text: CompoundText, one: ImplementationText, name: str) -> str:
    named = {"Inputs": text.inputs, "Nodes": one.nodes, "Outputs": text.outputs}
    lines = [f"{what}: {', '.join(names) or 'none'}." for what, names in named.items()]
    wrapped = [part for line in lines for part in textwrap.wrap(line, 84, subsequent_indent="    ")]
    doc = write_docstring("", f"Calls the nodes of {one.name}.", wrapped, 4)
    return fill("controller.py", name=name, doc=doc)


def write_test(name: str, description: Path) -> str:
    """Return the first test of a compound: it can be read, and checking finds what it finds now."""
    from transect.engine.description_checks import check

    problems = [problem.what for problem in check([description])[str(description)].problems]
    known = "\n".join(["STILL_WRONG = [", *(f"    {_quote(what)}," for what in problems), "]"])
    doc = "Its present problems are listed here: remove each one when it is fixed, until the list is empty."
    test = fill(
        "test_compound.py",
        doc=write_docstring(doc, f"{name}: it can be read, and what checking finds."),
        file=description.name,
        problems=known if problems else "STILL_WRONG: list[str] = []",
        name=name,
    )
    return f"{test}\n"


def _quote(text: str) -> str:
    """Return a string as code, on several lines if it is long."""
    lines = textwrap.wrap(text, 70, drop_whitespace=False) if len(text) > 80 else [text]
    if len(lines) == 1:
        return _literal(text)
    return "\n".join(["(", *(f"        {_literal(line)}" for line in lines), "    )"])


def _literal(text: str) -> str:
    """Return a string in double quotes where that needs no escapes, as formatters do."""
    plain = '"' not in text and "\\" not in text and text.isprintable()
    return f'"{text}"' if plain else repr(text)
