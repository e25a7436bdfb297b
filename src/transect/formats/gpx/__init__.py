"""GPX: tracks and routes of receivers, phones and maps, with heights and times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source


def recognises(source: Source) -> Match:
    """Look for the element `gpx` at the beginning of the only file."""
    if len(source.names) != 1 or not source.names[0].lower().endswith((".gpx", ".xml")):
        return no("not one .gpx file")
    if b"<gpx" not in source.head(source.names[0]):
        return no("it has no element gpx")
    return Match(0.95, "it begins as GPX")


def read(source: Source) -> Recording:
    """Read each track and each route as a stream of positions."""
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write each stream of positions as a track (GPX 1.1); return what it does not carry."""
    from . import writing

    return writing.write(recording, path)
