"""Conversion between numpy arrays and Arrow tables without importing pandas.

``pa.array`` and ``Array.to_numpy`` import pandas if it is installed, which takes seconds; all conversions
between numpy and Arrow therefore use this module. Units are stored in the field metadata.
"""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Ints, Mask
from transect.errors import StreamError, did_you_mean

T_NS = "t_ns"
LOG_NS = "log_ns"
PAYLOAD = "payload"
PART = "joined_part"
"""Column of a joined payload stream: index of the joined recording to which a row belongs."""

_ARROW_TYPES: dict[str, pa.DataType] = {
    "float64": pa.float64(),
    "float32": pa.float32(),
    "int64": pa.int64(),
    "int32": pa.int32(),
    "int16": pa.int16(),
    "int8": pa.int8(),
    "uint64": pa.uint64(),
    "uint32": pa.uint32(),
    "uint16": pa.uint16(),
    "uint8": pa.uint8(),
}


def from_numpy(values: NDArray[Any]) -> pa.Array:
    """Wrap a numpy array without copying: (n,) a plain column, (n, k) a fixed-size list column."""
    values = np.ascontiguousarray(values)
    if values.dtype == np.bool_:
        kind, content = pa.bool_(), np.packbits(values.reshape(-1), bitorder="little")
    else:
        kind, content = _ARROW_TYPES[values.dtype.name], values.reshape(-1)
    flat = pa.Array.from_buffers(kind, values.size, [None, pa.py_buffer(content)])
    if values.ndim == 1:
        return flat
    width = int(np.prod(values.shape[1:]))
    return pa.FixedSizeListArray.from_arrays(flat, width)


def reader_of(data: bytes | memoryview) -> pa.BufferReader:
    """Return bytes as a file for Arrow's readers, copied to memory that Arrow allocated.

    Reader threads may release the memory last. Releasing memory of Python aborts a process that is exiting.
    """
    own = pa.allocate_buffer(len(data))
    memoryview(own).cast("B")[:] = data
    return pa.BufferReader(own)


def strings(values: Iterable[str]) -> pa.Array:
    """Return a string column."""
    encoded = [value.encode("utf-8", "replace") for value in values]
    offsets = offsets_of([len(each) for each in encoded])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def offsets_of(lengths: Sequence[int] | Ints) -> Ints:
    """Return the (n + 1,) offsets of concatenated rows with n lengths."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ragged(values: Sequence[NDArray[Any]]) -> pa.Array:
    """Return a list column from arrays of unequal length and one dtype."""
    offsets = offsets_of([len(each) for each in values])
    flat = np.concatenate(values) if len(values) else np.zeros(0)
    return ragged_from_offsets(flat, offsets)


def ragged_from_offsets(flat: NDArray[Any], offsets: NDArray[np.int64]) -> pa.Array:
    """Return a list column: row i is ``flat[offsets[i]:offsets[i + 1]]``."""
    child = from_numpy(flat)
    return pa.LargeListArray.from_buffers(
        pa.large_list(child.type),
        len(offsets) - 1,
        [None, pa.py_buffer(np.ascontiguousarray(offsets, dtype=np.int64))],
        children=[child],
    )


def lists_of(table: pa.Table, name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the concatenated values of a list column and its (n + 1,) offsets."""
    import pyarrow.compute as pc  # slow to import, and few commands need it

    chunks = [chunk for chunk in table.column(name).chunks if len(chunk)]
    lengths = [np.from_dlpack(pc.list_value_length(chunk)) for chunk in chunks]  # pyright: ignore[reportAttributeAccessIssue]
    values = [np.from_dlpack(chunk.flatten()) for chunk in chunks if len(chunk.flatten())]
    flat = np.concatenate(values).astype(np.float64, copy=False) if values else np.zeros(0)
    return flat, np.concatenate([np.zeros(1, np.int64), *lengths]).cumsum(dtype=np.int64)


def column(values: Any) -> pa.Array | pa.ChunkedArray:
    """Return an Arrow column from a numpy array, a list of str, a list of arrays, or Arrow itself."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "US":
            return strings([str(v) for v in values.tolist()])
        return from_numpy(values)
    items = list(values)
    if items and isinstance(items[0], np.ndarray):
        return ragged(items)
    if all(isinstance(item, str) for item in items):
        return strings(items)
    return from_numpy(np.asarray(items))


def table(
    t_ns: Any,
    columns: Mapping[str, Any],
    *,
    units: Mapping[str, str] | None = None,
    log_ns: Any = None,
) -> pa.Table:
    """Return a stream's table: `t_ns`, `log_ns` if given, then the columns with their units.

    `columns` has values that `column` accepts; `t_ns` and `log_ns` (logging times) are (n,) int64.
    """
    units = units or {}
    parts: dict[str, Any] = {T_NS: np.asarray(t_ns, dtype=np.int64)}
    if log_ns is not None:
        parts[LOG_NS] = np.asarray(log_ns, dtype=np.int64)
    parts.update(columns)
    arrays = [column(values) for values in parts.values()]
    fields = [
        field_with_unit(name, array.type, "ns" if name in (T_NS, LOG_NS) else units.get(name, ""))
        for name, array in zip(parts, arrays, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def field_with_unit(name: str, kind: pa.DataType, unit: str) -> pa.Field:
    """Return a schema field that carries its unit in the metadata."""
    return pa.field(name, kind, metadata={"unit": unit} if unit else None)


def unit_of(field: pa.Field) -> str:
    """Return the unit of a schema field, "" if it has none."""
    return (field.metadata or {}).get(b"unit", b"").decode("utf-8", "replace")


def numbers(table: pa.Table, name: str) -> NDArray[Any]:
    """Return a numeric column as a numpy array, nulls as NaN; list columns of equal length become (n, k).

    Zero copy where the column is one chunk without nulls.
    """
    if name not in table.column_names:
        raise StreamError(f"no column {name!r}", hint=did_you_mean(name, table.column_names))
    parts = [chunk for chunk in table.column(name).chunks if len(chunk)]
    bound_pages(part.nbytes for part in parts)
    chunks = [_chunk_numbers(part) for part in parts]
    if not chunks:
        return _no_numbers(table.schema.field(name).type)
    if len({chunk.shape[1:] for chunk in chunks}) > 1:
        raise StreamError(f"the rows of {name} have unequal lengths", hint="read it row by row")
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)


BLOCK_ROWS = 1 << 18
"""Rows processed at a time, to limit memory for tables of any size."""


class LazyColumns:
    """Numeric columns that are sliced like an array; each slice is converted on access.

    A column that was parsed in chunks would be copied as one array. One name gives slices (n,), k names
    (n, k) of float64.
    """

    def __init__(self, table: pa.Table, *names: str) -> None:
        self._table = table.select(list(names))

    def __len__(self) -> int:
        return self._table.num_rows

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, _ = rows.indices(len(self))
        part = self._table.slice(start, max(0, stop - start))
        columns = [numbers(part, name) for name in part.column_names]
        return columns[0] if len(columns) == 1 else np.column_stack(columns).astype(np.float64, copy=False)


def block_ranges(start: int, stop: int, *, overlap: int = 1) -> Iterator[tuple[int, int]]:
    """Yield row ranges of blocks that share `overlap` rows, so that no step between rows is missed."""
    for at in range(start, max(stop - overlap, start + 1), BLOCK_ROWS):
        yield at, min(at + BLOCK_ROWS + overlap, stop)


def holds_numbers(kind: pa.DataType) -> bool:
    """Return whether a column has numbers, booleans or lists of these."""
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return holds_numbers(kind.value_type)
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _no_numbers(kind: pa.DataType) -> NDArray[Any]:
    """Return a column of no rows: (0,), or (0, k) for lists of k."""
    if pa.types.is_fixed_size_list(kind):
        return np.zeros((0, kind.list_size), dtype=_numpy_dtype(kind.value_type))
    return np.zeros(0, dtype=_numpy_dtype(kind))


def _numpy_dtype(kind: pa.DataType) -> np.dtype[Any]:
    names = {arrow: name for name, arrow in _ARROW_TYPES.items()}
    return np.dtype(names.get(kind, "float64"))


def _chunk_numbers(chunk: pa.Array) -> NDArray[Any]:
    kind = chunk.type
    if pa.types.is_fixed_size_list(kind) and chunk.null_count:
        known = _chunk_numbers(chunk.flatten()).reshape(-1, kind.list_size)
        rows = np.full((len(chunk), kind.list_size), np.nan)
        rows[_chunk_numbers(chunk.is_valid())] = known
        return rows
    if pa.types.is_fixed_size_list(kind):
        return _chunk_numbers(chunk.flatten()).reshape(len(chunk), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _equal_lists(chunk)
    if pa.types.is_boolean(kind):
        numbers = _chunk_numbers(chunk.cast(pa.uint8()))
        return numbers if chunk.null_count else numbers.astype(bool)
    if not holds_numbers(kind):
        raise StreamError(
            f"a column of {kind} holds no numbers", hint="stream.table.column(NAME).to_pylist()"
        )
    return _nulls_as_nan(chunk.cast(pa.float64())) if chunk.null_count else np.from_dlpack(chunk)


def _nulls_as_nan(chunk: pa.Array) -> NDArray[np.float64]:
    """Return a float64 chunk with NaN for nulls; `fill_null` of Arrow imports pandas."""
    return np.where(_is_valid(chunk), _raw_numbers(chunk), np.nan)


def integers(column: pa.ChunkedArray) -> tuple[NDArray[Any], Mask]:
    """Return the exact integers of a column, and the mask of rows that are not null (undefined elsewhere)."""
    if not column.num_chunks:
        return np.zeros(0, _numpy_dtype(column.type)), np.zeros(0, np.bool_)
    valid = np.concatenate([_is_valid(chunk) for chunk in column.chunks])
    return np.concatenate([_raw_numbers(chunk) for chunk in column.chunks]), valid


def _is_valid(chunk: pa.Array) -> Mask:
    if not chunk.null_count:
        return np.ones(len(chunk), np.bool_)
    bits = np.unpackbits(np.frombuffer(chunk.buffers()[0], np.uint8), bitorder="little")
    return bits[chunk.offset : chunk.offset + len(chunk)].astype(np.bool_)


def _raw_numbers(chunk: pa.Array) -> NDArray[Any]:
    """Return the buffer of a chunk of numbers, with undefined values for nulls."""
    dtype, data = _numpy_dtype(chunk.type), chunk.buffers()[1]
    values = np.frombuffer(data, dtype) if data else np.zeros(0, dtype)
    return values[chunk.offset : chunk.offset + len(chunk)]


def _equal_lists(chunk: pa.Array) -> NDArray[Any]:
    flat = _chunk_numbers(chunk.flatten())
    if np.diff(np.from_dlpack(chunk.offsets), n=2).any():
        raise StreamError("the rows of this list column have unequal lengths", hint="read it row by row")
    return flat.reshape(len(chunk), -1)


def texts(table: pa.Table, name: str) -> list[str]:
    """Return a string column as a list."""
    return table.column(name).to_pylist()


def empty(names_units: Mapping[str, str] | None = None) -> pa.Table:
    """Return a table without rows, with float columns of the given names and units."""
    names_units = names_units or {}
    return table(np.zeros(0, np.int64), {name: np.zeros(0) for name in names_units}, units=names_units)


PAGE_RELEASE_BYTES = 1 << 26
"""Bytes read from mapped files after which their pages are released."""
_READAHEAD_BYTES = 1 << 16
"""Bytes that the system loads around one that is read."""

_mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_read_bytes = 0


def map_file(path: Path) -> pa.Buffer:
    """Return the bytes of a file, mapped as long as the buffer or a slice of it is referenced."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _mapped.add(mapped)
    return pa.py_buffer(mapped)


def bound_pages(sizes: Iterable[int]) -> None:
    """Release the pages of mapped files if reading parts of these sizes in bytes exceeds the limit."""
    global _read_bytes
    if not len(_mapped):
        return
    _read_bytes += sum(max(size, _READAHEAD_BYTES) for size in sizes)
    if _read_bytes > PAGE_RELEASE_BYTES:
        _read_bytes = 0
        for mapped in list(_mapped) if hasattr(mmap, "MADV_DONTNEED") else ():
            mapped.madvise(mmap.MADV_DONTNEED)
