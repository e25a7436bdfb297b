"""Positions as GeoJSON (RFC 7946)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from transect.base.files import write_text
from transect.recording import Recording

from ..shared.map_features import Feature, geojson_text
from ..shared.map_tracks import Track, tracks_of
from ..shared.rows import new_file

TIMES = "coordTimes"
"""Where programs that convert GPX put the times of a line's points."""


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a file; see `transect.formats.geojson.write`."""
    tracks, said = tracks_of(recording, "GeoJSON")
    write_text(new_file(path, "tracks.geojson"), geojson_text([_feature(track) for track in tracks]))
    return tuple(said)


def _feature(track: Track) -> Feature:
    said: dict[str, Any] = {"name": track.name} | ({TIMES: track.times} if track.times else {})
    points = [tuple(v for v in point if not math.isnan(v)) for point in track.points.tolist()]
    span = None if track.t_ns is None or not len(points) else (int(track.t_ns[0]), int(track.t_ns[-1]))
    return Feature(track.name, "LineString" if points else None, points, span, said)
