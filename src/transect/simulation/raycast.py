"""Casts rays into a scene: the nearest of the terrain and of the solids that stand on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats
from transect.geometry.array_checks import floats, same_length

from ._compiled import kernels
from ._threads import spread
from .terrain import Terrain

Meetings = tuple[Floats, NDArray[np.int32], Floats]
"""Ranges (n,), numbers (n,) and normals (n, 3), as `Obstacles.nearest` returns them."""

NOTHING, TERRAIN = -1, 0
"""Kinds of hit; solid number k (from 1) has kind k."""
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

    @property
    def ball(self) -> Floats:
        """(4,): middle and radius, m, of a ball that holds all solids at all times; radius -1 for none."""
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
    """A terrain and what stands on it."""

    terrain: Terrain
    solids: Obstacles | None = None


@dataclass(frozen=True, eq=False)
class Hits:
    """Where rays ended."""

    range: Floats  # (n,), distance along the ray, m; inf where there is nothing within the greatest range
    kind: NDArray[np.int32]  # (n,) int32, -1 nothing, 0 terrain, k >= 1 solid number k
    normal: Floats  # (n, 3), outward unit normal in the world; NaN where there is nothing


def cast(
    scene: Scene, origins: ArrayLike, directions: ArrayLike, max_range: float = FAR, t: float | Floats = 0.0
) -> Hits:
    """Return the first thing that each ray meets.

    The ground is the bilinear surface through the terrain's corners; the intersection is exact. A ray that
    begins underground ends there at once, at range 0. Beyond the terrain's edge there is nothing.

    Parameters
    ----------
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
    count = len(along) if len(start) == 1 else len(start)
    hits = Hits(np.empty(count), np.empty(count, np.int32), np.empty((count, 3)))
    spread(lambda begin, end: _cast_piece(scene, start, along, max_range, t, slice(begin, end), hits), count)
    return hits


def _cast_piece(
    scene: Scene, start: Floats, along: Floats, far: float, t: float | Floats, rows: slice, hits: Hits
) -> None:
    """Cast some of the rays and write what they meet."""
    start, along = (rays[rows] if len(rays) > 1 else rays for rays in (start, along))
    ranges, kind, normals = hits.range[rows], hits.kind[rows], hits.normal[rows]
    land = scene.terrain
    ground = (land.height, *land.pyramid, float(land.cell), np.asarray(land.origin, dtype=np.float64))
    kernels("raycast").cast(ground, start, along, float(far), ranges, normals)
    kind[:] = np.where(np.isinf(ranges), np.int32(NOTHING), np.int32(TERRAIN))
    if scene.solids is None or len(scene.solids) == 0:
        return
    limit, near = np.minimum(ranges, far), np.empty(len(ranges), np.bool_)
    kernels("raycast").pass_ball(scene.solids.ball, start, along, limit, near)
    if not near.any():
        return
    start, along = (rays if len(rays) == 1 else rays[near] for rays in (start, along))
    when = t[rows][near] if isinstance(t, np.ndarray) else t
    wide = np.broadcast_to(along, (int(near.sum()), 3))
    closer, number, outward = scene.solids.nearest(start, wide, limit[near], when)
    met, where = number > 0, np.flatnonzero(near)[number > 0]
    for there, seen in ((ranges, closer), (kind, number), (normals, outward)):
        there[where] = seen[met]
