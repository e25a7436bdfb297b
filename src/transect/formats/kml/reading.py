"""Tracks and lines from KML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transect.recording import Loss, Recording, Source

from ..shared.map_tracks import Gathered, elements, recording_of
from ..shared.rows import only_file

PLACEMARK, TRACK, LINE = "Placemark", "Track", "LineString"


def read(source: Source) -> Recording:
    """Read a file; see `transect.formats.kml.read`."""
    file, losses = only_file(source), list[Loss]()
    tracks: list[Gathered] = []
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
            tracks.append(Gathered(name or "track", file))
            (_add_track if tag == TRACK else _add_line)(tracks[-1], element)
            element.clear()
    return recording_of(source, "kml", tracks, losses)


def _add_track(track: Gathered, element: Any) -> None:
    """Add points and times, which stand in two lists."""
    points, times = element.findall("{*}coord"), element.findall("{*}when")
    if len(points) != len(times):
        track.lose(f"a track of {len(points)} points and {len(times)} times", element.sourceline)
        return
    for point, time in zip(points, times, strict=True):
        _add(track, (point.text or "").split(), (time.text or "").strip(), point.sourceline)


def _add_line(track: Gathered, element: Any) -> None:
    for point in (element.findtext("{*}coordinates") or "").split():
        _add(track, point.split(","), None, element.sourceline)


def _add(track: Gathered, parts: Sequence[str], time: str | None, line: int | None) -> None:
    longitude, latitude, height = (*parts[:3], *[None] * 3)[:3]
    track.add(longitude, latitude, height, time, line)
