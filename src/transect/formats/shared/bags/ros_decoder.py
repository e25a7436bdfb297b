"""Vectorised decoding of messages: one numpy dtype per layout, other messages one by one with rosbags.

The layout of a message is fixed except for the lengths of its strings and lists, which rarely change in a
stream. A layout is derived from one message, and applied to all messages with the same lengths.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.errors import ParseError
from transect.recording.arrow import offsets_of

from .ros_types import ARRAY_NODE, BASE_NODE, NAME_NODE, Types, store_of

Column = Any
"""(n,) or (n, k) array, list of n str, or `Lists`."""
Columns = dict[str, Column]
"""Columns of n messages by the path of their field: `header.stamp.sec`."""
Batch = NDArray[np.void]

MAX_LAYOUTS = 64
"""Streams with more layouts are read message by message, because deriving a layout is slower."""
MAX_FIELDS = 20_000
PADDING = "structure_needs_at_least_one_member"
"""Field of ROS 2 messages without other fields."""
_FORMATS = {
    "bool": "u1",
    "byte": "i1",
    "char": "u1",
    **{f"int{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    "float32": "<f4",
    "float64": "<f8",
}


@dataclass(frozen=True)
class Lists:
    """A list per message: message i has elements ``offsets[i]`` to ``offsets[i + 1]`` of `values`."""

    offsets: Ints  # (n + 1,) int64
    values: Any

    @property
    def lengths(self) -> Ints:
        """(n,) number of elements of each message."""
        return np.diff(self.offsets)


class LayoutError(ValueError):
    """A message that does not match its type, or whose layout numpy cannot represent."""


def merge(parts: Sequence[tuple[Ints, Columns]], count: int) -> Columns:
    """Merge columns of parts: the rows of part p become the rows ``parts[p][0]`` of `count`."""
    if len(parts) == 1 and len(parts[0][0]) == count and bool((np.diff(parts[0][0]) > 0).all()):
        return parts[0][1]
    paths = parts[0][1] if parts else {}
    return {path: _merge([(rows, columns[path]) for rows, columns in parts], count) for path in paths}


def _merge(parts: Sequence[tuple[Ints, Column]], count: int) -> Column:
    sample = parts[0][1]
    if isinstance(sample, dict):
        return merge(parts, count)
    if isinstance(sample, Lists):
        return _merge_lists(parts, count)
    if isinstance(sample, list):
        texts = [""] * count
        for rows, values in parts:
            for row, text in zip(rows.tolist(), values, strict=True):
                texts[row] = text
        return texts
    result = np.zeros((count, *sample.shape[1:]), dtype=sample.dtype)
    for rows, values in parts:
        result[rows] = values
    return result


def _merge_lists(parts: Sequence[tuple[Ints, Lists]], count: int) -> Lists:
    lengths = np.zeros(count, dtype=np.int64)
    for rows, lists in parts:
        lengths[rows] = lists.lengths
    offsets = offsets_of(lengths)
    inner: list[tuple[Ints, Column]] = []
    for rows, lists in parts:
        within = np.arange(lists.offsets[-1]) - np.repeat(lists.offsets[:-1], lists.lengths)
        inner.append((np.repeat(offsets[rows], lists.lengths) + within, lists.values))
    return Lists(offsets, _merge(inner, int(offsets[-1])))


class _Layout:
    """Layout of one message; extracts the columns of all messages with the same layout."""

    def __init__(self, raw: bytes, kind: str, types: Types, cdr: bool) -> None:
        self._raw, self._types, self._cdr = raw, types, cdr
        self._at = self._origin = 4 if cdr else 0
        self._names: list[str] = []
        self._formats: list[Any] = []
        self._offsets: list[int] = []
        self.counts: dict[str, int] = {}
        self.extract = self._struct(kind)
        if not self._at <= len(raw) <= self._at + (3 if cdr else 0):
            raise LayoutError(f"a {kind} of this content has {self._at} bytes, not {len(raw)}")

    @property
    def dtype(self) -> np.dtype[Any]:
        """Structured type of one whole message."""
        return np.dtype(
            {
                "names": self._names,
                "formats": self._formats,
                "offsets": self._offsets,
                "itemsize": len(self._raw),
            }
        )

    def same(self, batch: Batch) -> NDArray[np.bool_]:
        """Return which messages have strings and lists of the same lengths."""
        alike = np.ones(len(batch), dtype=np.bool_)
        for name, count in self.counts.items():
            alike &= batch[name] == count
        return alike

    def _field(self, form: str, count: int | None = None) -> str:
        """Add a value, or `count` of them; CDR aligns numbers to their own size."""
        size = int(form[-1])
        if self._cdr:
            self._at += -(self._at - self._origin) % size
        at, self._at = self._at, self._at + size * (1 if count is None else count)
        return self._place(at, form if count is None else (form, (count,)))

    def _place(self, at: int, form: Any) -> str:
        if self._at > len(self._raw):
            raise LayoutError(f"the message ends at byte {len(self._raw)}, in the middle of a value")
        if len(self._names) > MAX_FIELDS:
            raise LayoutError("the message has too many parts")
        self._names.append(f"f{len(self._names)}")
        self._formats.append(form)
        self._offsets.append(at)
        return self._names[-1]

    def _count(self) -> int:
        name = self._field("<u4")
        count = int(struct.unpack_from("<I", self._raw, self._offsets[-1])[0])
        if count > len(self._raw):
            raise LayoutError(f"a string or list of {count} elements in a message of {len(self._raw)} bytes")
        self.counts[name] = count
        return count

    def _struct(self, kind: str) -> Callable[[Batch], Columns]:
        fields = self._types[kind]
        if self._cdr and not fields:
            fields = [(PADDING, (BASE_NODE, ("uint8", 0)))]
        nodes = {name: self._node(node) for name, node in fields if self._cdr or name != PADDING}

        def extract(batch: Batch) -> Columns:
            columns: Columns = {}
            for name, node in nodes.items():
                column = node(batch)
                if isinstance(column, dict):
                    columns |= {f"{name}.{path}": inner for path, inner in column.items()}
                elif name != PADDING:
                    columns[name] = column
            return columns

        return extract

    def _node(self, node: Any) -> Callable[[Batch], Any]:
        shape, inner = node
        if shape == NAME_NODE:
            return self._struct(inner)
        if shape == BASE_NODE:
            return self._text() if inner[0] == "string" else self._number(inner[0], None)
        element, size = inner
        count = size if shape == ARRAY_NODE else self._count()
        if element[0] == BASE_NODE and element[1][0] != "string":
            return self._numbers(element[1][0], count, fixed=shape == ARRAY_NODE)
        return _list_of([self._node(element) for _ in range(count)], self._empty(element))

    def _empty(self, element: Any) -> Any:
        """Values of a list without elements."""
        if element[0] == BASE_NODE:
            return np.zeros(0, dtype=_FORMATS[element[1][0]]) if element[1][0] != "string" else []
        empty: Columns = {}
        for name, (shape, inner) in self._types[element[1]]:
            if shape == BASE_NODE:
                empty[name] = self._empty((shape, inner))
            elif shape == NAME_NODE:
                empty |= {f"{name}.{path}": column for path, column in self._empty((shape, inner)).items()}
            elif shape == ARRAY_NODE and inner[0][0] == BASE_NODE and inner[0][1][0] != "string":
                empty[name] = np.zeros((0, inner[1]), dtype=_FORMATS[inner[0][1][0]])
            else:
                empty[name] = Lists(np.zeros(1, dtype=np.int64), self._empty(inner[0]))
        return empty

    def _text(self) -> Callable[[Batch], list[str]]:
        length = self._count()
        at, self._at = self._at, self._at + length
        if not length:
            return lambda batch: [""] * len(batch)
        name = self._place(at, f"S{length}")
        return lambda batch: _texts(batch[name])

    def _number(self, form: str, count: int | None) -> Callable[[Batch], NDArray[Any]]:
        if form not in _FORMATS:
            raise LayoutError(f"values of type {form} are not supported")
        name = self._field(_FORMATS[form], count)
        if form == "bool":
            return lambda batch: batch[name] != 0
        return lambda batch: np.ascontiguousarray(batch[name])

    def _numbers(self, form: str, count: int, fixed: bool) -> Callable[[Batch], Any]:
        if not count and not fixed:
            empty = self._empty((BASE_NODE, (form, 0)))
            return lambda batch: Lists(np.zeros(len(batch) + 1, dtype=np.int64), empty)
        numbers = self._number(form, count)
        if fixed:
            return numbers
        return lambda batch: Lists(np.arange(len(batch) + 1) * count, numbers(batch).reshape(-1))


def _texts(column: NDArray[np.bytes_]) -> list[str]:
    if bool((column == column[0]).all()):
        return [column[0].decode("utf-8", "replace")] * len(column)
    return [text.decode("utf-8", "replace") for text in column.tolist()]


def _list_of(elements: list[Callable[[Batch], Any]], empty: Any) -> Callable[[Batch], Lists]:
    """Return lists of k contiguous elements."""

    def extract(batch: Batch) -> Lists:
        count, each = len(batch), len(elements)
        parts = [(np.arange(count) * each + k, element(batch)) for k, element in enumerate(elements)]
        return Lists(np.arange(count + 1) * each, _merge(parts, count * each) if parts else empty)

    return extract


@dataclass(frozen=True)
class MessageDecoder:
    """Reads messages of one type."""

    kind: str  # `sensor_msgs/msg/Imu`
    types: Types  # Its definition, and those of the types in it
    cdr: bool  # Whether they are written in CDR (ROS 2), else as ROS 1 does

    def fits(self, raw: bytes) -> bool:
        """Return whether a message can be read."""
        return not self.decode([raw])[2]

    def decode(self, raws: Sequence[bytes]) -> tuple[Columns, Ints, dict[int, str]]:
        """Read messages.

        Returns
        -------
        columns : Columns
            Of the m messages that could be read, in their order.
        kept : (m,) int64 array
            Which ones those are.
        bad : dict of int to str
            The others, and why.
        """
        leftover: list[int] = []
        parts = list(self._batches(raws, leftover))
        singles, bad = self._one_by_one(raws, sorted(leftover))
        parts += singles
        kept = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *(rows for rows, _ in parts)]))
        parts = [(np.searchsorted(kept, rows), columns) for rows, columns in parts]
        return merge(parts, len(kept)), kept, bad

    def _batches(self, raws: Sequence[bytes], leftover: list[int]) -> Iterator[tuple[Ints, Columns]]:
        """Decode messages with common layouts; the others are added to `leftover`."""
        lengths = np.fromiter(map(len, raws), dtype=np.int64, count=len(raws))
        layouts = 0
        for length in sorted({len(raw) for raw in raws}):
            rows = np.flatnonzero(lengths == length)
            while length and len(rows) and layouts < MAX_LAYOUTS:
                layouts += 1
                layout = self._layout(raws[rows[0]])
                if layout is None:
                    leftover.append(int(rows[0]))
                    rows = rows[1:]
                    continue
                batch = np.frombuffer(b"".join([raws[row] for row in rows.tolist()]), dtype=layout.dtype)
                alike = layout.same(batch)
                yield rows[alike], layout.extract(batch if alike.all() else batch[alike])
                rows = rows[~alike]
            leftover += rows.tolist()

    def _layout(self, raw: bytes) -> _Layout | None:
        if self.cdr and raw[:2] != b"\x00\x01":
            return None
        try:
            return _Layout(raw, self.kind, self.types, self.cdr)
        except LayoutError:
            return None

    @cached_property
    def _store(self) -> Any:
        return store_of(self.types)

    def _one_by_one(
        self, raws: Sequence[bytes], rows: Sequence[int]
    ) -> tuple[list[tuple[Ints, Columns]], dict[int, str]]:
        """Decode messages with rosbags."""
        if not rows:
            return [], {}
        from rosbags.serde import SerdeError

        good: list[int] = []
        messages: list[Any] = []
        bad: dict[int, str] = {}
        for row in rows:
            try:
                read = self._store.deserialize_cdr if self.cdr else self._store.deserialize_ros1
                messages.append(read(raws[row], self.kind))
                good.append(row)
            except (
                SerdeError,
                struct.error,
                ValueError,
                KeyError,
                IndexError,
                AssertionError,
                MemoryError,
            ) as error:
                bad[row] = str(error) or type(error).__name__
        if not good:
            return [], bad
        return [(np.array(good, dtype=np.int64), self._columns_of(messages, self.kind))], bad

    def _columns_of(self, messages: Sequence[Any], kind: str) -> Columns:
        from rosbags.typesys.base import normalize_fieldname

        columns: Columns = {}
        for name, node in self.types[kind]:
            if name == PADDING:
                continue
            field = normalize_fieldname(name)
            if messages and not hasattr(messages[0], field):
                raise ParseError(f"the definition of {kind} has a field {name!r} that its messages lack")
            column = self._column_of([getattr(message, field) for message in messages], node)
            if isinstance(column, dict):
                columns |= {f"{name}.{path}": inner for path, inner in column.items()}
            else:
                columns[name] = column
        return columns

    def _column_of(self, values: list[Any], node: Any) -> Column:
        shape, inner = node
        if shape == NAME_NODE:
            return self._columns_of(values, inner)
        if shape == BASE_NODE:
            return list(values) if inner[0] == "string" else np.array(values, dtype=dtype_of(inner[0]))
        element, size = inner
        numbers = element[0] == BASE_NODE and element[1][0] != "string"
        if shape == ARRAY_NODE and numbers:
            return np.array(values, dtype=dtype_of(element[1][0])).reshape(-1, size)
        offsets = offsets_of([len(value) for value in values])
        if numbers:
            flat = [np.zeros(0, dtype=dtype_of(element[1][0])), *values]
            return Lists(offsets, np.concatenate(flat).astype(dtype_of(element[1][0])))
        return Lists(offsets, self._column_of([item for value in values for item in value], element))


def dtype_of(form: str) -> np.dtype[Any]:
    """Return the numpy type of a number of ROS."""
    return np.dtype(np.bool_) if form == "bool" else np.dtype(_FORMATS[form])
