"""A walk through MessagePack bytes that takes only the memory it was granted.

MessagePack makes large things of small ones: 20 MB of empty maps become 1.4 GB of Python objects. Values that
are not needed are therefore passed without building them, those that are built are counted meanwhile, and
long lists of numbers are decoded as arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.file_bytes import Content

MAX_ELEMENTS = 2_000_000
"""Elements of maps and lists that one value may have in all, at most about 150 MB of them."""
MAX_LIST = 1 << 20
"""Elements of one list; images and clouds are longer, but they are passed and decoded as arrays."""
MAX_TEXT = 1 << 24
"""Bytes of one text."""
MAX_SKIPPED = 1 << 27
"""Longest text or block of bytes, in bytes, that can be passed."""
SMALL = 1 << 16
"""Bytes of a value that is built without counting: at most 5 MB."""
READ_SIZE = 1 << 16
_PLAIN: dict[str, Any] = {"use_list": False, "strict_map_key": False, "unicode_errors": "replace"}
_LIMITS = {
    "max_array_len": MAX_LIST,
    "max_map_len": MAX_LIST,
    **dict.fromkeys(("max_str_len", "max_bin_len", "max_ext_len"), MAX_TEXT),
}


class Cut(Exception):
    """The bytes end inside a value; never leaves the readers."""


class Broken(Exception):
    """The bytes are no MessagePack, or more than is granted; never leaves the readers."""


class _Reader:
    """The bytes from a place on, as the file that the unpacker wants."""

    def __init__(self, view: Content, start: int) -> None:
        self.view, self.at = view, start

    def read(self, count: int) -> bytes:
        data = bytes(self.view[self.at : self.at + count])
        self.at += len(data)
        return data


class Cursor:
    """Reads one value after another from a place in a buffer.

    Every method raises Cut or Broken where it cannot; `at` is undefined after that, but for `value` with
    Broken, after which it is the next value.
    """

    def __init__(self, view: Content, start: int = 0) -> None:
        import msgpack

        self._view, self._start = view, start
        self._cut: type[Exception] = msgpack.OutOfData
        self._unpack: Callable[..., Any] = msgpack.unpackb
        self._unpacker = msgpack.Unpacker(
            _Reader(view, start), read_size=READ_SIZE, max_buffer_size=MAX_SKIPPED, **_PLAIN
        )

    @property
    def at(self) -> int:
        """Byte at which the next value begins."""
        return self._start + self._unpacker.tell()

    def value(self) -> Any:
        """Build the next value: maps are dicts, lists are tuples."""
        start = self.at
        self.skip()
        data = self._view[start : self.at]
        if len(data) <= SMALL:
            return self._read(self._unpack, data, **_PLAIN)
        budget = _Budget()
        return self._read(
            self._unpack, data, object_pairs_hook=budget.map, list_hook=budget.list, **_PLAIN, **_LIMITS
        )

    def skip(self) -> None:
        """Pass the next value."""
        self._read(self._unpacker.skip)

    def list_length(self) -> int:
        """Enter a list; return how many values follow."""
        return self._read(self._unpacker.read_array_header)

    def map_length(self) -> int:
        """Enter a map; return how many pairs of key and value follow."""
        return self._read(self._unpacker.read_map_header)

    def _read(self, step: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return step(*arguments, **options)
        except self._cut:
            raise Cut from None
        except (ValueError, TypeError, OverflowError, MemoryError, BufferError) as error:
            raise Broken(_reason(error)) from error


class _Budget:
    """Counts the elements of a large value while it is built, and stops it in time."""

    def __init__(self) -> None:
        self.left = MAX_ELEMENTS

    def map(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        self._count(len(pairs))
        return dict(pairs)

    def list(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        self._count(len(values))
        return values

    def _count(self, elements: int) -> None:
        self.left -= elements + 1
        if self.left < 0:
            raise ValueError(f"a value of more than {MAX_ELEMENTS} elements")


def _reason(error: Exception) -> str:
    known = {
        "FormatError": "a byte that begins no MessagePack value",
        "StackError": "values nested too deeply",
        "BufferFull": f"a value of more than {MAX_SKIPPED} bytes",
        "TypeError": "a key that is no text",
    }
    return known.get(type(error).__name__) or str(error) or type(error).__name__


def end_of(view: Content, start: int) -> int:
    """Return where the value that begins at `start` ends."""
    cursor = Cursor(view, start)
    cursor.skip()
    return cursor.at


_KINDS = {0xCA: ">f4", 0xCB: ">f8", 0xCD: ">u2", 0xCE: ">u4", 0xCF: ">u8", 0xD2: ">i4", 0xD3: ">i8"}
"""Types of number by the byte that stands before it (MessagePack specification, formats)."""
_UINT8 = 0xCC
_BLOCKS_OF_BYTES = (0xC4, 0xC5, 0xC6)
_PIECE = 1 << 20
_BATCH = 4096


def numbers_at(view: Content, start: int, most: int) -> tuple[NDArray[Any], int, bool]:
    """Decode the list of numbers that begins at `start`, at most `most` of them.

    Returns
    -------
    numbers : (n,) int64 or float64 array
    end : int
        Where the list ends, or where it cannot be read on.
    whole : bool
        Whether that is its end.
    """
    cursor = Cursor(view, start)
    count, at = cursor.list_length(), cursor.at
    block = _alike(view, at, count)
    if block is not None:
        return _plain(block[:most]), at + count * (1 + block.dtype.itemsize), True
    parts: list[NDArray[Any]] = [np.zeros(0, np.int64)]
    batch: list[Any] = []
    for _ in range(min(count, most)):
        try:
            batch.append(cursor.value())
        except (Cut, Broken):
            return np.concatenate([*parts, _numbers(batch)]), at, False
        at = cursor.at
        if len(batch) == _BATCH:
            parts.append(_numbers(batch))
            batch = []
    return np.concatenate([*parts, _numbers(batch)]), at, count <= most


def _numbers(values: list[Any]) -> NDArray[Any]:
    if not all(isinstance(value, int | float) for value in values):
        raise Broken("a list of numbers holds something else")
    array = np.asarray(values) if values else np.zeros(0, np.int64)
    if array.dtype.kind not in "biuf":
        raise Broken("a number is too large")
    return _plain(array)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def _alike(view: Content, at: int, count: int) -> NDArray[Any] | None:
    """Return `count` numbers that are all written as the first is, else None."""
    kind = np.dtype(_KINDS.get(view[at], "u1")) if at < len(view) else np.dtype("u1")
    width = 1 + kind.itemsize
    if not count or kind.itemsize == 1 or at + count * width > len(view):
        return None
    block = np.frombuffer(view[at : at + count * width], np.uint8).reshape(count, width)
    if (block[:, 0] != block[0, 0]).any():
        return None
    return np.ascontiguousarray(block[:, 1:]).view(kind)[:, 0]


def rows_of(data: bytes | memoryview, width: int) -> NDArray[np.float64]:
    """Decode a list of rows of numbers, `[[x, y, z], ...]`, as (n, width).

    Each row may also be a map with the numbers as its only value; for a width of 1 it is a number.
    """
    cursor = Cursor(data)
    count = cursor.list_length()
    if not count:
        return np.zeros((0, width))
    block = _alike_rows(data, cursor.at, count)
    if block is None and width == 1:
        block = numbers_at(data, 0, count)[0].astype(np.float64).reshape(-1, 1)
    if block is None:
        block = np.array([_row(cursor.value()) for _ in range(count)]).reshape(count, -1)
    if block.shape[1] != width:
        raise Broken(f"its rows have {block.shape[1]} numbers, not {width}")
    return block


def _row(value: Any) -> NDArray[np.float64]:
    row = next(iter(value.values()), ()) if isinstance(value, dict) else value
    return np.asarray(row, dtype=np.float64).reshape(-1)


def _alike_rows(view: Content, at: int, count: int) -> NDArray[np.float64] | None:
    """Return rows that are all lists of equally many numbers of the type of the first, else None."""
    if not count or at + 1 >= len(view) or not 0x91 <= view[at] <= 0x9F or view[at + 1] not in (0xCA, 0xCB):
        return None
    columns, kind = view[at] & 0x0F, np.dtype(_KINDS[view[at + 1]])
    width = 1 + columns * (1 + kind.itemsize)
    if at + count * width > len(view):
        return None
    block = np.frombuffer(view[at : at + count * width], np.uint8).reshape(count, width)
    numbers = block[:, 1:].reshape(count, columns, 1 + kind.itemsize)
    if (block[:, 0] != view[at]).any() or (numbers[:, :, 0] != view[at + 1]).any():
        return None
    return np.ascontiguousarray(numbers[:, :, 1:]).view(kind)[:, :, 0].astype(np.float64)


def octets_of(data: bytes | memoryview) -> NDArray[np.uint8]:
    """Decode a list of bytes, each written as a number from 0 to 255, or a block of bytes.

    Raises
    ------
    Cut, Broken
        If it is neither.
    """
    cursor = Cursor(data)
    if len(data) and data[0] in _BLOCKS_OF_BYTES:
        return np.frombuffer(cursor.value(), np.uint8)
    count = cursor.list_length()
    values = _octets(np.frombuffer(data, np.uint8, offset=cursor.at))
    if len(values) != count:
        raise Broken(f"it should have {count} bytes and has {len(values)}")
    return values


def _octets(raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Drop the byte 0xCC before each number above 127; in pieces, to keep the masks small."""
    parts: list[NDArray[np.uint8]] = []
    begin = 0
    while begin < len(raw):
        piece = raw[begin : begin + _PIECE]
        prefix = _prefixes(piece)
        if prefix[-1] and len(piece) > 1:  # its number is in the next piece
            piece, prefix = piece[:-1], prefix[:-1]
        bare = ~prefix
        bare[1:] &= ~prefix[:-1]
        if (piece[bare] > 0x7F).any():
            raise Broken("it is not a list of bytes")
        parts.append(piece[~prefix])
        begin += len(piece)
    return np.concatenate(parts) if parts else np.zeros(0, np.uint8)


def _prefixes(piece: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Tell which bytes 0xCC stand before a number: every other one of a run, from its first on."""
    marked = piece == _UINT8
    first = marked.copy()
    first[1:] &= ~marked[:-1]
    place = np.arange(len(piece), dtype=np.int32)
    run = np.maximum.accumulate(np.where(first, place, 0))
    return marked & ((place - run) % 2 == 0)
