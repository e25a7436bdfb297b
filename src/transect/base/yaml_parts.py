"""YAML that knows where it was written: plain data, the line of every part, and what is wrong with it."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transect.errors import ParseError, did_you_mean

LARGEST = 4_000_000
"""Characters of the longest text that is read."""
DEEPEST = 50
"""How many lists and mappings may lie in one another."""
MOST_NODES = 100_000
"""Parts of a whole file with its aliases written out; a file of ten lines can name a billion."""
MOST_SHOWN = 100
"""Problems that one error lists."""

Path = tuple[str | int, ...]
"""Keys and indices that lead to a part of a file."""


@dataclass(frozen=True)
class Lines:
    """Where the parts of a file stand.

    Attributes
    ----------
    file : str
    root : YAML node or None
        None where only the data is known: places are then the file.
    """

    file: str
    root: Any = None

    def place(self, path: Path) -> str:
        """Return `file:line` of a part, or of the nearest part around it that is there."""
        if self.root is None:
            return self.file
        node, line = self.root, self.root.start_mark.line
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            node, line = found
        return f"{self.file}:{line + 1}"


def _child(node: Any, step: str | int) -> tuple[Any, int] | None:
    """Return the node under a key or index, and its line counted from 0."""
    if node.id == "mapping":
        pairs = [(value, key.start_mark.line) for key, value in node.value if key.value == str(step)]
        return pairs[-1] if pairs else None
    if node.id == "sequence" and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step].start_mark.line
    return None


def parse(text: str, file: str) -> tuple[Any, Lines]:
    """Return the data of a YAML text, and its lines.

    Raises
    ------
    ParseError
        If it is not YAML, gives a key twice, or is longer, deeper or (by its aliases) larger than is allowed.
    """
    import yaml

    if len(text) > LARGEST:
        raise ParseError(f"{file} is too large", where=file, why=f"more than {LARGEST} characters")
    loader: Any = None
    try:
        loader = safe_loader(text, file)
        root = loader.get_single_node()
        if root is None:
            return None, Lines(file)
        _refuse_bombs(root, file)
        _refuse_repeats(root, file)
        return loader.construct_document(root), Lines(file, root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        raise ParseError(f"{file} is not YAML", where=where, why=error.problem or str(error)) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ParseError(f"{file} is not YAML", where=file, why=str(error)) from error
    finally:
        if loader is not None:
            loader.dispose()


def safe_loader(text: str, file: str) -> Any:
    """Return PyYAML's loader of a text, the one in C where there is one, which is ten times as fast.

    Raises
    ------
    ParseError
        If the text is nested so deeply that the loader, which recurses in C, could end the process, or has
        more parts than are read.
    yaml.YAMLError
        If it is not YAML.
    """
    import yaml

    kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    _refuse_size(yaml.parse(text, Loader=kind), file)
    return kind(text)


def _refuse_size(events: Iterable[Any], file: str) -> None:
    depth = nodes = 0
    for event in events:
        name = type(event).__name__
        nodes += not name.endswith("EndEvent")
        if nodes > MOST_NODES:
            raise ParseError(f"{file} is too large", where=file, why=f"it has more than {MOST_NODES} parts")
        depth += name.endswith(("SequenceStartEvent", "MappingStartEvent"))
        depth -= name.endswith(("SequenceEndEvent", "MappingEndEvent"))
        if depth > DEEPEST:
            where = f"{file}:{event.start_mark.line + 1}"
            why = f"its lists and mappings are more than {DEEPEST} deep"
            raise ParseError(f"{file} is nested too deeply", where=where, why=why)


def _children(node: Any) -> Sequence[Any]:
    if node.id == "mapping":
        return [part for pair in node.value for part in pair]
    return node.value if node.id == "sequence" else ()


def _refuse_bombs(root: Any, file: str) -> None:
    sizes: dict[int, int] = {}

    def size(node: Any) -> int:
        known = sizes.get(id(node))
        if known == 0:
            line = node.start_mark.line + 1
            raise ParseError("an alias stands for itself", where=f"{file}:{line}")
        if known is None:
            sizes[id(node)] = 0
            known = sizes[id(node)] = 1 + sum(map(size, _children(node)))
        return known

    if (total := size(root)) > MOST_NODES:
        why = f"{total} parts with its aliases written out, at most {MOST_NODES} are read"
        raise ParseError(f"{file} is too large", where=file, why=why)


def _refuse_repeats(node: Any, file: str) -> None:
    """Raise if a mapping gives a key twice; YAML's own reader would keep the last and say nothing."""
    if node.id == "mapping":
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if key.id == "scalar" and (key.tag, key.value) in seen:
                where = f"{file}:{key.start_mark.line + 1}"
                raise ParseError(f"the key {key.value!r} is given twice", where=where)
            seen |= {(key.tag, key.value)} if key.id == "scalar" else set()
    for child in _children(node):
        _refuse_repeats(child, file)


@dataclass(frozen=True)
class Problem:
    """Something that is wrong, or looks wrong, in a description.

    Attributes
    ----------
    what : str
        One line.
    where : str
        `file:line`, or the file.
    line : int
        Counted from 1; 0 where it is the whole file.
    hint : str
        What to try.
    """

    what: str
    where: str
    line: int
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" + (f"; {self.hint}" if self.hint else "")


def refuse(problems: Sequence[Problem], file: str) -> None:
    """Raise a ParseError that names all problems, one line each, if there are any."""
    found = sorted(dict.fromkeys(problems), key=lambda problem: problem.line)
    if len(found) == 1:
        raise ParseError(found[0].what, where=found[0].where, hint=found[0].hint)
    if found:
        rest = [f"... and {len(found) - MOST_SHOWN} more"] if len(found) > MOST_SHOWN else []
        listed = "\n         ".join([*map(str, found[:MOST_SHOWN]), *rest])
        raise ParseError(f"{file} has {len(found)} problems", where=file, why=listed)


def problem_at(file: str, line: int, what: str, hint: str = "") -> Problem:
    """Return a problem at a line of a file."""
    return Problem(what, f"{file}:{line}" if line else file, line, hint)


@dataclass(frozen=True)
class Part:
    """A part of a file. What is asked of it and is not there, or is something else, is noted, not raised.

    Attributes
    ----------
    data : object
    path : tuple
        Keys and indices that lead to it.
    lines : Lines
    problems : list of Problem
        Shared by all parts of a file.
    """

    data: Any
    path: Path
    lines: Lines
    problems: list[Problem] = field(default_factory=list[Problem])

    @property
    def line(self) -> int:
        """Where it stands, counted from 1."""
        return line_of(self.lines, self.path)

    def child(self, step: str | int) -> Part:
        """Return the part under a key or index; empty if it is not there."""
        here = isinstance(self.data, Mapping) and step in self.data
        data = self.data[step] if here or isinstance(step, int) else None
        return Part(data, (*self.path, step), self.lines, self.problems)

    def wrong(self, what: str, hint: str = "") -> None:
        """Note what is wrong with it."""
        self.problems.append(problem_at(self.lines.file, self.line, what, hint))

    def has(self, *keys: str) -> bool:
        """Tell whether any of the keys is given."""
        return isinstance(self.data, Mapping) and any(key in self.data for key in keys)

    def is_mapping(self, called: str, *known: str) -> bool:
        """Tell whether it is a mapping, and note keys that are not known."""
        if not isinstance(self.data, Mapping):
            self.wrong(f"{called} should be a mapping, not {shorten(self.data)}")
            return False
        for key in self.data:
            if key not in known:
                # In {doc: near, far} YAML takes "far" for a key.
                torn = self.data[key] is None and " " in str(key)
                meant = "text with a comma needs quotes" if torn else ""
                hint = meant or did_you_mean(str(key), _missing(self.data, known))
                self.child(key).wrong(f"{called} has an unknown key {key!r}", hint)
        return True

    def text(self, key: str, default: str = "") -> str:
        """Return the text under a key."""
        part = self.child(key)
        if part.data is None:
            return default
        if not isinstance(part.data, str):
            part.wrong(f"{key} should be text, not {shorten(part.data)}", f'write {key}: "{part.data}"')
            return default
        return part.data

    def flag(self, key: str, default: bool = False) -> bool:
        """Return the true or false under a key."""
        part = self.child(key)
        if part.data is None:
            return default
        if not isinstance(part.data, bool):
            part.wrong(f"{key} should be true or false, not {shorten(part.data)}")
            return default
        return part.data

    def numbers(self, called: str, *counts: int) -> list[float]:
        """Return a list of as many finite numbers as one of `counts`; empty if it is something else."""
        expected = f"expected {' or '.join(map(str, counts))}"
        if not isinstance(self.data, list | tuple):
            self.wrong(f"{called} is not a list of numbers, {expected}")
            return []
        entries: Sequence[Any] = self.data
        strange = [entry for entry in entries if not is_number(entry)]
        if strange:
            self.wrong(f"{called}: {shorten(strange[0])} is not a number")
        elif len(entries) not in counts:
            self.wrong(f"{called} has {len(entries)} number{'s' * (len(entries) != 1)}, {expected}")
        else:
            return list(entries)
        return []

    def needed(self, key: str, called: str) -> str:
        """Return the text under a key that must be given, "" if it is not."""
        if self.child(key).data not in (None, ""):
            return self.text(key)
        self.lacks(key, called)
        return ""

    def lacks(self, key: str, called: str) -> None:
        """Note that a key is not given; not if it is misspelt, which `is_mapping` has noted."""
        others = [str(k) for k in self.data if k != key]
        if not difflib.get_close_matches(key, others, n=1, cutoff=0.7):
            self.wrong(f"{called} has no {key}")

    def items(self, key: str) -> list[Part]:
        """Return the parts of the list under a key, none if it is not there."""
        part = self.child(key)
        return [] if part.data is None else part.entries(key)

    def entries(self, called: str) -> list[Part]:
        """Return the parts of a list."""
        if not isinstance(self.data, list):
            self.wrong(f"{called} should be a list, not {shorten(self.data)}")
            return []
        return [self.child(i) for i in range(len(self.data))]

    def members(self, key: str) -> list[tuple[str, Part]]:
        """Return the named parts of the mapping under a key, none if it is not there."""
        part = self.child(key)
        return [] if part.data is None else part.named(key)

    def named(self, called: str) -> list[tuple[str, Part]]:
        """Return the parts of a mapping, with their names."""
        if not isinstance(self.data, Mapping):
            self.wrong(f"{called} should be a mapping, not {shorten(self.data)}")
            return []
        for name in self.data:
            if not isinstance(name, str):
                self.child(name).wrong(f"{name!r} is not a name", f'write "{name}"')
        return [(name, self.child(name)) for name in self.data if isinstance(name, str)]


def line_of(lines: Lines, path: Path) -> int:
    """Return the line of a part, counted from 1; 0 if it is not known."""
    number = lines.place(path).removeprefix(lines.file).removeprefix(":")
    return int(number) if number else 0


def is_number(data: Any) -> bool:
    """Tell whether a piece of data is a finite number that a float can hold."""
    return isinstance(data, int | float) and not isinstance(data, bool) and abs(data) <= sys.float_info.max


def _missing(data: Mapping[Any, Any], known: tuple[str, ...]) -> list[str]:
    return [key for key in known if key not in data]


def shorten(data: Any) -> str:
    """Return a piece of data as an error shows it: not longer than 40 characters."""
    text = "nothing" if data is None else f"{data!r}"
    return text if len(text) <= 40 else f"{text[:37]}..."
