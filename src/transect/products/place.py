"""Location of a product: a geometry in a coordinate system, and its bounding box."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from transect.errors import ParseError, UsageError, did_you_mean

Shape = Literal["Point", "LineString", "Polygon"]
Xy = tuple[float, float]
SHAPES: dict[Shape, int] = {"Point": 1, "LineString": 2, "Polygon": 3}
"""Geometries that a place may have, and their numbers in well-known binary."""
WGS84, MOON, MARS = "EPSG:4326", "IAU_2015:30100", "IAU_2015:49900"
_MIN_POINTS = {"Point": 1, "LineString": 2, "Polygon": 4}
_SITE = re.compile(r"site:.+")


@dataclass(frozen=True)
class PlanetaryBody:
    """A planet's coordinates: longitude and latitude in degrees on its ellipsoid."""

    name: str
    radius: float
    inverse_flattening: float = 0.0


BODIES = {
    WGS84: PlanetaryBody("WGS 84", 6378137.0, 298.257223563),
    MOON: PlanetaryBody("Moon (2015) - Sphere", 1737400.0),
    MARS: PlanetaryBody("Mars (2015) - Sphere", 3396190.0),
}
"""By the identifier of the coordinate system."""


@dataclass(frozen=True)
class Site:
    """Local frame of a work site: metres east and north of an origin."""

    name: str
    # Of the origin, in degrees; None where nobody measured it
    longitude: float | None = None
    latitude: float | None = None
    body: str = WGS84  # coordinate system of the origin

    def __post_init__(self) -> None:
        if not self.name:
            raise UsageError("a site needs a name")
        if (self.longitude is None) != (self.latitude is None):
            raise UsageError(f"the origin of the site {self.name} has only one coordinate")
        if self.body not in BODIES:
            raise UsageError(f"{self.body!r} is not a known body", hint=did_you_mean(self.body, BODIES))

    @property
    def crs(self) -> str:
        """Identifier of its coordinate system."""
        return f"site:{self.name}"

    @property
    def origin(self) -> Xy | None:
        """Longitude and latitude in degrees, where they are known."""
        if self.longitude is None or self.latitude is None:
            return None
        return self.longitude, self.latitude


@dataclass(frozen=True)
class Area:
    """A box: `x` is east or longitude, `y` north or latitude; it includes its edges."""

    # Metres in a site, degrees on a body
    x0: float
    y0: float
    x1: float
    y1: float
    crs: str = WGS84  # `EPSG:4326`, `IAU_2015:49900` (Mars), `IAU_2015:30100` (Moon), or `site:NAME`

    def __post_init__(self) -> None:
        check_crs(self.crs)
        if not (self.x0 <= self.x1 and self.y0 <= self.y1):
            why = f"from ({self.x0:g}, {self.y0:g}) to ({self.x1:g}, {self.y1:g})"
            raise UsageError(
                "the area is empty", why=why, hint="smallest x, smallest y, largest x, largest y"
            )

    def meets(self, other: Area) -> bool:
        """Return whether two boxes of one coordinate system have a point in common."""
        apart = self.x1 < other.x0 or other.x1 < self.x0 or self.y1 < other.y0 or other.y1 < self.y0
        return self.crs == other.crs and not apart

    @property
    def corners(self) -> tuple[Xy, Xy, Xy, Xy]:
        """Counter-clockwise from the smallest x and y."""
        return (self.x0, self.y0), (self.x1, self.y0), (self.x1, self.y1), (self.x0, self.y1)


@dataclass(frozen=True)
class Place:
    """Geometry of a product."""

    shape: Shape  # `Point`, `LineString` (a track) or `Polygon` (an outline, closed)
    points: tuple[Xy, ...]  # x is east (m) or longitude (deg), y is north (m) or latitude (deg)
    crs: str = WGS84  # as in `Area`; that of `site` where there is one
    site: Site | None = None

    def __post_init__(self) -> None:
        if self.site is not None:
            object.__setattr__(self, "crs", self.site.crs)
        check_crs(self.crs)
        if self.site is None and self.crs.startswith("site:"):
            object.__setattr__(self, "site", Site(self.crs.removeprefix("site:")))
        if self.shape not in SHAPES:
            raise UsageError(f"{self.shape!r} is not a geometry", hint=did_you_mean(self.shape, SHAPES))
        points: tuple[Xy, ...] = tuple((float(x), float(y)) for x, y in self.points)
        object.__setattr__(self, "points", points)
        if len(points) < _MIN_POINTS[self.shape] or (self.shape == "Point" and len(points) > 1):
            raise UsageError(f"a {self.shape} cannot have {len(points)} points")
        if self.shape == "Polygon" and points[:1] != points[-1:]:
            raise UsageError("the outline of a place must end where it begins")
        if not all(math.isfinite(x) and math.isfinite(y) for x, y in points):
            raise UsageError("a place has coordinates that are not finite")

    @property
    def box(self) -> Area:
        """The smallest box around it."""
        xs, ys = [x for x, _ in self.points], [y for _, y in self.points]
        return Area(min(xs), min(ys), max(xs), max(ys), self.crs)

    @staticmethod
    def of_box(area: Area, site: Site | None = None) -> Place:
        """Return the outline of a box."""
        return Place("Polygon", (*area.corners, area.corners[0]), area.crs, site)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values; `Place.from_dict` is the inverse."""
        content: dict[str, Any] = {"shape": self.shape, "points": [list(p) for p in self.points]}
        if self.site is None:
            return {**content, "crs": self.crs}
        site = {"name": self.site.name, "body": self.site.body}
        origin = {"longitude": self.site.longitude, "latitude": self.site.latitude}
        return {**content, "site": site | (origin if self.site.origin else {})}

    @staticmethod
    def from_dict(content: dict[str, Any]) -> Place:
        """Return what `to_dict` gave."""
        site = Site(**content["site"]) if "site" in content else None
        points = tuple((x, y) for x, y in content["points"])
        return Place(content["shape"], points, content.get("crs", WGS84), site)


def check_crs(crs: str) -> None:
    """Raise a UsageError for an unknown coordinate system."""
    if crs not in BODIES and not _SITE.fullmatch(crs):
        known = [*BODIES, "site:NAME"]
        raise UsageError(f"{crs!r} is not a known coordinate system", hint=f"{', '.join(known)}")


def wkb_of(place: Place) -> bytes:
    """Return the geometry as little-endian well-known binary."""
    numbers = [value for point in place.points for value in point]
    head = struct.pack("<BI", 1, SHAPES[place.shape])
    counts = {"Point": (), "LineString": (len(place.points),), "Polygon": (1, len(place.points))}
    return head + struct.pack(f"<{len(counts[place.shape])}I", *counts[place.shape]) + _doubles(numbers)


def _doubles(numbers: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def blob_of(place: Place, srs_id: int) -> bytes:
    """Return the geometry as a GeoPackage keeps it: a header with the box, then well-known binary."""
    box = place.box
    return struct.pack("<2sBBi4d", b"GP", 0, 3, srs_id, box.x0, box.x1, box.y0, box.y1) + wkb_of(place)


def box_of_blob(blob: bytes) -> tuple[float, float, float, float]:
    """Return x0, x1, y0, y1 from the header of a geometry; GeoPackage's triggers ask for it.

    Raises
    ------
    ParseError
        If the blob has no box.
    """
    if len(blob) < 40 or blob[:2] != b"GP" or blob[3] & 0x0E != 2:
        raise ParseError("a geometry of the store has no box", why=f"it begins with {blob[:8].hex()}")
    order = "<" if blob[3] & 1 else ">"
    return struct.unpack_from(f"{order}4d", blob, 8)


def wkt_of(crs: str, site: Site | None = None) -> str:
    """Return the definition of a coordinate system, as GIS programs read it (OGC 01-009).

    A site with an origin is the plane that touches the body there (azimuthal equidistant: 4 um off the
    tangent plane at 1 km), so that a GIS shows it in its place; one without has an unknown position.
    """
    if crs in BODIES:
        return _geographic(BODIES[crs])
    if site is None or site.origin is None:
        return 'LOCAL_CS["site frame",UNIT["metre",1]]'
    longitude, latitude = site.origin
    return (
        f'PROJCS["site frame",{_geographic(BODIES[site.body])},PROJECTION["Azimuthal_Equidistant"],'
        f'PARAMETER["latitude_of_center",{latitude!r}],PARAMETER["longitude_of_center",{longitude!r}],'
        'PARAMETER["false_easting",0],PARAMETER["false_northing",0],UNIT["metre",1]]'
    )


def _geographic(body: PlanetaryBody) -> str:
    shape = f'SPHEROID["{body.name}",{body.radius!r},{body.inverse_flattening!r}]'
    return (
        f'GEOGCS["{body.name}",DATUM["{body.name.replace(" ", "_")}",{shape}],PRIMEM["Greenwich",0],'
        'UNIT["degree",0.0174532925199433]]'
    )
