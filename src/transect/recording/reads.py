"""Which files were read, and the sha256 of what was read of them: what provenance is made from.

A file that is read whole is hashed then, from the bytes that were read; one that is read in parts is hashed
when the log is asked for its files. Hashes are remembered by the file's stamp (size, times and inode) in the
user's cache, so that an unchanged file is hashed once.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .hashes import SMALL, Stamp, find_hash, hashes_kept_together, remember_hash

if TYPE_CHECKING:
    from transect.types import SourceFile

    from .source import Source

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
