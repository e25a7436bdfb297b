"""Tracks of recordings and runs in one frame, and the map that lies under them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS, TimeLike, resolve
from transect.errors import GeometryError, StreamError, UsageError
from transect.geometry import align, geodesy
from transect.geometry._arrays import measured_rows
from transect.geometry.ground import FROM_ABOVE, NORTH_UP, VIEWS, MapView, map_view
from transect.recording import Recording, Stream
from transect.types import GridMap, NavFix, Odometry, PointCloud, Pose, RigidBodyState, Trajectory

from .loading import POSE, RUN, open_input, open_named
from .positions import geodetic_of, position_stream, track_of

if TYPE_CHECKING:
    from pyproj import Transformer

    from transect.draw.tracks import Ground, Track

EARTH = "Earth"
"""Name of the space of latitudes and longitudes."""
TYPES = (NavFix, Pose, RigidBodyState, Odometry)
LEVELLED = "level"
"""Frame of a run's map that was turned upright: that of its poses but for the tilt."""
FEW = 3
"""Fewer common times do not tell how one track lies to another."""


@dataclass(frozen=True, eq=False)
class RecordedPath:
    """A track as it was recorded.

    Attributes
    ----------
    name : str
    t_ns : (n,) int64
        On `clock`.
    places : (n, 3)
        Latitude, longitude (rad) and height (m) where `frame` is the Earth, else metres; no NaN in what a
        map shows.
    orientations : (n, 4) or None
    """

    name: str
    t_ns: Ints
    places: Floats
    orientations: Floats | None
    frame: str
    clock: str

    def between(self, start: TimeLike | None, end: TimeLike | None) -> RecordedPath:
        """Return the part in [start, end); `+60s` counts from its first position."""
        keep = np.ones(len(self.t_ns), dtype=bool)
        if start is not None:
            keep &= self.t_ns >= resolve(start, int(self.t_ns[0]), self.clock)
        if end is not None:
            keep &= self.t_ns < resolve(end, int(self.t_ns[0]), self.clock)
        if not keep.any():
            raise UsageError(f"{self.name} has no positions between these times")
        turned = self.orientations
        return replace(
            self, t_ns=self.t_ns[keep], places=self.places[keep],
            orientations=None if turned is None else turned[keep],
        )  # fmt: skip

    def overlaps(self, other: RecordedPath) -> bool:
        """Tell whether two tracks were recorded at the same time."""
        if self.clock != other.clock or "index" in (self.clock, other.clock):
            return False
        return bool(self.t_ns[0] <= other.t_ns[-1] and other.t_ns[0] <= self.t_ns[-1])


@dataclass(frozen=True, eq=False)
class Layout:
    """Tracks in one frame.

    Attributes
    ----------
    tracks : list of Track
    ground : Ground or None
    view : MapView
        What is to the right and up.
    caption : str
        What the axes count from.
    notes : list of str
        What was turned or moved, and why.
    datum : (3,) or None
        Latitude, longitude (rad) and height (m) from which metres count.
    """

    tracks: list[Track]
    ground: Ground | None
    view: MapView
    caption: str
    notes: list[str]
    datum: Floats | None


# What there is


def paths_of(recording: Recording, name: str = "", patterns: Sequence[str] = ()) -> list[RecordedPath]:
    """Return the tracks of a recording that are meant.

    Parameters
    ----------
    name : str
        Of one stream.
    patterns : sequence of str
        Of names of streams; those without positions are left out. Without name and patterns satellite
        fixes are taken, else the best measurement, else the truth.
    """
    if name:
        return [path_of(recording[name], f"{recording.name} {recording[name].name}")]
    if patterns:
        fitting = [s for s in recording.select(*patterns) if s.type in TYPES and len(s)]
        if not fitting:
            raise StreamError(
                f"no stream of {recording.name} that {', '.join(patterns)} chooses has positions"
            )
        single = len(fitting) == 1
        return [path_of(s, recording.name if single else f"{recording.name} {s.name}") for s in fitting]
    return [path_of(_best_stream(recording), recording.name)]


def _best_stream(recording: Recording) -> Stream:
    """Return the receiver with most fixes, which alone lies on a map; else what measured best; else truth."""
    receivers = [s for s in recording if s.type is NavFix and s.role != "truth"]
    fixes = {s.name: int(measured_rows(geodetic_of(s)[:, :2]).sum()) for s in receivers}
    if any(fixes.values()):
        return recording[max(fixes, key=lambda name: fixes[name])]
    truth = recording.truth
    try:
        return position_stream(recording)
    except StreamError as error:
        if truth is not None and truth.type in TYPES:
            return truth
        hint = "transect info PATH lists the streams; one is named by PATH:STREAM"
        raise StreamError(f"{recording.name} has no positions to draw", why=error.why, hint=hint) from error


def path_of(stream: Stream, name: str) -> RecordedPath:
    """Return the track of a stream of fixes, poses or odometry, in the order of time."""
    if stream.type not in TYPES:
        raise StreamError(f"{stream.name} has no positions", why=f"its samples are {stream.type.__name__}")
    earth = stream.type is NavFix
    places = geodetic_of(stream) if earth else track_of(stream)
    heights = places[:, 2]
    usual = float(np.nanmedian(heights)) if np.isfinite(heights).any() else 0.0
    places = np.column_stack([places[:, :2], np.where(np.isfinite(heights), heights, usual)])
    turned = {"qx", "qy", "qz", "qw"} <= set(stream.columns) and not earth
    orientations = stream.array("qx", "qy", "qz", "qw") if turned else None
    return _sort(
        RecordedPath(name, stream.t_ns, places, orientations, EARTH if earth else stream.frame, stream.clock)
    )


def path_of_trajectory(trajectory: Trajectory, name: str) -> RecordedPath:
    """Return the track of a trajectory, such as a run's."""
    return _sort(
        RecordedPath(name, trajectory.t_ns, trajectory.positions, trajectory.orientations, trajectory.frame,
             trajectory.clock)
    )  # fmt: skip


def _sort(path: RecordedPath) -> RecordedPath:
    known = np.flatnonzero(measured_rows(path.places))
    if not len(known):
        raise StreamError(f"{path.name} has no positions", why="none was measured")
    order = known[np.argsort(path.t_ns[known], kind="stable")]
    turned = path.orientations
    return replace(
        path, t_ns=path.t_ns[order], places=path.places[order],
        orientations=None if turned is None else turned[order],
    )  # fmt: skip


# One frame


@dataclass
class _Table:
    """On which tracks are laid out.

    Attributes
    ----------
    frame : str
        Of the map, else that of the tracks; `EARTH` for metres east and north of `datum`.
    on_map : bool
        Whether a map lies there.
    laid : list of (RecordedPath, (n, 2) array)
        What lies there already: metres right and up.
    alone : list of str
        Names of the tracks that nothing relates to the others.
    """

    frame: str
    on_map: bool
    datum: Floats | None
    laid: list[tuple[RecordedPath, Floats]] = field(default_factory=list[tuple[RecordedPath, Floats]])
    notes: list[str] = field(default_factory=list[str])
    alone: list[str] = field(default_factory=list[str])

    def metres(self, path: RecordedPath) -> Floats:
        """Return a track of the table's own frame on it (n, 2)."""
        if path.frame == EARTH:
            assert self.datum is not None
            return geodesy.local_from_geodetic(path.places, self.datum)[:, :2]
        return path.places[:, :2] if self.on_map else _view(path).project(path.places)

    def belongs(self, path: RecordedPath) -> bool:
        """Tell whether a track is in the table's frame; equal names of two recordings are not one frame."""
        if path.frame != self.frame:
            return False
        return (
            self.frame == EARTH or self.on_map or not self.laid or any(path.overlaps(o) for o, _ in self.laid)
        )


def lay_out(
    paths: Sequence[RecordedPath],
    below: GridMap | PointCloud | None = None,
    guides: Sequence[RecordedPath] = (),
) -> Layout:
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
    from transect.draw.tracks import Track

    frame = _base_frame(paths, below)
    table = _Table(frame, below is not None, _datum(paths, below) if frame == EARTH else None)
    known = [(path, table.metres(path)) for path in (*paths, *guides) if path.frame == frame]
    for path in paths:
        metres = table.metres(path) if table.belongs(path) else _relate(path, known, table)
        table.laid.append((path, metres))
    tracks = [Track(path.name, metres, _seconds(path)) for path, metres in table.laid]
    view = NORTH_UP if frame == EARTH else FROM_ABOVE if below is not None else _view(paths[0])
    if table.alone:
        view = replace(view, names=(f"{view.names[0]} from the start", f"{view.names[1]} from the start"))
        names = ", ".join(table.alone)
        table.notes.append(f"drawn from its own start, as nothing relates it to the others: {names}")
    if below is not None and table.datum is None and not below.frame:
        table.notes.append(f"the map names no frame: it is taken to lie in {frame or 'that of the tracks'}")
    ground = None if below is None else _ground(below, table.datum, tracks)
    _refuse_elsewhere(tracks, ground)
    return Layout(tracks, ground, view, _caption(table), table.notes, table.datum)


def _base_frame(paths: Sequence[RecordedPath], below: GridMap | PointCloud | None) -> str:
    if isinstance(below, GridMap) and below.crs:
        return EARTH
    if below is not None:
        return below.frame or next((path.frame for path in paths if path.frame != EARTH), "")
    return EARTH if any(path.frame == EARTH for path in paths) else paths[0].frame


def _datum(paths: Sequence[RecordedPath], below: GridMap | PointCloud | None) -> Floats:
    """Return from where metres count: the first fix of the first track, else the middle of the map."""
    for path in paths:
        if path.frame == EARTH:
            return path.places[0]
    assert isinstance(below, GridMap)
    return _middle(below)


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
    if inside.sum() < FEW:
        return None
    there = np.column_stack([np.interp(path.t_ns[inside], other.t_ns, target[:, k]) for k in (0, 1)])
    flat = np.zeros((int(inside.sum()), 1))
    source, goal = np.hstack([metres[inside], flat]), np.hstack([there, flat])
    found = None
    if path.frame.upper() not in VIEWS:
        try:
            found = align.align(source, goal, "yaw")
        except GeometryError:  # it stood still, and looks alike however it is turned
            found = None
    if found is None:
        moved, said = metres + (there - metres[inside]).mean(axis=0), "moved"
    else:
        moved = found.apply(np.column_stack([metres, np.zeros(len(metres))]))[:, :2]
        turn = np.degrees(np.arctan2(found.rotation[1, 0], found.rotation[0, 0]))
        said = f"turned by {turn:.1f} degrees and moved"
    rest = float(np.sqrt(np.mean(np.sum((moved[inside] - there) ** 2, axis=1))))
    notes.append(f"{path.name} is {said} onto {other.name} at their common times: {rest:.2g} m RMS are left")
    return moved


def _seconds(path: RecordedPath) -> Floats | None:
    return None if path.clock == "index" else (path.t_ns - path.t_ns[0]) / NS


def _caption(table: _Table) -> str:
    if table.datum is not None:
        lat, lon = np.degrees(table.datum[:2])
        north, east = "S" if lat < 0 else "N", "W" if lon < 0 else "E"
        said = f"metres from {abs(lat):.6f}° {north}, {abs(lon):.6f}° {east}"
        return f"{said}; {', '.join(table.alone)} from its own start" if table.alone else said
    if table.alone:
        return "each from its own start"
    return f"in the frame {table.frame}" if table.frame else ""


# The map


def guides_of(recording: Recording, frame: str) -> Iterator[RecordedPath]:
    """Yield the tracks of a recording in a frame, by which others can be brought there."""
    for stream in recording:
        there = EARTH if stream.type is NavFix else stream.frame
        if stream.type in TYPES and there == frame and len(stream):
            yield path_of(stream, f"{recording.name} {stream.name}")


def open_ground(over: str) -> tuple[GridMap | PointCloud, list[RecordedPath], list[str]]:
    """Open what lies under tracks: ``PATH``, ``PATH:STREAM``, or the folder of a run that made a map.

    Returns
    -------
    GridMap or PointCloud
    list of RecordedPath
        The run's own track in the map's frame, by which others are brought there.
    list of str
        What a person should know.
    """
    folder = Path(over) if (Path(over) / RUN).is_file() else Path(over).parent
    made = [*sorted(folder.glob("*.tif")), *sorted(folder.glob("*.ply"))] if folder == Path(over) else []
    below = map_of(*open_named(made[0] if made else over))
    if not (folder / RUN).is_file() or not (folder / f"{POSE}.tum").is_file():
        return below, [], []
    run = path_of_trajectory(open_input(f"{folder}:{POSE}").trajectory, folder.resolve().name)
    if isinstance(below, GridMap) and (below.crs or below.frame not in ("", LEVELLED)):
        return below, [run] if run.frame == below.frame else [], []
    notes = ["the map was turned level by the IMU: tracks lie on it without that tilt"]
    return replace(below, frame=run.frame), [run], notes if below.frame == LEVELLED else []


def map_of(recording: Recording, name: str = "") -> GridMap | PointCloud:
    """Return the only map or cloud of a recording, or the one of that name."""
    if name:
        chosen = [recording[name]]
    else:
        chosen = [s for s in recording if s.type is GridMap and len(s)]
        chosen = chosen or [s for s in recording if s.type is PointCloud and len(s) == 1]
    if len(chosen) != 1 or chosen[0].type not in (GridMap, PointCloud):
        names = ", ".join(stream.name for stream in chosen)
        raise UsageError(
            f"{recording.name} is not one map",
            why=names or "it has no map",
            hint="name one: --over PATH:STREAM",
        )
    stream = chosen[0]
    value = stream[len(stream) - 1].payload  # of a map that grows, the last
    known = recording.format != "pcd"  # a file of a cloud does not say where its points are
    return replace(value, frame=(value.frame or stream.frame) if known else "")


def _ground(below: GridMap | PointCloud, datum: Floats | None, tracks: Sequence[Track]) -> Ground:
    from transect.draw.tracks import Ground

    if isinstance(below, PointCloud):
        points = np.asarray(below.points, dtype=np.float64)[:, :2]
        return Ground(points[measured_rows(points)], kind="points")
    transform = below.transform if datum is None else _affine(below, datum, tracks)
    layers = list(below.layers.values())
    if "occupancy" in below.layers:
        return Ground(below.layers["occupancy"], transform, "occupancy")
    if len(layers) >= 3 and layers[0].dtype == np.uint8:
        return Ground(np.stack(layers[:3], axis=-1) / 255.0, transform, "colours")
    heights = below.layers.get("elevation", layers[0])
    return Ground(np.asarray(heights, dtype=np.float64), transform, "heights")


def _to_earth(below: GridMap) -> Transformer:
    """Return what takes x and y of a map to longitude and latitude, degrees."""
    from pyproj import CRS, Transformer
    from pyproj.exceptions import CRSError

    try:
        return Transformer.from_crs(CRS.from_user_input(below.crs), CRS.from_epsg(4326), always_xy=True)
    except CRSError as error:
        raise UsageError(
            f"the coordinate reference system {below.crs[:60]} is not known", why=str(error)
        ) from error


def _middle(below: GridMap) -> Floats:
    """Return the middle (3,) of a map: latitude, longitude, and height 0."""
    rows, columns = next(iter(below.layers.values())).shape
    a, b, c, d, e, f = below.transform
    x, y = (a * columns + b * rows) / 2 + c, (d * columns + e * rows) / 2 + f
    lon, lat = _to_earth(below).transform(x, y)
    return np.array([np.radians(lat), np.radians(lon), 0.0])


def _affine(
    below: GridMap, datum: Floats, tracks: Sequence[Track]
) -> tuple[float, float, float, float, float, float]:
    """Return the affine map from cells to metres east and north of the datum, fitted where the tracks are."""
    every = np.concatenate([track.points for track in tracks])
    low, high = every.min(axis=0), every.max(axis=0)
    around = max(0.2 * float((high - low).max()), 1.0)
    sides = [np.linspace(a - around, b + around, 5) for a, b in zip(low, high, strict=True)]
    metres = np.array([[x, y, 0.0] for x in sides[0] for y in sides[1]])
    lat, lon, _ = np.degrees(geodesy.geodetic_from_local(metres, datum)).T
    x, y = _to_earth(below).transform(lon, lat, direction="INVERSE")
    if not np.isfinite([x, y]).all():
        raise UsageError(
            "the tracks are outside of the map's coordinate reference system", why=below.crs[:60]
        )
    a, b, c, d, e, f = below.transform
    cells = np.linalg.solve([[a, b], [d, e]], np.array([x - c, y - f])).T
    middle = cells.mean(axis=0)  # far from the corner of a large map, numbers are large
    design = np.column_stack([cells - middle, np.ones(len(cells))])
    (a, d), (b, e), (c, f) = np.linalg.lstsq(design, metres[:, :2], rcond=None)[0].tolist()
    return a, b, c - a * middle[0] - b * middle[1], d, e, f - d * middle[0] - e * middle[1]


def _refuse_elsewhere(tracks: Sequence[Track], ground: Ground | None) -> None:
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
