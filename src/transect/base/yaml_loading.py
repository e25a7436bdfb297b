"""YAML loading from libyaml's events, with limits that are checked while reading.

PyYAML's own loaders build a tree of nodes first and copy mappings for every merge key, so that ten lines
can take minutes and gigabytes. Here every list and mapping is built once and shared by its aliases, and the
size with expanded aliases is limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from transect.errors import ParseError

MAX_CHARACTERS = 4_000_000
MAX_DEPTH = 50
"""Largest nesting of lists and mappings."""
MAX_PARTS = 500_000
"""Scalars, lists and mappings of a file with expanded aliases; ten lines can define a billion."""
MAX_NUMBER_CHARACTERS = 400
"""Python converts decimal and sexagesimal numbers in quadratic time."""
MAX_DIRECTIVES = 100
"""libyaml compares every %TAG directive with all earlier ones."""
MAX_INTEGER_KEY = 2**60
"""Larger integers can be chosen so that all have one hash."""

_TAGS = "tag:yaml.org,2002:"
_DIGITS = re.compile(r"[-+0-9a-fA-Fx._:]+")
"""Characters of a number in any notation."""
_SCALARS = tuple(_TAGS + name for name in ("null", "bool", "int", "float", "timestamp", "binary"))
_TEXT = ("!", *(_TAGS + name for name in ("str", "merge", "value")))


class Document(NamedTuple):
    """A document of a file: its data and their lines."""

    data: Any
    line: int  # first line, counted from 0
    # the line of each entry by index or key, by the `id` of its list or mapping
    lines: Mapping[int, Mapping[Any, int] | list[int]]


class _Open:
    """A list or mapping under construction; `size` counts its parts with expanded aliases."""

    __slots__ = ("anchor", "data", "key", "key_line", "line", "lines", "merged", "size")

    def __init__(self, data: Any, line: int, anchor: str | None) -> None:
        self.data, self.line, self.anchor = data, line, anchor
        self.lines: Any = type(data)()
        self.size = 1
        self.key: Any = _NO_KEY
        self.key_line = line
        self.merged: list[tuple[Any, int]] | None = None


_NO_KEY, _MERGE = object(), object()


def load_documents(text: str, file: str) -> Iterator[Document]:
    """Yield the documents of a YAML text.

    Raises
    ------
    ParseError
        If it is not YAML, gives a key twice, has an impossible value (a 30th of February) or a tag that is
        not plain data, or is longer, deeper or (by its aliases) larger than is allowed.
    """
    import yaml

    if len(text) > MAX_CHARACTERS:
        raise ParseError(f"{file} is too large", where=file, why=f"more than {MAX_CHARACTERS} characters")
    if text.count("%TAG") > MAX_DIRECTIVES:
        why = f"it has more than {MAX_DIRECTIVES} %TAG directives"
        raise ParseError(f"{file} is too large", where=file, why=why)
    loader = _Loader(file)
    try:
        yield from loader.documents(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        raise ParseError(f"{file} is not YAML", where=where, why=error.problem or str(error)) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise ParseError(f"{file} is not YAML", where=file, why=str(error)) from error


class _Loader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.scalar = _scalars()
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int] | None] = {}
        self.lines: dict[int, Any] = {}
        self.root: tuple[Any, int] = (None, 0)
        self.parts = 0

    def documents(self, events: Iterator[Any]) -> Iterator[Document]:
        import yaml

        handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._add_scalar,
            yaml.AliasEvent: self._add_alias,
            yaml.SequenceStartEvent: self._begin_list,
            yaml.MappingStartEvent: self._begin_mapping,
            yaml.SequenceEndEvent: self._end,
            yaml.MappingEndEvent: self._end,
        }
        for event in events:
            if known := handlers.get(type(event)):
                known(event)
            elif type(event) is yaml.DocumentStartEvent:
                self.anchors, self.lines = {}, {}
            elif type(event) is yaml.DocumentEndEvent:
                self._count(1)
                yield Document(*self.root, self.lines)

    def _add_scalar(self, event: Any) -> None:
        line: int = event.start_mark.line
        text: str = event.value
        if text == "<<" and event.implicit[0] and self.stack:
            top = self.stack[-1]
            if top.key is _NO_KEY and type(top.data) is dict:
                self._check_new(top.merged is None, text, line)
                top.key, top.key_line, top.merged = _MERGE, line, []
                return
        try:
            value = self.scalar(text, event.tag, event.implicit[0])
        except (ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
            shown = text if len(text) <= 40 else f"{text[:37]}..."
            where, why = f"{self.file}:{line + 1}", f"{shown!r}: {error}"
            raise ParseError(
                f"{self.file} is not YAML", where=where, why=why, hint="put text in quotes"
            ) from error
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, 1)
        self._put(value, line, 1)

    def _add_alias(self, event: Any) -> None:
        line: int = event.start_mark.line
        name: str = event.anchor
        if name not in self.anchors:
            why = f"the alias *{name} is not defined"
            raise ParseError(f"{self.file} is not YAML", where=f"{self.file}:{line + 1}", why=why)
        if (known := self.anchors[name]) is None:
            raise ParseError("an alias refers to itself", where=f"{self.file}:{line + 1}")
        self._put(known[0], line, known[1])

    def _begin_list(self, event: Any) -> None:
        self._begin(event, [])

    def _begin_mapping(self, event: Any) -> None:
        self._begin(event, {})

    def _begin(self, event: Any, data: Any) -> None:
        line: int = event.start_mark.line
        if len(self.stack) >= MAX_DEPTH:
            why = f"its lists and mappings are nested more than {MAX_DEPTH} deep"
            raise ParseError(f"{self.file} is nested too deeply", where=f"{self.file}:{line + 1}", why=why)
        kind = f"{_TAGS}{'seq' if type(data) is list else 'map'}"
        if event.tag not in (None, "!", kind):
            raise _unknown_tag(event.tag, self.file, line)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.stack.append(_Open(data, line, event.anchor))

    def _end(self, _: Any) -> None:
        done = self.stack.pop()
        data, lines = done.data, done.lines
        if done.merged:
            data, lines = self._merge(done)
        if data:
            self.lines[id(data)] = lines
        if done.anchor is not None:
            self.anchors[done.anchor] = (data, done.size)
        self._put(data, done.line, done.size)

    def _merge(self, done: _Open) -> tuple[dict[Any, Any], dict[Any, int]]:
        """Return a mapping with merged ones; its own keys have precedence, then those of the first."""
        data: dict[Any, Any] = {}
        lines: dict[Any, int] = {}
        for base, line in reversed(done.merged or ()):
            if type(base) is not dict:
                why = "<< needs a mapping, or a list of mappings"
                raise ParseError(f"{self.file} is not YAML", where=f"{self.file}:{line + 1}", why=why)
            self._count(len(base))
            data.update(base)
            lines.update(self.lines.get(id(base), {}))
        return data | done.data, lines | done.lines

    def _put(self, value: Any, line: int, size: int) -> None:
        """Add a complete part to its parent."""
        self._count(1)
        if not self.stack:
            self.root = (value, line)
            return
        top = self.stack[-1]
        top.size += size
        if top.size > MAX_PARTS:
            self._refuse_size()
        data = top.data
        if type(data) is list:
            data.append(value)
            top.lines.append(line)
        elif top.key is _NO_KEY:
            self._check_key(value, data, line)
            top.key, top.key_line = value, line
        else:
            if top.key is _MERGE:
                top.merged = [(each, line) for each in (value if type(value) is list else [value])]
            else:
                data[top.key] = value
                top.lines[top.key] = top.key_line
            top.key = _NO_KEY

    def _check_key(self, key: Any, data: dict[Any, Any], line: int) -> None:
        where = f"{self.file}:{line + 1}"
        if type(key) in (list, dict):
            why = "a list or a mapping cannot be a key"
            raise ParseError(f"{self.file} is not YAML", where=where, why=why)
        if type(key) is int and abs(key) > MAX_INTEGER_KEY:
            raise ParseError(f"{self.file} is not YAML", where=where, why=f"{key} is too large for a key")
        self._check_new(key not in data, key, line)

    def _check_new(self, is_new: bool, key: Any, line: int) -> None:
        if not is_new:
            raise ParseError(f"the key {key!r} is given twice", where=f"{self.file}:{line + 1}")

    def _count(self, parts: int) -> None:
        """Count parts that are read, and keys that are merged."""
        self.parts += parts
        if self.parts > MAX_PARTS:
            self._refuse_size()

    def _refuse_size(self) -> None:
        why = f"it has more than {MAX_PARTS} parts with expanded aliases"
        raise ParseError(f"{self.file} is too large", where=self.file, why=why)


def _unknown_tag(tag: str, file: str, line: int) -> ParseError:
    shown = tag.replace(_TAGS, "!!") if len(tag) <= 60 else f"{tag[:57]}..."
    why = f"the tag {shown} is not for plain data"
    return ParseError(f"{file} is not YAML", where=f"{file}:{line + 1}", why=why, hint="remove the tag")


def _scalars() -> Callable[[str, str | None, bool], Any]:
    """Return a function that converts a scalar: its text, tag, and whether it is plain (not quoted)."""
    import yaml

    resolvers: Mapping[str, list[tuple[str, Any]]] = yaml.SafeLoader.yaml_implicit_resolvers
    makers: Mapping[str, Any] = yaml.SafeLoader.yaml_constructors
    maker = yaml.constructor.SafeConstructor()
    plain: dict[str, Any] = {}

    def make(text: str, tag: str) -> Any:
        if tag in _TEXT:
            return text
        if tag not in _SCALARS:
            raise ValueError(f"the tag {tag.replace(_TAGS, '!!')} is not for plain data")
        if len(text) > MAX_NUMBER_CHARACTERS and not tag.endswith("binary"):
            raise ValueError(f"a number of {len(text)} characters")
        return makers[tag](maker, yaml.ScalarNode(tag, text))

    def value(text: str, tag: str | None, is_plain: bool) -> Any:
        if tag not in (None, "!"):
            return make(text, tag)
        if not is_plain:
            return text
        if text not in plain:
            if len(text) > MAX_NUMBER_CHARACTERS:
                return make(text, _TAGS + "int") if _DIGITS.fullmatch(text) else text
            known = resolvers.get(text[:1], ())
            plain[text] = make(text, next((tag for tag, form in known if form.match(text)), "!"))
        return plain[text]

    return value
