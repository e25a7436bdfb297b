"""Positions as KML 2.2."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from transect.base.files import write_text
from transect.base.xml import escape
from transect.recording import Recording

from ..shared.map_tracks import Track, tracks_of
from ..shared.rows import new_file

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">
<Document>
"""


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a file; see `transect.formats.kml.write`."""
    tracks, said = tracks_of(recording, "KML")
    lines = [line for track in tracks for line in _lines(track)]
    write_text(new_file(path, "tracks.kml"), f"{HEAD}{''.join(lines)}</Document>\n</kml>\n")
    return tuple(said)


def _lines(track: Track) -> Iterator[str]:
    """Yield a placemark, shown on the ground: receivers disagree about what their heights are above."""
    yield f"<Placemark><name>{escape(track.name)}</name>\n"
    points = [_texts(point) for point in track.points.tolist()]
    if track.times:
        yield "<gx:Track><altitudeMode>clampToGround</altitudeMode>\n"
        yield from (f"<when>{time}</when>\n" for time in track.times)
        yield from (f"<gx:coord>{' '.join(point)}</gx:coord>\n" for point in points)
        yield "</gx:Track></Placemark>\n"
    else:
        yield "<LineString><altitudeMode>clampToGround</altitudeMode><coordinates>\n"
        yield from (f"{','.join(point)}\n" for point in points)
        yield "</coordinates></LineString></Placemark>\n"


def _texts(point: list[float]) -> list[str]:
    return [repr(value) for value in point if not math.isnan(value)]
