"""Validation of columns against the forms that their type declares, and unique column names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from . import arrow
from .losses import Loss, Parsed

_NAMES = {
    "number": "numbers",
    "numbers": "numbers or lists of numbers",
    "list": "lists of numbers",
    "text": "text",
    "texts": "text or lists of text",
}
"""Forms of columns (see `transect.types`) in error messages."""


def fit_columns(parsed: Parsed, kind: type, name: str) -> Parsed:
    """Return a table whose canonical columns have the form that the type declares.

    Columns of another form are removed and reported as losses. Decimal numbers become floats, null lists and
    missing required list columns become empty lists, and nulls inside lists become NaN.
    """
    table: pa.Table = parsed.table
    forms: Mapping[str, str] = getattr(kind, "forms", dict)() if table.num_rows else {}
    losses: list[Loss] = []
    for field in parsed.table.schema:
        if (form := forms.get(field.name)) is None:
            continue
        at, column = table.schema.get_field_index(field.name), table.column(field.name)
        fitting = _fit_column(column, form)
        if fitting is None:
            table = table.remove_column(at)
            reason = f"the column {field.name} holds {field.type}, {kind.__name__} has {_NAMES[form]} there"
            losses.append(Loss(name, reason, count=table.num_rows))
        elif fitting is not column:
            unit = arrow.unit_of(field)
            table = table.set_column(at, arrow.field_with_unit(field.name, fitting.type, unit), fitting)
    for needed in getattr(kind, "needed_lists", tuple)() if table.num_rows else ():
        if needed not in table.column_names:
            empty = arrow.ragged([np.zeros(0)] * table.num_rows)
            table = table.append_column(
                arrow.field_with_unit(needed, empty.type, kind.units()[needed]), empty
            )
    if table is parsed.table:
        return parsed
    return replace(parsed, table=table, losses=(*parsed.losses, *losses))


def _fit_column(column: pa.ChunkedArray, form: str) -> Any:
    """Return a column converted to a form, the same object if it has that form; None if impossible."""
    kind = column.type
    if form.startswith("text"):
        has_lists = _is_list(kind) and form == "texts"
        is_text = _is_text(kind.value_type if has_lists else kind)
        return column if is_text or (has_lists and not _count_values(column)) else None
    if pa.types.is_decimal(kind) and form != "list":
        return column.cast(pa.float64())
    if not _is_list(kind):
        return column if form != "list" and arrow.holds_numbers(kind) else None
    if form == "number":
        return None
    if not _count_values(column):
        return arrow.ragged([np.zeros(0)] * len(column)) if column.null_count else column
    if _is_list(kind.value_type) or not arrow.holds_numbers(kind.value_type):
        return None
    if not column.null_count and not any(chunk.flatten().null_count for chunk in column.chunks):
        return column
    rows = [[np.nan if number is None else number for number in row or ()] for row in column.to_pylist()]
    return arrow.ragged([np.array(row, dtype=np.float64) for row in rows])


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def holds(kind: pa.DataType, form: str) -> bool:
    """Return whether a column of an Arrow type can have a form (see `transect.types`)."""
    if form.startswith("text"):
        return _is_text(kind) or (form == "texts" and _is_list(kind) and _is_text(kind.value_type))
    if _is_list(kind):
        return form != "number" and not _is_list(kind.value_type) and arrow.holds_numbers(kind.value_type)
    return form != "list" and arrow.holds_numbers(kind)


def _count_values(column: pa.ChunkedArray) -> int:
    return sum(len(chunk.flatten()) for chunk in column.chunks)


def name_once(table: pa.Table) -> pa.Table:
    """Return a table with unique column names: the second `speed` becomes `speed (2)`."""
    if len(set(table.column_names)) == table.num_columns:
        return table
    taken, seen = set(table.column_names), Counter[str]()
    names: list[str] = []
    for name in table.column_names:
        seen[name] += 1
        new = name
        while seen[name] > 1 and new in taken:
            new = f"{name} ({seen[name]})"
            seen[name] += new in taken
        taken.add(new)
        names.append(new)
    return table.rename_columns(names)
