"""Ray casting into a scene of terrain and solids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats
from transect.geometry.array_checks import floats, same_length

from ._compiled import kernels
from ._threads import run_in_batches
from .terrain import Terrain

Intersections = tuple[Floats, NDArray[np.int32], Floats]
"""Ranges (n,), numbers (n,) and normals (n, 3), as returned by `Obstacles.nearest`."""

NO_HIT, TERRAIN_HIT = -1, 0
"""Kinds of hit; solid number k (from 1) has kind k."""
DEFAULT_MAX_RANGE_M = 200.0


class Obstacles(Protocol):
    """Objects on the terrain: `transect.simulation.solids.Solids`."""

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
        """(4,): centre and radius, m, of the bounding sphere of all solids over time; radius -1 for none."""
        ...

    def __len__(self) -> int: ...

    def nearest(self, origins: Floats, directions: Floats, limit: Floats, t: float | Floats) -> Intersections:
        """Return the first solid on each ray.

        Parameters
        ----------
        origins : (n, 3) or (1, 3) array
            m, world; a single origin is that of all rays.
        directions : (n, 3) array
            Unit vectors, world.
        limit : (n,) array
            Maximum ranges, m (inf: no limit).
        t : float or (n,) array
            Seconds since the start of the day, for moving solids.

        Returns
        -------
        range : (n,) array
            m; inf without a hit before `limit`.
        number : (n,) int32 array
            From 1; 0 without a hit.
        normal : (n, 3) array
            Outward unit normals; NaN without a hit.
        """
        ...


@dataclass(frozen=True, eq=False)
class Scene:
    """A terrain and the objects on it."""

    terrain: Terrain
    solids: Obstacles | None = None


@dataclass(frozen=True, eq=False)
class Hits:
    """First intersections of rays."""

    range: Floats  # (n,), distance along the ray, m; inf without a hit within the maximum range
    kind: NDArray[np.int32]  # (n,) int32, -1 nothing, 0 terrain, k >= 1 solid number k
    normal: Floats  # (n, 3), outward unit normal in the world; NaN without a hit


def cast(
    scene: Scene,
    origins: ArrayLike,
    directions: ArrayLike,
    max_range: float = DEFAULT_MAX_RANGE_M,
    t: float | Floats = 0.0,
) -> Hits:
    """Return the first intersection of each ray.

    The ground is the bilinear surface through the terrain's corners; the intersection is exact. A ray that
    starts below ground has range 0. There is no ground outside the terrain.

    Parameters
    ----------
    origins : (n, 3), (1, 3) or (3,)
        m, world; a single origin is that of all rays.
    directions : (n, 3), (1, 3) or (3,)
        Unit vectors, world. A ray with NaN has no hit.
    max_range : float
        m.
    t : float or (n,) array
        Seconds since the start of the day, for moving solids.
    """
    start = np.ascontiguousarray(np.atleast_2d(floats("origins", origins, (..., 3))))
    along = np.ascontiguousarray(np.atleast_2d(floats("directions", directions, (..., 3))))
    if 1 not in (len(start), len(along)):
        same_length(origins=start, directions=along)
    count = len(along) if len(start) == 1 else len(start)
    hits = Hits(np.empty(count), np.empty(count, np.int32), np.empty((count, 3)))
    run_in_batches(
        lambda begin, end: _cast_batch(scene, start, along, max_range, t, slice(begin, end), hits), count
    )
    return hits


def _cast_batch(
    scene: Scene, start: Floats, along: Floats, far: float, t: float | Floats, rows: slice, hits: Hits
) -> None:
    """Cast a batch of the rays and write their hits."""
    start, along = (rays[rows] if len(rays) > 1 else rays for rays in (start, along))
    ranges, kind, normals = hits.range[rows], hits.kind[rows], hits.normal[rows]
    land = scene.terrain
    ground = (land.height, *land.pyramid, float(land.cell), np.asarray(land.origin, dtype=np.float64))
    kernels("raycast").cast(ground, start, along, float(far), ranges, normals)
    kind[:] = np.where(np.isinf(ranges), np.int32(NO_HIT), np.int32(TERRAIN_HIT))
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
    hit, hit_rows = number > 0, np.flatnonzero(near)[number > 0]
    for result, found in ((ranges, closer), (kind, number), (normals, outward)):
        result[hit_rows] = found[hit]
