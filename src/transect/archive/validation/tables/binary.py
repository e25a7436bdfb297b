"""Binary tables: numbers and texts of a fixed place in each record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from transect.base.arrays import Bytes
from transect.formats.pds4.tables import BINARY

from ..problems import Problem, located, problem
from .columns import Column
from .definition import FieldDef, TableDef
from .fields import field_problems
from .fixed import too_short
from .ranges import LIMITS, constant_problems, is_constant, range_problems


def binary_problems(table: TableDef, data: Bytes) -> Iterator[Problem]:
    """Give what is wrong with a `Table_Binary`: a short file, texts of other types, values out of range."""
    size = table.record_length
    count = min(table.records, max(len(data) - table.offset, 0) // size)
    if count < table.records:
        yield too_short(table, max(len(data) - table.offset, 0))
    body = data[table.offset : table.offset + count * size].reshape(count, size)
    base = table.offset + np.arange(count) * size
    for each in table.fields:
        kind = BINARY.get(each.data_type)
        if kind is None:
            yield from field_problems(
                each, Column(data, base + each.start, base + each.end), delimited=False, formats=False
            )
        elif np.dtype(kind).itemsize != each.length:
            yield _wrong_length(table, each, np.dtype(kind).itemsize)
        else:
            wrong = constant_problems(each.constants, np.dtype(kind), "field")
            yield from located(wrong, field=each.title, line=each.line)
            yield from _numbers(each, body[:, each.start : each.end].copy().view(kind)[:, 0])


def _wrong_length(table: TableDef, each: FieldDef, size: int) -> Problem:
    return problem(
        "table.bad_field_read", line=each.line, part=table.name, field=each.title,
        text=f"field_length is {each.length}, but a {each.data_type} has {size} bytes",
    )  # fmt: skip


def _numbers(each: FieldDef, values: Any) -> Iterator[Problem]:
    if each.minimum is None and each.maximum is None and not any(name in each.constants for name in LIMITS):
        return
    if values.dtype.kind == "c":
        return
    checked = ~is_constant(values, each.constants)
    if values.dtype.kind == "f":
        checked &= ~np.isnan(values)
    limits = (each.minimum, each.maximum)
    for said in range_problems(
        values, checked, limits, each.constants, "table.field_value", lambda row: str(values[row])
    ):
        yield problem(
            said.kind, said.text, record=said.record, count=said.count, line=each.line, field=each.title
        )
