"""How values of a C++ type are written in a Rock log: their layout, by which they are decoded and encoded.

Typelib writes memory as it lies, padding between fields included, but for containers, which are written as
the count of their elements (uint64) and the elements. Padding after a container is written only if something
else stands between the two, and padding at the very end not at all (typelib, `test_marshalling.cc`). A
`Decoder` reads a batch of samples at a time; an `Encoder` writes one sample in little-endian order.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import UnsupportedError
from transect.recording.arrow import offsets_of

from ..rock.columns import Leaf, Leaves, Nested, regroup
from .typelib import Array, Compound, Container, Number, Type, Unknown

MAX_FIELDS = 10_000
"""Fields of a type and of all that it is made of: definitions that double at every level never end."""


@dataclass(frozen=True)
class Place:
    """A number, or an array of them, at an offset of a run."""

    path: str
    offset: int
    number: Number
    count: int | None = None


@dataclass(frozen=True)
class Run:
    """Bytes without a container among them; `used` are those up to the end of the last field."""

    places: tuple[Place, ...]
    size: int
    used: int

    def dtype(self, order: str, size: int) -> np.dtype[Any]:
        """Return it as a numpy type of `size` bytes, fields named by path; `order` is `<` or `>`."""
        kinds = [place.number.dtype.newbyteorder(order) for place in self.places]  # pyright: ignore[reportArgumentType]
        formats = [
            kind if place.count is None else (kind, (place.count,))
            for kind, place in zip(kinds, self.places, strict=True)
        ]
        names, offsets = [place.path for place in self.places], [place.offset for place in self.places]
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


@dataclass(frozen=True)
class Vector:
    """A container: the layout of its elements; `text` is a string."""

    path: str
    element: Layout
    text: bool

    @cached_property
    def run(self) -> Run | None:
        """The layout of the elements, if they have no containers themselves."""
        parts = self.element.parts
        return parts[0] if len(parts) == 1 and isinstance(parts[0], Run) else None


@dataclass(frozen=True)
class Layout:
    """Runs and containers in the order in which they are written."""

    parts: tuple[Run | Vector, ...]


class _Builder:
    """Collects fields into runs until a container comes; `left` counts how many more there may be."""

    def __init__(self, left: list[int]) -> None:
        self.left = left
        self.parts: list[Run | Vector] = []
        self._places: list[Place] = []
        self._size = self._used = 0

    def add(self, kind: Type, path: str) -> None:
        self.left[0] -= 1
        if self.left[0] < 0:
            raise Unknown(f"more than {MAX_FIELDS} fields")
        if isinstance(kind, Number):
            self._add_place(Place(path, self._size, kind), kind.size)
        elif isinstance(kind, Compound):
            self._compound(kind, path)
        elif isinstance(kind, Container):
            self.close()
            self.parts.append(Vector(path, _layout(kind.of, self.left), kind.text))
        else:
            self._array(kind, path)

    def _add_place(self, place: Place, size: int) -> None:
        self._places.append(place)
        self._size += size
        self._used = self._size

    def _compound(self, kind: Compound, path: str) -> None:
        at = 0
        for name, offset, of in kind.fields:
            if offset < at:
                raise Unknown("fields overlap")
            self._pad(offset - at)
            self.add(of, f"{path}.{name}" if path else name)
            at = offset + of.size
        if kind.size < at:
            raise Unknown("fields reach beyond their struct")
        self._pad(kind.size - at)

    def _array(self, kind: Array, path: str) -> None:
        number, count = kind.of, kind.count
        while isinstance(number, Array):
            number, count = number.of, count * number.count
        if isinstance(number, Number):
            self._add_place(Place(path, self._size, number, count), kind.size)
            return
        raise Unknown("an array of structs or containers")

    def _pad(self, count: int) -> None:
        if self._size:
            self._size += count

    def close(self) -> None:
        """End the run."""
        if self._size:
            self.parts.append(Run(tuple(self._places), self._size, self._used))
        self._places, self._size, self._used = [], 0, 0


def layout_of(kind: Type) -> Layout:
    """Return how values of a type are written; raise Unknown where that is not known."""
    return _layout(kind, [MAX_FIELDS])


def _layout(kind: Type, left: list[int]) -> Layout:
    builder = _Builder(left)
    builder.add(kind, "")
    builder.close()
    if not builder.parts:
        raise Unknown("a type without content")
    return Layout(tuple(builder.parts))


COUNT = 8
"""Bytes of a container's count."""


class Damaged(Exception):
    """Bytes that are no value of their type; never leaves the readers."""


@dataclass(frozen=True)
class Elements:
    """A container whose elements have containers: its bytes, and the pieces of each element."""

    raw: bytes
    each: list[list[Any]]


class Decoder:
    """Cuts samples into pieces, one by one, and makes columns of the pieces, many at once.

    Parameters
    ----------
    order : {"<", ">"}
        Byte order of the numbers.
    lazy : sequence of str
        Paths of containers of which only the place is wanted.
    """

    def __init__(self, layout: Layout, order: str, lazy: Sequence[str] = ()) -> None:
        self.layout, self.order, self.lazy = layout, order, lazy
        self._count = struct.Struct(f"{order}Q")

    def pieces(self, view: memoryview) -> list[Any]:
        """Cut one sample: the bytes of each run and container; raise Damaged if they are not of the type."""
        pieces, end = self._cut(self.layout, view, 0, last_run_whole=False)
        last = self.layout.parts[-1]
        padding = last.size - last.used if isinstance(last, Run) else 0
        if not 0 <= len(view) - end <= padding:
            raise Damaged(f"a sample has {len(view)} bytes where its type needs {end}")
        return pieces

    def _cut(self, layout: Layout, view: memoryview, at: int, last_run_whole: bool) -> tuple[list[Any], int]:
        pieces: list[Any] = []
        for part in layout.parts:
            if isinstance(part, Vector):
                piece, at = self._cut_vector(part, view, at)
                pieces.append(piece)
                continue
            pieces.append(view[at : at + part.used])
            at += part.size if last_run_whole or part is not layout.parts[-1] else part.used
            if at > len(view):
                raise Damaged("a sample is shorter than its type")
        return pieces, at

    def _cut_vector(self, part: Vector, view: memoryview, at: int) -> tuple[Any, int]:
        if at + COUNT > len(view):
            raise Damaged("a sample is shorter than its type")
        (count,) = self._count.unpack_from(view, at)
        begin = at + COUNT
        least = COUNT if part.run is None else part.run.size
        if count * least > len(view) - begin:
            raise Damaged("a container claims more elements than its sample has room for")
        if part.run is None:
            return self._cut_elements(part, count, view, begin)
        end = begin + count * part.run.size
        return ((begin, end - begin) if part.path in self.lazy else view[begin:end]), end

    def _cut_elements(self, part: Vector, count: int, view: memoryview, begin: int) -> tuple[Elements, int]:
        each: list[list[Any]] = []
        at = begin
        for _ in range(count):
            pieces, at = self._cut(part.element, view, at, last_run_whole=True)
            each.append(pieces)
        return Elements(bytes(view[begin:at]), each), at

    def leaves(self, samples: Sequence[list[Any]]) -> Leaves:
        """Make columns of the pieces of some samples."""
        return self._leaves(self.layout, samples)

    def _leaves(self, layout: Layout, samples: Sequence[list[Any]]) -> Leaves:
        leaves: Leaves = {}
        for number, part in enumerate(layout.parts):
            pieces = [sample[number] for sample in samples]
            if isinstance(part, Run):
                leaves.update(self._run_leaves(part, part.used, pieces, None))
            elif part.path in self.lazy:
                places = np.array(pieces, dtype=np.int64).reshape(-1, 2)
                leaves |= {f"{part.path}.at": Leaf(places[:, 0]), f"{part.path}.size": Leaf(places[:, 1])}
            else:
                found = self._vector_leaves(part, pieces)
                leaves.update({join_path(part.path, name): leaf for name, leaf in found.items()})
        return leaves

    def _vector_leaves(self, part: Vector, pieces: Sequence[Any]) -> Leaves:
        if part.text:
            return {"": Leaf([bytes(piece).decode("utf-8", "replace") for piece in pieces])}
        if part.run is not None:
            counts = offsets_of([len(piece) // part.run.size for piece in pieces])
            return self._run_leaves(part.run, part.run.size, pieces, counts)
        offsets = offsets_of([len(piece.each) for piece in pieces])
        elements = [element for piece in pieces for element in piece.each]
        if not elements:
            return {"": Leaf([], offsets)}
        try:
            inner = self._leaves(part.element, elements)
            return {name: regroup(leaf, offsets) for name, leaf in inner.items()}
        except Nested:
            return {"": Leaf([piece.raw for piece in pieces])}

    def _run_leaves(
        self, run: Run, size: int, pieces: Sequence[memoryview], offsets: NDArray[np.int64] | None
    ) -> Leaves:
        """Decode records of one run; `offsets` groups them by sample where there are several in each."""
        records = np.frombuffer(b"".join(pieces), run.dtype(self.order, size))
        leaves: Leaves = {}
        for place in run.places:
            values = plain_column(records[place.path], place)
            if place.count is None:
                leaves[place.path] = Leaf(values, offsets)
            else:
                every = np.arange(len(records) + 1, dtype=np.int64) if offsets is None else offsets
                leaves[place.path] = Leaf(values, every * place.count)
        return leaves


def join_path(path: str, name: str) -> str:
    """Return the path of a field of a container's elements."""
    return f"{path}.{name}" if path and name else path or name


def plain_column(column: NDArray[Any], place: Place) -> Any:
    """Return numbers in the byte order of this machine, flat; enumerations as a list of words.

    A value that has no name stays a number.
    """
    flat = native(column).reshape(-1)
    if place.number.names is None:
        return flat
    names: Mapping[int, str] = place.number.names
    return [names.get(number, str(number)) for number in flat.tolist()]


def native(column: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the byte order of this machine."""
    return column.astype(column.dtype.newbyteorder("<" if sys.byteorder == "little" else ">"))


_COUNT = struct.Struct("<Q")
_FORMATS = dict(zip(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"], "bhiqBHIQfd", strict=True))


class Encoder:
    """Writes values of one type; maps in maps, lists, and arrays of rows for structs of numbers alone."""

    def __init__(self, layout: Layout, inner: bool = False) -> None:
        last = layout.parts[-1]
        self._parts: list[_Run | _Vector] = [
            _Vector(part) if isinstance(part, Vector) else _Run(part, whole=inner or part is not last)
            for part in layout.parts
        ]

    def encode(self, value: Any) -> bytes:
        """Return one value; padding at its very end is left out."""
        try:
            return b"".join(part.encode(value) for part in self._parts)
        except (struct.error, ValueError, TypeError, OverflowError) as error:
            raise UnsupportedError("a sample cannot be written to a Rock log", why=str(error)) from error


def _find(value: Any, path: str) -> Any:
    """Return a field by its path; names of fields may have dots in them."""
    if not path:
        return value
    if path in value:
        return value[path]
    head, _, rest = path.partition(".")
    return _find(value[head], rest)


class _Run:
    """Numbers and the padding between them."""

    def __init__(self, run: Run, whole: bool) -> None:
        self._places = run.places
        self._codes = [_codes(place) for place in run.places]
        form, at = "<", 0
        for place in run.places:
            count = place.count or 1
            form += f"{place.offset - at}x{count}{_FORMATS[place.number.dtype.str[1:]]}"
            at = place.offset + count * place.number.size
        self._struct = struct.Struct(f"{form}{(run.size if whole else run.used) - at}x")

    def encode(self, value: Any) -> bytes:
        numbers: list[Any] = []
        for place, codes in zip(self._places, self._codes, strict=True):
            found = _find(value, place.path)
            if codes is not None:
                numbers.append(codes.get(found, 0))
            elif place.count is None:
                unknown = found is None and place.number.dtype.kind == "f"
                numbers.append(float("nan") if unknown else found)
            else:
                numbers.extend(found)
        return self._struct.pack(*numbers)


def _codes(place: Place) -> Mapping[str, int] | None:
    names = place.number.names
    return None if names is None else {name: number for number, name in names.items()}


class _Vector:
    """A container: the count of its elements, and the elements."""

    def __init__(self, vector: Vector) -> None:
        self._path, self._run = vector.path, vector.run
        self._element = Encoder(vector.element, inner=True)

    def encode(self, value: Any) -> bytes:
        content = _find(value, self._path)
        content = content.encode() if isinstance(content, str) else content
        return _COUNT.pack(len(content)) + self._elements(content)

    def _elements(self, content: Sequence[Any]) -> bytes:
        if isinstance(content, bytes):
            return content
        run = self._run
        if (
            run is not None
            and len(run.places) == 1
            and (run.places[0].path == "" or isinstance(content, np.ndarray))
        ):
            kind = run.places[0].number.dtype.newbyteorder("<")
            return np.asarray(content, dtype=kind).tobytes()
        return b"".join(self._element.encode(element) for element in content)
