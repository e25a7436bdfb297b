"""Opens a path as a source: a folder, a zip, a folder inside a zip, or a file."""

from __future__ import annotations

import os
from pathlib import Path

from transect.errors import TransectError

from .source import FileSource, FolderSource, Source, missing_path, open_file


def source_of(path: str | os.PathLike[str]) -> Source:
    """Return the Source of a path: folder, zip, a folder in a zip (`drives.zip/second`), or file."""
    path = Path(path).expanduser()
    if not path.exists():
        if (inside := _inside_zip(path)) is not None:
            return inside
        raise missing_path(path)
    if path.is_dir():
        return FolderSource(path)
    if not path.is_file():
        raise TransectError(f"{path} is neither a file nor a folder", where=str(path))
    with open_file(path) as stream:
        signature = stream.read(4)
    if signature in (b"PK\x03\x04", b"PK\x05\x06"):
        from .zips import ZipSource  # imported only if needed

        return ZipSource(path)
    return FileSource(path)


def _inside_zip(path: Path) -> Source | None:
    """Return a folder inside a zip, if a path leads through a zip to a folder with files."""
    above = next((parent for parent in path.parents if parent.exists()), None)
    if above is None or not above.is_file():
        return None
    found = source_of(above).at(path.relative_to(above).as_posix())
    return found if found.names else None
