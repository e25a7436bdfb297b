"""Coordinates on the Earth (WGS84): latitude and longitude, ECEF, local frames, UTM.

Geodetic points are rows (latitude, longitude, height above the ellipsoid) in radians, radians, metres.
A local frame is given by its geodetic origin (3,) and the name of its axes: "ENU" (east, north, up), "NED"
(north, east, down) or "NWU" (north, west, up).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry.array_checks import floats, measured_rows

if TYPE_CHECKING:
    from pyproj import Proj

Axes = Literal["ENU", "NED", "NWU"]


@dataclass(frozen=True)
class Ellipsoid:
    """An ellipsoid of revolution; lengths in metres."""

    semi_major: float
    flattening: float

    @property
    def semi_minor(self) -> float:
        """Polar radius."""
        return self.semi_major * (1 - self.flattening)

    @property
    def eccentricity_squared(self) -> float:
        """First eccentricity, squared."""
        return self.flattening * (2 - self.flattening)


WGS84 = Ellipsoid(6378137.0, 1 / 298.257223563)

MIN_RADIUS_M = 1e5
"""Closer to the Earth's centre latitudes are NaN: receivers without a fix report (0, 0, 0)."""

_ENU_TO = {
    "ENU": np.eye(3),
    "NED": np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]),
    "NWU": np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
}


# ECEF


def ecef_from_geodetic(points: ArrayLike) -> Floats:
    """Earth-centred, Earth-fixed points (..., 3) in metres of geodetic points (..., 3)."""
    lat, lon, height = _geodetic(points)
    squared = WGS84.eccentricity_squared
    normal = WGS84.semi_major / np.sqrt(1 - squared * np.sin(lat) ** 2)
    across = (normal + height) * np.cos(lat)
    up = (normal * (1 - squared) + height) * np.sin(lat)
    return np.stack([across * np.cos(lon), across * np.sin(lon), up], axis=-1)


def geodetic_from_ecef(points: ArrayLike) -> Floats:
    """Geodetic points (..., 3), longitude in [-pi, pi], of ECEF points (..., 3) in metres.

    NaN within `MIN_RADIUS_M` of the Earth's centre.
    """
    x, y, z = np.moveaxis(floats("ECEF points", points, (..., 3)), -1, 0)
    across = np.hypot(x, y)
    known = np.hypot(across, z) >= MIN_RADIUS_M
    across, z = np.where(known, across, np.nan), np.where(known, z, np.nan)
    squared = WGS84.eccentricity_squared
    second = squared / (1 - squared)
    reduced = np.arctan2(z, across * (1 - WGS84.flattening))
    lat = reduced
    for _ in range(5):  # Bowring 1976; an iteration gains at least four digits up to the orbits of satellites
        lat = np.arctan2(
            z + second * WGS84.semi_minor * np.sin(reduced) ** 3,
            across - squared * WGS84.semi_major * np.cos(reduced) ** 3,
        )
        reduced = np.arctan2((1 - WGS84.flattening) * np.sin(lat), np.cos(lat))
    # This form of the height is valid at the poles too, where across / cos(lat) is not.
    surface = WGS84.semi_major * np.sqrt(1 - squared * np.sin(lat) ** 2)
    height = across * np.cos(lat) + z * np.sin(lat) - surface
    return np.stack([lat, np.where(known, np.arctan2(y, x), np.nan), height], axis=-1)


# Local frames


def ecef_from_axes(origin: ArrayLike, axes: Axes = "ENU") -> Floats:
    """Rotation ``R_ecef_local`` (3, 3): local vectors at the geodetic `origin` (3,) to ECEF."""
    lat, lon, _ = _geodetic(floats("origin", origin, (3,)))
    sin_lat, cos_lat, sin_lon, cos_lon = np.sin(lat), np.cos(lat), np.sin(lon), np.cos(lon)
    r_enu_ecef = np.array(
        [
            [-sin_lon, cos_lon, 0.0],
            [-sin_lat * cos_lon, -sin_lat * sin_lon, cos_lat],
            [cos_lat * cos_lon, cos_lat * sin_lon, sin_lat],
        ]
    )
    return (_axes(axes) @ r_enu_ecef).T


def local_from_ecef(points: ArrayLike, origin: ArrayLike, axes: Axes = "ENU") -> Floats:
    """Points (..., 3) in metres in the local frame at the geodetic `origin` (3,), of ECEF points (..., 3)."""
    return (floats("ECEF points", points, (..., 3)) - ecef_from_geodetic(origin)) @ ecef_from_axes(
        origin, axes
    )


def ecef_from_local(points: ArrayLike, origin: ArrayLike, axes: Axes = "ENU") -> Floats:
    """ECEF points (..., 3) in metres of points (..., 3) in the local frame at the geodetic `origin` (3,)."""
    turned = floats("local points", points, (..., 3)) @ ecef_from_axes(origin, axes).T
    return turned + ecef_from_geodetic(origin)


def local_from_geodetic(points: ArrayLike, origin: ArrayLike, axes: Axes = "ENU") -> Floats:
    """Points (..., 3) in the local frame at the geodetic `origin` (3,), in metres, of geodetic (..., 3)."""
    return local_from_ecef(ecef_from_geodetic(points), origin, axes)


def geodetic_from_local(points: ArrayLike, origin: ArrayLike, axes: Axes = "ENU") -> Floats:
    """Geodetic points (..., 3) of points (..., 3) in metres, local to the geodetic `origin` (3,)."""
    return geodetic_from_ecef(ecef_from_local(points, origin, axes))


def change_axes(vectors: ArrayLike, before: Axes, after: Axes) -> Floats:
    """Vectors (..., 3) of one local frame, such as "NED", in the axes of another at the same origin."""
    return floats("vectors", vectors, (..., 3)) @ (_axes(after) @ _axes(before).T).T


# UTM


class Zone(NamedTuple):
    """A UTM zone: number 1 to 60 and hemisphere."""

    number: int
    north: bool

    def __str__(self) -> str:
        return f"{self.number}{'N' if self.north else 'S'}"


def utm_zone(point: ArrayLike) -> Zone:
    """Zone of one geodetic point (3,), with the exceptions for Norway and Svalbard."""
    lat, lon, _ = np.degrees(np.stack(_geodetic(floats("point", point, (3,)))))
    if not -80 <= lat <= 84:
        raise GeometryError(
            f"no UTM zone at latitude {lat:.3f} degrees",
            why="UTM covers 80 degrees south to 84 degrees north",
            hint="use a local frame near the poles",
        )
    lon = (lon + 180) % 360 - 180
    number = min(int((lon + 180) // 6) + 1, 60)
    if 56 <= lat < 64 and 3 <= lon < 12:
        number = 32
    elif lat >= 72 and 0 <= lon < 42:
        number = 31 + 2 * int((lon + 3) // 12)
    return Zone(number, bool(lat >= 0))


def utm_from_geodetic(points: ArrayLike, zone: Zone | None = None) -> tuple[Floats, Zone]:
    """Easting, northing, height (n, 3) in metres of geodetic points (n, 3), and their zone.

    One zone is used for all points, by default that of the first measured point, so that a track that crosses
    a zone boundary stays continuous.
    """
    geodetic = floats("geodetic points", points, ("n", 3))
    if zone is None:
        measured = geodetic[measured_rows(geodetic[:, :2])]
        if not len(measured):
            raise GeometryError("no UTM zone can be chosen", why="no point has a latitude and longitude")
        zone = utm_zone(measured[0])
    lat, lon, height = _geodetic(geodetic)
    east, north = _utm(zone)(lon, lat, radians=True)
    return _finite(east, north, height), zone


def geodetic_from_utm(points: ArrayLike, zone: Zone) -> Floats:
    """Geodetic points (n, 3) of easting, northing, height (n, 3) in metres in `zone`."""
    east, north, height = np.moveaxis(floats("UTM points", points, ("n", 3)), -1, 0)
    lon, lat = _utm(zone)(east, north, inverse=True, radians=True)
    return _finite(lat, lon, height)


def grid_convergence(points: ArrayLike, zone: Zone) -> Floats:
    """Angle (n,) in rad, clockwise, from true north to the UTM grid's north at geodetic points (n, 3).

    ``grid bearing = true bearing - convergence``. In the north it is positive east of the central meridian.
    """
    lat, lon, _ = _geodetic(floats("geodetic points", points, ("n", 3)))
    measured = np.isfinite(lat) & np.isfinite(lon)
    result = np.full(lat.shape, np.nan)
    factors = _utm(zone).get_factors(lon[measured], lat[measured], radians=True)
    result[measured] = np.radians(factors.meridian_convergence)
    return result


def _utm(zone: Zone) -> Proj:
    from pyproj import Proj

    return Proj(proj="utm", zone=zone.number, south=not zone.north, ellps="WGS84")


def _finite(*columns: Floats) -> Floats:
    """Stack columns; rows that pyproj could not compute (inf) become NaN."""
    stacked = np.stack(columns, axis=-1)
    return np.where(np.isfinite(stacked).all(axis=-1, keepdims=True), stacked, np.nan)


def _geodetic(points: ArrayLike) -> tuple[Floats, Floats, Floats]:
    lat, lon, height = np.moveaxis(floats("geodetic points", points, (..., 3)), -1, 0)
    if np.any(np.abs(lat) > np.pi / 2 + 1e-12):
        raise GeometryError(
            f"latitude beyond the pole: {np.nanmax(np.abs(lat)):.6g} rad",
            why="latitudes are at most pi/2",
            hint="are these degrees? np.radians makes radians",
        )
    return lat, lon, height


def _axes(axes: Axes) -> Floats:
    if axes not in get_args(Axes):
        raise GeometryError(f"unknown local axes {axes!r}", hint=f"one of {', '.join(get_args(Axes))}")
    return _ENU_TO[axes]
