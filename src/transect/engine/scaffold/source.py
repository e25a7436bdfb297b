"""Python written by a program: names, docstrings and calls as a person would write them; and templates."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template

import numpy as np

from transect.base.yaml_parts import DescriptionProblem, problem_at
from transect.engine.catalogue import key_of
from transect.engine.description import CompoundText, NodeText, PortText
from transect.engine.port_types import kind_of, known_names
from transect.errors import UsageError, did_you_mean

MAX_LINE_LENGTH = 88
"""Line length: the default of ruff and black."""
_WORD = re.compile(r"\d+[A-Z](?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def fill(template: str, **values: str) -> str:
    """Return a file of `templates` with its names replaced, without its last line break."""
    text = files("transect.engine.scaffold").joinpath("templates", f"{template}.txt").read_text("utf-8")
    return Template(text.removesuffix("\n")).substitute(values)


def snake_case(name: str) -> str:
    """Return a class's name as its file is called: `FeaturesExtraction2D` is `features_extraction_2d`."""
    found = "_".join(_WORD.findall(name)).lower()
    return found if key_of(found) == key_of(name) else name.lower()  # letters of all alphabets may be in it


def check_name(name: str, what: str, file: str, line: int) -> Iterable[DescriptionProblem]:
    """Yield a problem if Python could not call something so."""
    if not name.isidentifier() or keyword.iskeyword(name) or name == "self":
        better = "".join(re.findall(r"\w+", name)) if not name.isidentifier() else f"{name}_"
        hint = f"call it {better!r}" if better.isidentifier() else ""
        yield problem_at(file, line, f"the {what} {name!r} cannot be a name in Python", hint)


def check_ports(text: NodeText | CompoundText) -> Iterable[DescriptionProblem]:
    """Yield a problem for each port whose name cannot be used in Python, or whose type is not known."""
    for port in (*text.inputs.values(), *text.outputs.values()):
        yield from check_name(port.name, "port", text.file, port.line)
        if kind_of(port.type) is None:
            hint = did_you_mean(port.type, known_names(port.type))
            what = f"the port {port.name!r} has the unknown type {port.type!r}"
            yield problem_at(text.file, port.line, what, hint)


def refuse(file: str, problems: Iterable[DescriptionProblem]) -> None:
    """Raise if there are problems, naming them."""
    found = list(problems)
    if found:
        more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
        why = "; ".join(problem.what for problem in found[:3]) + more
        raise UsageError(f"no code can be made of {file}", where=found[0].where, why=why, hint=found[0].hint)


def type_of(port: PortText) -> type:
    """Return the type that a port has in Python: `object` for a CDFF type that means none of ours."""
    kind = kind_of(port.type)
    return kind if isinstance(kind, type) else object


def type_code(kind: type) -> str:
    """Return a type as an annotation."""
    return "NDArray[Any]" if kind is np.ndarray else kind.__name__


def write_call(
    before: str, parts: Sequence[str], after: str = "", indent: int = 0, brackets: str = "()"
) -> str:
    """Return parts in brackets on one line, or each on its own where they do not fit."""
    opening, closing = brackets
    line = f"{' ' * indent}{before}{opening}{', '.join(parts)}{closing}{after}"
    if len(line) <= MAX_LINE_LENGTH or not parts:
        return line
    inner = "".join(f"{' ' * (indent + 4)}{part},\n" for part in parts)
    return f"{' ' * indent}{before}{opening}\n{inner}{' ' * indent}{closing}{after}"


def write_list(name: str, words: Iterable[str]) -> str:
    """Return the assignment of a list of strings."""
    quoted = [f'"{word}"' for word in words]
    return write_call(f"{name} = ", quoted, brackets="[]") if quoted else f"{name}: list[str] = []"


def write_docstring(doc: str, summary: str, more: Sequence[str] = (), indent: int = 0) -> str:
    """Return a docstring, indented.

    Parameters
    ----------
    doc : str
        What a description says; if it does not fit on one line it follows the summary.
    summary : str
        The first line where `doc` is empty or long; a sentence.
    more : sequence of str
        Lines that follow.
    """
    text = _sentence(doc)
    fits = text and len(text) <= MAX_LINE_LENGTH - indent - 6 and not text.startswith("This ")
    lines = [text if fits else summary]
    lines += ["", *textwrap.wrap(text, MAX_LINE_LENGTH - indent)] if text and not fits else []
    lines += ["", *more] if more else []
    raw = "r" if any("\\" in line for line in lines) else ""
    end = "\n" if len(lines) > 1 else ""
    return textwrap.indent(f'{raw}"""' + "\n".join(lines) + f'{end}"""', " " * indent)


def _sentence(doc: str) -> str:
    """Return a text on one line that begins with a capital and ends with a full stop."""
    text = _plain(doc).rstrip(".?!:;, \\")
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _plain(text: str) -> str:
    """Return a text that a docstring can hold."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split()).replace('"""', "'''")


def write_ports(ports: Iterable[PortText], indent: int = 0) -> list[str]:
    """Return ports as an entry of a numpydoc section each; `indent` is that of the docstring."""
    lines: list[str] = []
    for port in ports:
        kind = type_of(port)
        text = _sentence(port.doc)
        if kind is object and port.type != "object":
            text = f"{text} CDFF's {port.type}, for which transect has no type.".strip()
        text += f" Unit: {_plain(port.unit)}." if port.unit else ""
        text += f" Frame: {_plain(port.frame)}." if port.frame else ""
        lines.append(f"{port.name} : {type_code(kind)}")
        lines += [f"    {line}" for line in textwrap.wrap(text.strip(), MAX_LINE_LENGTH - indent - 4)]
    return lines
