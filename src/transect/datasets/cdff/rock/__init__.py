"""What logs of Rock and of CDFF have in common: types, times, quaternions, columns, and their streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transect.recording import Source


def log_files(source: Source, suffixes: str | tuple[str, ...]) -> list[str]:
    """Return the logs among the files, by their suffixes; a file on its own is one whatever its name."""
    if len(source.names) == 1:
        return list(source.names)
    return [name for name in source.names if "/" not in name and name.lower().endswith(suffixes)]
