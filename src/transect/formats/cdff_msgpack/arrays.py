"""Long MessagePack lists of numbers decoded as arrays, without a Python object per number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cursor import Broken, Cursor, Cut

_KINDS = {0xCA: ">f4", 0xCB: ">f8", 0xCD: ">u2", 0xCE: ">u4", 0xCF: ">u8", 0xD2: ">i4", 0xD3: ">i8"}
"""Types of number by the byte that stands before it (MessagePack specification, formats)."""
_UINT8 = 0xCC
_BLOCKS_OF_BYTES = (0xC4, 0xC5, 0xC6)
_PIECE = 1 << 20
_BATCH = 4096


def numbers_at(view: memoryview, start: int, most: int) -> tuple[NDArray[Any], int, bool]:
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


def _alike(view: memoryview, at: int, count: int) -> NDArray[Any] | None:
    """Return `count` numbers that are all written as the first is, else None."""
    kind = np.dtype(_KINDS.get(view[at], "u1")) if at < len(view) else np.dtype("u1")
    width = 1 + kind.itemsize
    if not count or kind.itemsize == 1 or at + count * width > len(view):
        return None
    block = np.frombuffer(view, np.uint8, count * width, at).reshape(count, width)
    if (block[:, 0] != block[0, 0]).any():
        return None
    return np.ascontiguousarray(block[:, 1:]).view(kind)[:, 0]


def rows_of(data: memoryview, width: int) -> NDArray[np.float64]:
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


def _alike_rows(view: memoryview, at: int, count: int) -> NDArray[np.float64] | None:
    """Return rows that are all lists of equally many numbers of the type of the first, else None."""
    if not count or at + 1 >= len(view) or not 0x91 <= view[at] <= 0x9F or view[at + 1] not in (0xCA, 0xCB):
        return None
    columns, kind = view[at] & 0x0F, np.dtype(_KINDS[view[at + 1]])
    width = 1 + columns * (1 + kind.itemsize)
    if at + count * width > len(view):
        return None
    block = np.frombuffer(view, np.uint8, count * width, at).reshape(count, width)
    numbers = block[:, 1:].reshape(count, columns, 1 + kind.itemsize)
    if (block[:, 0] != view[at]).any() or (numbers[:, :, 0] != view[at + 1]).any():
        return None
    return np.ascontiguousarray(numbers[:, :, 1:]).view(kind)[:, :, 0].astype(np.float64)


def octets_of(data: memoryview) -> NDArray[np.uint8]:
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
