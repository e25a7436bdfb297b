"""The flat columns of a stream, found by whatever a log calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.errors import StreamError
from transect.recording import Loss, Parsed, arrow

AT, LOG, GIVEN = "@at", "@log", "@given"
"""Columns beside the fields: byte of the sample in its file, log time and logical time in ticks."""
LOGICAL = "logical_ns"
"""Column of a stream that has logical time besides sample time and log time."""
_WRAPPERS = (".data", ".arr")


def plain(path: str) -> str:
    """Return a path as all dialects spell it: `ref-time`, `refTime` and `ref_time` are one.

    The last part of `position.data` is only the wrapper of a matrix.
    """
    name = path.lower().replace("_", "").replace("-", "")
    for wrapper in _WRAPPERS:
        if name.endswith(wrapper) and name != f"data{wrapper}":
            return name.removesuffix(wrapper)
    return name


class Flat:
    """Columns by name; those that were asked for are not among the `rest`."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table.combine_chunks()
        self._names = {plain(name): name for name in table.column_names if not name.startswith("@")}
        self._used: set[str] = set()

    def __len__(self) -> int:
        return self.table.num_rows

    def has(self, *names: str) -> bool:
        """Tell whether there is a column of one of the names, as `plain` spells them."""
        return any(name in self._names for name in names)

    def _take(self, names: Sequence[str], fits: Callable[[pa.DataType], bool]) -> str | None:
        """Return the first column that has one of the names and a fitting type, and count it as used."""
        for name in names:
            found = self._names.get(name)
            if found is not None and fits(self.table.schema.field(found).type):
                self._used.add(found)
                return found
        return None

    def numbers(self, *names: str) -> NDArray[Any] | None:
        """Return a column of one number per sample, or None."""
        found = self._take(names, _is_number)
        return None if found is None else arrow.numbers(self.table, found)

    def ticks(self, *names: str) -> Ints | None:
        """Return a column of whole numbers, or None."""
        found = self._take(names, pa.types.is_integer)
        return None if found is None else arrow.numbers(self.table, found).astype(np.int64)

    def vector(self, size: int, *names: str) -> NDArray[np.float64] | None:
        """Return a column of `size` numbers per sample as (n, size), or None."""
        found = self._take(names, _is_list)
        rows = None if found is None else _rows(self.table, found)
        if rows is not None and rows.shape[1] == size:
            return rows
        self._used -= {found}
        return None

    def lists(self, *names: str) -> tuple[NDArray[Any], Ints] | None:
        """Return a column of lists of numbers: all numbers, and where each row begins; or None."""
        found = self._take(names, _is_list)
        return None if found is None else _parts(self.table, found)

    def texts(self, *names: str) -> list[str] | None:
        """Return a column of text, or None."""
        found = self._take(names, pa.types.is_large_string)
        return None if found is None else [text or "" for text in arrow.texts(self.table, found)]

    def column(self, *names: str) -> Any:
        """Return a column as it is, or None."""
        found = self._take(names, lambda _: True)
        return None if found is None else self.table.column(found)

    def under(self, prefix: str) -> Flat:
        """Return the columns whose path begins with a prefix, without it."""
        start = f"{prefix}."
        kept = [n for n in self.table.column_names if n.startswith((start, "@"))]
        return Flat(self.table.select(kept).rename_columns([n.removeprefix(start) for n in kept]))

    def rest(self) -> dict[str, Any]:
        """Return the columns that nobody asked for."""
        return {name: self.table.column(name) for name in self._names.values() if name not in self._used}


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_fixed_size_list(kind) or (pa.types.is_large_list(kind) and _is_number(kind.value_type))


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)


def _rows(table: pa.Table, name: str) -> NDArray[np.float64] | None:
    kind = table.schema.field(name).type
    if pa.types.is_fixed_size_list(kind):
        return arrow.numbers(table, name).astype(np.float64)
    parts = _parts(table, name)
    if parts is None:
        return None
    values, offsets = parts
    lengths = np.diff(offsets)
    if not len(lengths) or (lengths != lengths[0]).any() or not lengths[0]:
        return None
    return values.astype(np.float64).reshape(len(lengths), -1)


def _parts(table: pa.Table, name: str) -> tuple[NDArray[Any], Ints] | None:
    if not table.num_rows or not pa.types.is_large_list(table.schema.field(name).type):
        return None
    column = table.column(name).chunk(0)
    if column.null_count:
        return None
    offsets = np.from_dlpack(column.offsets)
    values = arrow.numbers(pa.table({name: column.flatten()}), name)
    return values, offsets - offsets[0]


def join_tables(parts: Sequence[tuple[str, Parsed]]) -> tuple[pa.Table, list[str], list[Loss]]:
    """Lay the flat tables of several files end to end; return them, the file of each row, and losses.

    A file in which a field is of another kind than before is left out.
    """
    tables: list[pa.Table] = []
    files: list[str] = []
    losses = [loss for _, parsed in parts for loss in parsed.losses]
    for file, parsed in parts:
        try:
            table = pa.concat_tables([*tables, parsed.table], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            reason = "its fields are of another kind than those of the files before it"
            losses.append(Loss(file, reason, count=parsed.table.num_rows))
            continue
        tables = [table] if table.num_rows else []
        files += [file] * parsed.table.num_rows
    return (tables[0] if tables else pa.table({})), files, losses


def split(rows: NDArray[Any] | None, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the columns of (n, k) rows under k names; none for None."""
    if rows is None:
        return {}
    return {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(names)}


def require_columns(columns: Mapping[str, Any], *names: str) -> None:
    """Raise StreamError unless all the columns are there."""
    missing = [name for name in names if name not in columns]
    if missing:
        raise StreamError(f"it has no {', '.join(missing)}")
