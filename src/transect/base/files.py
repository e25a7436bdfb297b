"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Protocol


class Observer(Protocol):
    """What may watch files being written; progress bars do."""

    def wrote(self, path: Path) -> None:
        """Learn that a file was written."""
        ...

    def reached(self, t_ns: int, clock: str) -> None:
        """Learn which time of the recording the work has come to."""
        ...


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
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    if "b" not in mode:
        options = {"encoding": "utf-8", "newline": "", **options}
    try:
        with os.fdopen(handle, mode, **options) as stream:  # pyright: ignore[reportCallIssue, reportArgumentType]
            yield stream  # pyright: ignore[reportReturnType]
        _give_usual_permissions(name)
        os.replace(name, path)
        if observer := _observer.get():
            observer.wrote(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _give_usual_permissions(name: str) -> None:
    """Undo mkstemp's private mode: a product is as readable as any file the user makes."""
    mask = os.umask(0)
    os.umask(mask)
    Path(name).chmod(0o666 & ~mask)


def write_text(path: Path | str, text: str) -> None:
    """Write `text` to `path` atomically, newlines as they stand."""
    with atomic_write(path) as stream:
        stream.write(text.encode())


def write_bytes(path: Path | str, data: bytes) -> None:
    """Write `data` to `path` atomically."""
    with atomic_write(path) as stream:
        stream.write(data)
