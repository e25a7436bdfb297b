"""Time and position of the content of files: poses, height maps, clouds, keyframe maps.

The frames of a run are located on Earth by the fixes of its recording: a track is
aligned with the fixes of the same times by a rotation about the vertical and a translation. The antenna's
lever arm is not removed: positions are good to a metre or two, which suffices for a search.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.errors import TransectError

from .place import WGS84, Area, Place, Shape, Site, Xy

if TYPE_CHECKING:
    from transect.base.arrays import Floats, Ints
    from transect.recording import Recording, Stream
    from transect.types import PlaceMap


MAX_TRACK_POINTS = 200
OUTLIER_RATIO = 0.005  # of a cloud's points on each side that its outline ignores,
MIN_OUTLIER_POINTS = 1000  # if it has as many points
_STAMP = re.compile(r"-?\d+").fullmatch
_UTM = re.compile(r"EPSG:32([67])(\d\d)").fullmatch


@dataclass(frozen=True)
class Extent:
    """Time and position of a file's content, as far as known."""

    time_ns: tuple[int, int] | None = None
    place: Place | None = None
    frame: str = ""


def extent_of_file(file: Path, site: Site) -> Extent:
    """Return time and position of a file's content; unknown for files without a reader.

    Parameters
    ----------
    site : Site
        Frame of positions without a coordinate system.
    """
    stamp = (int(file.stem), int(file.stem)) if _STAMP(file.stem) else None
    looks = {
        ".tum": _extent_of_poses,
        ".tif": _extent_of_grid,
        ".ply": _extent_of_cloud,
        ".pcd": _extent_of_cloud,
    }
    if file.suffix not in looks:
        return Extent(stamp)
    try:
        found = looks[file.suffix](file, site)
    except TransectError:
        return Extent(stamp)  # an empty trajectory, a map of nothing: kept without a position
    return Extent(found.time_ns or stamp, found.place, found.frame)


def _extent_of_poses(file: Path, site: Site) -> Extent:
    from transect.formats import open as open_recording
    from transect.recording import arrow

    [stream] = open_recording(file, format="tum")
    table = stream.table
    if not len(table):
        return Extent()
    x, y, times = (arrow.numbers(table, name) for name in ("x", "y", "t_ns"))
    chosen = [*range(0, len(x), max(1, len(x) // MAX_TRACK_POINTS)), len(x) - 1]
    points = tuple(dict.fromkeys((float(x[n]), float(y[n])) for n in chosen))
    place = Place("LineString", points, site=site) if len(points) > 1 else Place("Point", points, site=site)
    return Extent((int(times[0]), int(times[-1])), place, stream.frame)


def _extent_of_grid(file: Path, site: Site) -> Extent:
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
    """Return a place in longitude and latitude; None for an unknown coordinate system."""
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


def _extent_of_cloud(file: Path, site: Site) -> Extent:
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
    rim = OUTLIER_RATIO if len(points) >= MIN_OUTLIER_POINTS else 0.0
    (x0, y0), (x1, y1) = np.quantile(points, (rim, 1 - rim), axis=0, method="nearest").tolist()
    return Extent(place=Place.of_box(Area(x0, y0, x1, y1, site.crs), site), frame=frame)


def extent_of_map(places: PlaceMap, site: Site) -> Extent:
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


NORTHERLY = math.radians(1.0)
"""A frame that is turned by less from east and north is a site's own."""


@dataclass(frozen=True)
class FrameAnchor:
    """Where a frame is: its origin, longitude and latitude in degrees, and its turn in rad, to the left.

    A point (x, y) of the frame is `turn` further left, seen from the origin, than in east and north.
    """

    longitude: float
    latitude: float
    turn: float

    @property
    def is_north_up(self) -> bool:
        """Whether x is east and y is north."""
        return abs(self.turn) < NORTHERLY

    def site(self, name: str) -> Site:
        """Return the site whose frame this is."""
        return Site(name, self.longitude, self.latitude)

    def locate(self, place: Place) -> Place:
        """Return a place of the frame in longitude and latitude."""
        import numpy as np

        from transect.geometry.geodesy import geodetic_from_local

        cosine, sine = math.cos(self.turn), math.sin(self.turn)
        rotated = np.array(place.points) @ np.array([[cosine, sine], [-sine, cosine]])
        origin = (math.radians(self.latitude), math.radians(self.longitude), 0.0)
        found = np.degrees(geodetic_from_local(_lift(rotated), origin)[:, :2]).tolist()
        points: list[Xy] = [(longitude, latitude) for latitude, longitude in found]
        return Place(place.shape, (*points[:-1], points[0]) if place.shape == "Polygon" else tuple(points))


def find_anchors(request: Mapping[str, Any], tracks: list[Path]) -> dict[str, FrameAnchor]:
    """Return the anchors of the frames of a run's trajectories, by name; {} without fixes.

    Parameters
    ----------
    request : mapping
        What the run was asked for, with the recording.
    tracks : list of Path
        Its trajectories (`.tum`).
    """
    try:
        fixes = _fixes_of(_open(request))
        if fixes is None:
            return {}
        from transect.formats import open as open_recording

        found = [stream for path in tracks for stream in open_recording(path, format="tum")]
        anchors = {
            stream.frame: lay_on_fixes(stream, *fixes) for stream in found if len(stream) and stream.frame
        }
    except (TransectError, OSError):
        return {}  # a recording that moved, a trajectory of nothing: kept, and nowhere on Earth
    return {frame: anchor for frame, anchor in anchors.items() if anchor is not None}


def _open(request: Mapping[str, Any]) -> Recording:
    from transect.formats import open as open_recording

    recorded = request["recording"]
    return open_recording(*recorded["paths"], format=recorded["format"] or None, **recorded["options"])


def _fixes_of(recording: Recording) -> tuple[Ints, Floats] | None:
    """Return times (n,) and geodetic positions (n, 3) in rad and m of the stream with most fixes."""
    import numpy as np

    from transect.types import NavFix

    streams = [s for s in recording if s.role == "measurement" and issubclass(s.type, NavFix) and len(s)]
    if not streams:
        return None
    longest = max(streams, key=len)
    points = np.column_stack([longest.array("lat", "lon"), np.zeros(len(longest))])
    known = np.isfinite(points).all(axis=1)
    return longest.t_ns[known], points[known]


def lay_on_fixes(track: Stream, t_ns: Ints, fixes: Floats) -> FrameAnchor | None:
    """Return where the frame of a track is; None where the fixes do not tell."""
    from transect.geometry.georeferencing import find_earth_frame
    from transect.geometry.interpolation import Limits, interpolate_columns

    if not len(t_ns):
        return None
    limits = Limits(gap_ns=1_000_000_000, beyond_ns=0)
    passed = interpolate_columns(track.t_ns, track.array("x", "y"), t_ns, limits)
    found = find_earth_frame(_lift(passed), fixes)
    if found is None:
        return None
    return FrameAnchor(math.degrees(found.longitude), math.degrees(found.latitude), found.turn)


def _lift(points: Floats) -> Floats:
    """Return points (n, 2) in the plane z = 0 (n, 3)."""
    import numpy as np

    return np.column_stack([points, np.zeros(len(points))])
