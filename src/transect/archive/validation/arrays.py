"""Arrays: whether the file holds them, and whether their values are within what the label says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from transect.formats.pds4.label import NAMESPACE

from .labels import text_of
from .problems import Problem, located, problem
from .tables.definition import DefinitionError, constants_of, count_of, real_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transect.base.arrays import Bytes

BLOCK = 1 << 22
"""Elements that are looked at together."""


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


def define_array(element: Any, kind: str) -> tuple[ArrayDef | None, list[Problem]]:
    """Return an array as the label defines it, and what is wrong with that."""
    import numpy as np

    from transect.formats.pds4.tables import BINARY

    name = text_of(element, "name") or text_of(element, "local_identifier") or kind
    line = element.sourceline or 0
    stored = element.find(f"{NAMESPACE}Element_Array")
    statistics = element.find(f"{NAMESPACE}Object_Statistics")
    data_type = text_of(stored, "data_type")
    found: list[Problem] = []
    try:
        axes = sorted(
            (count_of(each, "sequence_number", 0), count_of(each, "elements"))
            for each in element.iterfind(f"{NAMESPACE}Axis_Array")
        )
        offset = count_of(element, "offset", 0)
        said = count_of(element, "axes", len(axes))
    except DefinitionError as error:
        return None, [problem("label.invalid_object_definition", str(error), line=error.line, part=name)]
    if said != len(axes):
        text = f"axes is {said}, but {len(axes)} are defined"
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


def array_problems(array: ArrayDef, data: Bytes) -> Iterator[Problem]:
    """Give what is wrong with the values of an array."""
    from transect.formats.pds4.tables import BINARY

    missing = array.offset + array.size - len(data)
    if missing > 0:
        shape = " x ".join(map(str, array.shape))
        found: Iterator[Problem] = iter(
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


def _values(array: ArrayDef, values: Any) -> Iterator[tuple[int, Problem]]:
    import numpy as np

    from .tables.ranges import constant_problems, is_constant, range_problems

    if values.dtype.kind == "c":
        return
    for each in constant_problems(array.constants, values.dtype, "array"):
        yield 0, each
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
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


def _merge(found: Iterator[tuple[int, Problem]]) -> Iterator[Problem]:
    """Give each kind of problem once: the first, and how many there are in all blocks."""
    import dataclasses

    kinds: dict[str, Problem] = {}
    for start, each in found:
        known = kinds.get(each.kind)
        if known is None:
            where = f"element {start + each.record}: {each.text}" if each.record else each.text
            kinds[each.kind] = dataclasses.replace(each, text=where, record=0)
        else:
            kinds[each.kind] = dataclasses.replace(known, count=known.count + each.count)
    yield from kinds.values()
