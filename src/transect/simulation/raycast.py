"""Casts rays into a scene: the nearest of the terrain and of the solids that stand on it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats
from transect.geometry._arrays import floats, same_length

from ._compiled import kernels
from .terrain import Terrain

Meetings = tuple[Floats, NDArray[np.int32], Floats]
"""Ranges (n,), numbers (n,) and normals (n, 3), as `Obstacles.nearest` returns them."""

NOTHING, TERRAIN = -1, 0
"""Kinds of hit; solid number k (from 1) has kind k."""
PARALLEL_FROM = 20_000
"""Batches of at least this many rays are cast on all cores; for fewer, starting threads takes longer."""
FAR = 200.0


class Obstacles(Protocol):
    """What may stand on the terrain: `transect.simulation.solids.Solids`."""

    @property
    def albedo(self) -> Floats:
        """(k, 3) of red, green and blue light, 0 to 1; solid number 1 comes first."""
        ...

    @property
    def temperature(self) -> Floats:
        """(k,) K, for the infrared camera."""
        ...

    def __len__(self) -> int: ...

    def nearest(self, origins: Floats, directions: Floats, limit: Floats, t: float | Floats) -> Meetings:
        """Return the first solid that each ray meets.

        Parameters
        ----------
        origins : (n, 3) or (1, 3) array
            m, world; a single one is that of all rays.
        directions : (n, 3) array
            Unit vectors, world.
        limit : (n,) array
            m; nothing beyond is looked for (inf: no limit).
        t : float or (n,) array
            Seconds since the day began, for what moves.

        Returns
        -------
        range : (n,) array
            m; inf where nothing is met before `limit`.
        number : (n,) int32 array
            From 1; 0 where nothing is met.
        normal : (n, 3) array
            Outward unit normals; NaN where nothing is met.
        """
        ...


@dataclass(frozen=True, eq=False)
class Scene:
    """A terrain and what stands on it.

    Attributes
    ----------
    terrain : Terrain
    solids : Obstacles or None
    """

    terrain: Terrain
    solids: Obstacles | None = None


@dataclass(frozen=True, eq=False)
class Hits:
    """Where rays ended.

    Attributes
    ----------
    range : (n,) float64 array
        Distance along the ray, m; inf where there is nothing within the greatest range.
    kind : (n,) int32 array
        -1 nothing, 0 terrain, k >= 1 solid number k.
    normal : (n, 3) float64 array
        Outward unit normal in the world; NaN where there is nothing.
    """

    range: Floats
    kind: NDArray[np.int32]
    normal: Floats


def cast(
    scene: Scene, origins: ArrayLike, directions: ArrayLike, max_range: float = FAR, t: float | Floats = 0.0
) -> Hits:
    """Return the first thing that each ray meets.

    The ground is the bilinear surface through the terrain's corners; the intersection is exact. A ray that
    begins underground ends there at once, at range 0. Beyond the terrain's edge there is nothing.

    Parameters
    ----------
    scene : Scene
    origins : (n, 3), (1, 3) or (3,)
        m, world; a single one is that of all rays.
    directions : (n, 3), (1, 3) or (3,)
        Unit vectors, world. A ray with a NaN meets nothing.
    max_range : float
        m.
    t : float or (n,) array
        Seconds since the day began: where the moving solids are.
    """
    start = np.ascontiguousarray(np.atleast_2d(floats("origins", origins, (..., 3))))
    along = np.ascontiguousarray(np.atleast_2d(floats("directions", directions, (..., 3))))
    if 1 not in (len(start), len(along)):
        same_length(origins=start, directions=along)
    ranges, normals = _cast_terrain(scene, start, along, max_range)
    kind = np.where(np.isinf(ranges), np.int32(NOTHING), np.int32(TERRAIN))
    if scene.solids is None or len(scene.solids) == 0:
        return Hits(ranges, kind, normals)
    limit = np.minimum(ranges, max_range)
    closer, number, outward = _meet_solids(scene.solids, start, along, limit, t)
    met = number > 0
    return Hits(
        np.where(met, closer, ranges), np.where(met, number, kind), np.where(met[:, None], outward, normals)
    )


def _cast_terrain(scene: Scene, start: Floats, along: Floats, far: float) -> tuple[Floats, Floats]:
    """Return ranges (n,) to the ground and its normals (n, 3)."""
    n = max(len(start), len(along))
    ranges, normals = np.empty(n), np.empty((n, 3))
    loops, land = kernels("raycast"), scene.terrain
    loop = loops.cast_in_parallel if n >= PARALLEL_FROM else loops.cast_in_order
    ground = (land.height, *land.pyramid, float(land.cell), np.asarray(land.origin, dtype=np.float64))
    loop(ground, start, along, float(far), ranges, normals)
    return ranges, normals


def _meet_solids(
    solids: Obstacles, start: Floats, along: Floats, limit: Floats, t: float | Floats
) -> Meetings:
    """`Obstacles.nearest`, on all cores for large batches: it is compiled code that lets threads run."""
    n, cores = len(limit), os.cpu_count() or 1
    along = np.broadcast_to(along, (n, 3))
    if n < PARALLEL_FROM or cores == 1:
        return solids.nearest(start, along, limit, t)

    def part(begin: int, end: int) -> Meetings:
        rows = slice(begin, end)
        when = t[rows] if isinstance(t, np.ndarray) else t
        return solids.nearest(start[rows] if len(start) > 1 else start, along[rows], limit[rows], when)

    edges = [n * k // (4 * cores) for k in range(4 * cores + 1)]
    with ThreadPoolExecutor(cores) as pool:
        parts = list(pool.map(lambda edge: part(*edge), pairwise(edges)))
    ranges, numbers, normals = zip(*parts, strict=True)
    return np.concatenate(ranges), np.concatenate(numbers), np.concatenate(normals)
