"""Products for other programs: GeoJSON, and a STAC catalogue with the payloads beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transect.base import files
from transect.formats.shared.map_features import Feature, geojson_text, write_catalogue

from .place import WGS84, Place
from .product import Product
from .searching import origin_of
from .store import ProductStore


def write_geojson(products: Sequence[Product], path: Path) -> None:
    """Write products as features; those that lie in no known place on Earth have no geometry."""
    files.refuse_existing(path)
    files.write_text(path, geojson_text([feature_of(product) for product in products]))


def write_stac(store: ProductStore, products: Sequence[Product], folder: Path) -> list[Product]:
    """Write products as a STAC catalogue with their payloads, in a new folder that can be served as it is.

    Returns
    -------
    list of Product
        Those that it cannot have: STAC wants a time in UTC.
    """
    files.refuse_existing(folder)
    timeless = [product for product in products if not _has_date(product)]
    products = [product for product in products if _has_date(product)]
    name = Path(store.address).stem or "products"
    with files.staged(folder) as made:
        features = [feature_of(product, asset=f"./{_file_of(product)}") for product in products]
        write_catalogue(features, made, name, f"products of {name}")
        for product in products:
            with files.atomic_write(made / product.id / _file_of(product)) as out:
                for piece in store.read(product.id):
                    out.write(piece)
    return timeless


def _file_of(product: Product) -> str:
    """Return the name of a payload's file, which is beside the item and never has its name."""
    return f"payload.{product.payload.format}"


def _has_date(product: Product) -> bool:
    return product.t0_ns is not None and product.clock == "utc"


def feature_of(product: Product, asset: str = "") -> Feature:
    """Return what others are told of a product."""
    place = None if product.place is None else on_earth(product.place)
    said: dict[str, Any] = {
        "kind": product.kind, "name": product.name, "robot": product.robot, "mission": product.mission,
        "frame": product.frame, "sha256": product.payload.sha256, "format": product.payload.format,
        "made_by": product.provenance.tool, "made_from": list(product.provenance.parents),
        **{f"quality_{name}": value for name, value in product.quality.items()},
    }  # fmt: skip
    if place is None and product.place is not None:
        said["place"] = product.place.to_dict()
    return Feature(
        product.id,
        place.shape if place else None,
        place.points if place else (),
        (product.t0_ns or 0, product.t1_ns or 0) if _has_date(product) else None,
        {name: value for name, value in said.items() if value not in ("", [])},
        asset,
    )


def on_earth(place: Place) -> Place | None:
    """Return a place in longitude and latitude on Earth; None if it is not known where that is."""
    if place.crs == WGS84:
        return place
    if place.site is None or place.site.origin is None or place.site.body != WGS84:
        return None
    from transect.geometry.geodesy import geodetic_from_local

    found = geodetic_from_local([(x, y, 0.0) for x, y in place.points], origin_of(place.site))
    return Place(place.shape, tuple((math.degrees(lon), math.degrees(lat)) for lat, lon, _ in found))
