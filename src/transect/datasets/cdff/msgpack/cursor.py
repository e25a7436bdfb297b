"""Incremental MessagePack decoding with bounded memory.

Small files can expand: 20 MB of empty maps become 1.4 GB of Python objects. Values that are not needed are
therefore skipped without building them, the elements of built values are counted, and long lists of numbers
are decoded as arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.file_bytes import Content


@dataclass(frozen=True)
class MessagePackLimits:
    """Limits of memory while a log is read."""

    elements: int = 2_000_000  # of maps and lists in one value, at most about 150 MB
    list_length: int = 1 << 20  # images and clouds are longer, but are skipped and decoded as arrays
    text_bytes: int = 1 << 24
    skipped_bytes: int = 1 << 27  # of the longest text or block of bytes that is skipped
    uncounted_bytes: int = 1 << 16  # of a value that is built without counting: at most 5 MB
    read_bytes: int = 1 << 16
    batch: int = 4096  # values of a list of mixed types
    block_bytes: int = 1 << 20  # of a list of bytes that is decoded at a time


LIMITS = MessagePackLimits()
_OPTIONS: dict[str, Any] = {"use_list": False, "strict_map_key": False, "unicode_errors": "replace"}
_SIZE_OPTIONS = {
    "max_array_len": LIMITS.list_length,
    "max_map_len": LIMITS.list_length,
    **dict.fromkeys(("max_str_len", "max_bin_len", "max_ext_len"), LIMITS.text_bytes),
}


class TruncatedValue(Exception):
    """The bytes end inside a value; internal to the readers."""


class InvalidValue(Exception):
    """The bytes are not MessagePack or exceed a limit; internal to the readers."""


class _BytesReader:
    """File interface of a buffer for the unpacker, from an offset."""

    def __init__(self, view: Content, start: int) -> None:
        self.view, self.at = view, start

    def read(self, count: int) -> bytes:
        data = bytes(self.view[self.at : self.at + count])
        self.at += len(data)
        return data


class MessagePackCursor:
    """Sequential reader of values from an offset in a buffer.

    Every method may raise TruncatedValue or InvalidValue; `at` is undefined after that, except after an
    InvalidValue of `value`, when it is the next value.
    """

    def __init__(self, view: Content, start: int = 0) -> None:
        import msgpack

        self._view, self._start = view, start
        self._cut: type[Exception] = msgpack.OutOfData
        self._unpack: Callable[..., Any] = msgpack.unpackb
        self._unpacker = msgpack.Unpacker(
            _BytesReader(view, start),
            read_size=LIMITS.read_bytes,
            max_buffer_size=LIMITS.skipped_bytes,
            **_OPTIONS,
        )

    @property
    def at(self) -> int:
        """Byte offset of the next value."""
        return self._start + self._unpacker.tell()

    def value(self) -> Any:
        """Build the next value: maps are dicts, lists are tuples."""
        start = self.at
        self.skip()
        data = self._view[start : self.at]
        if len(data) <= LIMITS.uncounted_bytes:
            return self._read(self._unpack, data, **_OPTIONS)
        budget = _ElementBudget()
        return self._read(
            self._unpack,
            data,
            object_pairs_hook=budget.map,
            list_hook=budget.list,
            **_OPTIONS,
            **_SIZE_OPTIONS,
        )

    def skip(self) -> None:
        """Skip the next value."""
        self._read(self._unpacker.skip)

    def list_length(self) -> int:
        """Enter a list and return the number of its values."""
        return self._read(self._unpacker.read_array_header)

    def map_length(self) -> int:
        """Enter a map and return the number of its pairs."""
        return self._read(self._unpacker.read_map_header)

    def _read(self, step: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return step(*arguments, **options)
        except self._cut:
            raise TruncatedValue from None
        except (ValueError, TypeError, OverflowError, MemoryError, BufferError) as error:
            raise InvalidValue(_reason(error)) from error


class _ElementBudget:
    """Counts the elements of a large value while it is built, and raises ValueError above the limit."""

    def __init__(self) -> None:
        self.left = LIMITS.elements

    def map(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        self._count(len(pairs))
        return dict(pairs)

    def list(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        self._count(len(values))
        return values

    def _count(self, elements: int) -> None:
        self.left -= elements + 1
        if self.left < 0:
            raise ValueError(f"a value of more than {LIMITS.elements} elements")


def _reason(error: Exception) -> str:
    known = {
        "FormatError": "a byte that begins no MessagePack value",
        "StackError": "values nested too deeply",
        "BufferFull": f"a value of more than {LIMITS.skipped_bytes} bytes",
        "TypeError": "a key that is no text",
    }
    return known.get(type(error).__name__) or str(error) or type(error).__name__


def find_end(view: Content, start: int) -> int:
    """Return the end offset of the value at `start`."""
    cursor = MessagePackCursor(view, start)
    cursor.skip()
    return cursor.at


_NUMBER_TYPES = {0xCA: ">f4", 0xCB: ">f8", 0xCD: ">u2", 0xCE: ">u4", 0xCF: ">u8", 0xD2: ">i4", 0xD3: ">i8"}
"""Type of a number by its format byte (MessagePack specification, formats)."""
_UINT8_FORMAT = 0xCC
_BIN_FORMATS = (0xC4, 0xC5, 0xC6)


def decode_numbers(view: Content, start: int, most: int) -> tuple[NDArray[Any], int, bool]:
    """Decode at most `most` numbers of the list at `start`.

    Returns
    -------
    numbers : (n,) int64 or float64 array
    end : int
        End of the list, or offset of the first error.
    whole : bool
        Whether the end of the list was reached.
    """
    cursor = MessagePackCursor(view, start)
    count, at = cursor.list_length(), cursor.at
    block = _decode_uniform(view, at, count)
    if block is not None:
        return _widen(block[:most]), at + count * (1 + block.dtype.itemsize), True
    parts: list[NDArray[Any]] = [np.zeros(0, np.int64)]
    batch: list[Any] = []
    for _ in range(min(count, most)):
        try:
            batch.append(cursor.value())
        except (TruncatedValue, InvalidValue):
            return np.concatenate([*parts, _numbers(batch)]), at, False
        at = cursor.at
        if len(batch) == LIMITS.batch:
            parts.append(_numbers(batch))
            batch = []
    return np.concatenate([*parts, _numbers(batch)]), at, count <= most


def _numbers(values: list[Any]) -> NDArray[Any]:
    if not all(isinstance(value, int | float) for value in values):
        raise InvalidValue("a list of numbers holds something else")
    array = np.asarray(values) if values else np.zeros(0, np.int64)
    if array.dtype.kind not in "biuf":
        raise InvalidValue("a number is too large")
    return _widen(array)


def _widen(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def _decode_uniform(view: Content, at: int, count: int) -> NDArray[Any] | None:
    """Return `count` numbers if all have the format of the first, else None."""
    kind = np.dtype(_NUMBER_TYPES.get(view[at], "u1")) if at < len(view) else np.dtype("u1")
    width = 1 + kind.itemsize
    if not count or kind.itemsize == 1 or at + count * width > len(view):
        return None
    block = np.frombuffer(view[at : at + count * width], np.uint8).reshape(count, width)
    if (block[:, 0] != block[0, 0]).any():
        return None
    return np.ascontiguousarray(block[:, 1:]).view(kind)[:, 0]


def decode_rows(data: bytes | memoryview, width: int) -> NDArray[np.float64]:
    """Decode a list of rows of numbers, `[[x, y, z], ...]`, as (n, width).

    A row may also be a map with the numbers as its only value; for a width of 1 it is a number.
    """
    cursor = MessagePackCursor(data)
    count = cursor.list_length()
    if not count:
        return np.zeros((0, width))
    block = _decode_uniform_rows(data, cursor.at, count)
    if block is None and width == 1:
        block = decode_numbers(data, 0, count)[0].astype(np.float64).reshape(-1, 1)
    if block is None:
        block = np.array([_row(cursor.value()) for _ in range(count)]).reshape(count, -1)
    if block.shape[1] != width:
        raise InvalidValue(f"its rows have {block.shape[1]} numbers, not {width}")
    return block


def _row(value: Any) -> NDArray[np.float64]:
    row = next(iter(value.values()), ()) if isinstance(value, dict) else value
    return np.asarray(row, dtype=np.float64).reshape(-1)


def _decode_uniform_rows(view: Content, at: int, count: int) -> NDArray[np.float64] | None:
    """Return rows that all have the format and length of the first, else None."""
    if not count or at + 1 >= len(view) or not 0x91 <= view[at] <= 0x9F or view[at + 1] not in (0xCA, 0xCB):
        return None
    columns, kind = view[at] & 0x0F, np.dtype(_NUMBER_TYPES[view[at + 1]])
    width = 1 + columns * (1 + kind.itemsize)
    if at + count * width > len(view):
        return None
    block = np.frombuffer(view[at : at + count * width], np.uint8).reshape(count, width)
    numbers = block[:, 1:].reshape(count, columns, 1 + kind.itemsize)
    if (block[:, 0] != view[at]).any() or (numbers[:, :, 0] != view[at + 1]).any():
        return None
    return np.ascontiguousarray(numbers[:, :, 1:]).view(kind)[:, :, 0].astype(np.float64)


def decode_octets(data: bytes | memoryview) -> NDArray[np.uint8]:
    """Decode a list of numbers from 0 to 255, or a block of bytes.

    Raises
    ------
    Cut, Broken
        If it is neither.
    """
    cursor = MessagePackCursor(data)
    if len(data) and data[0] in _BIN_FORMATS:
        return np.frombuffer(cursor.value(), np.uint8)
    count = cursor.list_length()
    values = _octets(np.frombuffer(data, np.uint8, offset=cursor.at))
    if len(values) != count:
        raise InvalidValue(f"it should have {count} bytes and has {len(values)}")
    return values


def _octets(raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Drop the byte 0xCC before each number above 127; in blocks, to keep the masks small."""
    parts: list[NDArray[np.uint8]] = []
    begin = 0
    while begin < len(raw):
        block = raw[begin : begin + LIMITS.block_bytes]
        prefix = _prefixes(block)
        if prefix[-1] and len(block) > 1:  # its number is in the next block
            block, prefix = block[:-1], prefix[:-1]
        bare = ~prefix
        bare[1:] &= ~prefix[:-1]
        if (block[bare] > 0x7F).any():
            raise InvalidValue("it is not a list of bytes")
        parts.append(block[~prefix])
        begin += len(block)
    return np.concatenate(parts) if parts else np.zeros(0, np.uint8)


def _prefixes(block: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether a byte 0xCC is a format byte: every other one of a run, starting with the first."""
    marked = block == _UINT8_FORMAT
    first = marked.copy()
    first[1:] &= ~marked[:-1]
    index = np.arange(len(block), dtype=np.int32)
    run = np.maximum.accumulate(np.where(first, index, 0))
    return marked & ((index - run) % 2 == 0)
