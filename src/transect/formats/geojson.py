"""GeoJSON: tracks for maps on the web and QGIS, with heights, and times in the property coordTimes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transect.base.files import write_text
from transect.errors import ParseError
from transect.recording import Recording, Source

from .shared.map_features import Feature, PositionTrack, TrackBuilder, geojson_text, recording_of, tracks_of
from .shared.rows import new_file, only_file


def read(source: Source) -> Recording:
    """Read each feature that is a line as positions."""
    file = only_file(source)
    try:
        content: Any = json.loads(source.read(file))
    except (ValueError, RecursionError) as error:
        raise ParseError(f"{file} is no JSON", where=file, why=str(error)) from error
    listed = content.get("features", [content]) if isinstance(content, Mapping) else []
    features: list[Any] = listed if isinstance(listed, list) else []
    tracks = [track for feature in features if (track := _track(feature, file)) is not None]
    return recording_of(source, "geojson", tracks)


def _track(feature: Any, file: str) -> TrackBuilder | None:
    """Return a feature as points; None if it is no line."""
    if not isinstance(feature, Mapping):
        return None
    geometry, properties = _mapping(feature, "geometry"), _mapping(feature, "properties")
    points = geometry.get("coordinates")
    if geometry.get("type") != "LineString" or not isinstance(points, list):
        return None
    track = TrackBuilder(str(properties.get("name") or feature.get("id") or "track"), file)
    times: Any = properties.get(TIMES)
    if not (isinstance(times, list) and len(times) == len(points)):
        times = [None] * len(points)
    for point, time in zip(points, times, strict=True):
        longitude, latitude, height = (*(point if isinstance(point, list) else ()), None, None, None)[:3]
        track.add(longitude, latitude, height, time if isinstance(time, str) else None, None)
    return track


def _mapping(feature: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = feature.get(key)
    return found if isinstance(found, Mapping) else {}


TIMES = "coordTimes"
"""Properties with the times of a line's points, as written by GPX converters."""


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write each stream of positions as a line (RFC 7946); return what is left out."""
    tracks, notes = tracks_of(recording, "GeoJSON")
    write_text(new_file(path, "tracks.geojson"), geojson_text([_feature(track) for track in tracks]))
    return tuple(notes)


def _feature(track: PositionTrack) -> Feature:
    said: dict[str, Any] = {"name": track.name} | ({TIMES: track.times} if track.times else {})
    points = [tuple(v for v in point if not math.isnan(v)) for point in track.points.tolist()]
    span = None if track.t_ns is None or not len(points) else (int(track.t_ns[0]), int(track.t_ns[-1]))
    return Feature(track.name, "LineString" if points else None, points, span, said)
