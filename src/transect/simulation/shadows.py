"""Where the sun shines: which rays to it need not be cast, because no ground can be in their way.

A ray to the sun that starts above the ground meets it first where the ground rises faster than the ray. So
only cells that are as steep as that, somewhere, cast shadows, and no further than their height reaches.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Mask

from ._compiled import kernels
from .raycast import NOTHING, Hits, Scene, cast
from .terrain import Terrain

NO_BALL = np.array([0.0, 0.0, 0.0, -1.0])
_TOLERANCE = 1e-6
"""m, and part of a slope: rounding shall not decide."""


def sunlit(scene: Scene, origin: Floats, rays: Floats, hits: Hits, towards_sun: Floats, t: float) -> Mask:
    """Return whether the sun shines on what rays met (n,): it faces the sun, and nothing is between.

    Parameters
    ----------
    origin : (3,)
        Of all rays, m, world.
    rays : (n, 3)
        Unit vectors, world.
    hits : Hits
        What they met.
    towards_sun : (3,)
        Unit vector.
    t : float
        Seconds since the day began.
    """
    loops, land, starts = kernels("render"), scene.terrain, np.empty_like(rays)
    loops.shadow_starts(origin, rays, hits.range, hits.normal, towards_sun, starts)
    ground = open_ground(land, tuple(towards_sun.tolist()))
    ball = NO_BALL if scene.solids is None else scene.solids.ball
    corner, doubtful = np.asarray(land.origin, np.float64), np.empty(len(rays), np.bool_)
    loops.choose_doubtful(ground, float(land.cell), corner, ball, towards_sun, starts, hits.kind, doubtful)
    lit = ~np.isnan(starts[:, 0])
    lit[doubtful] = cast(scene, starts[doubtful], towards_sun, t=t).kind == NOTHING
    return lit


@lru_cache(maxsize=4)
def open_ground(land: Terrain, towards_sun: tuple[float, float, float]) -> NDArray[np.bool_]:
    """Return the cells (rows - 1, columns - 1) of a terrain on which no ground casts a shadow, for sure.

    Cells that are steeper than 45 degrees, and their neighbours, are left out: a ray that starts a little off
    their surface may start below another's.
    """
    x, y, z = towards_sun
    level = float(np.hypot(x, y))
    ahead, aside, turn = (x, y, False) if abs(x) >= abs(y) else (y, x, True)
    height = np.asarray(land.height.T if turn else land.height, np.float64)
    back, flip = ahead < 0, np.s_[:, ::-1]
    height = height[flip] if back else height
    corners = np.stack([height[:-1, :-1], height[:-1, 1:], height[1:, :-1], height[1:, 1:]])
    a, b, c, d = corners
    along, across = np.stack([b - a, d - c]) / land.cell, np.stack([c - a, d - b]) / land.cell
    rough = np.abs(along).max(axis=0) + np.abs(across).max(axis=0) >= 1.0
    low, top = corners.min(axis=0) - _TOLERANCE, corners.max(axis=0)
    shaded = np.zeros_like(rough)
    if level > _TOLERANCE:
        ahead, aside, rise = abs(ahead) / level, aside / level, z / level
        slope = (along * ahead).max(axis=0) + (across * aside).max(axis=0)
        steep = slope >= rise * (1 - _TOLERANCE) - _TOLERANCE
        shaded = low <= _shadow_tops(np.where(steep, top, -np.inf), rise * land.cell / ahead)
    # A cell that neither is steep nor has such a neighbour, and over which no shadow reaches.
    shaded |= _grow(_grow(rough).T).T
    shaded = shaded[flip] if back else shaded
    return np.ascontiguousarray(~(shaded.T if turn else shaded))


def _shadow_tops(casting: Floats, drop: float) -> Floats:
    """Return how high shadows reach over each cell, at most; the sun is towards larger columns.

    `casting` (rows, columns) has the tops of cells that cast shadows, -inf elsewhere; a shadow sinks by
    `drop` with each column. It passes from a row to the next at most once in a column.
    """
    tops = np.empty_like(casting)
    carried = np.full(len(casting), -np.inf)
    for column in range(casting.shape[1] - 1, -1, -1):
        own = casting[:, column]
        tops[:, column] = np.maximum(carried, _grow(own))
        carried = _grow(np.maximum(carried - drop, own))
    return tops


def _grow(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the greatest of each row and its two neighbours."""
    grown = values.copy()
    np.maximum(grown[1:], values[:-1], out=grown[1:])
    np.maximum(grown[:-1], values[1:], out=grown[:-1])
    return grown
