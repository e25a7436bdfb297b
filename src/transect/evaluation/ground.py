"""Maps that lie under tracks: which one is meant, and where it lies in metres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats
from transect.errors import UsageError
from transect.geometry import geodesy
from transect.geometry.array_checks import measured_rows
from transect.recording import Recording
from transect.types import GridMap, PointCloud

from .loading import RUN, find_output, list_outputs, open_input, open_named, split_run
from .paths import RecordedPath, path_of_trajectory
from .result import port_of_path

if TYPE_CHECKING:
    from pyproj import Transformer

    from transect.draw.ground import Ground
    from transect.draw.tracks import Track

LEVELLED = "level"
"""Frame of a run's map that was turned upright: that of its poses but for the tilt."""


def open_ground(over: str) -> tuple[GridMap | PointCloud, list[RecordedPath], list[str]]:
    """Open what lies under tracks: ``PATH``, ``PATH:STREAM``, ``RUN:PORT``, or a ``RUN`` that made a map.

    Returns
    -------
    GridMap or PointCloud
    list of RecordedPath
        The run's own track in the map's frame, by which others are brought there.
    list of str
        What a person should know.
    """
    folder, port = split_run(over) or (Path(over).parent, None)
    if port:
        over = str(find_output(folder, port, ".tif", ".ply"))
    elif port is not None and (made := list_outputs(folder, ".tif", ".ply")):
        over = str(made[0][0])
    below = map_of(*open_named(over))
    port = port_of_path(folder)
    if not (folder / RUN).is_file() or not (folder / f"{port}.tum").is_file():
        return below, [], []
    run = path_of_trajectory(open_input(f"{folder}:{port}").trajectory, folder.resolve().name)
    if isinstance(below, GridMap) and below.frame in (run.frame, LEVELLED):
        below = replace(below, crs="")  # the track lies in the map's own frame
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
            hint=f"name one: --over {recording.typed_streams(s.name for s in chosen)}"
            if len(chosen) > 1
            else f"transect info {recording.typed} lists its streams",
        )
    stream = chosen[0]
    value = stream[len(stream) - 1].payload  # of a map that grows, the last
    known = recording.format != "pcd"  # a file of a cloud does not say where its points are
    return replace(value, frame=(value.frame or stream.frame) if known else "")


def ground_of(below: GridMap | PointCloud, datum: Floats | None, tracks: Sequence[Track]) -> Ground:
    """Return a map as it is drawn; one of the Earth lies where it is from the datum (3,), near the tracks."""
    from transect.draw.ground import Ground

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


def middle_of(below: GridMap) -> Floats:
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


def refuse_elsewhere(tracks: Sequence[Track], ground: Ground | None) -> None:
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
