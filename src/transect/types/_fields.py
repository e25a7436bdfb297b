"""Mapping between dataclass fields and columns of a table, and rows without a type of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Self

import numpy as np

NOWHERE = ""
"""Frame name of a value whose frame is unknown."""
Form = Literal["number", "numbers", "list", "text", "texts"]
"""Content of a column: a number, numbers (one or a list), a list of numbers, text, texts (one or a list)."""


def columns(*names: str, unit: str = "", optional: bool = False, form: Form = "number") -> Any:
    """Declare a field and the table columns it is made from.

    Parameters
    ----------
    names : str
        Column names, in order; one name is a scalar (or a list column), several are a vector. Missing columns
        of a vector are NaN if the table has at least one of the others.
    unit : str
        SI unit of the columns ("" for none).
    optional : bool
        Whether a table may lack the columns; the field is then None.
    form : {"number", "numbers", "list", "text", "texts"}
        Content of each of the columns.
    """
    metadata = {"columns": names, "unit": unit, "form": form}
    if optional:
        return dataclasses.field(default=None, metadata=metadata)
    return dataclasses.field(metadata=metadata)


def _value(names: Sequence[str], row: Mapping[str, Any]) -> Any:
    if not any(name in row for name in names):
        return None
    if len(names) != 1:
        given = [row.get(name) for name in names]
        return np.array([np.nan if each is None else each for each in given], dtype=np.float64)
    value = row[names[0]]
    return np.asarray(value) if isinstance(value, list) else value


class FromColumns:
    """Mixin: build the dataclass from one row of a table, and list its columns."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any], **given: Any) -> Self:
        """Build a value from a row (column name to value) and explicit field values."""
        fields = {f.name: f for f in dataclasses.fields(cls)}  # pyright: ignore[reportArgumentType]
        values = {k: v for k, v in given.items() if k in fields}
        for name, each in fields.items():
            if "columns" in each.metadata and name not in values:
                value = _value(each.metadata["columns"], row)
                required = each.default is dataclasses.MISSING
                if value is not None or not required:
                    values[name] = value
                elif each.metadata["form"] == "list":
                    values[name] = np.zeros(0)
                else:
                    count = len(each.metadata["columns"])
                    values[name] = np.full(count, np.nan) if count > 1 else np.nan
        return cls(**values)

    @classmethod
    def units(cls) -> dict[str, str]:
        """Return the canonical column names of the type with their units."""
        return {
            name: field.metadata["unit"]
            for field in dataclasses.fields(cls)  # pyright: ignore[reportArgumentType]
            for name in field.metadata.get("columns", ())
        }

    @classmethod
    @cache
    def forms(cls) -> Mapping[str, Form]:
        """Return the content of each canonical column of the type."""
        return {
            name: field.metadata["form"]
            for field in dataclasses.fields(cls)  # pyright: ignore[reportArgumentType]
            for name in field.metadata.get("columns", ())
        }

    @classmethod
    @cache
    def needed_lists(cls) -> tuple[str, ...]:
        """Return the list columns that the type requires."""
        return tuple(
            name
            for field in dataclasses.fields(cls)  # pyright: ignore[reportArgumentType]
            if field.metadata.get("form") == "list" and field.default is dataclasses.MISSING
            for name in field.metadata["columns"]
        )


def _no_values() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, eq=False)
class Record(FromColumns):
    """A row of named values for which there is no sensor type: battery, brakes, status words, commands."""

    # By column name, in the units of the columns; ``record["voltage"]`` is one of them
    values: Mapping[str, Any] = field(default_factory=_no_values)
    t_ns: int = 0
    frame: str = NOWHERE

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @classmethod
    def from_row(cls, row: Mapping[str, Any], **given: Any) -> Self:
        """Build a record from a row; times are not among its values."""
        values = {name: value for name, value in row.items() if name not in ("t_ns", "log_ns")}
        return cls(values, **{name: given[name] for name in ("t_ns", "frame") if name in given})
