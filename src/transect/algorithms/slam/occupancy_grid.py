"""Occupancy grids of maps of planar laser scans."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.base.cache_folder import load_compiled
from transect.errors import UnsupportedError
from transect.types import GridMap
from transect.types.places import PlaceMap

OCCUPIED, FREE = 0.65, 0.196
"""Probabilities from which on, and below which, map_server calls a cell occupied or free (its defaults)."""
HIT, MISS = 1.5, -0.3
"""Log odds of a scan that ends in a cell, or goes through it: beams graze walls, and none ends in a gap."""
UNKNOWN = 205
"""Gray of what nobody saw, in map_server's files."""
LARGEST = 64_000_000
"""Cells of a grid, at most."""
MARGIN = 1.0
"""Metres around all that was seen."""


def occupancy_of(places: PlaceMap, cell: float = 0.05) -> GridMap:
    """Return how likely each cell is to be occupied, by the beams that ended in it or went through.

    Parameters
    ----------
    places : PlaceMap
        Of LaserSlam.
    cell : float
        Edge in m.

    Returns
    -------
    GridMap
        Layer `occupancy`: probability from 0, free, to 1, occupied; NaN where no beam came. Layers `seen`
        and `hits` are numbers of scans. Rows go from north to south.
    """
    scans = [
        (start, ends)
        for pose, seen in zip(places.poses, places.observations, strict=True)
        for start, ends in [_place(places, pose, np.asarray(seen["points"], np.float64))]
        if len(ends)
    ]
    if not scans:
        raise UnsupportedError("this map has no scans of a planar laser", why=f"it is of {places.kind}")
    every = np.concatenate([ends for _, ends in scans] + [start[None] for start, _ in scans])
    low = np.floor((every.min(axis=0) - MARGIN) / cell) * cell
    columns, rows = np.ceil((every.max(axis=0) + MARGIN - low) / cell).astype(int).tolist()
    if rows * columns > LARGEST:
        raise UnsupportedError(f"a grid of {rows} by {columns} cells is too large", hint="--cell")
    seen, hits = np.zeros((rows, columns), np.int32), np.zeros((rows, columns), np.int32)
    for start, ends in scans:
        _trace_part(seen, hits, (start - low) / cell, (ends - low) / cell)
    return _grid(places, seen[::-1], hits[::-1], low, cell)


def _place(places: PlaceMap, pose: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Return where the laser was (2,) and its returns (n, 2) in the plane of the map."""
    mounted = np.array(places.calibration.get("T_body_laser", np.eye(4).tolist()), np.float64)
    turn, shift = pose[:2, :2], pose[:2, 3]
    return turn @ mounted[:2, 3] + shift, points.reshape(-1, 2) @ turn.T + shift


def _trace_part(seen: NDArray[np.int32], hits: NDArray[np.int32], start: Floats, ends: Floats) -> None:
    """Trace the beams of one scan in the part of the grid that they can meet."""
    trace = load_compiled(__name__, "occupancy").trace

    low = np.maximum(np.floor(np.minimum(start, ends.min(axis=0))).astype(int) - 1, 0)
    high = np.ceil(np.maximum(start, ends.max(axis=0))).astype(int) + 2
    part = (slice(low[1], high[1]), slice(low[0], high[0]))
    trace(seen[part], hits[part], start - low, ends - low)


def _grid(
    places: PlaceMap, seen: NDArray[np.int32], hits: NDArray[np.int32], low: Floats, cell: float
) -> GridMap:
    odds = HIT * hits + MISS * (seen - hits)
    chance = np.where(seen > 0, 1.0 / (1.0 + np.exp(-odds)), np.nan).astype(np.float32)
    top = low[1] + cell * seen.shape[0]
    corner = (cell, 0.0, float(low[0]), 0.0, -cell, float(top))
    layers = {"occupancy": chance, "seen": seen.astype(np.float32), "hits": hits.astype(np.float32)}
    if places.anchor is None:
        return GridMap(layers, corner, frame=places.frame)
    T = places.anchor.T_crs_map
    (a, b), (d, e) = T[:2, :2] @ np.array([[cell, 0.0], [0.0, -cell]])
    c, f = T[:2, :2] @ np.array([low[0], top]) + T[:2, 3]
    return GridMap(layers, (a, b, float(c), d, e, float(f)), places.anchor.crs)


def pixels_of(grid: GridMap) -> NDArray[np.uint8]:
    """Return an occupancy grid in gray: black where it is occupied, white where it is free, 205 unknown."""
    chance = grid.layers["occupancy"]
    gray = np.where(chance >= OCCUPIED, 0, np.where(chance <= FREE, 254, UNKNOWN))
    return gray.astype(np.uint8)
