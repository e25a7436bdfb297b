"""GeoJSON: tracks for maps on the web and QGIS, with heights, and times in the property coordTimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source


def recognises(source: Source) -> Match:
    """Look for a collection of features at the beginning of the only file."""
    if len(source.names) != 1 or not source.names[0].lower().endswith((".geojson", ".json")):
        return no("not one .geojson file")
    head = source.head(source.names[0])
    if b'"FeatureCollection"' not in head and b'"Feature"' not in head:
        return no("it names no feature near its beginning")
    return Match(0.9, "it begins as GeoJSON")


def read(source: Source) -> Recording:
    """Read each feature that is a line, or a point with a time, as positions."""
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write each stream of positions as a line (RFC 7946); return what it does not carry."""
    from . import writing

    return writing.write(recording, path)
