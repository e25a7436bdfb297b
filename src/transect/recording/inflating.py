"""A deflated member of an archive, read like a file: unpacked from the last place that is remembered."""

from __future__ import annotations

import threading
import zlib
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

from transect.base.file_bytes import Content

STEP = 1 << 16
"""Packed bytes that are unpacked at a time."""
APART = 1 << 23
"""Unpacked bytes between the places that are remembered; each takes 40 kB."""


@dataclass(frozen=True)
class _Mark:
    """A place between two steps: bytes unpacked and packed before it, and zlib's state there."""

    at: int
    packed_at: int
    state: Any


@dataclass
class Inflated:
    """The unpacked bytes of a raw deflate stream, of which only those near the last place read are in memory.

    Attributes
    ----------
    packed : bytes or FileBytes
    """

    packed: Content
    _marks: list[_Mark] = field(default_factory=list[_Mark])
    _near: bytes = b""
    _here: _Mark = field(default_factory=lambda: _Mark(0, 0, zlib.decompressobj(-15)))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, fewer at the end of the stream; damage is a zlib.error."""
        with self._lock:
            self._go_near(start)
            parts: list[bytes] = []
            while True:
                first = self._here.at - len(self._near)
                parts.append(self._near[max(0, start - first) : max(0, end - first)])
                if self._here.at >= end or not self._step():
                    return b"".join(parts)

    def _go_near(self, start: int) -> None:
        """Take the last place at or before `start` from which unpacking can go on."""
        known = bisect_right(self._marks, start, key=lambda mark: mark.at)
        mark = self._marks[known - 1] if known else _Mark(0, 0, zlib.decompressobj(-15))
        if start < self._here.at - len(self._near) or mark.at > self._here.at:
            self._here = _Mark(mark.at, mark.packed_at, mark.state.copy())
            self._near = b""

    def _step(self) -> bool:
        """Unpack what comes next; return False at the end."""
        here = self._here
        packed = bytes(self.packed[here.packed_at : here.packed_at + STEP])
        if not packed or here.state.eof:
            return False
        self._near = here.state.decompress(packed)
        self._here = _Mark(here.at + len(self._near), here.packed_at + len(packed), here.state)
        last = self._marks[-1].at if self._marks else 0
        if self._here.at >= last + APART and not here.state.eof:
            self._marks.append(_Mark(self._here.at, self._here.packed_at, here.state.copy()))
        return True
