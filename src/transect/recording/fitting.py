"""Columns that hold what their type says: numbers where numbers belong, and each name once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

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
"""What an error calls the forms of columns (see `transect.types`)."""


def fit_columns(parsed: Parsed, kind: type, name: str) -> Parsed:
    """Return a table without the canonical columns of a type that hold something else; they are losses.

    Decimal numbers become floats. Everything that uses a stream can then rely on its type.
    """
    table: pa.Table = parsed.table
    forms: Mapping[str, str] = getattr(kind, "forms", dict)() if table.num_rows else {}
    losses: list[Loss] = []
    for field in table.schema:
        form = forms.get(field.name)
        if form is None or holds(field.type, form):
            continue
        at = table.schema.get_field_index(field.name)
        if form not in ("number", "text") and _is_list(field.type) and not _count_values(table.column(at)):
            continue  # lists without an element say nothing of its type
        if pa.types.is_decimal(field.type) and not form.startswith("text"):
            number = arrow.field_with_unit(field.name, pa.float64(), arrow.unit_of(field))
            table = table.set_column(at, number, table.column(at).cast(pa.float64()))
            continue
        table = table.remove_column(at)
        reason = f"the column {field.name} holds {field.type}, {kind.__name__} has {_NAMES[form]} there"
        losses.append(Loss(name, reason, count=table.num_rows))
    return (
        replace(parsed, table=table, losses=(*parsed.losses, *losses))
        if table is not parsed.table
        else parsed
    )


def holds(kind: pa.DataType, form: str) -> bool:
    """Tell whether a column has the form that its type wants (see `transect.types`)."""
    inner, is_list = kind, _is_list(kind)
    while _is_list(inner):
        inner = inner.value_type
    if form.startswith("text"):
        inner = inner.value_type if pa.types.is_dictionary(inner) else inner
        is_text = (
            pa.types.is_string(inner) or pa.types.is_large_string(inner) or pa.types.is_string_view(inner)
        )
        return is_text and (form == "texts" or not is_list)
    if pa.types.is_null(inner):
        return False
    return arrow.holds_numbers(inner) and (is_list or form != "list") and (not is_list or form != "number")


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _count_values(column: pa.ChunkedArray) -> int:
    return sum(len(chunk.flatten()) for chunk in column.chunks)


def name_once(table: pa.Table) -> pa.Table:
    """Return a table whose columns have different names: the second `speed` is called `speed (2)`."""
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
