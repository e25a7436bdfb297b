"""GeoJSON and STAC: places and what lies there, for maps on the web and catalogues of data.

GeoJSON (RFC 7946) and STAC 1.1 know longitude and latitude on Earth alone. What lies elsewhere has no
geometry there, and says in its properties where it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from transect.base.clocks import iso_from_ns
from transect.base.files import staged, write_text

STAC = "1.1.0"
MEDIA_TYPES = {
    "tif": "image/tiff; application=geotiff",
    "png": "image/png",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "ply": "application/octet-stream",
    "tum": "text/plain",
}
"""By suffix; others are bytes."""


@dataclass(frozen=True)
class Feature:
    """Something that lies somewhere."""

    id: str
    # None if it is not known where it lies on Earth
    shape: Literal["Point", "LineString", "Polygon"] | None = None
    # Longitude and latitude in degrees, and perhaps a height in metres; a polygon ends where it begins
    points: Sequence[Sequence[float]] = ()
    time_ns: tuple[int, int] | None = None  # First and last, UTC
    # Whatever else is said of it, as JSON can hold it
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])
    asset: str = ""  # Address of its bytes, relative to the catalogue

    @property
    def geometry(self) -> dict[str, Any] | None:
        """As GeoJSON has it."""
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
    """Write a STAC catalogue: `catalog.json`, and an item for each feature, in a new folder.

    Parameters
    ----------
    name, description : str
        Of the catalogue.
    """
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
