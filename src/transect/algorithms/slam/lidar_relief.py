"""The ground around a keyframe as a height map, by which a place is known without a guess.

No lidar is mounted quite level, and the body leans with the ground. So points are levelled first, by the
plane that most of them lie near; the relief over it says where and how the body stood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import rotations, se3
from transect.geometry.rasters import Heights

from ..coregistration.alignment import AlignmentSettings, evaluate_fit, find_defect, find_fits, match_cells
from ..coregistration.placement import MapPair, MetricPlane, place_at_centre
from ..coregistration.search import SearchRange

RADIUS = 20.0
"""Metres around the body that are compared."""
CELLS = 1.5
"""Voxels of the points along a cell."""
ROUNDS, NEAR_PLANE = 6, 2.0
"""In which the plane is fitted to points ever nearer to it: deviations that count as near."""
LAYER, BELOW = 0.3, 1.5
"""Metres: of layers in which points are counted to find the ground, and around it, where its plane begins."""
FILLED, LARGEST = 0.5, 1.5
"""Share of the cells around the body that are to be known, and the largest cells, m: one scan is sparse."""
RINGS = 10
OVERLAP = 0.45
"""Share of a relief that must lie on the other: lidars see behind different rocks from different places."""
CANDIDATES = 4
HERE = MetricPlane(np.zeros(2), np.ones(2))


@dataclass(frozen=True, eq=False)
class Relief:
    """The ground around a body.

    Attributes
    ----------
    heights : Heights
        Metres over the plane, in a level frame below which the body's axes are turned by ``level``.
    level : (4, 4) float64
        T_level_body.
    looks : (2 * RINGS,) float64
        Rises and roughness by distance, which do not change as the body turns.
    """

    heights: Heights
    level: Floats
    looks: Floats


def see_relief(points: Floats, edge: float) -> Relief:
    """Return the relief of points (n, 3) in the body's axes, thinned to voxels of an edge in metres."""
    level = find_level(points)
    placed = se3.apply(level, points)
    placed = placed[np.hypot(placed[:, 0], placed[:, 1]) < RADIUS]
    return Relief(_fill(placed, CELLS * edge), level, _look(placed))


def find_level(points: Floats) -> Floats:
    """Return T_level_body (4, 4): z is up from the plane that most points (n, 3) lie near."""
    near = points[np.hypot(points[:, 0], points[:, 1]) < RADIUS]
    if len(near) < 3:
        return np.eye(4)
    ground = _densest(near[:, 2])
    # A lidar stands upright or hangs upside down: the ground is below it.
    up = np.array([0.0, 0.0, 1.0 if ground < 0 else -1.0])
    used = near[np.abs(near[:, 2] - ground) < BELOW]
    for _ in range(ROUNDS):
        middle = used.mean(axis=0)
        _, vectors = np.linalg.eigh(np.cov((used - middle).T))
        normal = vectors[:, 0] * np.sign(vectors[:, 0] @ up)
        if normal @ up < np.cos(np.radians(40.0)):
            break
        up = normal
        off = (near - middle) @ up
        spread = max(float(np.median(np.abs(off - np.median(off)))) * 1.4826, 0.05)
        used = near[np.abs(off - np.median(off)) < NEAR_PLANE * spread]
        if len(used) < 10:
            break
    turn = rotations.rotation_between(up, np.array([0.0, 0.0, 1.0]))
    return se3.from_matrix(turn, np.zeros(3))


def _densest(heights: Floats) -> float:
    """Return the middle of the layer that holds most of heights (n,), m: walls and trees have none."""
    layer = np.floor(heights / LAYER).astype(np.int64)
    first = int(layer.min())
    return float((np.argmax(np.bincount(layer - first)) + first + 0.5) * LAYER)


def _fill(points: Floats, cell: float) -> Heights:
    """Return the map of points (n, 3) with the smallest cells, from `cell` on, that are mostly known."""
    found = _grid(points, cell)
    while cell < LARGEST and np.isfinite(found.values).mean() < FILLED * np.pi / 4:
        cell *= np.sqrt(2)
        found = _grid(points, cell)
    return found


def _grid(points: Floats, cell: float) -> Heights:
    """Return mean heights of points (n, 3) in cells, north up."""
    side = 2 * int(np.ceil(RADIUS / cell))
    column = np.floor(points[:, 0] / cell).astype(np.int64) + side // 2
    row = side // 2 - 1 - np.floor(points[:, 1] / cell).astype(np.int64)
    at = row * side + column
    count = np.bincount(at, minlength=side * side)
    total = np.bincount(at, points[:, 2], minlength=side * side)
    values = np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(side, side)
    half = side / 2 - 0.5
    return Heights(values, np.array([[1 / cell, 0.0, half], [0.0, -1 / cell, half]]))


def _look(points: Floats) -> Floats:
    """Return mean and deviation (2 * RINGS,) of heights by distance; 0 where nothing is seen."""
    away = np.hypot(points[:, 0], points[:, 1])
    ring = np.minimum((RINGS * away / RADIUS).astype(np.int64), RINGS - 1)
    count = np.maximum(np.bincount(ring, minlength=RINGS), 1)
    mean = np.bincount(ring, points[:, 2], minlength=RINGS) / count
    square = np.bincount(ring, points[:, 2] ** 2, minlength=RINGS) / count
    return np.concatenate([mean - mean.mean(), np.sqrt(np.maximum(square - mean**2, 0.0))])


def find_in(old: Relief, new: Relief, reach: float) -> Floats | None:
    """Return T_old_new (4, 4) of bodies by their reliefs alone; None if they are not surely of one place.

    Every turn is tried, and every shift up to `reach` metres.
    """
    pair = match_cells(MapPair(old.heights, new.heights, HERE))
    begin = place_at_centre(pair.moved)
    try:
        fits, sweep = find_fits(
            pair, begin, SearchRange(reach, np.pi, OVERLAP), AlignmentSettings(candidates=CANDIDATES)
        )
    except GeometryError:
        return None
    found = evaluate_fit(fits[0], pair, begin)
    if find_defect(found, sweep.tried) is not None:
        return None
    return se3.invert(old.level) @ found.T_reference_map @ new.level
