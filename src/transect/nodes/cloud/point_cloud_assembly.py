"""Two clouds of one scene made one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.clouds.selection import drop_nan_points, find_viewpoint, join_fields, select
from transect.base.arrays import Floats, Ints
from transect.base.cache_folder import load_compiled
from transect.engine import Latest, Node, param
from transect.engine.ports import Unit
from transect.errors import GeometryError
from transect.types import PointCloud, Pose

LEAST_RANGE = 0.1
"""Metres: nearer points count no more than at this range."""
MOST_VOXELS = 1 << 21
"""Along an axis: so many fit into a third of a whole number."""


class PointCloudAssembly(Node, interface=True):
    """Joins the second cloud to the first; both are in one frame. The first one may come later, or never.

    Wire the result back to the first input (``~>``), and every cloud is joined to all before it. With a
    `viewCenter`, only points within `viewRadius` of it are given.
    """

    out_name = "assembledCloud"

    def process(
        self,
        secondPointCloud: PointCloud,
        firstPointCloud: Latest[PointCloud] | None = None,
        viewCenter: Latest[Pose] | None = None,
        viewRadius: Annotated[Latest[float], Unit("m")] = 100.0,
    ) -> PointCloud | None:
        return crop(self.join(*_clouds(firstPointCloud, secondPointCloud)), viewCenter, viewRadius)

    def join(self, first: PointCloud, second: PointCloud) -> PointCloud:
        """Return one cloud made of two without gaps; the first is empty before there is one."""
        raise NotImplementedError


class NeighbourPointAverage(PointCloudAssembly):
    """Nearest neighbours are replaced by their mean, and what lies around them is moved along.

    CDFF's algorithm: a point of the first cloud and all points of the second that are nearest to it become
    the mean of the former and the latter's mean; every other point moves as the nearest replaced one of its
    cloud. Surfaces grow together where clouds overlap, and no step is left where they end.
    """

    max_distance: float = param(0.05, gt=0, unit="m", doc="largest distance between points that are averaged")

    def join(self, first: PointCloud, second: PointCloud) -> PointCloud:
        pairs = nearest_within(first.points, second.points, self.max_distance)
        rows, group = np.unique(pairs.first, return_inverse=True)
        size = np.bincount(group, minlength=len(rows))[:, None]
        sums = [np.bincount(group, axis, minlength=len(rows)) for axis in second.points[pairs.second].T]
        means = (first.points[rows] + np.column_stack(sums) / np.maximum(size, 1)) / 2
        return _average(first, second, (rows, means), (pairs.second, means[group]))


class NeighbourSinglePointAverage(PointCloudAssembly):
    """As `NeighbourPointAverage`, but of all neighbours of a point only the nearest is averaged with it."""

    max_distance: float = param(0.05, gt=0, unit="m", doc="largest distance between points that are averaged")

    def join(self, first: PointCloud, second: PointCloud) -> PointCloud:
        pairs = nearest_within(first.points, second.points, self.max_distance)
        order = np.lexsort((pairs.distance, pairs.first))
        rows, nearest = np.unique(pairs.first[order], return_index=True)
        partners = pairs.second[order][nearest]
        means = (first.points[rows] + second.points[partners]) / 2
        return _average(first, second, (rows, means), (partners, means))


class VoxelBinning(PointCloudAssembly):
    """One point for each voxel: the mean of all that ever fell into it; `count` says how many."""

    size: float = param(0.03, gt=0, unit="m", doc="edge length of a voxel")

    def join(self, first: PointCloud, second: PointCloud) -> PointCloud:
        weights = [_counts(each).astype(np.float64) for each in (first, second)]
        return voxelise(first, second, np.concatenate(weights), self.size)


class WeightedVoxel(PointCloudAssembly):
    """One point for each voxel: the mean of all that fell into it, each by the inverse of its variance."""

    size: float = param(0.03, gt=0, unit="m", doc="edge length of a voxel")

    def join(self, first: PointCloud, second: PointCloud) -> PointCloud:
        weights = np.concatenate([weights_of(first), weights_of(second)])
        return voxelise(first, second, weights, self.size)


def voxelise(first: PointCloud, second: PointCloud, weights: Floats, size: float) -> PointCloud:
    """Return weighted means over voxels of both clouds; other fields are those of the first point in each."""
    numbers = np.concatenate([_counts(first), _counts(second)])
    fused = fuse(np.concatenate([first.points, second.points]), weights, size, numbers)
    fields: Mapping[str, NDArray[Any]] = {
        **{name: values[fused.first] for name, values in join_fields(first, second).items()},
        "weight": fused.weight,
        "count": fused.number,
    }
    return replace(second, points=fused.points, fields=fields)


def crop(cloud: PointCloud, centre: Pose | None, radius: float) -> PointCloud:
    """Return what lies within a radius (m) of a place; all of it where no place is given."""
    if centre is None:
        return cloud
    offset = cloud.points - centre.position
    return select(cloud, np.einsum("ni,ni->n", offset, offset) < radius**2)


def _clouds(first: PointCloud | None, second: PointCloud) -> tuple[PointCloud, PointCloud]:
    """Return both clouds without gaps and in float64; an empty one for a first that has not come."""
    if first is None:
        first = select(second, np.zeros(0, np.int64))
    both = (drop_nan_points(each) for each in (first, second))
    a, b = (replace(each, points=np.asarray(each.points, dtype=np.float64)) for each in both)
    return a, b


def _average(
    first: PointCloud, second: PointCloud, ours: tuple[Ints, Floats], theirs: tuple[Ints, Floats]
) -> PointCloud:
    """Return the replaced points of the first cloud, then what is left of both, moved along."""
    left_first, rest_first = displace(first.points, *ours)
    left_second, rest_second = displace(second.points, *theirs)
    rows = np.concatenate([ours[0], rest_first, len(first) + rest_second])
    points = np.concatenate([ours[1], left_first, left_second])
    fields = {name: values[rows] for name, values in join_fields(first, second).items()}
    return replace(second, points=points, fields=fields)


def _counts(cloud: PointCloud) -> Ints:
    """Return of how many points each is the mean."""
    return np.asarray(cloud.fields.get("count", np.ones(len(cloud))), dtype=np.int64)


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
    voxel_sums = load_compiled(__name__, "voxels").voxel_sums

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
    offset = np.asarray(cloud.points, np.float64) - find_viewpoint(cloud)
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
