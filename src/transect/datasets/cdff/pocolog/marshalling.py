"""Binary layout of C++ types in a Rock log, with a decoder and an encoder.

Typelib copies memory including the padding between fields. Containers are written as the count of their
elements (uint64) and the elements. Padding after a container is written only if another field is between the
two, and final padding is omitted (typelib, `test_marshalling.cc`). A `TypelibDecoder` decodes batches of
samples; a `TypelibEncoder` writes one sample in little-endian order.
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

from ..rock.columns import FlatLeaf, FlatLeaves, NestedLists, regroup
from .typelib import ArrayType, ContainerType, NumberType, StructType, TypelibType, UnknownType

MAX_FIELDS = 10_000
"""Limit for a type with its nested types, against definitions that grow exponentially with their depth."""


@dataclass(frozen=True)
class FieldOffset:
    """A number, or an array of numbers, at an offset of a block."""

    path: str
    offset: int
    number: NumberType
    count: int | None = None


@dataclass(frozen=True)
class FixedBlock:
    """Fields of fixed size between containers; `used` bytes up to the end of the last field."""

    fields: tuple[FieldOffset, ...]
    size: int
    used: int

    def dtype(self, order: str, size: int) -> np.dtype[Any]:
        """Return the numpy type of `size` bytes with fields named by path; `order` is `<` or `>`."""
        kinds = [each.number.dtype.newbyteorder(order) for each in self.fields]  # pyright: ignore[reportArgumentType]
        formats = [
            kind if each.count is None else (kind, (each.count,))
            for kind, each in zip(kinds, self.fields, strict=True)
        ]
        names, offsets = [each.path for each in self.fields], [each.offset for each in self.fields]
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


@dataclass(frozen=True)
class ContainerLayout:
    """A container and the layout of its elements; `text` if it is a string."""

    path: str
    element: TypeLayout
    text: bool

    @cached_property
    def block(self) -> FixedBlock | None:
        """The layout of elements without containers, else None."""
        parts = self.element.parts
        return parts[0] if len(parts) == 1 and isinstance(parts[0], FixedBlock) else None


@dataclass(frozen=True)
class TypeLayout:
    """Blocks and containers in their order in the log."""

    parts: tuple[FixedBlock | ContainerLayout, ...]


class _LayoutBuilder:
    """Collects fields into blocks between containers; `left` counts the remaining number of fields."""

    def __init__(self, left: list[int]) -> None:
        self.left = left
        self.parts: list[FixedBlock | ContainerLayout] = []
        self._fields: list[FieldOffset] = []
        self._size = self._used = 0

    def add(self, kind: TypelibType, path: str) -> None:
        self.left[0] -= 1
        if self.left[0] < 0:
            raise UnknownType(f"more than {MAX_FIELDS} fields")
        if isinstance(kind, NumberType):
            self._add_field(FieldOffset(path, self._size, kind), kind.size)
        elif isinstance(kind, StructType):
            self._add_struct(kind, path)
        elif isinstance(kind, ContainerType):
            self.close()
            self.parts.append(ContainerLayout(path, _layout(kind.of, self.left), kind.text))
        else:
            self._add_array(kind, path)

    def _add_field(self, added: FieldOffset, size: int) -> None:
        self._fields.append(added)
        self._size += size
        self._used = self._size

    def _add_struct(self, kind: StructType, path: str) -> None:
        at = 0
        for name, offset, of in kind.fields:
            if offset < at:
                raise UnknownType("fields overlap")
            self._pad(offset - at)
            self.add(of, f"{path}.{name}" if path else name)
            at = offset + of.size
        if kind.size < at:
            raise UnknownType("fields reach beyond their struct")
        self._pad(kind.size - at)

    def _add_array(self, kind: ArrayType, path: str) -> None:
        number, count = kind.of, kind.count
        while isinstance(number, ArrayType):
            number, count = number.of, count * number.count
        if isinstance(number, NumberType):
            self._add_field(FieldOffset(path, self._size, number, count), kind.size)
            return
        raise UnknownType("an array of structs or containers")

    def _pad(self, count: int) -> None:
        if self._size:
            self._size += count

    def close(self) -> None:
        """End the block."""
        if self._size:
            self.parts.append(FixedBlock(tuple(self._fields), self._size, self._used))
        self._fields, self._size, self._used = [], 0, 0


def make_layout(kind: TypelibType) -> TypeLayout:
    """Return the layout of a type; raise UnknownType if it cannot be decoded."""
    return _layout(kind, [MAX_FIELDS])


def _layout(kind: TypelibType, left: list[int]) -> TypeLayout:
    builder = _LayoutBuilder(left)
    builder.add(kind, "")
    builder.close()
    if not builder.parts:
        raise UnknownType("a type without content")
    return TypeLayout(tuple(builder.parts))


COUNT_BYTES = 8
"""Size of the element count of a container."""


class DamagedSample(Exception):
    """Bytes that do not match their type; internal to the readers."""


@dataclass(frozen=True)
class ContainerElements:
    """A container whose elements have containers: its bytes, and the parts of each element."""

    raw: bytes
    each: list[list[Any]]


class TypelibDecoder:
    """Splits samples into parts, one by one, and converts batches of parts to columns.

    Parameters
    ----------
    order : {"<", ">"}
        Byte order of the numbers.
    lazy : sequence of str
        Paths of containers whose byte range is stored instead of their content.
    """

    def __init__(self, layout: TypeLayout, order: str, lazy: Sequence[str] = ()) -> None:
        self.layout, self.order, self.lazy = layout, order, lazy
        self._count = struct.Struct(f"{order}Q")

    def split(self, view: memoryview) -> list[Any]:
        """Split one sample into the bytes of its blocks and containers; raise DamagedSample on a mismatch."""
        pieces, end = self._split(self.layout, view, 0, pad_last=False)
        last = self.layout.parts[-1]
        padding = last.size - last.used if isinstance(last, FixedBlock) else 0
        if not 0 <= len(view) - end <= padding:
            raise DamagedSample(f"a sample has {len(view)} bytes where its type needs {end}")
        return pieces

    def _split(self, layout: TypeLayout, view: memoryview, at: int, pad_last: bool) -> tuple[list[Any], int]:
        pieces: list[Any] = []
        for part in layout.parts:
            if isinstance(part, ContainerLayout):
                piece, at = self._split_container(part, view, at)
                pieces.append(piece)
                continue
            pieces.append(view[at : at + part.used])
            at += part.size if pad_last or part is not layout.parts[-1] else part.used
            if at > len(view):
                raise DamagedSample("a sample is shorter than its type")
        return pieces, at

    def _split_container(self, part: ContainerLayout, view: memoryview, at: int) -> tuple[Any, int]:
        if at + COUNT_BYTES > len(view):
            raise DamagedSample("a sample is shorter than its type")
        (count,) = self._count.unpack_from(view, at)
        begin = at + COUNT_BYTES
        min_size = COUNT_BYTES if part.block is None else part.block.size
        if count * min_size > len(view) - begin:
            raise DamagedSample("a container claims more elements than its sample has room for")
        if part.block is None:
            return self._split_elements(part, count, view, begin)
        end = begin + count * part.block.size
        return ((begin, end - begin) if part.path in self.lazy else view[begin:end]), end

    def _split_elements(
        self, part: ContainerLayout, count: int, view: memoryview, begin: int
    ) -> tuple[ContainerElements, int]:
        each: list[list[Any]] = []
        at = begin
        for _ in range(count):
            pieces, at = self._split(part.element, view, at, pad_last=True)
            each.append(pieces)
        return ContainerElements(bytes(view[begin:at]), each), at

    def leaves(self, samples: Sequence[list[Any]]) -> FlatLeaves:
        """Convert the parts of some samples to columns."""
        return self._leaves(self.layout, samples)

    def _leaves(self, layout: TypeLayout, samples: Sequence[list[Any]]) -> FlatLeaves:
        leaves: FlatLeaves = {}
        for number, part in enumerate(layout.parts):
            pieces = [sample[number] for sample in samples]
            if isinstance(part, FixedBlock):
                leaves.update(self._block_leaves(part, part.used, pieces, None))
            elif part.path in self.lazy:
                ranges = np.array(pieces, dtype=np.int64).reshape(-1, 2)
                leaves |= {
                    f"{part.path}.at": FlatLeaf(ranges[:, 0]),
                    f"{part.path}.size": FlatLeaf(ranges[:, 1]),
                }
            else:
                found = self._container_leaves(part, pieces)
                leaves.update({join_path(part.path, name): leaf for name, leaf in found.items()})
        return leaves

    def _container_leaves(self, part: ContainerLayout, pieces: Sequence[Any]) -> FlatLeaves:
        if part.text:
            return {"": FlatLeaf([bytes(piece).decode("utf-8", "replace") for piece in pieces])}
        if part.block is not None:
            counts = offsets_of([len(piece) // part.block.size for piece in pieces])
            return self._block_leaves(part.block, part.block.size, pieces, counts)
        offsets = offsets_of([len(piece.each) for piece in pieces])
        elements = [element for piece in pieces for element in piece.each]
        if not elements:
            return {"": FlatLeaf([], offsets)}
        try:
            inner = self._leaves(part.element, elements)
            return {name: regroup(leaf, offsets) for name, leaf in inner.items()}
        except NestedLists:
            return {"": FlatLeaf([piece.raw for piece in pieces])}

    def _block_leaves(
        self, block: FixedBlock, size: int, pieces: Sequence[memoryview], offsets: NDArray[np.int64] | None
    ) -> FlatLeaves:
        """Decode records of one block; `offsets` groups them if a sample has several."""
        records = np.frombuffer(b"".join(pieces), block.dtype(self.order, size))
        leaves: FlatLeaves = {}
        for each in block.fields:
            values = plain_column(records[each.path], each)
            if each.count is None:
                leaves[each.path] = FlatLeaf(values, offsets)
            else:
                every = np.arange(len(records) + 1, dtype=np.int64) if offsets is None else offsets
                leaves[each.path] = FlatLeaf(values, every * each.count)
        return leaves


def join_path(path: str, name: str) -> str:
    """Return the path of a field of a container's elements."""
    return f"{path}.{name}" if path and name else path or name


def plain_column(column: NDArray[Any], source: FieldOffset) -> Any:
    """Return numbers in native byte order, flat; enumerations as a list of names.

    A value without a name is converted to its number as text.
    """
    flat = to_native(column).reshape(-1)
    if source.number.names is None:
        return flat
    names: Mapping[int, str] = source.number.names
    return [names.get(number, str(number)) for number in flat.tolist()]


def to_native(column: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in native byte order."""
    return column.astype(column.dtype.newbyteorder("<" if sys.byteorder == "little" else ">"))


_COUNT = struct.Struct("<Q")
_FORMATS = dict(zip(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"], "bhiqBHIQfd", strict=True))


class TypelibEncoder:
    """Encodes values of one type: nested maps and lists, and arrays of rows for structs of numbers."""

    def __init__(self, layout: TypeLayout, inner: bool = False) -> None:
        last = layout.parts[-1]
        self._parts: list[_BlockEncoder | _ContainerEncoder] = [
            _ContainerEncoder(part)
            if isinstance(part, ContainerLayout)
            else _BlockEncoder(part, whole=inner or part is not last)
            for part in layout.parts
        ]

    def encode(self, value: Any) -> bytes:
        """Encode one value without its final padding."""
        try:
            return b"".join(part.encode(value) for part in self._parts)
        except (struct.error, ValueError, TypeError, OverflowError) as error:
            raise UnsupportedError("a sample cannot be written to a Rock log", why=str(error)) from error


def _find(value: Any, path: str) -> Any:
    """Return a field by its path; field names may contain dots."""
    if not path:
        return value
    if path in value:
        return value[path]
    head, _, rest = path.partition(".")
    return _find(value[head], rest)


class _BlockEncoder:
    """Numbers and the padding between them."""

    def __init__(self, block: FixedBlock, whole: bool) -> None:
        self._fields = block.fields
        self._codes = [_codes(each) for each in block.fields]
        form, at = "<", 0
        for each in block.fields:
            count = each.count or 1
            form += f"{each.offset - at}x{count}{_FORMATS[each.number.dtype.str[1:]]}"
            at = each.offset + count * each.number.size
        self._struct = struct.Struct(f"{form}{(block.size if whole else block.used) - at}x")

    def encode(self, value: Any) -> bytes:
        numbers: list[Any] = []
        for each, codes in zip(self._fields, self._codes, strict=True):
            found = _find(value, each.path)
            if codes is not None:
                numbers.append(codes.get(found, 0))
            elif each.count is None:
                unknown = found is None and each.number.dtype.kind == "f"
                numbers.append(float("nan") if unknown else found)
            else:
                numbers.extend(found)
        return self._struct.pack(*numbers)


def _codes(source: FieldOffset) -> Mapping[str, int] | None:
    names = source.number.names
    return None if names is None else {name: number for number, name in names.items()}


class _ContainerEncoder:
    """A container: the count of its elements, and the elements."""

    def __init__(self, container: ContainerLayout) -> None:
        self._path, self._block = container.path, container.block
        self._element = TypelibEncoder(container.element, inner=True)

    def encode(self, value: Any) -> bytes:
        content = _find(value, self._path)
        content = content.encode() if isinstance(content, str) else content
        return _COUNT.pack(len(content)) + self._elements(content)

    def _elements(self, content: Sequence[Any]) -> bytes:
        if isinstance(content, bytes):
            return content
        block = self._block
        if (
            block is not None
            and len(block.fields) == 1
            and (block.fields[0].path == "" or isinstance(content, np.ndarray))
        ):
            kind = block.fields[0].number.dtype.newbyteorder("<")
            return np.asarray(content, dtype=kind).tobytes()
        return b"".join(self._element.encode(element) for element in content)
