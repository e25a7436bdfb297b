"""YAML data with the line of every part, and the collection of problems."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transect.errors import ParseError, did_you_mean

from .yaml_loading import Document, load_documents

MAX_LISTED_PROBLEMS = 100

Path = tuple[str | int, ...]
"""Keys and indices of a part of a file."""


@dataclass(frozen=True)
class Lines:
    """The lines of the parts of a file."""

    file: str
    # None if only the data are known
    document: Document | None = field(default=None, compare=False, repr=False)

    def place(self, path: Path) -> str:
        """Return `file:line` of a part, or of the nearest existing part around it."""
        if self.document is None:
            return self.file
        data, line = self.document.data, self.document.line
        for step in path:
            lines = self.document.lines.get(id(data))
            found = None if lines is None else _entry(data, lines, step)
            if found is None:
                break
            data, line = found
        return f"{self.file}:{line + 1}"


def _entry(data: Any, lines: Any, step: str | int) -> tuple[Any, int] | None:
    """Return the part under a key or index, and its line counted from 0."""
    if isinstance(data, list):
        return (data[step], lines[step]) if isinstance(step, int) and 0 <= step < len(lines) else None
    key = step if step in lines else next((key for key in lines if str(key) == str(step)), None)
    return (data.get(key), lines[key]) if key in lines else None


def parse(text: str, file: str) -> tuple[Any, Lines]:
    """Return the data of a YAML text, and its lines.

    Raises
    ------
    ParseError
        If it is not YAML, gives a key twice, has an impossible value (a 30th of February), or is longer,
        deeper or (by its aliases) larger than is allowed.
    """
    found = parse_all(text, file)
    if len(found) > 1:
        where = f"{file}:{line_of(found[1][1], ())}"
        raise ParseError(f"{file} is not YAML", where=where, why="it has several documents, one is expected")
    return found[0] if found else (None, Lines(file))


def parse_all(text: str, file: str) -> list[tuple[Any, Lines]]:
    """Return data and lines of each document of a YAML text, under the same conditions as `parse`."""
    return [(document.data, Lines(file, document)) for document in load_documents(text, file)]


@dataclass(frozen=True)
class DescriptionProblem:
    """An error, or a possible error, in a description."""

    what: str  # one line
    where: str  # `file:line`, or the file
    line: int  # counted from 1; 0 for the whole file
    hint: str = ""  # what to try

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" + (f"; {self.hint}" if self.hint else "")


def refuse(problems: Sequence[DescriptionProblem], file: str) -> None:
    """Raise a ParseError that names all problems, one line each, if there are any."""
    found = sorted(dict.fromkeys(problems), key=lambda problem: problem.line)
    if len(found) == 1:
        raise ParseError(found[0].what, where=found[0].where, hint=found[0].hint)
    if found:
        rest = (
            [f"... and {len(found) - MAX_LISTED_PROBLEMS} more"] if len(found) > MAX_LISTED_PROBLEMS else []
        )
        listed = "\n         ".join([*map(str, found[:MAX_LISTED_PROBLEMS]), *rest])
        raise ParseError(f"{file} has {len(found)} problems", where=file, why=listed)


def problem_at(file: str, line: int, what: str, hint: str = "") -> DescriptionProblem:
    """Return a problem at a line of a file."""
    return DescriptionProblem(what, f"{file}:{line}" if line else file, line, hint)


@dataclass(frozen=True)
class YamlPart:
    """A part of a file. Missing or invalid values are recorded as problems instead of raised."""

    data: Any
    path: Path
    lines: Lines
    problems: list[DescriptionProblem] = field(
        default_factory=list[DescriptionProblem]
    )  # shared by all parts of a file

    @property
    def line(self) -> int:
        """Its line, counted from 1."""
        return line_of(self.lines, self.path)

    def child(self, step: str | int) -> YamlPart:
        """Return the part at a key or index; empty if it does not exist."""
        here = isinstance(self.data, Mapping) and step in self.data
        data = self.data[step] if here or isinstance(step, int) else None
        return YamlPart(data, (*self.path, step), self.lines, self.problems)

    def wrong(self, what: str, hint: str = "") -> None:
        """Record a problem."""
        self.problems.append(problem_at(self.lines.file, self.line, what, hint))

    def has(self, *keys: str) -> bool:
        """Return whether any of the keys is given."""
        return isinstance(self.data, Mapping) and any(key in self.data for key in keys)

    def is_mapping(self, called: str, *known: str) -> bool:
        """Return whether it is a mapping, and record unknown keys."""
        if not isinstance(self.data, Mapping):
            self.wrong(f"{called} should be a mapping, not {shorten(self.data)}")
            return False
        for key in self.data:
            if key not in known:
                # In {doc: near, far}, "far" is a key.
                torn = self.data[key] is None and " " in str(key)
                meant = "text with a comma needs quotes" if torn else ""
                hint = meant or did_you_mean(str(key), _missing(self.data, known))
                self.child(key).wrong(f"{called} has an unknown key {key!r}", hint)
        return True

    def text(self, key: str, default: str = "") -> str:
        """Return the text at a key."""
        part = self.child(key)
        if part.data is None:
            return default
        if not isinstance(part.data, str):
            part.wrong(f"{key} should be text, not {shorten(part.data)}", f'write {key}: "{part.data}"')
            return default
        return part.data

    def flag(self, key: str, default: bool = False) -> bool:
        """Return the boolean at a key."""
        part = self.child(key)
        if part.data is None:
            return default
        if not isinstance(part.data, bool):
            part.wrong(f"{key} should be true or false, not {shorten(part.data)}")
            return default
        return part.data

    def numbers(self, called: str, *counts: int) -> list[float]:
        """Return a list of finite numbers whose length is one of `counts`; empty if it is not valid."""
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
        """Return the text at a required key, "" if it is missing."""
        if self.child(key).data not in (None, ""):
            return self.text(key)
        self.lacks(key, called)
        return ""

    def lacks(self, key: str, called: str) -> None:
        """Record a missing key, unless it is misspelt, which `is_mapping` has recorded."""
        others = [str(k) for k in self.data if k != key]
        if not difflib.get_close_matches(key, others, n=1, cutoff=0.7):
            self.wrong(f"{called} has no {key}")

    def items(self, key: str) -> list[YamlPart]:
        """Return the parts of the list at a key, none if it is missing."""
        part = self.child(key)
        return [] if part.data is None else part.entries(key)

    def entries(self, called: str) -> list[YamlPart]:
        """Return the parts of a list."""
        if not isinstance(self.data, list):
            self.wrong(f"{called} should be a list, not {shorten(self.data)}")
            return []
        return [self.child(i) for i in range(len(self.data))]

    def members(self, key: str) -> list[tuple[str, YamlPart]]:
        """Return the named parts of the mapping at a key, none if it is missing."""
        part = self.child(key)
        return [] if part.data is None else part.named(key)

    def named(self, called: str) -> list[tuple[str, YamlPart]]:
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
    """Return whether a value is a finite number in the range of a float."""
    return isinstance(data, int | float) and not isinstance(data, bool) and abs(data) <= sys.float_info.max


def _missing(data: Mapping[Any, Any], known: tuple[str, ...]) -> list[str]:
    return [key for key in known if key not in data]


def shorten(data: Any) -> str:
    """Return a value as text of at most 40 characters, for errors."""
    text = "nothing" if data is None else f"{data!r}"
    return text if len(text) <= 40 else f"{text[:37]}..."
