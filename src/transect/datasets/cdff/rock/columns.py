"""Nested samples laid out as flat columns: one per leaf field, named by its path (`elements.position`).

Rock and CDFF samples are maps in maps, lists of numbers and lists of maps. All samples of a stream have the
same fields; a list may have another length in each. A list of maps becomes one list per field of the maps, a
matrix a list of its numbers, row by row.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.recording import arrow
from transect.recording.arrow import offsets_of

VALUE = "value"
"""Name of the column of samples that are no maps: numbers, texts, lists."""
EMPTY = "[]"
"""Kind of a list of which no sample has an element: it may turn out to be a list of anything."""
_LARGEST = 2**63 - 1


class Uneven(Exception):
    """Samples that do not have the same fields; never leaves the readers."""


class Nested(Exception):
    """Lists of lists of unequal length, for which there is no column."""


@dataclass(frozen=True)
class Leaf:
    """Values of one field in some samples."""

    values: Any  # (m,)
    # (n + 1,) int64, sample i has ``values[offsets[i]:offsets[i + 1]]``; None where each has one value
    offsets: Ints | None = None

    @property
    def kind(self) -> str:
        """`n` number, `s` text, `b` bytes; `[n]` a list of them; `EMPTY`."""
        if self.offsets is not None and not len(self.values):
            return EMPTY
        kind = "n" if isinstance(self.values, np.ndarray) else "b" if _are(self.values, bytes) else "s"
        return kind if self.offsets is None else f"[{kind}]"


Leaves = dict[str, Leaf]


def leaves_of(samples: Sequence[Any]) -> Leaves:
    """Lay out samples that all have the same fields; raise Uneven if they have not."""
    leaves: Leaves = {}
    _gather(samples, "", leaves)
    return leaves


def _gather(values: Sequence[Any], path: str, leaves: Leaves) -> None:
    first = values[0]
    if isinstance(first, Mapping):
        keys = cast("Mapping[Any, Any]", first).keys()
        if not all(isinstance(value, Mapping) and value.keys() == keys for value in values):
            raise Uneven
        for key in keys:
            _gather([value[key] for value in values], f"{path}.{key}" if path else str(key), leaves)
    elif isinstance(first, list | tuple):
        leaves.update(_from_lists(values, path))
    else:
        leaves[path or VALUE] = _from_scalars(values)


def _from_scalars(values: Sequence[Any]) -> Leaf:
    kind = type(values[0])
    if kind not in (np.ndarray, str, bytes):
        return Leaf(numbers_of(values))
    if not _are(values, kind):
        raise Uneven
    if kind is np.ndarray:
        flat = np.concatenate([value.reshape(-1) for value in values])
        return Leaf(flat, offsets_of([value.size for value in values]))
    return Leaf(list(values))


def _are(values: Sequence[Any], kind: type) -> bool:
    return all(isinstance(value, kind) for value in values)


def numbers_of(values: Sequence[Any]) -> NDArray[Any]:
    """Return numbers as int64, float64 or bool; nil is NaN. Raise Uneven for anything else."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = np.asarray([np.nan if v is None else float(v) for v in values])
    except (TypeError, ValueError, OverflowError):
        raise Uneven from None
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        raise Uneven
    if array.dtype.kind == "u" and (not len(array) or array.max() <= _LARGEST):
        return array.astype(np.int64)
    return array


def _from_lists(values: Sequence[Any], path: str) -> Leaves:
    if not _are(values, (list, tuple)):  # pyright: ignore[reportArgumentType]
        raise Uneven
    block = _block(values)
    if block is not None:
        width = block.size // len(block)
        return {path or VALUE: Leaf(block.reshape(-1), np.arange(len(block) + 1, dtype=np.int64) * width)}
    offsets = offsets_of([len(value) for value in values])
    elements = list(itertools.chain.from_iterable(values))
    if not elements:
        return {path or VALUE: Leaf([], offsets)}
    inner: Leaves = {}
    _gather(elements, path, inner)
    try:
        return {name: regroup(leaf, offsets) for name, leaf in inner.items()}
    except Nested:
        return {path or VALUE: Leaf([_pack(value) for value in values])}


def _block(values: Sequence[Any]) -> NDArray[Any] | None:
    """Return lists of equally many numbers, or of equally long lists of them, as one array, else None."""
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


def regroup(leaf: Leaf, offsets: Ints) -> Leaf:
    """Return the values of elements as the values of the lists that hold them; raise Nested if it cannot."""
    if leaf.offsets is None:
        return Leaf(leaf.values, offsets)
    lengths = np.diff(leaf.offsets)
    if (lengths != lengths[0]).any():
        raise Nested
    return Leaf(leaf.values, offsets * lengths[0])


def _pack(value: Any) -> bytes:
    """Return what no column can hold as MessagePack."""
    import msgpack

    def plain(array: Any) -> Any:
        return array.tolist() if isinstance(array, np.ndarray) else str(array)

    return cast(bytes, msgpack.packb(value, default=plain))


@dataclass
class Columns:
    """Samples of one stream while they are gathered, batch by batch.

    The fields of the first batch (of most of its samples, if they differ) are those of the stream; samples
    that have others are left out.
    """

    kinds: dict[str, str] = field(default_factory=dict[str, str])
    batches: list[tuple[int, Leaves]] = field(default_factory=list[tuple[int, Leaves]])

    def add(self, samples: Sequence[Any]) -> NDArray[np.bool_]:
        """Add samples; return for each whether it fitted."""
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

    def fits(self, leaves: Leaves) -> bool:
        """Tell whether laid-out samples have the fields of the stream; the first ones define them."""
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

    def keep(self, count: int, leaves: Leaves) -> None:
        """Add samples that are laid out already and have the same fields as those before."""
        self.batches.append((count, leaves))

    def arrays(self) -> dict[str, pa.Array]:
        """Return everything gathered as one Arrow column per field."""
        return {path: _join(path, kind, self.batches) for path, kind in self.kinds.items()}


def _leaves_or_none(samples: Sequence[Any]) -> Leaves | None:
    try:
        return leaves_of(samples)
    except Uneven:
        return None


def _most_common(each: Sequence[Leaves]) -> dict[str, str]:
    counted = Counter(frozenset((p, leaf.kind) for p, leaf in leaves.items()) for leaves in each)
    return dict(sorted(counted.most_common(1)[0][0])) if counted else {}


def _merge(known: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str] | None:
    """Return the fields that both have, an empty list fitting any list; None where they differ."""
    known, new = _unfold(known, new), _unfold(new, known)
    if known.keys() != new.keys():
        return None
    merged: dict[str, str] = {}
    for path, kind in known.items():
        other = new[path]
        if kind != other and (EMPTY not in (kind, other) or "[" not in kind or "[" not in other):
            return None
        merged[path] = other if kind == EMPTY else kind
    return merged


def _unfold(kinds: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Replace an empty list by the lists that the other side has for the fields of its elements."""
    result: dict[str, str] = {}
    for path, kind in kinds.items():
        below = [p for p in other if p.startswith(f"{path}.")] if kind == EMPTY else []
        result.update(dict.fromkeys(below, EMPTY) if below else {path: kind})
    return result


def _join(path: str, kind: str, batches: Sequence[tuple[int, Leaves]]) -> pa.Array:
    parts = [leaves.get(path) or Leaf([], np.zeros(count + 1, np.int64)) for count, leaves in batches]
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
