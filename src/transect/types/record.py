"""Rows of named values without a sensor type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ._fields import NOWHERE, FromColumns


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
