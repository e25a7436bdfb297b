"""Parquet, one file per stream, units in the metadata, with a recording.yaml that opens the folder again.

A table that a run wrote says itself what it is, and opens alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source

ABOUT = b"transect"
"""Schema metadata of a table that says itself what it is: type, clock, frame, child and port, as JSON."""


def recognises(source: Source) -> Match:
    """Recognise one table; several are opened by the description that is written beside them."""
    if len(source.names) != 1 or not source.names[0].lower().endswith(".parquet"):
        return no("Parquet files are opened by the recording.yaml beside them")
    begins = source.head(source.names[0], 4) == b"PAR1"
    return Match(0.6, "one Parquet file") if begins else no("it is named .parquet but begins otherwise")


def read(source: Source) -> Recording:
    """Read one table that says in its metadata what it is, as the output ports of a run do."""
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one Parquet file per stream, and a recording.yaml; return what could not be carried."""
    from . import writing

    return writing.write(recording, path)
