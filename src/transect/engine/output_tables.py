"""Numbers, texts and structures of them as a Parquet file: a row per value, `t_ns` first, with units.

A dataclass becomes a column per field, those of a sensor type under their canonical names; a mapping a column
per key; fields in fields are joined by a dot. An array is a list column, one of several dimensions with its
shape beside it. What is None in all values has no column.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.files import atomic_write, write_bytes
from transect.errors import TransectError
from transect.formats.tum import header, pose_lines
from transect.recording import arrow, parquet
from transect.recording.arrow import T_NS
from transect.types import Trajectory

MAX_GROUP_ROWS, MAX_GROUP_BYTES = 16_384, 8_000_000
"""Size of a row group, in rows or approximate bytes."""
VALUE = "value"
"""Column of values that have no fields: numbers, texts, arrays."""
_KEPT_ASIDE = ("t_ns", "frame", "child")
"""Fields of a sensor type that are the stream's: its time axis and its metadata."""
_NUMBER = (int, float, np.integer, np.floating)


class KeepingError(TransectError):
    """A value for which there is no file."""


class ColumnBuffer(NamedTuple):
    """Values of one column, one per row, None if missing."""

    name: str
    values: Sequence[Any]
    unit: str = ""


class TableSink:
    """Rows of a port, written in groups as they come.

    A group whose columns differ from those before begins a part of its own; closing joins the parts, with
    nulls where one had no such column.
    """

    def __init__(self, base: Path, port: str, clock: str) -> None:
        self._path, self._port, self._clock = base.with_name(f"{base.name}.parquet"), port, clock
        self._times: list[int] = []
        self._values: list[Any] = []
        self._bytes = 0
        self._kind: type | None = None
        self._schema: pa.Schema | None = None
        self._parts: list[Path] = []
        self._writer: Any = None

    def add(self, t_ns: int, value: Any) -> None:
        """Keep one value; raise KeepingError for one that has no columns, or not those of the others."""
        self._check(value)
        self._times.append(t_ns)
        self._values.append(value)
        self._bytes += size_of(value)
        if len(self._times) >= MAX_GROUP_ROWS or self._bytes >= MAX_GROUP_BYTES:
            self._flush()

    def _check(self, value: Any) -> None:
        """Refuse a value before it can spoil the group that it would be written with."""
        if self._kind is None:
            self._table([0], [value])
            self._kind = type(value)
        if type(value) is not self._kind and not (
            isinstance(value, _NUMBER) and issubclass(self._kind, _NUMBER)
        ):
            raise KeepingError(
                f"{self._port}: {type(value).__name__} among values of {self._kind.__name__}",
                hint="give each kind a port",
            )

    def close(self) -> list[Path]:
        """Finish the file with all that was added."""
        try:
            if self._times:
                self._flush()
        finally:
            self._end_part()
            if self._parts:
                self._join()
        return [self._path] if self._parts else []

    def _flush(self) -> None:
        times, values = self._times, self._values
        self._times, self._values, self._bytes = [], [], 0
        group = self._table(times, values)
        if self._writer is None or group.schema != self._writer.schema:
            self._writer = self._next_part(group.schema)
        try:
            self._writer.write_table(group)
        except OSError:
            self._give_up_part()
            raise

    def _give_up_part(self) -> None:
        """Remove a part that could not be written: without its end it is no file that a person can use."""
        with suppress(OSError):
            self._end_part()
        self._writer = None
        self._parts.pop().unlink(missing_ok=True)

    def _table(self, times: list[int], values: list[Any]) -> pa.Table:
        try:
            leaves = [leaf for leaf in leaves_of("", values) if leaf.name != T_NS]
            columns = {leaf.name: column_of(leaf) for leaf in leaves}
        except KeepingError as error:
            raise KeepingError(f"{self._port}: {error.what}", why=error.why, hint=error.hint) from error
        table = arrow.table(times, columns, units={leaf.name: leaf.unit for leaf in leaves})
        return table.replace_schema_metadata({parquet.STREAM_METADATA_KEY: self._about(values[0])})

    def _about(self, value: Any) -> str:
        """Return what the table holds, for whoever opens it."""
        about = {"type": type(value).__name__, "port": self._port, "clock": self._clock}
        frames = {key: getattr(value, key, "") for key in ("frame", "child")}
        return json.dumps(about | {key: name for key, name in frames.items() if name})

    def _next_part(self, schema: pa.Schema) -> Any:
        self._end_part()
        self._schema = self._unify(schema)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._parts.append(self._path.with_name(f".{self._path.name}.{len(self._parts)}.tmp"))
        return parquet.open_writer(self._parts[-1], schema)

    def _unify(self, schema: pa.Schema) -> pa.Schema:
        if self._schema is None:
            return schema
        try:
            return pa.unify_schemas([self._schema, schema], promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise KeepingError(
                f"{self._port}: its values are not all of one kind",
                why=str(error),
                hint="give each kind a port",
            ) from error

    def _end_part(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = None

    def _join(self) -> None:
        if len(self._parts) == 1:
            os.replace(self._parts[0], self._path)
            return
        import pyarrow.parquet as pq

        with (
            atomic_write(self._path) as out,
            parquet.open_writer(out, self._schema) as writer,
        ):
            for part in self._parts:
                with pq.ParquetFile(part, page_checksum_verification=True) as file:
                    for group in range(file.num_row_groups):
                        writer.write_table(_widen(file.read_row_group(group), writer.schema))
        for part in self._parts:
            part.unlink()


def _widen(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns of a schema, null where it has none of that name."""
    arrays = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def size_of(value: Any) -> int:
    """Return the approximate size of a value in bytes: its arrays, and 64 for the rest."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, int | float | str):
        return 64
    inside = vars(value).values() if dataclasses.is_dataclass(value) else ()
    inside = value.values() if isinstance(value, Mapping) else inside
    return 64 + sum(item.nbytes for item in inside if isinstance(item, np.ndarray))


def leaves_of(name: str, values: Sequence[Any], unit: str = "") -> Iterator[ColumnBuffer]:
    """Yield the columns that values, one per row and perhaps None, are made of."""
    first = next((value for value in values if value is not None), None)
    if first is None:
        return
    if dataclasses.is_dataclass(first):
        yield from _fields(name, values, first)
    elif isinstance(first, Mapping):
        keys = dict.fromkeys(key for value in values if value is not None for key in value)
        for key in keys:
            parts = [None if value is None else value.get(key) for value in values]
            yield from leaves_of(_join_names(name, str(key)), parts)
    elif isinstance(first, np.ndarray) and first.ndim != 1:
        yield ColumnBuffer(name or VALUE, [None if v is None else np.reshape(v, -1) for v in values], unit)
        shapes = [None if v is None else np.array(np.shape(v), np.int64) for v in values]
        yield ColumnBuffer(f"{name or VALUE}_shape", shapes)
    else:
        yield ColumnBuffer(name or VALUE, values, unit)


def _fields(name: str, values: Sequence[Any], first: Any) -> Iterator[ColumnBuffer]:
    """Yield the columns of a dataclass."""
    is_sensor = hasattr(first, "from_row")
    for field in dataclasses.fields(first):
        if is_sensor and field.name in _KEPT_ASIDE:
            continue
        parts = [None if value is None else getattr(value, field.name) for value in values]
        names, unit = field.metadata.get("columns", ()), field.metadata.get("unit", "")
        if len(names) > 1:
            yield from _components([_join_names(name, n) for n in names], parts, unit)
        else:
            yield from leaves_of(_join_names(name, names[0] if names else field.name), parts, unit)


def _components(names: Sequence[str], vectors: Sequence[Any], unit: str) -> Iterator[ColumnBuffer]:
    """Yield a column per component of vectors; NaN where there is no vector."""
    if all(vector is None for vector in vectors):
        return
    missing = np.full(len(names), np.nan)
    block = np.array([missing if vector is None else vector for vector in vectors], dtype=np.float64)
    yield from (ColumnBuffer(name, column, unit) for name, column in zip(names, block.T, strict=True))


def _join_names(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


def column_of(leaf: ColumnBuffer) -> pa.Array:
    """Return the Arrow column of a leaf, None as null; raise KeepingError where there is no such column."""
    if isinstance(leaf.values, np.ndarray):
        return arrow.from_numpy(leaf.values)
    there = [value for value in leaf.values if value is not None]
    dense = _dense(leaf.name, there)
    if len(there) == len(leaf.values):
        return dense
    valid = np.array([value is not None for value in leaf.values])
    place = np.cumsum(valid) - valid
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return dense.take(pa.Array.from_buffers(pa.int64(), len(valid), [bits, pa.py_buffer(place)]))


def _dense(name: str, values: Sequence[Any]) -> pa.Array:
    first = values[0]
    if all(isinstance(value, str) for value in values):
        return arrow.strings(values)
    if isinstance(first, list | tuple) and any(isinstance(item, str) for value in values for item in value):
        offsets = arrow.offsets_of([len(value) for value in values])
        texts = arrow.strings([item for value in values for item in value])
        return pa.LargeListArray.from_arrays(arrow.from_numpy(offsets), texts)
    if isinstance(first, np.ndarray | list | tuple):
        return arrow.ragged([_numbers(name, value) for value in values])
    return arrow.from_numpy(_numbers(name, values))


def _numbers(name: str, values: Any) -> Any:
    """Return (n,) numbers or bools as an array that Arrow can hold."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.zeros(0, object)
    if array.ndim != 1 or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        item = next(iter(values), None)
        raise KeepingError(
            f"{name} cannot be kept",
            why=f"{type(item).__name__} has no column in a table",
            hint="numbers, texts, arrays of numbers, dataclasses and mappings of them have one",
        )
    return array.astype(np.float32) if array.dtype == np.float16 else array


MAX_BUFFERED_POSES = 4096
"""Poses that are buffered before they are written."""
_IDENTITY_QUATERNION = (0.0, 0.0, 0.0, 1.0)


class PoseSink:
    """One line per value that has a position: Pose, RigidBodyState, Odometry."""

    def __init__(self, base: Path, port: str, clock: str) -> None:
        self._path = base.with_name(f"{base.name}.tum")
        self._port, self._clock = port, clock
        self._stack = ExitStack()
        self._out: IO[bytes] | None = None
        self._times: list[int] = []
        self._poses: list[NDArray[np.float64]] = []

    def add(self, t_ns: int, value: Any) -> None:
        """Keep the pose of a value; one without is left out."""
        if value.position is None:
            return
        if self._out is None:
            self._out = self._stack.enter_context(atomic_write(self._path))
            self._out.write(_header(self._port, self._clock, value))
        orientation = value.orientation if value.orientation is not None else _IDENTITY_QUATERNION
        self._times.append(t_ns)
        self._poses.append(np.concatenate([value.position, orientation]))
        if len(self._times) >= MAX_BUFFERED_POSES:
            self._flush(self._out)

    def close(self) -> list[Path]:
        """Finish the file."""
        if self._out is None:
            return []
        self._flush(self._out)
        self._stack.close()
        return [self._path]

    def _flush(self, out: IO[bytes]) -> None:
        poses = np.array(self._poses, dtype=np.float64).reshape(-1, 7)
        out.write(pose_lines(np.array(self._times, np.int64), list(poses.T)))
        self._times.clear()
        self._poses.clear()


class TrajectorySink:
    """Trajectories with their own times: the last as `PORT.tum`, each as `PORT/000000.tum` if several."""

    def __init__(self, base: Path, port: str) -> None:
        self._base, self._port = base, port
        self._files: list[Path] = []

    def add(self, t_ns: int, value: Trajectory) -> None:
        """Write one trajectory."""
        self._files.append(self._base / f"{len(self._files):06d}.tum")
        write_bytes(self._files[-1], _trajectory_text(self._port, value))

    def close(self) -> list[Path]:
        """Put the last one where it is looked for."""
        if not self._files:
            return []
        last = self._base.with_name(f"{self._base.name}.tum")
        if len(self._files) == 1:
            os.replace(self._files[0], last)
            self._base.rmdir()
            return [last]
        with self._files[-1].open("rb") as source, atomic_write(last) as out:
            shutil.copyfileobj(source, out)
        return [last, *self._files]


def _trajectory_text(port: str, value: Trajectory) -> bytes:
    orientation = (
        value.orientations
        if value.orientations is not None
        else np.tile(_IDENTITY_QUATERNION, (len(value), 1))
    )
    columns = [*np.asarray(value.positions, np.float64).T, *np.asarray(orientation, np.float64).T]
    return _header(port, value.clock, value) + pose_lines(np.asarray(value.t_ns), columns)


def _header(port: str, clock: str, value: Any) -> bytes:
    """Return the comments that a file begins with: port, clock, and the frames where they are known."""
    frames = [f"{key} {name}" for key in ("frame", "child") if (name := getattr(value, key))]
    return header(port, clock) + (f"# {', '.join(frames)}\n".encode() if frames else b"")
