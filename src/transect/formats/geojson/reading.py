"""Tracks from GeoJSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from transect.errors import ParseError
from transect.recording import Recording, Source

from ..shared.map_tracks import Gathered, recording_of
from ..shared.rows import only_file
from .writing import TIMES


def read(source: Source) -> Recording:
    """Read a file; see `transect.formats.geojson.read`."""
    file = only_file(source)
    try:
        content: Any = json.loads(source.read(file))
    except (ValueError, RecursionError) as error:
        raise ParseError(f"{file} is no JSON", where=file, why=str(error)) from error
    listed = content.get("features", [content]) if isinstance(content, Mapping) else []
    features: list[Any] = listed if isinstance(listed, list) else []
    tracks = [track for feature in features if (track := _track(feature, file)) is not None]
    return recording_of(source, "geojson", tracks)


def _track(feature: Any, file: str) -> Gathered | None:
    """Return a feature as points; None if it is no line."""
    if not isinstance(feature, Mapping):
        return None
    geometry, properties = _mapping(feature, "geometry"), _mapping(feature, "properties")
    points = geometry.get("coordinates")
    if geometry.get("type") != "LineString" or not isinstance(points, list):
        return None
    track = Gathered(str(properties.get("name") or feature.get("id") or "track"), file)
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
