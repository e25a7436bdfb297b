"""The files of a compound: its description in our form, stubs of its controllers, and a first test."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from transect.base.yaml_parts import Problem, parse, problem_at

from ._scaffold_code import docstring, name_problem, snake_case, type_problem
from .description import CompoundText, ImplementationText, NodeUse, Wire
from .reading import CONNECTION_KEYS
from .writing import to_yaml

OTHER_FORMS = frozenset({"dfns", "connections", *CONNECTION_KEYS})
"""Keys that only CDFF's forms have."""


def compound_problems(text: CompoundText) -> Iterator[Problem]:
    """Yield what keeps a description from becoming code."""
    yield from name_problem(text.name, "compound", text.file, text.line)
    for port in (*text.inputs.values(), *text.outputs.values()):
        yield from name_problem(port.name, "port", text.file, port.line)
        yield from type_problem(port, text.file)
    for one in text.implementations.values():
        place, _, name = one.controller.partition(":")
        path = PurePosixPath(place)
        if one.controller and (path.is_absolute() or ".." in path.parts or not name.isidentifier()):
            what = f"the controller {one.controller!r} is not file.py:Class beside the description"
            yield problem_at(text.file, one.line, what)


def is_ours(source: str, file: str) -> bool:
    """Tell whether a description is written in our form."""
    return not _has_any(parse(source, file)[0], OTHER_FORMS)


def _has_any(data: Any, keys: frozenset[str]) -> bool:
    if isinstance(data, Mapping):
        return any(key in keys or (key != "params" and _has_any(value, keys)) for key, value in data.items())
    return isinstance(data, list) and any(_has_any(item, keys) for item in data)


def compound_yaml(text: CompoundText, notes: list[str]) -> str:
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
    return to_yaml(replace(text, implementations={**others, first: _own(shared, first)}))


def _own(shared: ImplementationText, name: str) -> ImplementationText:
    """Return what is shared as an implementation with ids of its own for its nodes."""
    nodes = {snake_case(id_): NodeUse(snake_case(id_), use.node) for id_, use in shared.nodes.items()}
    wires = tuple(Wire(_renamed(wire.source), _renamed(wire.target)) for wire in shared.wires)
    return ImplementationText(name, nodes, wires)


def _renamed(end: str) -> str:
    node, dot, port = end.rpartition(".")
    return f"{snake_case(node)}{dot}{port}"


def controller_stubs(text: CompoundText, notes: list[str]) -> dict[str, str]:
    """Return stubs of the controllers that are named as `file.py:Class`, by file."""
    stubs: dict[str, str] = {}
    for one in text.implementations.values():
        place, _, name = one.controller.partition(":")
        if one.controller and not place.endswith(".py"):
            notes.append(f"{one.name} is controlled by {one.controller}, which is to be written there")
        elif one.controller:
            stubs[place] = stubs.get(place, _controller_head(text)) + _controller(text, one, name)
    return stubs


def _controller_head(text: CompoundText) -> str:
    head = docstring("", f"What controls {text.name}.")
    engine = "from transect.engine import Control, Controller"
    return "\n".join([*head, "", "from __future__ import annotations", "", engine, ""])


def _controller(text: CompoundText, one: ImplementationText, name: str) -> str:
    section = [
        f"Inputs: {', '.join(text.inputs) or 'none'}.",
        f"Nodes: {', '.join(one.nodes) or 'none'}.",
        f"Outputs: {', '.join(text.outputs) or 'none'}.",
    ]
    doc = docstring("", f"Calls the nodes of {one.name}.", _wrapped(section), 4)
    return f'''

class {name}(Controller):
{chr(10).join(doc)}

    def step(self, c: Control) -> None:
        """Process one set of inputs: call nodes, then `c.emit` or `c.skip`."""
        raise NotImplementedError("{name}.step is still to be written")
'''


def _wrapped(lines: Sequence[str]) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, 84, subsequent_indent="    ")]


def compound_test(name: str, description: Path) -> str:
    """Return the first test of a compound: it can be read, and checking finds what it finds now."""
    from .checking import check

    problems = [problem.what for problem in check([description])[str(description)].problems]
    known = "\n".join(["STILL_WRONG = [", *(f"    {_quoted(what)}," for what in problems), "]"])
    doc = "What is wrong with it now is listed here: shorten the list as you mend it, until it is empty."
    return f'''{chr(10).join(docstring(doc, f"{name}: it can be read, and what checking finds."))}

from __future__ import annotations

from pathlib import Path

from transect.engine.checking import check
from transect.engine.description import CompoundText
from transect.engine.reading import read_description

FILE = Path(__file__).with_name("{description.name}")
{known if problems else "STILL_WRONG: list[str] = []"}


def test_it_can_be_read() -> None:
    """It is a compound of that name."""
    compound = read_description(FILE)
    assert isinstance(compound, CompoundText)
    assert compound.name == "{name}"


def test_it_has_no_other_problems_than_are_known() -> None:
    """See what is wrong, and where, with `transect graph check`."""
    problems = check([FILE])[str(FILE)].problems
    assert [problem.what for problem in problems] == STILL_WRONG
'''


def _quoted(text: str) -> str:
    """Return a string as code, on several lines if it is long."""
    lines = textwrap.wrap(text, 70, drop_whitespace=False) if len(text) > 80 else [text]
    if len(lines) == 1:
        return _literal(text)
    return "\n".join(["(", *(f"        {_literal(line)}" for line in lines), "    )"])


def _literal(text: str) -> str:
    """Return a string in double quotes where that needs no escapes, as formatters do."""
    plain = '"' not in text and "\\" not in text and text.isprintable()
    return f'"{text}"' if plain else repr(text)
