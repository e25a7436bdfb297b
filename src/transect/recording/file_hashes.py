"""The sha256 of files, remembered by their stamps: an unchanged file is not read again.

There is one file for each folder or archive, under the user's cache folder.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.base.cache_folder import folder
from transect.base.files import write_text

if TYPE_CHECKING:
    from transect.types import SourceFile

    from .source import Source


def seal(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value with the checksum of itself as JSON."""
    return {**value, "seal": zlib.crc32(json.dumps(value).encode())}


def unseal(sealed: Any) -> dict[str, Any]:
    """Return a sealed value; one that was changed is a ValueError."""
    value = {key: part for key, part in sealed.items() if key != "seal"}
    if sealed.get("seal") != zlib.crc32(json.dumps(value).encode()):
        raise ValueError("its checksum does not match")
    return value


def write_sealed(path: Path, value: Mapping[str, Any]) -> None:
    """Write a value with its checksum; a cache that cannot be written is a warning."""
    try:
        write_text(path, json.dumps(seal(value)))
    except OSError as error:
        warn_unwritable(folder(), str(error))


@functools.cache
def warn_unwritable(where: Path, why: str) -> None:
    """Say it once: every file of a recording would say it again."""
    warn(f"the cache cannot be written ({where}): {why}")


def warn(text: str) -> None:
    """Warn through the logger of the package."""
    import logging  # seldom needed, and slow to import

    logging.getLogger("transect").warning("%s", text)


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


_active = threading.local()


@dataclass
class _Read:
    """One file that was read."""

    stamp: Stamp
    began_ns: int
    sha256: str | None = None
    is_exact: bool = False  # the hash is that of the very bytes that were used
    is_new: bool = False  # the hash is not remembered in the cache yet
    changed: bool = False


class ReadLog:
    """The files that were read of one or several sources. Several threads may add to it."""

    def __init__(self) -> None:
        self._reads: dict[tuple[Source, str], _Read] = {}
        self._lock = threading.Lock()

    def add(
        self,
        source: Source,
        name: str,
        stamp: Stamp,
        content: bytes | memoryview | None = None,
        sha256: str | None = None,
    ) -> None:
        """Enter a file.

        Parameters
        ----------
        source, name
            The file.
        stamp : tuple
            Its stamp when it was opened.
        content : buffer, optional
            The whole content that was read, which is hashed unless the hash for this stamp is known.
        sha256 : str, optional
            The hash, where the caller knows it.
        """
        with self._lock:
            known = self._reads.get((source, name))
        if known is not None and known.stamp == stamp and (known.sha256 or content is None):
            if known.sha256 is None and sha256 is not None:
                known.sha256, known.is_exact = sha256, True
            return
        read = _Read(stamp, time.time_ns(), sha256, is_exact=sha256 is not None or content is not None)
        if content is not None and sha256 is None:
            read.sha256 = self._hash(source, name, read, content)
        if known is not None:
            differs = known.stamp != stamp and (known.sha256 is None or known.sha256 != read.sha256)
            read.changed = known.changed or differs
        with self._lock:
            self._reads[source, name] = read

    @staticmethod
    def _hash(source: Source, name: str, read: _Read, content: bytes | memoryview) -> str:
        read.is_new = True
        if read.stamp[0] < SMALL:
            return hashlib.sha256(content).hexdigest()
        if (remembered := find_hash(source.container(name), name, read.stamp)) is not None:
            read.is_new = False
            return remembered
        return hashlib.sha256(content).hexdigest()

    def update(self, other: ReadLog) -> None:
        """Enter what another log has."""
        with self._lock:
            self._reads = {**other._reads, **self._reads}

    @property
    def places(self) -> list[tuple[Source, str]]:
        """The source and the name of each file."""
        with self._lock:
            return list(self._reads)

    def by_source(self) -> dict[Source, tuple[SourceFile, ...]]:
        """Return the files of each source by name; what is not hashed yet is hashed now.

        A file that changed between two reads, or before it could be hashed, gets a hash that no content has:
        a result made from it was made from no one state of the recording.
        """
        from transect.types import SourceFile  # needs numpy, which recognising a source does not

        with self._lock:
            entries = sorted(self._reads.items(), key=lambda entry: entry[0][1])
        found: dict[Source, list[SourceFile]] = {}
        with hashes_kept_together():
            for (source, name), read in entries:
                sha256 = self._finish(source, name, read)
                found.setdefault(source, []).append(SourceFile(name, _size_of(source, name, read), sha256))
        return {source: tuple(files) for source, files in found.items()}

    def files(self) -> tuple[SourceFile, ...]:
        """Return all files, by name."""
        every = [file for files in self.by_source().values() for file in files]
        return tuple(sorted(every, key=lambda file: file.path))

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of files that changed while they were used, as far as `files` could see."""
        return tuple(sorted(name for (_, name), read in self._reads.items() if read.changed))

    @staticmethod
    def _finish(source: Source, name: str, read: _Read) -> str:
        """Return the hash of a file; one that is hashed only now must still have the stamp that it had."""
        if read.is_new and read.sha256 is not None:
            if _stamp_now(source, name) == read.stamp:
                remember_hash(source.container(name), name, read.stamp, read.sha256, read.began_ns)
            read.is_new = False
        if not read.is_exact:
            same = _stamp_now(source, name) == read.stamp
            if same and read.sha256 is None:
                read.sha256 = source.sha256(name)
                same = _stamp_now(source, name) == read.stamp
            read.changed = read.changed or not same
        if not read.changed:
            assert read.sha256 is not None
            return read.sha256
        return hashlib.sha256(f"{read.stamp} {read.sha256} changed while it was read".encode()).hexdigest()


def _size_of(source: Source, name: str, read: _Read) -> int:
    """Return the size that a file had when it was read; a member's stamp has that of its archive."""
    return read.stamp[0] if source.local(name) is not None else source.size(name)


def _stamp_now(source: Source, name: str) -> Stamp | None:
    try:
        return source.stamp(name)
    except OSError:
        return None


def reading_log() -> ReadLog | None:
    """Return the log into which this thread's reads go, None where each source keeps its own."""
    return getattr(_active, "log", None)


@contextmanager
def recording_reads(log: ReadLog | None) -> Generator[None]:
    """Enter what this thread reads into a log, instead of the one of each source."""
    before = reading_log()
    _active.log = log
    try:
        yield
    finally:
        _active.log = before
