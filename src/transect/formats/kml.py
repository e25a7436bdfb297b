"""KML: tracks for Google Earth and other maps, with heights and times (gx:Track), or lines without times."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from transect.base.files import write_text
from transect.base.xml import escape
from transect.recording import Loss, Recording, Source

from .shared.map_features import PositionTrack, TrackBuilder, elements, recording_of, tracks_of
from .shared.rows import new_file, only_file

PLACEMARK, TRACK, LINE = "Placemark", "Track", "LineString"


def read(source: Source) -> Recording:
    """Read each placemark with a track or a line as a stream of positions."""
    file, losses = only_file(source), list[Loss]()
    tracks: list[TrackBuilder] = []
    name = ""
    for event, element, damage in elements(source.read(file), file, ("name", PLACEMARK, TRACK, LINE)):
        if damage is not None:
            losses.append(damage)
            continue
        tag = element.tag.rpartition("}")[2]
        if event == "start" and tag == PLACEMARK:
            name = ""
        elif event == "end" and tag == "name":
            name = (element.text or "").strip()
        elif event == "end" and tag != PLACEMARK:
            tracks.append(TrackBuilder(name or "track", file))
            (_add_track if tag == TRACK else _add_line)(tracks[-1], element)
            element.clear()
    return recording_of(source, "kml", tracks, losses)


def _add_track(track: TrackBuilder, element: Any) -> None:
    """Add points and times, which are two lists."""
    points, times = element.findall("{*}coord"), element.findall("{*}when")
    if len(points) != len(times):
        track.lose(f"a track of {len(points)} points and {len(times)} times", element.sourceline)
        return
    for point, time in zip(points, times, strict=True):
        _add(track, (point.text or "").split(), (time.text or "").strip(), point.sourceline)


def _add_line(track: TrackBuilder, element: Any) -> None:
    for point in (element.findtext("{*}coordinates") or "").split():
        _add(track, point.split(","), None, element.sourceline)


def _add(track: TrackBuilder, parts: Sequence[str], time: str | None, line: int | None) -> None:
    longitude, latitude, height = (*parts[:3], *[None] * 3)[:3]
    track.add(longitude, latitude, height, time, line)


HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">
<Document>
"""


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write each stream of positions as a placemark (KML 2.2); return what is left out."""
    tracks, notes = tracks_of(recording, "KML")
    lines = [line for track in tracks for line in _lines(track)]
    write_text(new_file(path, "tracks.kml"), f"{HEAD}{''.join(lines)}</Document>\n</kml>\n")
    return tuple(notes)


def _lines(track: PositionTrack) -> Iterator[str]:
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
