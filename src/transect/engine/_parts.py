"""The parts of a description file: plain data that knows its line, and notes what is wrong with it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transect.errors import did_you_mean
from transect.recording.yaml_lines import Lines, Path


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
