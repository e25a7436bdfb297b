"""Time and place of what files hold: poses, height maps, clouds, maps of places."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from transect.errors import TransectError

from .place import WGS84, Area, Place, Shape, Site, Xy

if TYPE_CHECKING:
    from transect.base.arrays import Floats
    from transect.types import PlaceMap

MOST_POINTS = 200
"""Of the track of a trajectory."""
OUTLYING, MANY = 0.005, 1000
"""Part of a cloud's points that its outline leaves out on each side, if it has many: a few are far off."""
_STAMP = re.compile(r"-?\d+").fullmatch
_UTM = re.compile(r"EPSG:32([67])(\d\d)").fullmatch


@dataclass(frozen=True)
class Extent:
    """The time and the place of a file's content, as far as the file tells."""

    time_ns: tuple[int, int] | None = None
    place: Place | None = None
    frame: str = ""


def look_at(file: Path, site: Site) -> Extent:
    """Return the time and place of what a file holds; a file that nobody reads has none.

    Parameters
    ----------
    site : Site
        Whose frame positions without a coordinate system are taken to be in.
    """
    stamp = (int(file.stem), int(file.stem)) if _STAMP(file.stem) else None
    looks = {".tum": _look_at_poses, ".tif": _look_at_map, ".ply": _look_at_cloud, ".pcd": _look_at_cloud}
    if file.suffix not in looks:
        return Extent(stamp)
    try:
        found = looks[file.suffix](file, site)
    except TransectError:
        return Extent(stamp)  # an empty trajectory, a map of nothing: kept as it is, and nowhere
    return Extent(found.time_ns or stamp, found.place, found.frame)


def _look_at_poses(file: Path, site: Site) -> Extent:
    from transect.formats import open as open_recording
    from transect.recording import arrow

    [stream] = open_recording(file, format="tum")
    table = stream.table
    if not len(table):
        return Extent()
    x, y, times = (arrow.numbers(table, name) for name in ("x", "y", "t_ns"))
    chosen = [*range(0, len(x), max(1, len(x) // MOST_POINTS)), len(x) - 1]
    points = tuple(dict.fromkeys((float(x[n]), float(y[n])) for n in chosen))
    place = Place("LineString", points, site=site) if len(points) > 1 else Place("Point", points, site=site)
    return Extent((int(times[0]), int(times[-1])), place, stream.frame)


def _look_at_map(file: Path, site: Site) -> Extent:
    from transect.formats import open as open_recording
    from transect.types import GridMap

    [stream] = open_recording(file, format="geotiff")
    grid = stream[0].payload
    assert isinstance(grid, GridMap)
    a, b, c, d, e, f = grid.transform
    rows, columns = next(iter(grid.layers.values())).shape
    corners = [(0, 0), (columns, 0), (columns, rows), (0, rows), (0, 0)]
    points = [(a * col + b * row + c, d * col + e * row + f) for col, row in corners]
    if not grid.crs:
        return Extent(place=Place("Polygon", tuple(points), site=site), frame=grid.frame)
    return Extent(place=_on_earth("Polygon", tuple(points), grid.crs), frame=grid.frame)


def _on_earth(shape: Shape, points: tuple[Xy, ...], crs: str) -> Place | None:
    """Return a place in longitude and latitude; None for a coordinate system that is not known here."""
    if crs == WGS84:
        return Place(shape, points)
    utm = _UTM(crs)
    if utm is None:
        return _by_projection(shape, points, crs)
    from math import degrees

    from transect.geometry.geodesy import Zone, geodetic_from_utm

    found = geodetic_from_utm([(x, y, 0.0) for x, y in points], Zone(int(utm[2]), utm[1] == "6"))
    return Place(shape, tuple((degrees(lon), degrees(lat)) for lat, lon, _ in found))


def _by_projection(shape: Shape, points: tuple[Xy, ...], crs: str) -> Place | None:
    from pyproj import CRS, Transformer
    from pyproj.exceptions import ProjError

    try:
        moved = Transformer.from_crs(CRS.from_user_input(crs), CRS.from_epsg(4326), always_xy=True)
        found = [moved.transform(x, y, errcheck=True) for x, y in points]
    except ProjError:  # not of the Earth, or not known
        return None
    return Place(shape, tuple((float(longitude), float(latitude)) for longitude, latitude in found))


def _look_at_cloud(file: Path, site: Site) -> Extent:
    import numpy as np

    from transect.formats import open as open_recording
    from transect.types import PointCloud

    [stream] = open_recording(file, format="pcd")
    cloud = stream[0].payload
    assert isinstance(cloud, PointCloud)
    points = cloud.points[np.isfinite(cloud.points).all(1), :2]
    frame = "" if cloud.frame == file.stem else cloud.frame  # a file without a frame is called by its name
    if not len(points):
        return Extent(frame=frame)
    rim = OUTLYING if len(points) >= MANY else 0.0
    (x0, y0), (x1, y1) = np.quantile(points, (rim, 1 - rim), axis=0, method="nearest").tolist()
    return Extent(place=Place.of_box(Area(x0, y0, x1, y1, site.crs), site), frame=frame)


def look_at_places(places: PlaceMap, site: Site) -> Extent:
    """Return the time of a map of places, and the hull of its keyframes: on Earth where it is anchored."""
    if not len(places):
        return Extent(frame=places.frame)
    span = (int(places.t_ns.min()), int(places.t_ns.max()))
    anchor, positions = places.anchor, places.poses[:, :3, 3]
    if anchor is None:
        return Extent(span, Place(*_hull(positions), site=site), places.frame)
    from transect.geometry import se3

    return Extent(span, _on_earth(*_hull(se3.apply(anchor.T_crs_map, positions)), anchor.crs), places.frame)


def _hull(positions: Floats) -> tuple[Shape, tuple[Xy, ...]]:
    """Return the outline of positions (n, 3) from above; a point or a line where it has no area."""
    from transect.geometry.planar import hull_of

    corners = tuple((x, y) for x, y in hull_of(positions[:, :2]).tolist())
    if len(corners) < 2:
        return "Point", ((float(positions[0, 0]), float(positions[0, 1])),)
    return ("LineString", corners) if len(corners) == 2 else ("Polygon", (*corners, corners[0]))
