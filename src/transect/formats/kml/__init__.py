"""KML: tracks for Google Earth and other maps, with heights and times (gx:Track), or lines without times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source


def recognises(source: Source) -> Match:
    """Look for the element `kml` at the beginning of the only file."""
    if len(source.names) != 1 or not source.names[0].lower().endswith((".kml", ".xml")):
        return no("not one .kml file")
    if b"<kml" not in source.head(source.names[0]):
        return no("it has no element kml")
    return Match(0.95, "it begins as KML")


def read(source: Source) -> Recording:
    """Read each placemark with a track or a line as a stream of positions."""
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write each stream of positions as a placemark (KML 2.2); return what it does not carry."""
    from . import writing

    return writing.write(recording, path)
