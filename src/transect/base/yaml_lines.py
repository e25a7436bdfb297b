"""YAML that remembers where it was written: plain data, and the line of every part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transect.errors import ParseError

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
