"""The bytes of a file, read on demand.

Files are not memory-mapped: if another program truncates a mapped file, the process receives SIGBUS. Reading
a truncated file raises an error instead.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, overload

from transect.errors import ParseError

if TYPE_CHECKING:
    from .arrays import Bytes, Ints

_READ_AHEAD_BYTES = 1 << 14
"""Smallest read, which is kept for the next one."""
PIECE_BYTES = 1 << 20
_MAX_SPACING_BYTES = 1 << 14
"""Records farther apart on average are read one by one."""


class ByteSource(Protocol):
    """The source of the bytes of a `FileBytes`."""

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`."""
        ...


class _OpenFile:
    """An open file, which is closed when this object is deleted."""

    def __init__(self, path: Path) -> None:
        self.path, self.number = path, -1
        try:
            self.number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            why = error.strerror or str(error)
            raise ParseError(f"cannot open {path.name}", where=str(path), why=why) from error

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if self.number >= 0:
            close(self.number)

    def read(self, start: int, end: int) -> bytes:
        data, at = b"", start
        while at < end:  # the system reads at most 2 GB at a time
            try:
                more = os.pread(self.number, end - at, at)
            except OSError as error:
                where, why = f"{self.path}@{at}", error.strerror or str(error)
                raise ParseError(f"{self.path.name} cannot be read", where=where, why=why) from error
            if not more:
                raise ParseError(
                    f"{self.path.name} was truncated while it was read",
                    where=f"{self.path}@{at}",
                    why="another program shortened it",
                    hint="open it again when no program writes to it",
                )
            data, at = data + more if data else more, at + len(more)
        return data


class FileBytes:
    """A file, or a part of one, that is sliced like bytes; each slice is read on demand.

    The file stays open as long as the object or any part of it exists.
    """

    def __init__(self, path: Path) -> None:
        file = _OpenFile(path)
        self._file: ByteSource = file
        self._start, self._size = 0, os.fstat(file.number).st_size
        self._window: tuple[int, bytes] = (0, b"")

    @staticmethod
    def over(reader: ByteSource, size: int) -> FileBytes:
        """Return the `size` bytes of a source other than a file."""
        content = object.__new__(FileBytes)
        content._file, content._start, content._size, content._window = reader, 0, size, (0, b"")
        return content

    def part(self, start: int, end: int) -> FileBytes:
        """Return a part of the file; nothing is read."""
        part = object.__new__(FileBytes)
        part.__dict__.update(self.__dict__)
        part._start, part._size = self._start + start, max(0, min(end, self._size) - start)
        return part

    @property
    def stat(self) -> os.stat_result | None:
        """The current status of the open file; None for other sources."""
        return os.fstat(self._file.number) if isinstance(self._file, _OpenFile) else None

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, key: int) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> bytes: ...
    def __getitem__(self, key: int | slice) -> int | bytes:
        if isinstance(key, int):
            at = key + self._size if key < 0 else key
            if not 0 <= at < self._size:
                raise IndexError(key)
            return self._read(at, at + 1)[0]
        start, end = key.start, key.stop
        if start is None or end is None or not 0 <= start < end <= self._size:
            start, end, _ = key.indices(self._size)
        return self._read(start, end) if end > start else b""

    def __bytes__(self) -> bytes:
        return self[:]

    def _read(self, start: int, end: int) -> bytes:
        at, window = self._window
        first = self._start + start - at
        last = first + end - start
        if first >= 0 and last <= len(window):
            return window[first:last]
        if end - start >= _READ_AHEAD_BYTES:
            return self._file.read(at + first, at + last)
        window = self._file.read(at + first, min(at + first + _READ_AHEAD_BYTES, self._start + self._size))
        self._window = (at + first, window)
        return window[: end - start]


Content = bytes | memoryview | FileBytes
"""Input of readers of large files."""


def part_of(content: Content, start: int, end: int) -> Content:
    """Return a part of a content, without reading or copying it."""
    if isinstance(content, FileBytes):
        return content.part(start, end)
    return memoryview(content)[start:end]


def pieces_of(content: Content, size: int = PIECE_BYTES) -> Iterator[bytes | memoryview]:
    """Iterate over a content in pieces of `size` bytes."""
    for at in range(0, len(content), size):
        yield content[at : at + size]


def crc32_of(content: Content) -> int:
    """Return the CRC32 of a content, read piece by piece."""
    crc = 0
    for piece in pieces_of(content):
        crc = zlib.crc32(piece, crc)
    return crc


def gather(content: Content, places: Ints, width: int) -> Bytes:
    """Return (n, width) uint8: `width` bytes from each of n offsets, all inside the content."""
    import numpy as np  # not needed to recognise a file

    if not isinstance(content, FileBytes):
        return np.frombuffer(content, np.uint8)[places[:, None] + np.arange(width)]
    if (
        not len(places)
        or places[-1] - places[0] > _MAX_SPACING_BYTES * len(places)
        or (np.diff(places) < 0).any()
    ):
        found = b"".join(content[at : at + width] for at in places.tolist())
        return np.frombuffer(found, np.uint8).reshape(len(places), width)
    rows = np.empty((len(places), width), np.uint8)
    begin = 0
    while begin < len(places):
        end = int(np.searchsorted(places, places[begin] + PIECE_BYTES))
        first, last = int(places[begin]), int(places[end - 1]) + width
        near = np.frombuffer(content[first:last], np.uint8)
        rows[begin:end] = near[(places[begin:end] - first)[:, None] + np.arange(width)]
        begin = end
    return rows
