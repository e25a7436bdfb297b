"""Atomic writing of files and folders, and file names from arbitrary names."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import IO, Protocol

from transect.errors import UsageError


class Observer(Protocol):
    """An observer of written files, such as a progress bar."""

    def wrote(self, path: Path) -> None:
        """Called after a file was written."""
        ...

    def reached(self, t_ns: int, clock: str) -> None:
        """Called with the current time of the recording."""
        ...


_MAX_PART_BYTES = 120
"""Largest part of a path made from a name; file systems allow 255, including suffixes."""
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.(tmp|writing)").fullmatch
_STALE_S = 86_400
_MAX_FOLDERS = 8
"""Largest number of folders made from a name; further parts are joined."""
_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextmanager
def observed(observer: Observer) -> Generator[None]:
    """Notify `observer` of every written file and reached time in the block."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def reached(t_ns: int, clock: str) -> None:
    """Notify the observer of the current time of the recording."""
    if observer := _observer.get():
        observer.reached(t_ns, clock)


def refuse_existing(path: Path, hint: str = "choose another name, or remove it") -> None:
    """Raise a UsageError if `path` is a file, or a folder that is not empty."""
    if path.is_symlink() or path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise UsageError(f"{path} exists already", where=str(path), hint=hint)


@contextmanager
def atomic_write(path: Path | str, mode: str = "wb", **options: object) -> Generator[IO[bytes]]:
    """Open a temporary file beside `path` and move it there when the block ends without an error.

    Parameters
    ----------
    path : path-like
        Final name; its folder is created if necessary.
    mode : str
        `wb`, or `w` for text (UTF-8, newlines as written).
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale_files_once(path.parent)
    temporary = temporary_name(path)
    if "b" not in mode:
        options = {"encoding": "utf-8", "newline": "", **options}
    try:
        # open() applies the user's umask; mkstemp() would not.
        with temporary.open(mode.replace("w", "x"), **options) as stream:  # pyright: ignore[reportCallIssue, reportArgumentType]
            yield stream  # pyright: ignore[reportReturnType]
        os.replace(temporary, path)
        if observer := _observer.get():
            observer.wrote(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path | str, text: str) -> None:
    """Write `text` to `path` atomically, newlines as they stand."""
    write_bytes(path, text.encode())


def write_bytes(path: Path | str, data: bytes) -> None:
    """Write `data` to `path` atomically."""
    with atomic_write(path) as stream:
        stream.write(data)


@contextmanager
def staged(path: Path | str) -> Generator[Path]:
    """Yield the name of `path` in a temporary folder beside it, whose contents are moved when the block ends.

    Files or folders may be created there. They replace files and empty folders; a folder that is not empty is
    an OSError.
    """
    path = Path(path)
    with workplace(path) as folder:
        yield folder / path.name
        for made in sorted(folder.iterdir()):
            target = path.parent / made.name
            if target.is_dir() and not target.is_symlink() and made.is_dir():
                target.rmdir()
            os.replace(made, target)


@contextmanager
def workplace(path: Path) -> Generator[Path]:
    """Create a hidden folder beside `path`, and remove it when the block ends; remove stale ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_files(path.parent)
    folder = temporary_name(path, ".writing")
    try:  # before mkdir, as a signal may arrive at any time
        folder.mkdir()
        yield folder
    finally:
        remove_tree(folder)


def replace_folder(made: Path, target: Path) -> None:
    """Replace a folder by another one, atomically if the system supports it; the old one is removed.

    Otherwise the old folder is first renamed to a hidden name with the suffix `.aside`.
    """
    old = made
    if not target.exists():
        os.replace(made, target)
        return
    if not _exchange(made, target):
        old = temporary_name(target, ".aside")
        os.replace(target, old)
        os.replace(made, target)
    remove_tree(old)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names atomically; return False if the system does not support it."""
    import ctypes  # rarely needed

    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, exchange = -100, 2
    return renameat2 is not None and not renameat2(
        here, os.fsencode(first), here, os.fsencode(second), exchange
    )


def link_folder(link: Path, target: str) -> None:
    """Set the target of a link to a folder beside it, atomically."""
    temporary = temporary_name(link)
    temporary.symlink_to(target, target_is_directory=True)
    os.replace(temporary, link)


def temporary_name(path: Path, suffix: str = ".tmp") -> Path:
    """Return a unique hidden name beside `path`, which `remove_stale_files` recognises."""
    return path.parent / f".{path.name}.{os.urandom(6).hex()}{suffix}"


def synchronise(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_tree(folder: Path) -> None:
    """Remove a folder and its contents as far as possible."""
    import shutil  # slow to import

    shutil.rmtree(folder, ignore_errors=True)


def remove_stale_files(folder: Path) -> int:
    """Remove temporary files older than a day, left by killed processes; return their number."""
    removed = 0
    with os.scandir(folder) as entries:
        left = [Path(entry.path) for entry in entries if _TEMPORARY(entry.name)]
    for path in left:
        with suppress(FileNotFoundError):  # removed by another process
            if time.time() - path.lstat().st_mtime > _STALE_S:
                remove_tree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                removed += 1
    return removed


@cache
def _remove_stale_files_once(folder: Path) -> None:
    remove_stale_files(folder)


def file_name(name: str, otherwise: str = "unnamed") -> str:
    """Return a safe file name for a name from a log: a single part of a path."""
    return _part(name) or otherwise


def file_path(name: str, otherwise: str = "unnamed") -> str:
    """Return a safe relative path for a name from a log, with a folder for each part before a `/`.

    Folders have no suffix, so that none has the name of a file beside it.
    """
    *folders, last = [part for part in map(_part, name.split("/", _MAX_FOLDERS)) if part] or [otherwise]
    return "/".join([*(folder.replace(".", "_") for folder in folders), last])


def file_paths(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return a distinct relative path for each name from a log, also without regard to case."""
    used = {name.lower() for name in taken}
    paths: list[str] = []
    for name in names:
        plain = free = file_path(name, otherwise="stream")
        number = 2
        while free.lower() in used:
            free, number = f"{plain}_{number}", number + 1
        used.add(free.lower())
        paths.append(free)
    return paths


def _part(name: str) -> str:
    """Return one part of a path: letters, digits and a few other characters, of limited length."""
    plain = re.sub(r"[^\w.+ -]", "_", name).strip(" .")
    if len(plain.encode()) <= _MAX_PART_BYTES:
        return plain
    import hashlib  # rarely needed

    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{plain.encode()[: _MAX_PART_BYTES - 13].decode('utf-8', 'ignore')}-{mark}"


NO_DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest date in a zip file."""


def zip_of(contents: Mapping[str, bytes]) -> bytes:
    """Return an uncompressed, reproducible zip of files by name."""
    import io
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, data in contents.items():
            info = zipfile.ZipInfo(name, NO_DATE)
            info.create_system, info.external_attr = 3, 0o644 << 16  # independent of the platform
            archive.writestr(info, data)
    return packed.getvalue()
