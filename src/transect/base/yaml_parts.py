"""YAML that knows where it was written: plain data, the line of every part, and what is wrong with it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transect.errors import ParseError, did_you_mean

MOST_NODES = 100_000
"""Of a whole file with its aliases written out; a file of ten lines can name a billion."""

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
        If it is not YAML, gives a key twice, or grows beyond `MOST_NODES` by its aliases.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)  # the C one is ten times as fast, if there
    try:
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
    except RecursionError as error:
        raise ParseError(f"{file} is nested too deeply", where=file) from error
    finally:
        loader.dispose()


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
            self.wrong(f"{called} should be a mapping, not {_shown(self.data)}")
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
            part.wrong(f"{key} should be text, not {_shown(part.data)}", f'write {key}: "{part.data}"')
            return default
        return part.data

    def needed(self, key: str, called: str) -> str:
        """Return the text under a key that must be given, "" if it is not."""
        if self.child(key).data not in (None, ""):
            return self.text(key)
        if not self._misspelt(key):
            self.wrong(f"{called} has no {key}")
        return ""

    def _misspelt(self, key: str) -> bool:
        """Tell whether the key is there in another spelling, which `is_mapping` has noted."""
        return bool(difflib.get_close_matches(key, [str(k) for k in self.data], n=1, cutoff=0.7))

    def items(self, key: str) -> list[Part]:
        """Return the parts of the list under a key, none if it is not there."""
        part = self.child(key)
        if part.data is None:
            return []
        if not isinstance(part.data, list):
            part.wrong(f"{key} should be a list, not {_shown(part.data)}")
            return []
        return [part.child(i) for i in range(len(part.data))]

    def members(self, key: str) -> list[tuple[str, Part]]:
        """Return the named parts of the mapping under a key, none if it is not there."""
        part = self.child(key)
        if part.data is None:
            return []
        if not isinstance(part.data, Mapping):
            part.wrong(f"{key} should be a mapping, not {_shown(part.data)}")
            return []
        for name in part.data:
            if not isinstance(name, str):
                part.child(name).wrong(f"{name!r} is not a name", f'write "{name}"')
        return [(name, part.child(name)) for name in part.data if isinstance(name, str)]


def line_of(lines: Lines, path: Path) -> int:
    """Return the line of a part, counted from 1; 0 if it is not known."""
    number = lines.place(path).removeprefix(lines.file).removeprefix(":")
    return int(number) if number else 0


def _missing(data: Mapping[Any, Any], known: tuple[str, ...]) -> list[str]:
    return [key for key in known if key not in data]


def _shown(data: Any) -> str:
    text = "nothing" if data is None else f"{data!r}"
    return text if len(text) <= 40 else f"{text[:37]}..."
