"""Many samples at once: the values of a stretch of a stream, without a table slice for each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from transect.types import Record

from .arrow import T_NS, numbers
from .stream import Sample, Stream


def values_between(stream: Stream, start: int, stop: int) -> Iterator[Any]:
    """Yield the values of samples `start` to `stop` (row numbers), the same as each sample's own `value`.

    Payloads are loaded one by one as the iterator is advanced; values made of columns are built in one go.
    """
    if stream.loader is None and _is_plain(stream):
        return _build(stream, start, stop)
    return (Sample(stream, index).value for index in range(start, stop))


def _is_plain(stream: Stream) -> bool:
    """Tell whether values can be built column by column: a dataclass of numbers, none of them missing."""
    kind, table = stream.type, stream.table
    if kind is Record or not dataclasses.is_dataclass(kind) or hasattr(kind, "__post_init__"):
        return False
    wanted = [name for names in _columns_of(kind).values() for name in names if name in table.column_names]
    return all(
        (
            pa.types.is_floating(table.schema.field(name).type)
            or pa.types.is_integer(table.schema.field(name).type)
        )
        and table.column(name).null_count == 0
        for name in wanted
    )


def _columns_of(kind: type) -> dict[str, tuple[str, ...]]:
    fields = dataclasses.fields(kind)
    return {f.name: f.metadata["columns"] for f in fields if "columns" in f.metadata}


def _build(stream: Stream, start: int, stop: int) -> Iterator[Any]:
    """Build values from columns."""
    kind, table = stream.type, stream.table.slice(start, stop - start)
    columns = {name: _column(table, names) for name, names in _columns_of(kind).items() if _has(table, names)}
    empty = kind.from_row({}, frame=stream.frame, child=stream.child)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    constant: dict[str, Any] = {k: v for k, v in vars(empty).items() if k not in columns}  # pyright: ignore[reportUnknownArgumentType]
    if "t_ns" in constant:
        columns["t_ns"] = numbers(table, T_NS).tolist
    rows = zip(*(column() for column in columns.values()), range(stop - start), strict=False)
    return _fill(kind, constant, tuple(columns), rows)


def _fill(kind: type, template: dict[str, Any], names: tuple[str, ...], rows: Iterator[Any]) -> Iterator[Any]:
    """Make values a `__dict__` at a time: a third of the time that a frozen dataclass's `__init__` takes."""
    inside_of = next(vars(each)["__dict__"] for each in kind.__mro__ if "__dict__" in vars(each))
    make, fill = object.__new__, inside_of.__set__
    if len(names) == 3:  # an Imu, a Pose: two vectors and the time
        first, second, third = names
        for a, b, c, _ in rows:
            inside = template.copy()
            inside[first], inside[second], inside[third] = a, b, c
            value = make(kind)
            fill(value, inside)
            yield value
        return
    for row in rows:
        value = make(kind)
        fill(value, {**template, **dict(zip(names, row, strict=False))})
        yield value


def _has(table: pa.Table, names: tuple[str, ...]) -> bool:
    return any(name in table.column_names for name in names)


def _column(table: pa.Table, names: tuple[str, ...]) -> Callable[[], Any]:
    """Return a function that gives the rows of a field: numbers, or (k,) arrays that cannot be written to."""
    import numpy as np

    if len(names) == 1:
        return numbers(table, names[0]).tolist
    given = set(table.column_names)
    none = np.full(len(table), np.nan)
    rows = np.column_stack(
        [np.asarray(numbers(table, name), np.float64) if name in given else none for name in names]
    )
    rows.flags.writeable = False
    return lambda: iter(rows)
