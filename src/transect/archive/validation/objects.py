"""Objects in a data file: where they begin and end, and whether their values are within the limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.base.xml import local_name
from transect.formats.pds4.label import NAMESPACE

from .labels import FileEntry, child_line, text_of
from .options import ValidationOptions
from .problems import ValidationProblem, located, problem
from .tables import define_table, table_problems
from .tables.definition import DefinitionError, TableDef, constants_of, count_of, is_table, real_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transect.base.arrays import Bytes

BLOCK_ELEMENTS = 1 << 22
"""Number of elements that are checked at a time."""


@dataclass(frozen=True)
class ArrayDef:
    """One array: shape, the slowest axis first, and what its elements may be."""

    name: str
    line: int
    offset: int
    shape: tuple[int, ...]
    data_type: str
    item_size: int
    limits: tuple[float | None, float | None]
    scaled_limits: tuple[float | None, float | None]
    scale: float
    shift: float
    constants: Mapping[str, str]

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * self.item_size


def define_array(element: Any, kind: str) -> tuple[ArrayDef | None, list[ValidationProblem]]:
    """Return an array as the label defines it, and what is wrong with that."""
    import numpy as np

    from transect.formats.pds4.reading import BINARY

    name = text_of(element, "name") or text_of(element, "local_identifier") or kind
    line = element.sourceline or 0
    stored = element.find(f"{NAMESPACE}Element_Array")
    statistics = element.find(f"{NAMESPACE}Object_Statistics")
    data_type = text_of(stored, "data_type")
    found: list[ValidationProblem] = []
    try:
        axes = sorted(
            (count_of(each, "sequence_number", 0), count_of(each, "elements"))
            for each in element.iterfind(f"{NAMESPACE}Axis_Array")
        )
        offset = count_of(element, "offset", 0)
        declared = count_of(element, "axes", len(axes))
    except DefinitionError as error:
        return None, [problem("label.invalid_object_definition", str(error), line=error.line, part=name)]
    if declared != len(axes):
        text = f"axes is {declared}, but {len(axes)} are defined"
        found.append(problem("label.invalid_object_definition", text, line=line, part=name))
    if data_type not in BINARY or not axes:
        return None, found  # the schema says so
    array = ArrayDef(
        name, line, offset, tuple(size for _, size in axes), data_type, np.dtype(BINARY[data_type]).itemsize,
        (real_of(statistics, "minimum"), real_of(statistics, "maximum")),
        (real_of(statistics, "minimum_scaled_value"), real_of(statistics, "maximum_scaled_value")),
        real_of(stored, "scaling_factor") or 1.0, real_of(stored, "value_offset") or 0.0,
        constants_of(element.find(f"{NAMESPACE}Special_Constants")),
    )  # fmt: skip
    return array, found


def array_problems(array: ArrayDef, data: Bytes) -> Iterator[ValidationProblem]:
    """Yield problems of the values of an array."""
    from transect.formats.pds4.reading import BINARY

    missing = array.offset + array.size - len(data)
    if missing > 0:
        shape = " x ".join(map(str, array.shape))
        found: Iterator[ValidationProblem] = iter(
            [
                problem(
                    "array.bad_file_read",
                    f"{shape} elements of {array.item_size} bytes end {missing} bytes after the file",
                )
            ]
        )
    else:
        values = data[array.offset : array.offset + array.size].view(BINARY[array.data_type])
        found = _merge(_values(array, values))
    yield from located(found, part=array.name, line=array.line)


def _values(array: ArrayDef, values: Any) -> Iterator[tuple[int, ValidationProblem]]:
    import numpy as np

    from .tables.columns import constant_problems, is_constant, range_problems

    if values.dtype.kind == "c":
        return
    for each in constant_problems(array.constants, values.dtype, "array"):
        yield 0, each
    for start in range(0, len(values), BLOCK_ELEMENTS):
        block = values[start : start + BLOCK_ELEMENTS]
        checked = ~is_constant(block, array.constants)
        if block.dtype.kind == "f":
            checked &= ~np.isnan(block)
        shown = partial(_show, block)
        for each in range_problems(block, checked, array.limits, array.constants, "array.value", shown):
            yield start, each
        if array.scaled_limits != (None, None):
            scaled = block * array.scale + array.shift
            rest = checked & ~_near(scaled, array)
            shown = partial(_show, scaled)
            for each in range_problems(scaled, rest, array.scaled_limits, {}, "array.value", shown):
                kind = "array.value_out_of_scaled_min_max_range"
                yield start, problem(kind, each.text, record=each.record, count=each.count)


def _show(values: Any, place: int) -> str:
    return str(values[place])


def _near(scaled: Any, array: ArrayDef) -> Any:
    """Return which scaled values are a limit as the label rounds it."""
    import numpy as np

    near = np.zeros(len(scaled), bool)
    for bound in array.scaled_limits:
        if bound is not None:
            near |= np.isclose(scaled, bound, rtol=1e-6, atol=0)
    return near


def _merge(found: Iterator[tuple[int, ValidationProblem]]) -> Iterator[ValidationProblem]:
    """Yield each kind of problem once: the first, and how many there are in all blocks."""
    import dataclasses

    kinds: dict[str, ValidationProblem] = {}
    for start, each in found:
        known = kinds.get(each.kind)
        if known is None:
            where = f"element {start + each.record}: {each.text}" if each.record else each.text
            kinds[each.kind] = dataclasses.replace(each, text=where, record=0)
        else:
            kinds[each.kind] = dataclasses.replace(known, count=known.count + each.count)
    yield from kinds.values()


@dataclass(frozen=True)
class DataObjectDef:
    """One object: where it is, and its definition, if its data can be looked at."""

    name: str
    offset: int
    size: int | None  # bytes, if the label says so: delimited tables are as long as their records are
    line: int
    what: TableDef | ArrayDef | None


def define_objects(entry: FileEntry) -> tuple[list[DataObjectDef], list[ValidationProblem]]:
    """Return the objects that a label describes in a file, and what is wrong with their definitions."""
    objects: list[DataObjectDef] = []
    found: list[ValidationProblem] = []
    for element in entry.area:
        kind = local_name(element)
        if kind in ("File", "") or element is entry.element:
            continue
        what: TableDef | ArrayDef | None = None
        problems: list[ValidationProblem] = []
        if is_table(kind):
            what, problems = define_table(element, kind)
        elif kind.startswith("Array"):
            what, problems = define_array(element, kind)
        found += problems
        try:
            objects.append(_object(element, kind, what))
        except DefinitionError as error:
            found.append(problem("label.invalid_object_definition", str(error), line=error.line, part=kind))
    found += _overlaps(objects)
    return objects, list(located(found, data=entry.name))


def _object(element: Any, kind: str, what: TableDef | ArrayDef | None) -> DataObjectDef:
    size: int | None = None
    if isinstance(what, ArrayDef):
        size = what.size
    elif isinstance(what, TableDef) and not what.delimited:
        size = what.records * what.record_length
    elif text_of(element, "object_length"):
        size = count_of(element, "object_length")
    name = text_of(element, "name") or text_of(element, "local_identifier") or kind
    return DataObjectDef(name, count_of(element, "offset", 0), size, child_line(element, "offset"), what)


def _overlaps(objects: list[DataObjectDef]) -> Iterator[ValidationProblem]:
    """Yield a problem for each object that begins before another ends, and a warning for their order."""
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
    entry: FileEntry, path: Path, objects: list[DataObjectDef], options: ValidationOptions
) -> Iterator[ValidationProblem]:
    """Yield problems of the data of the objects of a file."""
    wanted = [each for each in objects if each.what is not None]
    found: list[ValidationProblem] = list(_short(objects, path.stat().st_size))
    if wanted:
        data = read_bytes(path)
        for each in wanted:
            if isinstance(each.what, ArrayDef):
                found += array_problems(each.what, data)
            elif isinstance(each.what, TableDef):
                last = each.what.kind == "Inventory" and each is objects[-1]
                found += table_problems(each.what, data, options, last)
    yield from located(found, data=entry.name)


def _short(objects: list[DataObjectDef], size: int) -> Iterator[ValidationProblem]:
    """Yield a problem for each header or text that goes on after the end of the file."""
    for each in objects:
        if each.what is None and each.size is not None and each.offset + each.size > size:
            yield problem(
                "label.invalid_object_definition", line=each.line, part=each.name,
                text=f"it ends at byte {each.offset + each.size}, but the file has {size}",
            )  # fmt: skip


def undescribed(objects: list[DataObjectDef], entry: FileEntry, size: int) -> Iterator[ValidationProblem]:
    """Yield a warning for each part of a file that no object describes."""
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
