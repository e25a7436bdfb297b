"""Common parts of Rock and CDFF logs: types, times, quaternions, columns and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transect.recording import Source


def log_files(source: Source, suffixes: str | tuple[str, ...]) -> list[str]:
    """Return the log files by their suffixes; a single file with any name."""
    if len(source.names) == 1:
        return list(source.names)
    return [name for name in source.names if "/" not in name and name.lower().endswith(suffixes)]
