"""Payloads as files whose name is their hash, in folders of 256; none is ever half there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from transect.base import files

from .product import Payload
from .store import StoreError

_PIECE = 1 << 20
_NAME = re.compile(r"([0-9a-f]{64})\.[a-z0-9_]{1,16}").fullmatch


class PayloadFolder:
    """A folder of payloads.

    A payload is first written under a temporary name (`stage`), and gets its own by a rename (`place`), which
    the store does while it alone may write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path_of(self, payload: Payload) -> Path:
        """Return where a payload is, or would be."""
        return self.folder / payload.sha256[:2] / f"{payload.sha256}.{payload.format}"

    def stage(self, content: bytes | Path, payload: Payload) -> Path:
        """Write a payload to a temporary file, down to the disk, and return it.

        Raises
        ------
        StoreError
            If the bytes are not those that the payload describes.
        """
        target = self.path_of(payload)
        temporary = files.temporary_name(target)
        digest = sha256()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as out:
                for piece in pieces_of(content):
                    digest.update(piece)
                    out.write(piece)
                out.flush()
                os.fsync(out.fileno())
                size = out.tell()
            if (digest.hexdigest(), size) != (payload.sha256, payload.size):
                raise StoreError("the file is not what the product describes", where=str(content))
        except OSError as error:
            temporary.unlink(missing_ok=True)
            what = "the payload could not be written"
            raise StoreError(what, where=str(target), why=str(error)) from error
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def place(self, staged: Path, payload: Payload) -> None:
        """Give a payload that was staged its name."""
        target = self.path_of(payload)
        os.replace(staged, target)
        for folder in (target.parent, self.folder):
            files.synchronise(folder)

    def read(self, payload: Payload) -> Iterator[bytes]:
        """Give the bytes of a payload, in pieces."""
        path = self.path_of(payload)
        try:
            yield from pieces_of(path)
        except OSError as error:
            raise StoreError("its payload cannot be read", where=str(path), why=str(error)) from error

    def remove(self, payload: Payload) -> None:
        """Remove a payload that nobody has any more."""
        self.path_of(payload).unlink(missing_ok=True)

    def strays(self, known: set[str]) -> list[Path]:
        """Return payloads whose hash is not known, and what killed writers left more than a day ago."""
        found: list[Path] = []
        with suppress(FileNotFoundError):
            for folder in sorted(self.folder.iterdir()):
                if len(folder.name) == 2 and folder.is_dir():
                    files.sweep(folder)
                    named = ((path, _NAME(path.name)) for path in sorted(folder.iterdir()))
                    found += [path for path, name in named if name and name[1] not in known]
        return found


def pieces_of(content: bytes | Path, size: int = _PIECE) -> Iterator[bytes]:
    """Give bytes, or those of a file, in pieces of at most `size`."""
    if isinstance(content, bytes):
        yield from (content[start : start + size] for start in range(0, len(content), size))
        return
    with content.open("rb") as stream:
        yield from iter(lambda: stream.read(size), b"")
