"""Flat columns of nested samples: one per leaf field, named by its path (`elements.position`).

Rock and CDFF samples are nested maps, lists of numbers and lists of maps. All samples of a stream have the
same fields; the lengths of lists may differ. A list of maps becomes one list per field of the maps, a matrix
a list of its numbers, row by row.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.errors import StreamError
from transect.recording import Loss, Parsed, arrow
from transect.recording.arrow import offsets_of

BYTE_OFFSET, LOG_TIME, LOGICAL_TIME = "@at", "@log", "@given"
"""Additional columns: byte offset of the sample in its file, log time and logical time in ticks."""
LOGICAL = "logical_ns"
"""Column of streams with a logical time in addition to sample time and log time."""
_WRAPPERS = (".data", ".arr")


def normalise_path(path: str) -> str:
    """Normalise the spelling of a path: `ref-time`, `refTime` and `ref_time` are equal.

    The last part of `position.data` is only the wrapper of a matrix.
    """
    name = path.lower().replace("_", "").replace("-", "")
    for wrapper in _WRAPPERS:
        if name.endswith(wrapper) and name != f"data{wrapper}":
            return name.removesuffix(wrapper)
    return name


class FlatColumns:
    """Columns by normalised name; `rest` returns those that were not requested."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table.combine_chunks()
        self._names = {normalise_path(name): name for name in table.column_names if not name.startswith("@")}
        self._used: set[str] = set()

    def __len__(self) -> int:
        return self.table.num_rows

    def has(self, *names: str) -> bool:
        """Whether there is a column with one of the normalised names."""
        return any(name in self._names for name in names)

    def _find(self, names: Sequence[str], fits: Callable[[pa.DataType], bool]) -> str | None:
        """Return the first column with one of the names and a suitable type, and mark it as used."""
        for name in names:
            found = self._names.get(name)
            if found is not None and fits(self.table.schema.field(found).type):
                self._used.add(found)
                return found
        return None

    def numbers(self, *names: str) -> NDArray[Any] | None:
        """Return a column of one number per sample, or None."""
        found = self._find(names, _is_number)
        return None if found is None else arrow.numbers(self.table, found)

    def ticks(self, *names: str) -> Ints | None:
        """Return a column of whole numbers, or None."""
        found = self._find(names, pa.types.is_integer)
        return None if found is None else arrow.numbers(self.table, found).astype(np.int64)

    def vector(self, size: int, *names: str) -> NDArray[np.float64] | None:
        """Return a column of `size` numbers per sample as (n, size), or None."""
        found = self._find(names, _is_list)
        rows = None if found is None else _rows(self.table, found)
        if rows is not None and rows.shape[1] == size:
            return rows
        self._used -= {found}
        return None

    def lists(self, *names: str) -> tuple[NDArray[Any], Ints] | None:
        """Return a column of lists of numbers as values and row offsets, or None."""
        found = self._find(names, _is_list)
        return None if found is None else _parts(self.table, found)

    def texts(self, *names: str) -> list[str] | None:
        """Return a column of text, or None."""
        found = self._find(names, pa.types.is_large_string)
        return None if found is None else [text or "" for text in arrow.texts(self.table, found)]

    def column(self, *names: str) -> Any:
        """Return an unconverted column, or None."""
        found = self._find(names, lambda _: True)
        return None if found is None else self.table.column(found)

    def under(self, prefix: str) -> FlatColumns:
        """Return the columns below a prefix, without the prefix."""
        start = f"{prefix}."
        kept = [n for n in self.table.column_names if n.startswith((start, "@"))]
        return FlatColumns(self.table.select(kept).rename_columns([n.removeprefix(start) for n in kept]))

    def rest(self) -> dict[str, Any]:
        """Return the columns that were not requested."""
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
    """Concatenate the flat tables of several files; return the table, the file of each row, and losses.

    A file with a different type of a field is omitted.
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
    """Return the columns of (n, k) rows by k names; empty for None."""
    if rows is None:
        return {}
    return {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(names)}


def require_columns(columns: Mapping[str, Any], *names: str) -> None:
    """Raise StreamError unless all columns exist."""
    missing = [name for name in names if name not in columns]
    if missing:
        raise StreamError(f"it has no {', '.join(missing)}")


VALUE = "value"
"""Column of samples that are not maps: numbers, texts, lists."""
EMPTY = "[]"
"""Type of a list that is empty in all samples; compatible with lists of any type."""


class UnevenSamples(Exception):
    """Samples with different fields; internal to the readers."""


class NestedLists(Exception):
    """Lists of lists of unequal length, which no column can represent."""


@dataclass(frozen=True)
class FlatLeaf:
    """Values of one field in some samples."""

    values: Any  # (m,)
    # (n + 1,) int64, ``values[offsets[i]:offsets[i + 1]]`` of sample i; None if each has one value
    offsets: Ints | None = None

    @property
    def kind(self) -> str:
        """`n` number, `s` text, `b` bytes; `[n]` a list of them; `EMPTY`."""
        if self.offsets is not None and not len(self.values):
            return EMPTY
        kind = "n" if isinstance(self.values, np.ndarray) else "b" if _are(self.values, bytes) else "s"
        return kind if self.offsets is None else f"[{kind}]"


FlatLeaves = dict[str, FlatLeaf]


def flatten_samples(samples: Sequence[Any]) -> FlatLeaves:
    """Flatten samples with equal fields; raise UnevenSamples if they differ."""
    leaves: FlatLeaves = {}
    _gather(samples, "", leaves)
    return leaves


def _gather(values: Sequence[Any], path: str, leaves: FlatLeaves) -> None:
    first = values[0]
    if isinstance(first, Mapping):
        keys = cast("Mapping[Any, Any]", first).keys()
        if not all(isinstance(value, Mapping) and value.keys() == keys for value in values):
            raise UnevenSamples
        for key in keys:
            _gather([value[key] for value in values], f"{path}.{key}" if path else str(key), leaves)
    elif isinstance(first, list | tuple):
        leaves.update(_from_lists(values, path))
    else:
        leaves[path or VALUE] = _from_scalars(values)


def _from_scalars(values: Sequence[Any]) -> FlatLeaf:
    kind = type(values[0])
    if kind not in (np.ndarray, str, bytes):
        return FlatLeaf(numbers_of(values))
    if not _are(values, kind):
        raise UnevenSamples
    if kind is np.ndarray:
        flat = np.concatenate([value.reshape(-1) for value in values])
        return FlatLeaf(flat, offsets_of([value.size for value in values]))
    return FlatLeaf(list(values))


def _are(values: Sequence[Any], kind: type) -> bool:
    return all(isinstance(value, kind) for value in values)


def numbers_of(values: Sequence[Any]) -> NDArray[Any]:
    """Return numbers as int64, float64 or bool; nil is NaN. Raise Uneven for anything else."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = np.asarray([np.nan if v is None else float(v) for v in values])
    except (TypeError, ValueError, OverflowError):
        raise UnevenSamples from None
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        raise UnevenSamples
    if array.dtype.kind == "u" and (not len(array) or array.max() <= np.iinfo(np.int64).max):
        return array.astype(np.int64)
    return array


def _from_lists(values: Sequence[Any], path: str) -> FlatLeaves:
    if not _are(values, (list, tuple)):  # pyright: ignore[reportArgumentType]
        raise UnevenSamples
    block = _block(values)
    if block is not None:
        width = block.size // len(block)
        return {path or VALUE: FlatLeaf(block.reshape(-1), np.arange(len(block) + 1, dtype=np.int64) * width)}
    offsets = offsets_of([len(value) for value in values])
    elements = list(itertools.chain.from_iterable(values))
    if not elements:
        return {path or VALUE: FlatLeaf([], offsets)}
    inner: FlatLeaves = {}
    _gather(elements, path, inner)
    try:
        return {name: regroup(leaf, offsets) for name, leaf in inner.items()}
    except NestedLists:
        return {path or VALUE: FlatLeaf([_pack(value) for value in values])}


def _block(values: Sequence[Any]) -> NDArray[Any] | None:
    """Return nested lists of numbers of equal lengths as one array, else None."""
    inner = values[0]
    while isinstance(inner, list | tuple) and inner:
        inner = cast("Sequence[Any]", inner)[0]
    if not isinstance(inner, int | float):
        return None
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        return None
    return array if array.dtype.kind in "bif" and array.size else None


def regroup(leaf: FlatLeaf, offsets: Ints) -> FlatLeaf:
    """Group the values of elements by the lists that contain them; raise NestedLists if impossible."""
    if leaf.offsets is None:
        return FlatLeaf(leaf.values, offsets)
    lengths = np.diff(leaf.offsets)
    if (lengths != lengths[0]).any():
        raise NestedLists
    return FlatLeaf(leaf.values, offsets * lengths[0])


def _pack(value: Any) -> bytes:
    """Return a value that no column can represent as MessagePack."""
    import msgpack

    def to_plain(array: Any) -> Any:
        return array.tolist() if isinstance(array, np.ndarray) else str(array)

    return cast(bytes, msgpack.packb(value, default=to_plain))


@dataclass
class SampleColumns:
    """Samples of one stream, added in batches.

    The fields of the first batch (of most of its samples, if they differ) are those of the stream; samples
    with other fields are rejected.
    """

    kinds: dict[str, str] = field(default_factory=dict[str, str])
    batches: list[tuple[int, FlatLeaves]] = field(default_factory=list[tuple[int, FlatLeaves]])

    def add(self, samples: Sequence[Any]) -> NDArray[np.bool_]:
        """Add samples; return the mask of those with the fields of the stream."""
        if not len(samples):
            return np.zeros(0, dtype=bool)
        leaves = _leaves_or_none(samples)
        if leaves is not None and not leaves:  # empty maps
            return np.zeros(len(samples), dtype=bool)
        if leaves is None or not self.fits(leaves):
            return self._add_one_by_one(samples)
        self.keep(len(samples), leaves)
        return np.ones(len(samples), dtype=bool)

    def _add_one_by_one(self, samples: Sequence[Any]) -> NDArray[np.bool_]:
        each = [_leaves_or_none([sample]) for sample in samples]
        if not self.kinds:
            self.kinds = _most_common([leaves for leaves in each if leaves])
        fits = np.array([leaves is not None and self.fits(leaves) for leaves in each], dtype=bool)
        for leaves, fitting in zip(each, fits.tolist(), strict=True):
            if leaves is not None and fitting:
                self.keep(1, leaves)
        return fits

    def fits(self, leaves: FlatLeaves) -> bool:
        """Whether flattened samples have the fields of the stream, which the first ones define."""
        if not leaves:
            return False
        if not self.kinds:
            self.kinds = {path: leaf.kind for path, leaf in leaves.items()}
            return True
        merged = _merge(self.kinds, {path: leaf.kind for path, leaf in leaves.items()})
        if merged is None:
            return False
        self.kinds = merged
        return True

    def keep(self, count: int, leaves: FlatLeaves) -> None:
        """Add flattened samples with the fields of the stream."""
        self.batches.append((count, leaves))

    def arrays(self) -> dict[str, pa.Array]:
        """Return all samples as one Arrow column per field."""
        return {path: _join(path, kind, self.batches) for path, kind in self.kinds.items()}


def _leaves_or_none(samples: Sequence[Any]) -> FlatLeaves | None:
    try:
        return flatten_samples(samples)
    except UnevenSamples:
        return None


def _most_common(each: Sequence[FlatLeaves]) -> dict[str, str]:
    counted = Counter(frozenset((p, leaf.kind) for p, leaf in leaves.items()) for leaves in each)
    return dict(sorted(counted.most_common(1)[0][0])) if counted else {}


def _merge(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str] | None:
    """Merge the fields of both, where an empty list matches any list; None if they differ."""
    old, new = _unfold(old, new), _unfold(new, old)
    if old.keys() != new.keys():
        return None
    merged: dict[str, str] = {}
    for path, kind in old.items():
        other = new[path]
        if kind != other and (EMPTY not in (kind, other) or "[" not in kind or "[" not in other):
            return None
        merged[path] = other if kind == EMPTY else kind
    return merged


def _unfold(kinds: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Replace an empty list of maps by empty lists of the fields in `other`."""
    result: dict[str, str] = {}
    for path, kind in kinds.items():
        children = [p for p in other if p.startswith(f"{path}.")] if kind == EMPTY else []
        result.update(dict.fromkeys(children, EMPTY) if children else {path: kind})
    return result


def _join(path: str, kind: str, batches: Sequence[tuple[int, FlatLeaves]]) -> pa.Array:
    parts = [leaves.get(path) or FlatLeaf([], np.zeros(count + 1, np.int64)) for count, leaves in batches]
    if "n" in kind or kind == EMPTY:
        filled = [p.values for p in parts if len(p.values)]
        child = arrow.from_numpy(np.concatenate(filled) if filled else np.zeros(0, np.int64))
    else:
        flat = list(itertools.chain.from_iterable(p.values for p in parts))
        child = blobs(flat) if "b" in kind else arrow.strings(flat)
    if "[" not in kind:
        return child
    lengths = [np.diff(p.offsets) for p in parts if p.offsets is not None]
    return lists(child, offsets_of(np.concatenate([np.zeros(0, np.int64), *lengths])))


def lists(child: pa.Array, offsets: Ints) -> pa.Array:
    """Return a list column of any element type: row i is ``child[offsets[i]:offsets[i + 1]]``."""
    return pa.LargeListArray.from_buffers(
        pa.large_list(child.type), len(offsets) - 1, [None, pa.py_buffer(offsets)], children=[child]
    )


def blobs(values: Sequence[bytes]) -> pa.Array:
    """Return a column of bytes."""
    offsets = offsets_of([len(value) for value in values])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)
