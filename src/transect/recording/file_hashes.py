"""Cache of the sha256 of files, with size, times and inode as key: an unchanged file is not read again.

The user's cache folder has one index for each folder or archive.
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
    """Return a value with a checksum of its JSON text."""
    return {**value, "seal": zlib.crc32(json.dumps(value).encode())}


def unseal(sealed: Any) -> dict[str, Any]:
    """Return a sealed value; raise ValueError if its checksum does not match."""
    value = {key: part for key, part in sealed.items() if key != "seal"}
    if sealed.get("seal") != zlib.crc32(json.dumps(value).encode()):
        raise ValueError("its checksum does not match")
    return value


def write_sealed(path: Path, value: Mapping[str, Any]) -> None:
    """Write a value with its checksum; warn if the cache cannot be written."""
    try:
        write_text(path, json.dumps(seal(value)))
    except OSError as error:
        warn_unwritable(folder(), str(error))


@functools.cache
def warn_unwritable(where: Path, why: str) -> None:
    """Warn once per process, not for every file of a recording."""
    warn(f"the cache cannot be written ({where}): {why}")


def warn(text: str) -> None:
    """Log a warning with the logger of the package."""
    import logging  # rarely needed, and slow to import

    logging.getLogger("transect").warning("%s", text)


FileState = tuple[int, int, int, int]
"""Size, modification time, status change time (ns) and inode of a file."""
SMALL_FILE_BYTES = 32_768
"""Smaller files are parsed and hashed each time, which is faster than the cache."""
_MIN_FILE_AGE_NS = 100_000_000
"""Hashes of younger files are not cached: they may change again within a tick of the file system's clock."""


def file_state_of(stat: os.stat_result) -> FileState:
    """Return the key that changes when a file is modified or replaced."""
    return (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


def remembered_hash(container: Path, name: str, file_state: FileState, build: Callable[[], str]) -> str:
    """Return the cached sha256 of a file in a folder or archive, else the one that `build` computes."""
    if file_state[0] < SMALL_FILE_BYTES:
        return build()
    if (known := find_hash(container, name, file_state)) is not None:
        return known
    began_ns = time.time_ns()
    digest = build()
    remember_hash(container, name, file_state, digest, began_ns)
    return digest


def find_hash(container: Path, name: str, file_state: FileState) -> str | None:
    """Return the cached sha256 of a file in this state."""
    if _rehashing or file_state[0] < SMALL_FILE_BYTES:
        return None
    record: Any = _hashes.of(container).get(name)
    known = isinstance(record, list) and tuple(record[:-1]) == file_state and isinstance(record[-1], str)
    return record[-1] if known else None


def remember_hash(container: Path, name: str, file_state: FileState, sha256: str, began_ns: int) -> None:
    """Cache the sha256 of a file, unless the file is too young (`_MIN_FILE_AGE_NS`)."""
    if file_state[0] >= SMALL_FILE_BYTES and began_ns - max(file_state[1], file_state[2]) > _MIN_FILE_AGE_NS:
        _hashes.add(container, name, [*file_state, sha256])


@contextmanager
def hashes_kept_together() -> Generator[None]:
    """Write the hashes that are added in this block once at its end: thousands of files share one index."""
    with _hashes.waiting():
        yield


@contextmanager
def rehashing(wanted: bool = True) -> Generator[None]:
    """Read and hash every file in this block, ignoring cached hashes, if `wanted`."""
    global _rehashing
    before, _rehashing = _rehashing, wanted or _rehashing
    try:
        yield
    finally:
        _rehashing = before


_rehashing = False


class _HashIndex:
    """Hashes of files by name and state of the file, with one index per folder or archive."""

    def __init__(self) -> None:
        self._loaded: dict[Path, tuple[FileState | None, dict[str, list[Any]]]] = {}
        self._pending: dict[Path, dict[str, list[Any]]] = {}
        self._lock, self._depth = threading.RLock(), 0

    def of(self, container: Path) -> Mapping[str, list[Any]]:
        """Return the cached hashes of the files in a folder or archive."""
        path = self._path(container)
        with self._lock:
            file_state, files = self._loaded.get(path, (None, {}))
            if (now := _existing_file_state(path)) != file_state:
                files = self._read(path)
                self._loaded[path] = now, files
            return files | self._pending.get(path, {}) if path in self._pending else files

    def add(self, container: Path, name: str, entry: list[Any]) -> None:
        """Add one file."""
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
        for path, entries in self._pending.items():
            write_sealed(path, {"files": self._read(path) | entries})
        self._pending.clear()

    @staticmethod
    def _read(path: Path) -> dict[str, list[Any]]:
        try:
            return dict(unseal(json.loads(path.read_bytes()))["files"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    @staticmethod
    def _path(container: Path) -> Path:
        name = hashlib.sha256(os.fsencode(container.absolute())).hexdigest()
        return folder() / "hashes" / name[:2] / name[2:]


_hashes = _HashIndex()


def _existing_file_state(path: Path) -> FileState | None:
    try:
        return file_state_of(path.stat())
    except OSError:
        return None


_active = threading.local()


@dataclass
class _Read:
    """One file that was read."""

    file_state: FileState
    began_ns: int
    sha256: str | None = None
    is_exact: bool = False  # the hash was computed from the bytes that were used
    is_new: bool = False  # the hash is not in the cache yet
    changed: bool = False


class ReadLog:
    """Files that were read from one or several sources (thread-safe)."""

    def __init__(self) -> None:
        self._reads: dict[tuple[Source, str], _Read] = {}
        self._lock = threading.Lock()

    def add(
        self,
        source: Source,
        name: str,
        file_state: FileState,
        content: bytes | memoryview | None = None,
        sha256: str | None = None,
    ) -> None:
        """Add a file with its state when it was opened.

        If the whole `content` was read, it is hashed unless the hash for this state is cached; callers that
        know the hash pass `sha256`.
        """
        with self._lock:
            known = self._reads.get((source, name))
        if known is not None and known.file_state == file_state and (known.sha256 or content is None):
            if known.sha256 is None and sha256 is not None:
                known.sha256, known.is_exact = sha256, True
            return
        read = _Read(file_state, time.time_ns(), sha256, is_exact=sha256 is not None or content is not None)
        if content is not None and sha256 is None:
            read.sha256 = self._hash(source, name, read, content)
        if known is not None:
            differs = known.file_state != file_state and (known.sha256 is None or known.sha256 != read.sha256)
            read.changed = known.changed or differs
        with self._lock:
            self._reads[source, name] = read

    @staticmethod
    def _hash(source: Source, name: str, read: _Read, content: bytes | memoryview) -> str:
        read.is_new = True
        if read.file_state[0] < SMALL_FILE_BYTES:
            return hashlib.sha256(content).hexdigest()
        if (remembered := find_hash(source.container(name), name, read.file_state)) is not None:
            read.is_new = False
            return remembered
        return hashlib.sha256(content).hexdigest()

    def update(self, other: ReadLog) -> None:
        """Add the files of another log."""
        with self._lock:
            self._reads = {**other._reads, **self._reads}

    @property
    def entries(self) -> list[tuple[Source, str]]:
        """Source and name of each file."""
        with self._lock:
            return list(self._reads)

    def by_source(self) -> dict[Source, tuple[SourceFile, ...]]:
        """Return the files of each source by name; files without a hash are hashed now.

        A file that changed between two reads, or before it was hashed, gets a hash that matches no content,
        because the result does not correspond to one state of the recording.
        """
        from transect.types import SourceFile  # imports numpy, which opening a source does not need

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
        """Names of files that changed while they were used, as detected by `files`."""
        return tuple(sorted(name for (_, name), read in self._reads.items() if read.changed))

    @staticmethod
    def _finish(source: Source, name: str, read: _Read) -> str:
        """Return the hash of a file; a file that is hashed only now must still be in the same state."""
        if read.is_new and read.sha256 is not None:
            if _current_state(source, name) == read.file_state:
                remember_hash(source.container(name), name, read.file_state, read.sha256, read.began_ns)
            read.is_new = False
        if not read.is_exact:
            same = _current_state(source, name) == read.file_state
            if same and read.sha256 is None:
                read.sha256 = source.sha256(name)
                same = _current_state(source, name) == read.file_state
            read.changed = read.changed or not same
        if not read.changed:
            assert read.sha256 is not None
            return read.sha256
        return hashlib.sha256(
            f"{read.file_state} {read.sha256} changed while it was read".encode()
        ).hexdigest()


def _size_of(source: Source, name: str, read: _Read) -> int:
    """Return the size of a file when it was read; the state of an archive member is that of the archive."""
    return read.file_state[0] if source.local(name) is not None else source.size(name)


def _current_state(source: Source, name: str) -> FileState | None:
    try:
        return source.file_state(name)
    except OSError:
        return None


def reading_log() -> ReadLog | None:
    """Return the log of this thread's reads, or None if each source has its own."""
    return getattr(_active, "log", None)


@contextmanager
def recording_reads(log: ReadLog | None) -> Generator[None]:
    """Record this thread's reads in a log instead of those of the sources."""
    before = reading_log()
    _active.log = log
    try:
        yield
    finally:
        _active.log = before
