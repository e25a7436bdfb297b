"""The files of one recording: a folder, a zip that is never unpacked, or a single file."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import shlex
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from transect.base.file_bytes import Content, FileBytes, pieces_of
from transect.errors import ParseError, TransectError

from .file_hashes import FileState, ReadLog, file_state_of, reading_log, remembered_hash
from .losses import Loss

if TYPE_CHECKING:
    from transect.types import SourceFile


Buffer = bytes | memoryview
HEAD_BYTES = 65_536
MAX_DOCUMENT_BYTES = 1 << 24
"""Bytes of a file that is read as a document."""
MAX_SERIES_FILES = 100
"""Number of files of a numbered series in `Source.glimpse`."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_ANY_DIGIT = bytes.maketrans(b"123456789", b"000000000")


class Source(ABC):
    """The files under one path, by their relative POSIX names.

    Formats read only through a Source, so that folders and zips are equivalent. Every file that is read is
    recorded for the provenance: in the active log (`file_hashes.recording_reads`, as while a run loads a
    payload), else in `touched`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.touched = ReadLog()
        self.refused: tuple[Loss, ...] = ()

    @cached_property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Relative names of all files, sorted."""

    @abstractmethod
    def size(self, name: str) -> int:
        """Size of a file in bytes."""

    @abstractmethod
    def _content(self, name: str) -> Content:
        """Content of a file, without an entry in the log of reads."""

    @abstractmethod
    def file_state(self, name: str) -> FileState:
        """Size, times and inode of the file, or of the archive that contains it."""

    @abstractmethod
    def container(self, name: str) -> Path:
        """The folder or archive under which the hash of a file is cached."""

    def content(self, name: str) -> Content:
        """Content of a file, read on access if possible."""
        file_state, content = self._open_content(name)
        self._log_read(name, file_state, None if isinstance(content, FileBytes) else content)
        return content

    def buffer(self, name: str) -> Buffer:
        """Whole content of a file."""
        file_state, content = self._open_content(name)
        data = bytes(content) if isinstance(content, FileBytes) else content
        self._log_read(name, file_state, data)
        return data

    def _open_content(self, name: str) -> tuple[FileState, Content]:
        """Return the content of a file, and its state when it was opened."""
        content = self._content(name)
        stat = content.stat if isinstance(content, FileBytes) else None
        return self.file_state(name) if stat is None else file_state_of(stat), content

    def _log_read(self, name: str, file_state: FileState, content: Buffer | None) -> None:
        log = reading_log()
        (self.touched if log is None else log).add(self, name, file_state, content)

    @abstractmethod
    def head(self, name: str, count: int = HEAD_BYTES) -> bytes:
        """First bytes of a file."""

    @abstractmethod
    def key(self, name: str) -> str:
        """A key that changes with the content, without reading it if possible."""

    @abstractmethod
    def local(self, name: str) -> Path | None:
        """The file on disk, or None if it is inside an archive."""

    @property
    def root(self) -> Source:
        """The source that contains this one; logs of reads use names relative to it."""
        return self

    @property
    def stem(self) -> str:
        """Name of the recording: the folder's name, or the file's without its suffix."""
        path = self.path.resolve() if self.path.name in ("", "..") else self.path
        return path.name if path.is_dir() else path.stem

    def __contains__(self, name: str) -> bool:
        at = bisect_left(self.names, name)
        return at < len(self.names) and self.names[at] == name

    @cached_property
    def folders(self) -> frozenset[str]:
        """Relative names of all folders that contain files, at any depth."""
        parents = {name.rpartition("/")[0] for name in self.names}
        return frozenset(str(p) for parent in parents for p in _lineage(parent))

    def glob(self, pattern: str) -> list[str]:
        """Names that match a shell pattern (`*` also crosses `/`), case ignored."""
        test = re.compile(fnmatch.translate(pattern.lower())).match
        return [name for name in self.names if test(name.lower())]

    def under(self, folder: str) -> list[str]:
        """Names of the files directly or indirectly in a folder."""
        prefix = folder.rstrip("/") + "/" if folder else ""
        return [name for name in self.names if name.startswith(prefix)]

    def read(self, name: str) -> bytes:
        """Whole content of a file."""
        return bytes(self.buffer(name))

    def document(self, name: str) -> bytes:
        """Whole content of a description, calibration or similar small file; large files are refused."""
        if (size := self.size(name)) > MAX_DOCUMENT_BYTES:
            why = f"it has {size} bytes, of a document at most {MAX_DOCUMENT_BYTES} are read"
            raise ParseError(f"{name} is too large", where=name, why=why)
        return self.read(name)

    def text(self, name: str) -> str:
        """Whole content of a document as text, undecodable bytes replaced."""
        return self.document(name).decode("utf-8-sig", "replace")

    def sha256(self, name: str) -> str:
        """sha256 of a file's content, in hexadecimal."""
        return remembered_hash(self.container(name), name, self.file_state(name), lambda: self._hash(name))

    def _hash(self, name: str) -> str:
        digest = hashlib.sha256()
        for piece in pieces_of(self._content(name)):
            digest.update(piece)
        return digest.hexdigest()

    def record_read(self, name: str, sha256: str | None = None, file_state: FileState | None = None) -> None:
        """Add a file to the provenance, with the hash of its used bytes and its state when they were read."""
        self.touched.add(self, name, file_state or self.file_state(name), sha256=sha256)

    @property
    def files_read(self) -> tuple[SourceFile, ...]:
        """The files that were read, with size and sha256; files without a hash are hashed now."""
        return self.touched.files()

    def at(self, folder: str) -> Source:
        """Return the files of a folder, with names relative to it."""
        return _Subfolder(self, folder) if folder else self

    def without(self, folder: str) -> Source:
        """Return the files outside of a folder."""
        return _WithoutFolder(self, folder)

    def beside(self, path: Path) -> Source:
        """Return a file outside of this source that shares its provenance."""
        if not path.is_file():
            raise missing_path(path)
        other = FileSource(path)
        other.touched = self.touched
        return other

    def glimpse(self) -> Source:
        """Return the source with only the first files of each numbered series, to recognise its format."""
        return self if len(self.names) <= MAX_SERIES_FILES else _SourceSample(self)


class _SourceView(Source):
    """A subset of another source's files."""

    def __init__(self, parent: Source, prefix: str = "") -> None:
        super().__init__(parent.path / prefix)
        self.parent, self.prefix = parent, prefix
        self.touched = parent.touched
        self.refused = parent.refused

    @property
    def root(self) -> Source:
        return self.parent.root

    def size(self, name: str) -> int:
        return self.parent.size(self.prefix + name)

    def _content(self, name: str) -> Content:
        return self.parent._content(self.prefix + name)

    def file_state(self, name: str) -> FileState:
        return self.parent.file_state(self.prefix + name)

    def container(self, name: str) -> Path:
        return self.parent.container(self.prefix + name)

    def _log_read(self, name: str, file_state: FileState, content: Buffer | None) -> None:
        self.parent._log_read(self.prefix + name, file_state, content)

    def head(self, name: str, count: int = HEAD_BYTES) -> bytes:
        return self.parent.head(self.prefix + name, count)

    def key(self, name: str) -> str:
        return self.parent.key(self.prefix + name)

    def local(self, name: str) -> Path | None:
        return self.parent.local(self.prefix + name)

    def sha256(self, name: str) -> str:
        return self.parent.sha256(self.prefix + name)

    def record_read(self, name: str, sha256: str | None = None, file_state: FileState | None = None) -> None:
        self.parent.record_read(self.prefix + name, sha256, file_state)


class _Subfolder(_SourceView):
    """A folder inside another source."""

    def __init__(self, parent: Source, folder: str) -> None:
        super().__init__(parent, folder.rstrip("/") + "/")

    @cached_property
    def names(self) -> tuple[str, ...]:
        cut = len(self.prefix)
        return tuple(name[cut:] for name in self.parent.names if name.startswith(self.prefix))

    @property
    def stem(self) -> str:
        return PurePosixPath(self.prefix).name


class _WithoutFolder(_SourceView):
    """The files that are not in one of the folders."""

    def __init__(self, parent: Source, folder: str) -> None:
        super().__init__(parent)
        self.hidden = folder.rstrip("/") + "/"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.parent.names if not name.startswith(self.hidden))

    @property
    def stem(self) -> str:
        return self.parent.stem


class _SourceSample(_SourceView):
    """The first files of each series of names that differ only in digits."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        names = self.parent.names
        # One translation of all names together is much faster than one by one.
        kinds = "\n".join(names).encode("utf-8", "surrogateescape").translate(_ANY_DIGIT).split(b"\n")
        if len(kinds) != len(names):  # a name with a line break in it
            return names
        seen: dict[bytes, int] = {}
        kept: list[str] = []
        for name, kind in zip(names, kinds, strict=True):
            count = seen[kind] = seen.get(kind, 0) + 1
            if count <= MAX_SERIES_FILES:
                kept.append(name)
        return tuple(kept)

    @property
    def stem(self) -> str:
        return self.parent.stem


class FolderSource(Source):
    """A folder on disk. Links to folders are not followed; hidden files are left out."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        lost: list[Loss] = []
        names = sorted(_walk(self.path, lost))
        odd = [name for name in names if not _is_text(name)] if not _is_text("".join(names)) else []
        self.refused = (*lost, *(Loss(ascii(name)[1:-1], "its name is not UTF-8") for name in odd))
        return tuple(name for name in names if name not in odd) if odd else tuple(names)

    def _file(self, name: str) -> Path:
        return self.path / name

    def size(self, name: str) -> int:
        return self._file(name).stat().st_size

    def _content(self, name: str) -> Content:
        return FileBytes(self._file(name))

    def file_state(self, name: str) -> FileState:
        return file_state_of(self._file(name).stat())

    def container(self, name: str) -> Path:
        return self._file(name).parent

    def head(self, name: str, count: int = HEAD_BYTES) -> bytes:
        with open_file(self._file(name)) as stream:
            return stream.read(count)

    def key(self, name: str) -> str:
        return self.sha256(name)

    def _hash(self, name: str) -> str:
        """Hash by reading, because a mapping would count as used memory."""
        with self._file(name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def local(self, name: str) -> Path | None:
        return self._file(name)


class FileSource(FolderSource):
    """A single file."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (self.path.name,)

    def _file(self, name: str) -> Path:
        return self.path.parent / name


def missing_path(path: Path) -> TransectError:
    """Return the error for a path that does not exist, with the most similar existing name."""
    parent = path.parent
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    names = [str(p.name) for p in parent.iterdir()] if parent.is_dir() and os.access(parent, os.R_OK) else []
    missing = path.relative_to(parent).parts[0] if path != parent else path.name
    import difflib  # rarely needed, and slow to import

    near = difflib.get_close_matches(missing, names, n=1, cutoff=0.6)
    hint = f"did you mean {parent / near[0]}?" if near else "check the spelling"
    recording, _, stream = str(path).rpartition(":")
    if recording and Path(recording).exists():
        recording, stream = shlex.quote(recording), shlex.quote(stream)
        hint = f"streams are named so for eval and draw track; here: {recording} --streams {stream}"
    return TransectError(f"{path} does not exist", where=str(parent), hint=hint)


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading; an error of the system becomes a ParseError."""
    try:
        return path.open("rb")
    except OSError as error:
        raise ParseError(
            f"cannot open {path.name}", where=str(path), why=error.strerror or str(error)
        ) from error


def _walk(folder: Path, lost: list[Loss]) -> Iterator[str]:
    """Iterate over the names of all files below a folder; folders that cannot be listed are losses."""
    ahead = [""]
    while ahead:
        prefix = ahead.pop()
        try:
            with os.scandir(folder / prefix) as entries:
                visible = [entry for entry in entries if entry.name[0] != "."]
        except OSError as error:
            if not prefix:
                raise ParseError(
                    f"cannot list {folder}", where=str(folder), why=error.strerror or str(error)
                ) from error
            lost.append(Loss(prefix, f"the folder cannot be listed: {error.strerror or error}"))
            continue
        for entry in visible:
            try:
                if entry.is_file():
                    yield prefix + entry.name
                elif entry.is_dir(follow_symlinks=False):
                    ahead.append(f"{prefix}{entry.name}/")
            except OSError as error:  # a link in a circle, or to what may not be seen
                lost.append(Loss(prefix + entry.name, f"it cannot be opened: {error.strerror or error}"))


def _is_text(name: str) -> bool:
    """Return whether a name is valid text; undecodable bytes of file names become surrogates."""
    return not _SURROGATE.search(name)


def _lineage(folder: str) -> list[PurePosixPath]:
    path = PurePosixPath(folder) if folder else None
    return [path, *[p for p in path.parents if str(p) != "."]] if path else []


def sha256_bytes(data: Buffer) -> str:
    """Return the sha256 of a buffer, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
