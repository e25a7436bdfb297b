"""A map of products: tracks and outlines over the newest height map of the same ground."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats
from transect.errors import UsageError

from .exporting import on_earth
from .place import BODIES, WGS84, Place, Site
from .product import Product
from .searching import origin_of
from .store import ProductStore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.draw.ground import Ground

HUGE = 10
"""Times as wide as tracks and height maps an outline may be."""
GROUNDS = ("GridMap", "DEM")
"""Kinds that lie under the others."""


def map_figure(store: ProductStore, products: Sequence[Product], crs: str = "") -> Figure:
    """Draw where products lie, from above.

    Parameters
    ----------
    products : sequence of Product
        Those that end last first; the first height map among them is the ground.
    crs : str
        Draw what lies in this system; by default in the one that most products have.
    """
    from transect.draw.tracks import Style, Track, tracks_figure

    crs = crs or _usual_system(products)
    home = next((p.place.site for p in products if p.place and p.place.crs == crs), None)
    placed = [moved for product in products if (moved := _bring(product, crs, home)) is not None]
    if not placed:
        known = ", ".join(sorted({product.place.crs for product in products if product.place}))
        raise UsageError(f"no product lies in {crs or 'any place'}", why=f"their systems: {known or 'none'}")
    middle = _middle(placed) if crs in BODIES else None
    ground = next((found for product in placed if (found := _ground(store, product, middle))), None)
    lines = [(product, _metres(product.place, middle)) for product in placed if product.place]
    areas, huge = _leave_out_huge(lines)
    tracks = [Track(_name(store, product), points) for product, points in lines if not _is_area(product)]
    caption = f"{len(placed) - huge} products in {crs}"
    if huge:
        caption += f", without {huge} that would be {HUGE} times as wide"
    if middle is not None:
        caption += f", metres from {middle[0]:.6f} E {middle[1]:.6f} N"
    north = middle is not None or all(p.place and p.place.site and p.place.site.origin for p in placed)
    style = Style(caption=caption, names=("east", "north") if north else ("x", "y"), north=bool(north))
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


def _leave_out_huge(lines: Sequence[tuple[Product, Floats]]) -> tuple[list[Floats], int]:
    """Return outlines, but for those beside which nothing else could be seen; and how many these are."""
    widths = [float(np.ptp(points, axis=0).max()) for _, points in lines]
    kept = [width for (each, _), width in zip(lines, widths, strict=True) if _is_chosen(each)]
    most = HUGE * max(kept, default=math.inf)
    areas = [(points, width) for (each, points), width in zip(lines, widths, strict=True) if _is_area(each)]
    found = [points for points, width in areas if width <= most]
    return found, len(areas) - len(found)


def _is_chosen(product: Product) -> bool:
    """Tell whether a product sets the size of the picture: tracks and height maps do."""
    return not _is_area(product) or product.kind in GROUNDS


def _name(store: ProductStore, product: Product) -> str:
    """Return whose it is, what it is, and which implementation made it."""
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


def _ground(store: ProductStore, product: Product, middle: tuple[float, float] | None) -> Ground | None:
    """Return a height map in metres as it is drawn; None for what is none, or lies turned."""
    if product.kind not in GROUNDS or product.payload.format != "tif" or middle is not None:
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
