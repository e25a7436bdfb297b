"""Writing files and folders so that nobody ever sees half of one, or finds one of theirs gone."""

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
    """What may watch files being written; progress bars do."""

    def wrote(self, path: Path) -> None:
        """Learn that a file was written."""
        ...

    def reached(self, t_ns: int, clock: str) -> None:
        """Learn which time of the recording the work has come to."""
        ...


_LONGEST = 120
"""Bytes of a part of a path that is made from a name: file systems take 255, and a suffix may follow."""
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.(tmp|writing)").fullmatch
_STALE_S = 86_400
_DEEPEST = 8
"""Folders that are made for a name; further parts become one."""
_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextmanager
def observed(observer: Observer) -> Generator[None]:
    """Tell `observer` of every file written, and every time reached, inside the block."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def reached(t_ns: int, clock: str) -> None:
    """Tell whoever observes that the work has come to this time of the recording."""
    if observer := _observer.get():
        observer.reached(t_ns, clock)


def refuse_existing(path: Path, hint: str = "choose another name, or remove it") -> None:
    """Raise a UsageError if `path` is a file, or a folder that is not empty."""
    if path.is_symlink() or path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise UsageError(f"{path} is there already", where=str(path), hint=hint)


@contextmanager
def atomic_write(path: Path | str, mode: str = "wb", **options: object) -> Generator[IO[bytes]]:
    """Open a temporary file beside `path` and move it there when the block ends without an error.

    Parameters
    ----------
    path : path-like
        Final name; its folder is made if need be.
    mode : str
        `wb`, or `w` for text (UTF-8, newlines as written).
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep_once(path.parent)
    temporary = temporary_name(path)
    if "b" not in mode:
        options = {"encoding": "utf-8", "newline": "", **options}
    try:
        # Made by open, a file has the permissions that the user's own files have; made by mkstemp it has not.
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
    """Yield the name of `path` in a temporary folder beside it; what is made there moves when the block ends.

    A file or a folder may be made under that name, and others beside it. They take the place of files and
    of empty folders; a folder that is not empty is an OSError.
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
    """Make a hidden folder beside `path`, and remove it when the block ends; sweep what killed ones left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent)
    folder = temporary_name(path, ".writing")
    try:  # from before it is made: a signal may come at once
        folder.mkdir()
        yield folder
    finally:
        remove_tree(folder)


def replace_folder(made: Path, target: Path) -> None:
    """Let a folder take the place of another one, in one step where the system can; the old one is removed.

    Where it cannot exchange names, the old folder is moved aside first, under the hidden name of `aside`.
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
    """Let two names be each other's; return False where the system cannot do that in one step."""
    import ctypes  # seldom needed

    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, exchange = -100, 2
    return renameat2 is not None and not renameat2(
        here, os.fsencode(first), here, os.fsencode(second), exchange
    )


def link_folder(link: Path, target: str) -> None:
    """Let a link lead to a folder beside it, in one step."""
    temporary = temporary_name(link)
    temporary.symlink_to(target, target_is_directory=True)
    os.replace(temporary, link)


def temporary_name(path: Path, suffix: str = ".tmp") -> Path:
    """Return a hidden name beside `path` that nobody else has; `sweep` knows what bears one."""
    return path.parent / f".{path.name}.{os.urandom(6).hex()}{suffix}"


def synchronise(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_tree(folder: Path) -> None:
    """Remove a folder and all that is in it, as far as it can be removed."""
    import shutil  # with three compressors: too slow to import for a command that removes nothing

    shutil.rmtree(folder, ignore_errors=True)


def sweep(folder: Path) -> int:
    """Remove what writers that were killed left in a folder more than a day ago; return how many."""
    removed = 0
    with os.scandir(folder) as entries:
        left = [Path(entry.path) for entry in entries if _TEMPORARY(entry.name)]
    for path in left:
        with suppress(FileNotFoundError):  # somebody else was faster
            if time.time() - path.lstat().st_mtime > _STALE_S:
                remove_tree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                removed += 1
    return removed


@cache
def _sweep_once(folder: Path) -> None:
    sweep(folder)


def file_name(name: str, otherwise: str = "unnamed") -> str:
    """Return the name of a file for a name out of a log: one part of a path, nothing that leads elsewhere."""
    return _part(name) or otherwise


def file_path(name: str, otherwise: str = "unnamed") -> str:
    """Return a relative path for a name out of a log: a folder for each part before a `/`, none above.

    Folders have no suffix, so that none is called as a file beside it.
    """
    *folders, last = [part for part in map(_part, name.split("/", _DEEPEST)) if part] or [otherwise]
    return "/".join([*(folder.replace(".", "_") for folder in folders), last])


def file_paths(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return a relative path for each name out of a log, no two alike, also where case does not count."""
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
    """Return one part of a path: letters, digits and a few signs, no longer than file systems take."""
    plain = re.sub(r"[^\w.+ -]", "_", name).strip(" .")
    if len(plain.encode()) <= _LONGEST:
        return plain
    import hashlib  # seldom needed

    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{plain.encode()[: _LONGEST - 13].decode('utf-8', 'ignore')}-{mark}"


NO_DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest date that a zip can hold."""


def zip_of(contents: Mapping[str, bytes]) -> bytes:
    """Return a zip of files by their names, in this order: stored, and with the same bytes every time."""
    import io
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, data in contents.items():
            info = zipfile.ZipInfo(name, NO_DATE)
            info.create_system, info.external_attr = 3, 0o644 << 16  # as on Unix, wherever it is written
            archive.writestr(info, data)
    return packed.getvalue()
