"""Positions as GPX 1.1."""

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
<gpx version="1.1" creator="transect" xmlns="http://www.topografix.com/GPX/1/1">
"""


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a file; see `transect.formats.gpx.write`."""
    tracks, said = tracks_of(recording, "GPX")
    lines = [line for track in tracks for line in _lines(track)]
    write_text(new_file(path, "tracks.gpx"), f"{HEAD}{''.join(lines)}</gpx>\n")
    return tuple(said)


def _lines(track: Track) -> Iterator[str]:
    yield f"<trk><name>{escape(track.name)}</name><trkseg>\n"
    times = track.times or [""] * len(track.points)
    for (longitude, latitude, height), time in zip(track.points.tolist(), times, strict=True):
        inside = "" if math.isnan(height) else f"<ele>{height!r}</ele>"
        inside += f"<time>{time}</time>" if time else ""
        yield f'<trkpt lat="{latitude!r}" lon="{longitude!r}">{inside}</trkpt>\n'
    yield "</trkseg></trk>\n"
