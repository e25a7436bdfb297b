"""The sha256 of files, remembered by their stamps: an unchanged file is not read again.

There is one file for each folder or archive, under the user's cache folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transect.base.cache_folder import folder

from .sealed import unseal, write_sealed

Stamp = tuple[int, int, int, int]
"""Size, time of the last change of content and of anything (ns), and inode."""
SMALL = 32_768
"""Files below this are parsed, and hashed, each time: that is faster than looking."""
_RACY_NS = 100_000_000
"""A file hashed this soon after its last change may have changed again within one tick of its clock."""


def stamp_of(stat: os.stat_result) -> Stamp:
    """Return what changes when a file does, or when another takes its name: size, times and inode."""
    return (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


def remembered_hash(container: Path, name: str, stamp: Stamp, build: Callable[[], str]) -> str:
    """Return the sha256 of a file: the one remembered for its stamp, else that which `build` works out.

    Parameters
    ----------
    container : Path
        The folder or archive that the file is in.
    name, stamp
        Of the file.
    build : callable
        Reads and hashes it.
    """
    if stamp[0] < SMALL:
        return build()
    if (known := find_hash(container, name, stamp)) is not None:
        return known
    began_ns = time.time_ns()
    digest = build()
    remember_hash(container, name, stamp, digest, began_ns)
    return digest


def find_hash(container: Path, name: str, stamp: Stamp) -> str | None:
    """Return the sha256 that is remembered for a file with this stamp."""
    if _rehashing or stamp[0] < SMALL:
        return None
    kept: Any = _hashes.of(container).get(name)
    known = isinstance(kept, list) and tuple(kept[:-1]) == stamp and isinstance(kept[-1], str)
    return kept[-1] if known else None


def remember_hash(container: Path, name: str, stamp: Stamp, sha256: str, began_ns: int) -> None:
    """Remember the sha256 of a file, unless it changed so shortly before that it may have changed again."""
    if stamp[0] >= SMALL and began_ns - max(stamp[1], stamp[2]) > _RACY_NS:
        _hashes.add(container, name, [*stamp, sha256])


@contextmanager
def hashes_kept_together() -> Generator[None]:
    """Write what is remembered in this block once at its end: thousands of files have one index."""
    with _hashes.waiting():
        yield


@contextmanager
def rehashing(wanted: bool = True) -> Generator[None]:
    """Read and hash every file in this block, if that is wanted, whatever is remembered of it."""
    global _rehashing
    before, _rehashing = _rehashing, wanted or _rehashing
    try:
        yield
    finally:
        _rehashing = before


_rehashing = False


class _HashIndex:
    """Hashes of files by name and stamp: one index for each folder or archive, under the cache folder."""

    def __init__(self) -> None:
        self._loaded: dict[Path, tuple[Stamp | None, dict[str, list[Any]]]] = {}
        self._pending: dict[Path, dict[str, list[Any]]] = {}
        self._lock, self._depth = threading.RLock(), 0

    def of(self, container: Path) -> Mapping[str, list[Any]]:
        """Return what is remembered of the files in a folder or archive."""
        kept = self._path(container)
        with self._lock:
            stamp, files = self._loaded.get(kept, (None, {}))
            if (now := _stamp(kept)) != stamp:
                files = self._read(kept)
                self._loaded[kept] = now, files
            return files | self._pending.get(kept, {}) if kept in self._pending else files

    def add(self, container: Path, name: str, entry: list[Any]) -> None:
        """Remember one file."""
        with self._lock:
            self._pending.setdefault(self._path(container), {})[name] = entry
            if not self._depth:
                self._write()

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Write nothing before the end of the block."""
        with self._lock:
            self._depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                if not self._depth:
                    self._write()

    def _write(self) -> None:
        for kept, entries in self._pending.items():
            write_sealed(kept, {"files": self._read(kept) | entries})
        self._pending.clear()

    @staticmethod
    def _read(kept: Path) -> dict[str, list[Any]]:
        try:
            return dict(unseal(json.loads(kept.read_bytes()))["files"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    @staticmethod
    def _path(container: Path) -> Path:
        name = hashlib.sha256(os.fsencode(container.absolute())).hexdigest()
        return folder() / "hashes" / name[:2] / name[2:]


_hashes = _HashIndex()


def _stamp(path: Path) -> Stamp | None:
    try:
        return stamp_of(path.stat())
    except OSError:
        return None
