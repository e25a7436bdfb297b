"""Occupancy grids of maps of planar laser scans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.base.cache_folder import load_compiled
from transect.errors import UnsupportedError
from transect.types import GridMap
from transect.types.places import PlaceMap

OCCUPIED_PROBABILITY, FREE_PROBABILITY = 0.65, 0.196  # defaults of ROS map_server


@dataclass(frozen=True)
class OccupancySettings:
    """Settings of occupancy grids."""

    margin_m: float = 1.0  # around all returns
    max_cells: int = 64_000_000
    hit_log_odds: float = 1.5  # per scan
    miss_log_odds: float = -0.3  # per scan; smaller, since beams graze walls


def build_occupancy_grid(
    place_map: PlaceMap, cell: float = 0.05, settings: OccupancySettings | None = None
) -> GridMap:
    """Return the occupancy probability of each cell, from the beams that ended in it or passed through.

    Parameters
    ----------
    place_map : PlaceMap
        A map of LaserSlam.
    cell : float
        Edge of a cell, m.

    Returns
    -------
    GridMap
        Layer `occupancy`: probability from 0, free, to 1, occupied; NaN if no beam passed. Layers `seen` and
        `hits` are numbers of scans. Rows go from north to south.
    """
    settings = settings or OccupancySettings()
    margin_m = settings.margin_m
    scans = [
        (start, ends)
        for pose, seen in zip(place_map.poses, place_map.observations, strict=True)
        for start, ends in [_beams(place_map, pose, np.asarray(seen["points"], np.float64))]
        if len(ends)
    ]
    if not scans:
        raise UnsupportedError(
            "this map has no scans of a planar laser", why=f"it is a map of {place_map.kind}"
        )
    all_points = np.concatenate([ends for _, ends in scans] + [start[None] for start, _ in scans])
    low = np.floor((all_points.min(axis=0) - margin_m) / cell) * cell
    columns, rows = np.ceil((all_points.max(axis=0) + margin_m - low) / cell).astype(int).tolist()
    if rows * columns > settings.max_cells:
        raise UnsupportedError(f"a grid of {rows} by {columns} cells is too large", hint="--cell")
    seen, hits = np.zeros((rows, columns), np.int32), np.zeros((rows, columns), np.int32)
    for start, ends in scans:
        _trace(seen, hits, (start - low) / cell, (ends - low) / cell)
    return _grid(place_map, seen[::-1], hits[::-1], low, cell, settings)


def _beams(place_map: PlaceMap, pose: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Return the position of the laser (2,) and its returns (n, 2) in the plane of the map."""
    T_body_laser = np.array(place_map.calibration.get("T_body_laser", np.eye(4).tolist()), np.float64)
    turn, shift = pose[:2, :2], pose[:2, 3]
    return turn @ T_body_laser[:2, 3] + shift, points.reshape(-1, 2) @ turn.T + shift


def _trace(seen: NDArray[np.int32], hits: NDArray[np.int32], start: Floats, ends: Floats) -> None:
    """Trace the beams of one scan in the window of the grid that they can reach."""
    trace = load_compiled(__name__, "occupancy").trace

    low = np.maximum(np.floor(np.minimum(start, ends.min(axis=0))).astype(int) - 1, 0)
    high = np.ceil(np.maximum(start, ends.max(axis=0))).astype(int) + 2
    window = (slice(low[1], high[1]), slice(low[0], high[0]))
    trace(seen[window], hits[window], start - low, ends - low)


def _grid(
    place_map: PlaceMap,
    seen: NDArray[np.int32],
    hits: NDArray[np.int32],
    low: Floats,
    cell: float,
    settings: OccupancySettings,
) -> GridMap:
    odds = settings.hit_log_odds * hits + settings.miss_log_odds * (seen - hits)
    probability = np.where(seen > 0, 1.0 / (1.0 + np.exp(-odds)), np.nan).astype(np.float32)
    top = low[1] + cell * seen.shape[0]
    corner = (cell, 0.0, float(low[0]), 0.0, -cell, float(top))
    layers = {"occupancy": probability, "seen": seen.astype(np.float32), "hits": hits.astype(np.float32)}
    if place_map.anchor is None:
        return GridMap(layers, corner, frame=place_map.frame)
    T = place_map.anchor.T_crs_map
    (a, b), (d, e) = T[:2, :2] @ np.array([[cell, 0.0], [0.0, -cell]])
    c, f = T[:2, :2] @ np.array([low[0], top]) + T[:2, 3]
    return GridMap(layers, (a, b, float(c), d, e, float(f)), place_map.anchor.crs)


def gray_image(grid: GridMap) -> NDArray[np.uint8]:
    """Return an occupancy grid in the gray values of map_server: occupied 0, free 254, unknown 205."""
    probability = grid.layers["occupancy"]
    gray = np.where(probability <= FREE_PROBABILITY, 254, 205)
    return np.where(probability >= OCCUPIED_PROBABILITY, 0, gray).astype(np.uint8)
