"""Clouds of one scene made one: means over voxels, means of nearest neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError
from transect.types import PointCloud

from ._clouds import seen_from

LEAST_RANGE = 0.1
"""Metres: nearer points count no more than at this range."""
MOST_VOXELS = 1 << 21
"""Along an axis: so many fit into a third of a whole number."""


class Fused(NamedTuple):
    """One point for each voxel: means (m, 3), weights and numbers (m,), row of its first point (m,)."""

    points: Floats
    weight: Floats
    number: Ints
    first: Ints


class Neighbours(NamedTuple):
    """Of each point of the second cloud the nearest of the first (k,), which they are (k,), how far (k,)."""

    first: Ints
    second: Ints
    distance: Floats


def fuse(points: Floats, weights: Floats, size: float, numbers: Ints | None = None) -> Fused:
    """Weighted means of points (n, 3) in voxels of that edge (m), in the order in which voxels appear.

    Parameters
    ----------
    points : (n, 3)
        Finite, metres; a corner of the voxels is the origin.
    weights : (n,)
        Positive.
    numbers : (n,) optional
        For how many measurements each point stands; 1 by default.
    """
    if not len(points):
        return Fused(np.zeros((0, 3)), np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
    from ._voxels_compiled import voxel_sums

    cloud = np.ascontiguousarray(points, dtype=np.float64)
    # Column by column: along the first axis of (n, 3) numpy takes several times longer.
    low = np.floor(np.array([axis.min() for axis in cloud.T]) / size)
    high = np.floor(np.array([axis.max() for axis in cloud.T]) / size)
    if not (high - low < MOST_VOXELS).all():
        raise GeometryError(
            f"voxels of {size:g} m are too small for a cloud {np.max(high - low) * size:.3g} m across",
            hint="leave out far points first, or take larger voxels",
        )
    given = np.ascontiguousarray(weights, dtype=np.float64)
    counted = np.ones(len(cloud), np.int64) if numbers is None else np.ascontiguousarray(numbers, np.int64)
    sums, number, first = voxel_sums(cloud, given, counted, float(size), low)
    return Fused(sums[:, 1:] / sums[:, :1] + low * size, sums[:, 0], number, first)


def weights_of(cloud: PointCloud) -> Floats:
    """How much each point (n,) counts: one by its variance.

    By `weight` where the cloud has been fused before, by `sigma_along` and `sigma_across` of stereo, by
    `covariance` (n, 9); else by the fourth power of the distance from the sensor, as depth from stereo is.
    """
    fields = cloud.fields
    if "weight" in fields:
        return np.asarray(fields["weight"], dtype=np.float64)
    if "sigma_along" in fields and "sigma_across" in fields:
        along, across = (np.asarray(fields[f"sigma_{way}"], np.float64) for way in ("along", "across"))
        return 1.0 / np.maximum(along**2 + 2 * across**2, np.finfo(np.float64).tiny)
    if "covariance" in fields:
        trace = np.trace(np.reshape(fields["covariance"], (-1, 3, 3)), axis1=1, axis2=2)
        return 1.0 / np.maximum(np.asarray(trace, np.float64), np.finfo(np.float64).tiny)
    offset = np.asarray(cloud.points, np.float64) - seen_from(cloud)
    square = np.einsum("ni,ni->n", offset, offset)
    return 1.0 / np.maximum(square, LEAST_RANGE**2) ** 2


def nearest_within(first: Floats, second: Floats, reach: float) -> Neighbours:
    """Pair points of the second cloud (m, 3) with the nearest of the first (n, 3), at most `reach` away."""
    from scipy.spatial import KDTree

    if not (len(first) and len(second)):
        return Neighbours(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    distance, partner = KDTree(first).query(second, distance_upper_bound=reach)
    found = np.flatnonzero(np.isfinite(distance))
    return Neighbours(np.asarray(partner, np.int64)[found], found, np.asarray(distance)[found])


def displace(points: Floats, replaced: Ints, moved: Floats) -> tuple[Floats, Ints]:
    """Move the points (n, 3) that were not replaced as the nearest replaced one was moved.

    Parameters
    ----------
    replaced : (k,)
        Rows of the points that were replaced, `moved` (k, 3) is where to.

    Returns
    -------
    Where the others go (n - k, 3), and which rows they are (n - k,).
    """
    from scipy.spatial import KDTree

    rest = np.setdiff1d(np.arange(len(points)), replaced)
    if not (len(rest) and len(replaced)):
        return points[rest], rest
    nearest = np.asarray(KDTree(points[replaced]).query(points[rest])[1])
    return points[rest] + (moved - points[replaced])[nearest], rest
