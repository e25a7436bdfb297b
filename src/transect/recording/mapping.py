"""Large files of the cache, mapped into memory; pages that were looked at are given back.

A page of a mapped file counts as memory of the process until it is taken away from it, so a walk over a
table of any size would end with all of it resident. A page that was given back is read again when needed.
"""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

MOST_LOOKED_AT = 1 << 26
"""Bytes that may be looked at until pages are given back."""
_AT_ONCE = 1 << 16
"""Bytes that the system makes resident around one that is touched."""

_mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_looked_at = 0


def map_file(path: Path) -> pa.Buffer:
    """Return the bytes of a file, mapped for as long as somebody holds the buffer or a part of it."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _mapped.add(mapped)
    return pa.py_buffer(mapped)


def bound_pages(sizes: Iterable[int]) -> None:
    """Give pages of mapped files back, before parts of these sizes in bytes are looked at, if it is time."""
    global _looked_at
    if not len(_mapped):
        return
    _looked_at += sum(max(size, _AT_ONCE) for size in sizes)
    if _looked_at > MOST_LOOKED_AT:
        _looked_at = 0
        _release_pages()


def _release_pages() -> None:
    if hasattr(mmap, "MADV_DONTNEED"):
        for mapped in list(_mapped):
            mapped.madvise(mmap.MADV_DONTNEED)
