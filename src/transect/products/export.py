"""Export of products: GeoJSON, STAC catalogues, map figures, and maps for ROS's map_server."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base import files
from transect.base.arrays import Floats
from transect.errors import UsageError
from transect.formats.shared.map_features import Feature, geojson_text, write_catalogue

from .place import BODIES, WGS84, Place, Site
from .product import Product
from .storage import origin_of
from .store import ProductStore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.draw.ground import GroundLayer
    from transect.types import PlaceMap


def write_geojson(products: Sequence[Product], path: Path) -> None:
    """Write products as features; those without a known position on Earth have no geometry."""
    files.refuse_existing(path)
    files.write_text(path, geojson_text([feature_of(product) for product in products]))


def write_stac(store: ProductStore, products: Sequence[Product], folder: Path) -> list[Product]:
    """Write products as a STAC catalogue with their payloads, in a new folder that can be served as it is.

    Returns
    -------
    list of Product
        Those that were omitted: STAC needs a time in UTC.
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
    """Return a product as a feature for other programs."""
    place = None if product.place is None else on_earth(product.place)
    properties: dict[str, Any] = {
        "kind": product.kind, "name": product.name, "robot": product.robot, "mission": product.mission,
        "frame": product.frame, "sha256": product.payload.sha256, "format": product.payload.format,
        "made_by": product.provenance.tool, "made_from": list(product.provenance.parents),
        **{f"quality_{name}": value for name, value in product.quality.items()},
    }  # fmt: skip
    if place is None and product.place is not None:
        properties["place"] = product.place.to_dict()
    return Feature(
        product.id,
        place.shape if place else None,
        place.points if place else (),
        (product.t0_ns or 0, product.t1_ns or 0) if _has_date(product) else None,
        {name: value for name, value in properties.items() if value not in ("", [])},
        asset,
    )


def on_earth(place: Place) -> Place | None:
    """Return a place in longitude and latitude on Earth; None if its position is unknown."""
    if place.crs == WGS84:
        return place
    if place.site is None or place.site.origin is None or place.site.body != WGS84:
        return None
    from transect.geometry.geodesy import geodetic_from_local

    found = geodetic_from_local([(x, y, 0.0) for x, y in place.points], origin_of(place.site))
    return Place(place.shape, tuple((math.degrees(lon), math.degrees(lat)) for lat, lon, _ in found))


MAX_OUTLINE_RATIO = 10  # of the width of an outline to that of tracks and height maps
GROUND_KINDS = ("GridMap", "DEM")  # drawn below the others


def map_figure(store: ProductStore, products: Sequence[Product], crs: str = "") -> Figure:
    """Draw the products from above.

    Parameters
    ----------
    products : sequence of Product
        Those that end last first; the first height map among them is the ground.
    crs : str
        Draw what lies in this system; by default in the one that most products have.
    """
    from transect.draw.tracks import PlottedTrack, TrackStyle, tracks_figure

    crs = crs or _usual_system(products)
    home = next((p.place.site for p in products if p.place and p.place.crs == crs), None)
    placed = [moved for product in products if (moved := _bring(product, crs, home)) is not None]
    if not placed:
        known = ", ".join(sorted({product.place.crs for product in products if product.place}))
        raise UsageError(f"no product lies in {crs or 'any place'}", why=f"their systems: {known or 'none'}")
    middle = _middle(placed) if crs in BODIES else None
    ground = next((found for product in placed if (found := _ground(store, product, middle))), None)
    lines = [(product, _metres(product.place, middle)) for product in placed if product.place]
    areas, omitted = _drop_large_outlines(lines)
    tracks = [
        PlottedTrack(_name(store, product), points) for product, points in lines if not _is_area(product)
    ]
    caption = f"{len(placed) - omitted} products in {crs}"
    if omitted:
        caption += f", without {omitted} more than {MAX_OUTLINE_RATIO} times as wide"
    if middle is not None:
        caption += f", metres from {middle[0]:.6f} E {middle[1]:.6f} N"
    north = middle is not None or all(p.place and p.place.site and p.place.site.origin for p in placed)
    style = TrackStyle(caption=caption, names=("east", "north") if north else ("x", "y"), north=bool(north))
    return tracks_figure(tracks, ground, style=style, outlines=areas)


def _bring(product: Product, crs: str, home: Site | None) -> Product | None:
    """Return a product in a coordinate system; None if its place is not known there.

    What lies on Earth, also in another site of the same name, is brought to a site whose origin is known.
    """
    place = product.place
    if place is None or (place.crs == crs and place.site == home):
        return product if place is not None else None
    earth = on_earth(place) if home and home.origin and home.body == WGS84 else None
    if home is None or earth is None:
        return None
    from transect.geometry.geodesy import local_from_geodetic

    points = np.radians([(latitude, longitude, 0.0) for longitude, latitude in earth.points])
    local = local_from_geodetic(points, origin_of(home))[:, :2].tolist()
    return replace(product, place=Place(place.shape, tuple((x, y) for x, y in local), site=home))


def _usual_system(products: Sequence[Product]) -> str:
    counted = Counter(product.place.crs for product in products if product.place)
    return counted.most_common(1)[0][0] if counted else ""


def _is_area(product: Product) -> bool:
    return product.place is not None and product.place.shape == "Polygon"


def _drop_large_outlines(lines: Sequence[tuple[Product, Floats]]) -> tuple[list[Floats], int]:
    """Return outlines, except those that dwarf everything else, and their number."""
    widths = [float(np.ptp(points, axis=0).max()) for _, points in lines]
    widths_of_chosen = [width for (each, _), width in zip(lines, widths, strict=True) if _is_chosen(each)]
    max_width = MAX_OUTLINE_RATIO * max(widths_of_chosen, default=math.inf)
    areas = [(points, width) for (each, points), width in zip(lines, widths, strict=True) if _is_area(each)]
    found = [points for points, width in areas if width <= max_width]
    return found, len(areas) - len(found)


def _is_chosen(product: Product) -> bool:
    """Return whether a product determines the scale of the figure: tracks and height maps do."""
    return not _is_area(product) or product.kind in GROUND_KINDS


def _name(store: ProductStore, product: Product) -> str:
    """Return robot, implementation and name of a product."""
    run = next((store.look_up(each) for each in product.provenance.parents[:1]), None)
    maker = run.name.rpartition("/")[2] if run else ""
    return " ".join(filter(None, (product.robot, maker, product.name or product.kind)))


def _middle(products: Sequence[Product]) -> tuple[float, float]:
    boxes = [product.place.box for product in products if product.place]
    x = (min(box.x0 for box in boxes) + max(box.x1 for box in boxes)) / 2
    return x, (min(box.y0 for box in boxes) + max(box.y1 for box in boxes)) / 2


def _metres(place: Place, middle: tuple[float, float] | None) -> Floats:
    """Return the points of a place in metres (n, 2); longitude and latitude from the middle."""
    points = np.array(place.points, dtype=np.float64).reshape(-1, 2)
    if middle is None:
        return points
    radius = BODIES[place.crs].radius
    scale = math.radians(1.0) * radius * np.array([math.cos(math.radians(middle[1])), 1.0])
    return (points - middle) * scale


def _ground(store: ProductStore, product: Product, middle: tuple[float, float] | None) -> GroundLayer | None:
    """Return a height map in metres as it is drawn; None for other products and rotated maps."""
    if product.kind not in GROUND_KINDS or product.payload.format != "tif" or middle is not None:
        return None
    from transect.evaluation.positions.common_frame import ground_of
    from transect.formats import open as open_recording
    from transect.types import GridMap

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "map.tif"
        file.write_bytes(store.content(product.id))
        [stream] = open_recording(file, format="geotiff")
        grid = stream[0].payload
    return ground_of(grid, None, []) if isinstance(grid, GridMap) else None


def write_map_server(places: PlaceMap, path: Path, cell: float) -> list[Path]:
    """Write NAME.png and NAME.yaml, as ROS's map_server reads them; return both."""
    from transect.algorithms.slam.occupancy_grid import (
        FREE_PROBABILITY,
        OCCUPIED_PROBABILITY,
        build_occupancy_grid,
        gray_image,
    )
    from transect.formats.shared.images import encode_image
    from transect.types import Image

    grid = build_occupancy_grid(replace(places, anchor=None), cell)
    a, _, left, _, _, top = grid.transform
    rows = grid.layers["occupancy"].shape[0]
    image, text = path.with_suffix(".png"), path.with_suffix(".yaml")
    for each in (image, text):
        files.refuse_existing(each)
    files.write_bytes(image, encode_image(Image(gray_image(grid)), ".png"))
    files.write_text(
        text,
        f"image: {image.name}\nmode: trinary\nresolution: {a:g}\n"
        f"origin: [{left:.6g}, {top - rows * a:.6g}, 0.0]\nnegate: 0\n"
        f"occupied_thresh: {OCCUPIED_PROBABILITY}\nfree_thresh: {FREE_PROBABILITY}\n",
    )
    return [image, text]
