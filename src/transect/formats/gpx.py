"""GPX: tracks and routes of receivers, phones and maps, with heights and times."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transect.base.files import write_text
from transect.base.xml import escape
from transect.recording import Loss, Recording, Source

from .shared.map_features import PositionTrack, TrackBuilder, elements, recording_of, tracks_of
from .shared.rows import new_file, only_file

POINTS = ("trkpt", "rtept")
LINES = {"trk": "track", "rte": "route"}


def read(source: Source) -> Recording:
    """Read each track and each route as a stream of positions."""
    file, losses = only_file(source), list[Loss]()
    tracks: list[TrackBuilder] = []
    for event, element, damage in elements(source.read(file), file, (*LINES, *POINTS)):
        if damage is not None:
            losses.append(damage)
            continue
        name = element.tag.rpartition("}")[2]
        if event == "start" and name in LINES:
            tracks.append(TrackBuilder(LINES[name], file))
        elif event == "end" and name in LINES and tracks:
            tracks[-1].name = _text(element, "name") or tracks[-1].name
            element.clear()
        elif event == "end" and tracks:
            at = element.get("lon"), element.get("lat")
            tracks[-1].add(*at, _text(element, "ele"), _text(element, "time"), element.sourceline)
            element.clear()
    return recording_of(source, "gpx", tracks, losses)


def _text(element: Any, name: str) -> str:
    return (element.findtext(f"{{*}}{name}") or "").strip()


HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="transect" xmlns="http://www.topografix.com/GPX/1/1">
"""


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write each stream of positions as a track (GPX 1.1); return what is left out."""
    tracks, notes = tracks_of(recording, "GPX")
    lines = [line for track in tracks for line in _lines(track)]
    write_text(new_file(path, "tracks.gpx"), f"{HEAD}{''.join(lines)}</gpx>\n")
    return tuple(notes)


def _lines(track: PositionTrack) -> Iterator[str]:
    yield f"<trk><name>{escape(track.name)}</name><trkseg>\n"
    times = track.times or [""] * len(track.points)
    for (longitude, latitude, height), time in zip(track.points.tolist(), times, strict=True):
        inside = "" if math.isnan(height) else f"<ele>{height!r}</ele>"
        inside += f"<time>{time}</time>" if time else ""
        yield f'<trkpt lat="{latitude!r}" lon="{longitude!r}">{inside}</trkpt>\n'
    yield "</trkseg></trk>\n"
