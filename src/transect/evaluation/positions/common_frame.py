"""Paths of several recordings and runs in the frame of one map, and the map below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import GeometryError, UsageError
from transect.geometry import align, geodesy
from transect.geometry.array_checks import measured_rows
from transect.geometry.ground import FROM_ABOVE, NORTH_UP, VIEWS, MapView, map_view
from transect.types import GridMap, PointCloud

from .paths import EARTH, RecordedPath

if TYPE_CHECKING:
    from pyproj import Transformer

    from transect.draw.ground import GroundLayer
    from transect.draw.tracks import PlottedTrack

MIN_COMMON_TIMES = 3  # of two tracks that are aligned


@dataclass(frozen=True, eq=False)
class MapLayout:
    """Tracks in one frame."""

    tracks: list[PlottedTrack]
    ground: GroundLayer | None
    view: MapView  # what is to the right and up
    caption: str  # what the axes count from
    notes: list[str]  # what was turned or moved, and why
    datum: Floats | None  # (3,) or, latitude, longitude (rad) and height (m) from which metres count

    @property
    def is_north_up(self) -> bool:
        """Whether up is north for all tracks: none is drawn from its own start, as nothing relates it."""
        return self.view.names == NORTH_UP.names


@dataclass
class _Table:
    """On which tracks are laid out."""

    frame: str  # of the map, else that of the tracks; `EARTH` for metres east and north of `datum`
    on_map: bool  # whether a map lies there
    datum: Floats | None
    # What lies there already: metres right and up
    laid: list[tuple[RecordedPath, Floats]] = field(default_factory=list[tuple[RecordedPath, Floats]])
    notes: list[str] = field(default_factory=list[str])
    # Names of the tracks that nothing relates to the others
    alone: list[str] = field(default_factory=list[str])

    def metres(self, path: RecordedPath) -> Floats:
        """Return a track of the table's own frame on it (n, 2)."""
        if path.frame == EARTH:
            assert self.datum is not None
            return geodesy.local_from_geodetic(path.places, self.datum)[:, :2]
        return path.places[:, :2] if self.on_map else _view(path).project(path.places)

    def belongs(self, path: RecordedPath) -> bool:
        """Return whether a track is in the table's frame; equal names of two recordings are not one frame."""
        if path.frame != self.frame:
            return False
        return (
            self.frame == EARTH or self.on_map or not self.laid or any(path.overlaps(o) for o, _ in self.laid)
        )


def lay_out(
    paths: Sequence[RecordedPath],
    below: GridMap | PointCloud | None = None,
    guides: Sequence[RecordedPath] = (),
) -> MapLayout:
    """Bring tracks into one frame, that of the map if there is one.

    Latitudes and longitudes become metres east and north of one datum. Tracks of one frame that were recorded
    together stay as they are. One in another frame is turned and moved onto a track of the same time. What
    has no relation to the others is drawn from its own start.

    Parameters
    ----------
    paths : sequence of RecordedPath
        At least one.
    below : GridMap or PointCloud, optional
        What is drawn under them.
    guides : sequence of RecordedPath
        Other tracks of the same recordings, by which a track is brought to the map's frame.
    """
    from transect.draw.tracks import PlottedTrack

    frame = _base_frame(paths, below)
    table = _Table(frame, below is not None, _datum(paths, below) if frame == EARTH else None)
    known = [(path, table.metres(path)) for path in (*paths, *guides) if path.frame == frame]
    for path in paths:
        metres = table.metres(path) if table.belongs(path) else _relate(path, known, table)
        table.laid.append((path, metres))
    tracks = [PlottedTrack(path.name, metres, _seconds(path)) for path, metres in table.laid]
    view = NORTH_UP if frame == EARTH else FROM_ABOVE if below is not None else _view(paths[0])
    if table.alone:
        view = replace(view, names=(f"{view.names[0]} from the start", f"{view.names[1]} from the start"))
        names = ", ".join(table.alone)
        table.notes.append(f"drawn from its own start, as nothing relates it to the others: {names}")
    if below is not None and table.datum is None and not below.frame:
        table.notes.append(f"the map names no frame: it is taken to lie in {frame or 'that of the tracks'}")
    ground = None if below is None else ground_of(below, table.datum, tracks)
    refuse_elsewhere(tracks, ground)
    return MapLayout(tracks, ground, view, _caption(table), table.notes, table.datum)


def _base_frame(paths: Sequence[RecordedPath], ground: GridMap | PointCloud | None) -> str:
    if isinstance(ground, GridMap) and ground.crs:
        return EARTH
    if ground is not None:
        return ground.frame or next((path.frame for path in paths if path.frame != EARTH), "")
    return EARTH if any(path.frame == EARTH for path in paths) else paths[0].frame


def _datum(paths: Sequence[RecordedPath], ground: GridMap | PointCloud | None) -> Floats:
    """Return from where metres count: the first fix of the first track, else the middle of the map."""
    for path in paths:
        if path.frame == EARTH:
            return path.places[0]
    assert isinstance(ground, GridMap)
    return middle_of(ground)


def _view(path: RecordedPath) -> MapView:
    return map_view(path.places, path.orientations, path.frame.upper())


def _relate(path: RecordedPath, known: Sequence[tuple[RecordedPath, Floats]], table: _Table) -> Floats:
    """Return where a track of another frame lies (n, 2): on one of the same time, else from its own start."""
    if path.frame == EARTH:
        metres = geodesy.local_from_geodetic(path.places, path.places[0])[:, :2]
    else:
        metres = _view(path).project(path.places)
    for other, target in (*known, *table.laid):
        if other is not path and path.overlaps(other):
            fitted = _fit(path, metres, other, target, table.notes)
            if fitted is not None:
                return fitted
    if table.on_map:
        own, maps = (frame or "a frame without a name" for frame in (path.frame, table.frame))
        raise UsageError(
            f"{path.name} cannot be laid on the map",
            why=f"it is in {own}, the map in {maps}, and no track of the same time is in both",
            hint="a map with a coordinate reference system lies under recordings with satellite fixes",
        )
    table.alone.append(path.name)
    return metres - metres[0]


def _fit(
    path: RecordedPath, metres: Floats, other: RecordedPath, target: Floats, notes: list[str]
) -> Floats | None:
    """Turn and move a track onto another one at their common times; None if there are too few."""
    inside = (path.t_ns >= other.t_ns[0]) & (path.t_ns <= other.t_ns[-1])
    if inside.sum() < MIN_COMMON_TIMES:
        return None
    target_positions = np.column_stack(
        [np.interp(path.t_ns[inside], other.t_ns, target[:, k]) for k in (0, 1)]
    )
    flat = np.zeros((int(inside.sum()), 1))
    source, goal = np.hstack([metres[inside], flat]), np.hstack([target_positions, flat])
    found = None
    if path.frame.upper() not in VIEWS:
        try:
            found = align.align(source, goal, "yaw")
        except GeometryError:  # at standstill any rotation fits
            found = None
    if found is None:
        moved, transform = metres + (target_positions - metres[inside]).mean(axis=0), "translation"
    else:
        moved = found.apply(np.column_stack([metres, np.zeros(len(metres))]))[:, :2]
        turn = np.degrees(np.arctan2(found.rotation[1, 0], found.rotation[0, 0]))
        transform = f"translation and rotation by {turn:.1f} deg"
    rest = float(np.sqrt(np.mean(np.sum((moved[inside] - target_positions) ** 2, axis=1))))
    notes.append(f"{path.name} is aligned with {other.name} by {transform}, RMS residual {rest:.2g} m")
    return moved


def _seconds(path: RecordedPath) -> Floats | None:
    return None if path.clock == "index" else (path.t_ns - path.t_ns[0]) / NS


def _caption(table: _Table) -> str:
    if table.datum is not None:
        lat, lon = np.degrees(table.datum[:2])
        north, east = "S" if lat < 0 else "N", "W" if lon < 0 else "E"
        origin = f"metres from {abs(lat):.6f}° {north}, {abs(lon):.6f}° {east}"
        return f"{origin}; {', '.join(table.alone)} from its own start" if table.alone else origin
    if table.alone:
        return "each from its own start"
    return f"in the frame {table.frame}" if table.frame else ""


def ground_of(
    ground: GridMap | PointCloud, datum: Floats | None, tracks: Sequence[PlottedTrack]
) -> GroundLayer:
    """Return a map as it is drawn; one of the Earth lies where it is from the datum (3,), near the tracks."""
    from transect.draw.ground import GroundLayer

    if isinstance(ground, PointCloud):
        points = np.asarray(ground.points, dtype=np.float64)[:, :2]
        return GroundLayer(points[measured_rows(points)], kind="points")
    transform = ground.transform if datum is None else _affine(ground, datum, tracks)
    layers = list(ground.layers.values())
    if "occupancy" in ground.layers:
        return GroundLayer(ground.layers["occupancy"], transform, "occupancy")
    if len(layers) >= 3 and layers[0].dtype == np.uint8:
        return GroundLayer(np.stack(layers[:3], axis=-1) / 255.0, transform, "colours")
    heights = ground.layers.get("elevation", layers[0])
    return GroundLayer(np.asarray(heights, dtype=np.float64), transform, "heights")


def _to_earth(ground: GridMap) -> Transformer:
    """Return what takes x and y of a map to longitude and latitude, degrees."""
    from pyproj import CRS, Transformer
    from pyproj.exceptions import CRSError

    try:
        return Transformer.from_crs(CRS.from_user_input(ground.crs), CRS.from_epsg(4326), always_xy=True)
    except CRSError as error:
        raise UsageError(
            f"the coordinate reference system {ground.crs[:60]} is not known", why=str(error)
        ) from error


def middle_of(ground: GridMap) -> Floats:
    """Return the middle (3,) of a map: latitude, longitude, and height 0."""
    rows, columns = next(iter(ground.layers.values())).shape
    a, b, c, d, e, f = ground.transform
    x, y = (a * columns + b * rows) / 2 + c, (d * columns + e * rows) / 2 + f
    lon, lat = _to_earth(ground).transform(x, y)
    return np.array([np.radians(lat), np.radians(lon), 0.0])


def _affine(
    ground: GridMap, datum: Floats, tracks: Sequence[PlottedTrack]
) -> tuple[float, float, float, float, float, float]:
    """Return the affine map from cells to metres east and north of the datum, fitted where the tracks are."""
    every = np.concatenate([track.points for track in tracks])
    low, high = every.min(axis=0), every.max(axis=0)
    around = max(0.2 * float((high - low).max()), 1.0)
    sides = [np.linspace(a - around, b + around, 5) for a, b in zip(low, high, strict=True)]
    metres = np.array([[x, y, 0.0] for x in sides[0] for y in sides[1]])
    lat, lon, _ = np.degrees(geodesy.geodetic_from_local(metres, datum)).T
    x, y = _to_earth(ground).transform(lon, lat, direction="INVERSE")
    if not np.isfinite([x, y]).all():
        raise UsageError(
            "the tracks are outside of the map's coordinate reference system", why=ground.crs[:60]
        )
    a, b, c, d, e, f = ground.transform
    cells = np.linalg.solve([[a, b], [d, e]], np.array([x - c, y - f])).T
    middle = cells.mean(axis=0)  # far from the corner of a large map, numbers are large
    design = np.column_stack([cells - middle, np.ones(len(cells))])
    (a, d), (b, e), (c, f) = np.linalg.lstsq(design, metres[:, :2], rcond=None)[0].tolist()
    return a, b, c - a * middle[0] - b * middle[1], d, e, f - d * middle[0] - e * middle[1]


def refuse_elsewhere(tracks: Sequence[PlottedTrack], ground: GroundLayer | None) -> None:
    """Raise if no track comes near the map."""
    if ground is None:
        return
    corners = ground.image if ground.kind == "points" else ground.corners
    low, high = corners.min(axis=0), corners.max(axis=0)
    every = np.concatenate([track.points for track in tracks])
    if not ((every >= low) & (every <= high)).all(axis=1).any():
        right, up = (f"from {a:.1f} to {b:.1f} m" for a, b in zip(low, high, strict=True))
        centre = every.mean(axis=0)
        raise UsageError(
            "the map does not lie under the tracks",
            why=f"it reaches {right} and {up}, the tracks are around {centre[0]:.1f}, {centre[1]:.1f} m",
            hint="a map of the same place, in the frame of the tracks",
        )
