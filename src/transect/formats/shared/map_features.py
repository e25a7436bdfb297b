"""GeoJSON and STAC features for web maps and data catalogues.

GeoJSON (RFC 7946) and STAC 1.1 support only longitude and latitude on Earth. Other features have no geometry,
and their position is in their properties.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import in_64_bits, iso_from_ns, ns_from_iso
from transect.base.files import staged, write_text
from transect.base.xml import SAFE, refuse_entities
from transect.errors import ParseError, TimeError, UsageError
from transect.recording import Loss, Recording, Source, Stream, stream_of_values
from transect.types import NavFix

from .rows import column_or_nan

STAC = "1.1.0"
MEDIA_TYPES = {
    "tif": "image/tiff; application=geotiff",
    "png": "image/png",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "ply": "application/octet-stream",
    "tum": "text/plain",
}
"""Media types by suffix; others are bytes."""


@dataclass(frozen=True)
class Feature:
    """A geographic feature."""

    id: str
    shape: Literal["Point", "LineString", "Polygon"] | None = None  # None if the position on Earth is unknown
    # Longitude and latitude in degrees, and optionally height in metres; a polygon is closed
    points: Sequence[Sequence[float]] = ()
    time_ns: tuple[int, int] | None = None  # First and last time, UTC
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])  # JSON values
    asset: str = ""  # Address of its bytes, relative to the catalogue

    @property
    def geometry(self) -> dict[str, Any] | None:
        """Geometry of GeoJSON."""
        if self.shape is None:
            return None
        places = [list(point) for point in self.points]
        inside = {"Point": places[0], "LineString": places, "Polygon": [places]}
        return {"type": self.shape, "coordinates": inside[self.shape]}

    @property
    def box(self) -> list[float] | None:
        """West, south, east, north in degrees."""
        if self.shape is None:
            return None
        xs, ys = [point[0] for point in self.points], [point[1] for point in self.points]
        return [min(xs), min(ys), max(xs), max(ys)]


def geojson_text(features: Sequence[Feature]) -> str:
    """Return a collection of features as GeoJSON."""
    listed = [
        {
            "type": "Feature",
            "id": feature.id,
            "geometry": feature.geometry,
            "properties": dict(feature.properties) | _span(feature, "start", "end"),
        }
        for feature in features
    ]
    return json.dumps({"type": "FeatureCollection", "features": listed}, indent=1, ensure_ascii=False) + "\n"


def _span(feature: Feature, first: str, last: str) -> dict[str, str]:
    if feature.time_ns is None:
        return {}
    return {first: f"{iso_from_ns(feature.time_ns[0])}Z", last: f"{iso_from_ns(feature.time_ns[1])}Z"}


def write_catalogue(features: Sequence[Feature], folder: Path, name: str, description: str) -> None:
    """Write a STAC catalogue to a new folder: `catalog.json`, and an item for each feature."""
    items = [f"{feature.id}/{feature.id}.json" for feature in features]
    links = [{"rel": "item", "href": f"./{item}", "type": "application/geo+json"} for item in items]
    catalogue = {
        "type": "Catalog",
        "stac_version": STAC,
        "id": name,
        "description": description,
        "links": [_link("root", "./catalog.json"), *links],
    }
    with staged(folder) as made:
        write_text(made / "catalog.json", json.dumps(catalogue, indent=1, ensure_ascii=False) + "\n")
        for feature, item in zip(features, items, strict=True):
            write_text(made / item, json.dumps(_item(feature), indent=1, ensure_ascii=False) + "\n")


def _link(relation: str, address: str) -> dict[str, str]:
    return {"rel": relation, "href": address, "type": "application/json"}


def _item(feature: Feature) -> dict[str, Any]:
    times = _span(feature, "start_datetime", "end_datetime")
    suffix = feature.asset.rpartition(".")[2]
    asset = {
        "href": feature.asset,
        "type": MEDIA_TYPES.get(suffix, "application/octet-stream"),
        "roles": ["data"],
    }
    item: dict[str, Any] = {
        "type": "Feature",
        "stac_version": STAC,
        "id": feature.id,
        "geometry": feature.geometry,
        "properties": dict(feature.properties) | {"datetime": times.get("start_datetime")} | times,
        "links": [_link("root", "../catalog.json"), _link("parent", "../catalog.json")],
        "assets": {"data": asset} if feature.asset else {},
    }
    return item if feature.box is None else item | {"bbox": feature.box}


DATE_LIMITS_NS = (-62_135_596_800 * 10**9, 253_402_300_800 * 10**9)
"""Years 1 to 9999, the range of dates."""
NO_TIME = np.iinfo(np.int64).min


@dataclass(frozen=True)
class PositionTrack:
    """A sequence of positions."""

    name: str
    points: Floats  # (n, 3), longitude and latitude in degrees on WGS84, height in metres or NaN
    t_ns: Ints | None  # (n,) int64, UTC; None if unknown

    @property
    def times(self) -> list[str]:
        """Dates and times in ISO 8601, with up to nine decimals; empty without times."""
        return [] if self.t_ns is None else [_date(t_ns) for t_ns in self.t_ns.tolist()]


def _date(t_ns: int) -> str:
    return f"{iso_from_ns(t_ns, 9).rstrip('0').rstrip('.')}Z"


def tracks_of(recording: Recording, format: str) -> tuple[list[PositionTrack], list[str]]:
    """Return the positions of a recording as tracks, and sentences on what is left out."""
    fixes = [stream for stream in recording if stream.type is NavFix]
    if not fixes:
        raise UsageError(
            f"{recording.name} has no positions on Earth to write as {format}",
            why="it has no stream of type NavFix",
            hint=f"transect run PoseFusion {recording.typed} -o fused  makes poses, which\n         "
            "transect products keep products.gpkg fused  keeps with their place",
        )
    notes = [
        f"{stream.name} is not written: it is no position on Earth"
        for stream in recording
        if stream not in fixes
    ]
    tracks: list[PositionTrack] = []
    for stream in fixes:
        track, lost = _track_of(stream)
        tracks.append(track)
        notes += lost
    return tracks, notes


def _track_of(stream: Stream) -> tuple[PositionTrack, list[str]]:
    degrees = np.degrees(np.column_stack([stream["lon"], stream["lat"]]))
    points = np.column_stack([degrees, column_or_nan(stream, "alt")])
    known = np.isfinite(points[:, :2]).all(axis=1)
    dated = stream.clock == "utc" and bool(
        ((stream.t_ns > DATE_LIMITS_NS[0]) & (stream.t_ns < DATE_LIMITS_NS[1])).all()
    )
    notes = [f"{stream.name}: {', '.join(others)}" for others in [_others(stream)] if others]
    if not known.all():
        notes.append(f"{stream.name}: {np.count_nonzero(~known)} samples without a position")
    if not dated and stream.clock != "index":
        notes.append(f"{stream.name}: times of its clock, which is {stream.clock}")
    return PositionTrack(stream.name, points[known], stream.t_ns[known] if dated else None), notes


def _others(stream: Stream) -> list[str]:
    return [name for name in stream.columns if name not in ("lat", "lon", "alt")]


@dataclass
class TrackBuilder:
    """Collects points one by one, with losses for invalid ones."""

    name: str
    file: str
    rows: list[tuple[float, float, float]] = field(default_factory=list[tuple[float, float, float]])
    t_ns: list[int] = field(default_factory=list[int])
    losses: dict[str, Loss] = field(default_factory=dict[str, Loss])

    def add(self, longitude: Any, latitude: Any, height: Any, time: str | None, line: int | None) -> None:
        """Add a point, given as texts or numbers; an invalid point is a loss."""
        try:
            x, y = float(longitude), float(latitude)
            z = float(height) if height not in (None, "") else np.nan
            t_ns = NO_TIME if not time else in_64_bits(ns_from_iso(time))
        except (TypeError, ValueError, OverflowError, TimeError) as error:
            self.lose(f"points that are none: {getattr(error, 'what', error)}", line)
            return
        if not (abs(x) <= 360 and abs(y) <= 90):
            self.lose("points that are on no Earth", line)
            return
        self.rows.append((x, y, z))
        self.t_ns.append(t_ns)

    def lose(self, reason: str, line: int | None) -> None:
        known = self.losses.get(reason)
        first, count = (known.line, known.count) if known else (line, 0)
        self.losses[reason] = Loss(self.file, reason, line=first, count=count + 1)

    def streams(self) -> Iterator[Stream]:
        """Yield the points as a stream: those with a time on the clock utc, or all on the clock index."""
        if not self.rows:
            return
        points, t_ns = np.array(self.rows), np.array(self.t_ns, np.int64)
        dated = t_ns != NO_TIME
        if dated.any():
            if not dated.all():
                reason = "points without a time, where others have one"
                self.losses[reason] = Loss(self.file, reason, count=int(np.count_nonzero(~dated)))
            points, t_ns, clock = points[dated], t_ns[dated], "utc"
        else:
            t_ns, clock = np.arange(len(points)), "index"
        radians = np.radians(points[:, :2])
        columns = {"lat": radians[:, 1], "lon": radians[:, 0], "alt": points[:, 2]}
        yield stream_of_values(self.name, t_ns, columns, type=NavFix, clock=clock)


def recording_of(
    source: Source, format: str, tracks: Sequence[TrackBuilder], losses: Sequence[Loss] = ()
) -> Recording:
    """Return tracks as a recording; repeated names are numbered."""
    streams: list[Stream] = []
    for track in tracks:
        for stream in track.streams():
            taken = {other.name for other in streams}
            name = next(n for n in _number_names(stream.name) if n not in taken)
            streams.append(stream.replace(name=name))
    if not streams:
        raise ParseError(f"{source.path} has no track", where=str(source.path), why="no point has a position")
    found = [loss for track in tracks for loss in track.losses.values()]
    return Recording(
        source.stem, tuple(streams), source=source, format=format, reader_losses=(*losses, *found)
    )


def _number_names(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name} {number}"
        number += 1


def elements(content: bytes, file: str, names: Sequence[str]) -> Iterator[tuple[str, Any, Loss | None]]:
    """Yield (event, element, None) for the elements of some names, and at last a loss if the XML is damaged.

    The event is `start` or `end`. Only the part before the damage is read. Document types, entities and
    network access are disabled.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    refuse_entities(content, file)
    tags = [f"{{*}}{name}" for name in names]
    events = etree.iterparse(BytesIO(content), events=("start", "end"), tag=tags, **SAFE)
    try:
        for event, element in events:
            yield event, element, None
    except etree.XMLSyntaxError as error:
        line = error.lineno or 1
        yield "end", None, Loss(file, f"it is not well-formed from here on: {error.msg}", line=line, count=0)
