"""Objects in a file: where they begin and end, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.base.xml import local_name

from .arrays import ArrayDef, array_problems, define_array
from .labels import FileEntry, child_line, text_of
from .options import Options
from .problems import Problem, located, problem
from .tables import define_table, table_problems
from .tables.definition import DefinitionError, TableDef, count_of, is_table

if TYPE_CHECKING:
    from transect.base.arrays import Bytes


@dataclass(frozen=True)
class Object:
    """One object: where it is, and its definition, if its data can be looked at."""

    name: str
    offset: int
    size: int | None  # bytes, if the label says so: delimited tables are as long as their records are
    line: int
    what: TableDef | ArrayDef | None


def define_objects(entry: FileEntry) -> tuple[list[Object], list[Problem]]:
    """Return the objects that a label describes in a file, and what is wrong with their definitions."""
    objects: list[Object] = []
    found: list[Problem] = []
    for element in entry.area:
        kind = local_name(element)
        if kind in ("File", "") or element is entry.element:
            continue
        what: TableDef | ArrayDef | None = None
        said: list[Problem] = []
        if is_table(kind):
            what, said = define_table(element, kind)
        elif kind.startswith("Array"):
            what, said = define_array(element, kind)
        found += said
        try:
            objects.append(_object(element, kind, what))
        except DefinitionError as error:
            found.append(problem("label.invalid_object_definition", str(error), line=error.line, part=kind))
    found += _overlaps(objects)
    return objects, list(located(found, data=entry.name))


def _object(element: Any, kind: str, what: TableDef | ArrayDef | None) -> Object:
    size: int | None = None
    if isinstance(what, ArrayDef):
        size = what.size
    elif isinstance(what, TableDef) and not what.delimited:
        size = what.records * what.record_length
    elif text_of(element, "object_length"):
        size = count_of(element, "object_length")
    name = text_of(element, "name") or text_of(element, "local_identifier") or kind
    return Object(name, count_of(element, "offset", 0), size, child_line(element, "offset"), what)


def _overlaps(objects: list[Object]) -> Iterator[Problem]:
    """Give a problem for each object that begins before another ends, and a warning for their order."""
    ordered = sorted(objects, key=lambda each: each.offset)
    end, before = 0, ""
    for each in ordered:
        if each.offset < end:
            yield problem(
                "label.invalid_object_definition", line=each.line, part=each.name,
                text=f"offset is {each.offset}, but {before} before it ends at byte {end}",
                cause=f"offset should be at least {end}",
            )  # fmt: skip
        end, before = max(end, each.offset + (each.size or 0)), each.name
    late = next((b for a, b in pairwise(objects) if b.offset < a.offset), None)
    if late is not None:
        text = f"it begins at byte {late.offset}, before the object that the label describes before it"
        yield problem("data_objects.out_of_order", text, line=late.line, part=late.name)


def object_problems(
    entry: FileEntry, path: Path, objects: list[Object], options: Options
) -> Iterator[Problem]:
    """Give what is wrong with the data of the objects of a file."""
    wanted = [each for each in objects if each.what is not None]
    found: list[Problem] = list(_short(objects, path.stat().st_size))
    if wanted:
        data = read_bytes(path)
        for each in wanted:
            if isinstance(each.what, ArrayDef):
                found += array_problems(each.what, data)
            elif isinstance(each.what, TableDef):
                last = each.what.kind == "Inventory" and each is objects[-1]
                found += table_problems(each.what, data, options, last)
    yield from located(found, data=entry.name)


def _short(objects: list[Object], size: int) -> Iterator[Problem]:
    """Give a problem for each header or text that goes on after the end of the file."""
    for each in objects:
        if each.what is None and each.size is not None and each.offset + each.size > size:
            yield problem(
                "label.invalid_object_definition", line=each.line, part=each.name,
                text=f"it ends at byte {each.offset + each.size}, but the file has {size}",
            )  # fmt: skip


def undescribed(objects: list[Object], entry: FileEntry, size: int) -> Iterator[Problem]:
    """Give a warning for each part of a file that no object describes."""
    if any(each.size is None for each in objects):
        return
    end = 0
    for each in sorted(objects, key=lambda one: one.offset):
        if each.offset > end:
            yield problem(
                "data.not_described",
                f"bytes {end} to {each.offset} are not described",
                data=entry.name,
                line=each.line,
            )
        end = max(end, each.offset + (each.size or 0))
    if end < size and objects:
        yield problem(
            "data.not_described", f"bytes {end} to {size} are not described", data=entry.name, line=entry.line
        )


def read_bytes(path: Path) -> Bytes:
    """Return a file as an array of bytes, mapped, so that only what is looked at is read."""
    import numpy as np

    if not path.stat().st_size:
        return np.zeros(0, np.uint8)
    return np.asarray(np.memmap(path, np.uint8, "r"))
