"""What searching has in common in all stores: conditions, order, and areas on Earth that hold sites."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from .place import WGS84, Area, Site
from .product import Product
from .store import Wanted

Found = tuple[int | None, str, str]
"""When a product ends, its id and its document."""
_FAR_DEG = 5.0
"""No site is so large."""
_SPARE = 1.01
"""The box in the site's frame is a little larger; what it finds is held against the area exactly."""


def conditions(wanted: Wanted, form: str) -> tuple[list[str], list[Any]]:
    """Return the conditions of a query but for the area, and their values.

    Parameters
    ----------
    form : str
        How a condition is written: `{} {} ?` for column and relation.
    """
    asked: list[tuple[str, str, Any]] = [(name, "=", value) for name, value in wanted.words.items()]
    if wanted.time is not None:
        asked += [("t1_ns", ">=", wanted.time[0]), ("t0_ns", "<", wanted.time[1])]
    if wanted.min_quality is not None:
        asked.append(("score", ">=", wanted.min_quality))
    return [form.format(name, relation) for name, relation, _ in asked], [value for *_, value in asked]


def newest_first(found: Iterable[Found], latest: int | None) -> Iterator[str]:
    """Give the documents of what ends last first, then by id."""
    rows = sorted(set(found), key=lambda row: (row[0] is None, -(row[0] or 0), row[1]))
    return (document for _, _, document in rows[:latest])


def area_in_site(area: Area, site: Site) -> Area | None:
    """Return a box in a site's frame that holds an area of longitude and latitude; None if it is far away."""
    if site.origin is None or site.body != WGS84:
        return None
    longitude, latitude = site.origin
    near = Area(longitude - _FAR_DEG, latitude - _FAR_DEG, longitude + _FAR_DEG, latitude + _FAR_DEG)
    if not area.meets(near):
        return None
    from transect.geometry.geodesy import local_from_geodetic

    x0, y0 = max(area.x0, near.x0), max(area.y0, near.y0, -90.0)
    x1, y1 = min(area.x1, near.x1), min(area.y1, near.y1, 90.0)
    points = [
        (math.radians(y), math.radians(x), 0.0)
        for x in (x0, (x0 + x1) / 2, x1)
        for y in (y0, (y0 + y1) / 2, y1)
    ]
    local = local_from_geodetic(points, origin_of(site))
    middle, reach = (local.min(0) + local.max(0)) / 2, (local.max(0) - local.min(0)) / 2 * _SPARE + 1.0
    low, high = middle - reach, middle + reach
    return Area(float(low[0]), float(low[1]), float(high[0]), float(high[1]), site.crs)


def meets_on_earth(area: Area, site: Site, document: str) -> bool:
    """Tell whether a product in a site has its box, in longitude and latitude, in an area."""
    place = Product.from_document(document).place
    if place is None or place.site != site:
        return False
    from transect.geometry.geodesy import geodetic_from_local

    found = geodetic_from_local([(x, y, 0.0) for x, y in place.points], origin_of(site))
    ys, xs = [math.degrees(v) for v in found[:, 0]], [math.degrees(v) for v in found[:, 1]]
    return area.meets(Area(min(xs), min(ys), max(xs), max(ys)))


def origin_of(site: Site) -> tuple[float, float, float]:
    """Return latitude and longitude in radians, and the height 0."""
    longitude, latitude = site.origin or (math.nan, math.nan)
    return math.radians(latitude), math.radians(longitude), 0.0
