"""Tracks and routes from GPX."""

from __future__ import annotations

from typing import Any

from transect.recording import Loss, Recording, Source

from ..shared.map_tracks import Gathered, elements, recording_of
from ..shared.rows import only_file

POINTS = ("trkpt", "rtept")
LINES = {"trk": "track", "rte": "route"}


def read(source: Source) -> Recording:
    """Read a file; see `transect.formats.gpx.read`."""
    file, losses = only_file(source), list[Loss]()
    tracks: list[Gathered] = []
    for event, element, damage in elements(source.read(file), file, (*LINES, *POINTS)):
        if damage is not None:
            losses.append(damage)
            continue
        name = element.tag.rpartition("}")[2]
        if event == "start" and name in LINES:
            tracks.append(Gathered(LINES[name], file))
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
