"""CSV, one file per stream, units in the header, with a recording.yaml by which the folder opens again.

Lists are written as numbers separated by blanks. Images and clouds lie in a folder per stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.errors import UnsupportedError

from .._base import no

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from transect.recording import Recording, Source

    from .._base import Match


def recognises(source: Source) -> Match:
    """Leave opening to the description that is written beside the files."""
    return no("CSV files are opened by the recording.yaml beside them")


def read(source: Source, **options: Any) -> Recording:
    """Refuse: a CSV file alone does not say what it is."""
    raise UnsupportedError(
        "a CSV file alone does not say what its columns are",
        where=str(source.path),
        hint=f"transect new recording {source.path}  writes a recording.yaml that does",
    )


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one CSV file per stream, and a recording.yaml; return what could not be carried."""
    from . import writing

    return writing.write(recording, path)
