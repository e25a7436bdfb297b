"""Fusion of point clouds of one scene."""

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

MIN_WEIGHT_RANGE_M = 0.1
"""The weight of closer points does not increase further."""
MAX_VOXELS_PER_AXIS = 1 << 21
"""Three indices of this size fit into a 64-bit key."""


class PointCloudAssembly(Node, interface=True):
    """Fuses the second cloud with the first; both are in one frame. The first is optional.

    Wire the result back to the first input (``~>``) to accumulate all clouds. With a `viewCenter`, only
    points within `viewRadius` of it are returned.
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
        """Fuse two clouds without NaN; the first is empty if there is none yet."""
        raise NotImplementedError


class NeighbourPointAverage(PointCloudAssembly):
    """Replaces nearest neighbours by their mean, and moves the points around them accordingly.

    CDFF's algorithm: a point of the first cloud and all points of the second that are nearest to it are
    replaced by the mean of the former and the latter's mean; every other point moves like the nearest
    replaced one of its cloud. Overlapping surfaces become one, without a step at the edge of the overlap.
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
    """As `NeighbourPointAverage`, but each point is averaged with its nearest neighbour only."""

    max_distance: float = param(0.05, gt=0, unit="m", doc="largest distance between points that are averaged")

    def join(self, first: PointCloud, second: PointCloud) -> PointCloud:
        pairs = nearest_within(first.points, second.points, self.max_distance)
        order = np.lexsort((pairs.distance, pairs.first))
        rows, nearest = np.unique(pairs.first[order], return_index=True)
        matches = pairs.second[order][nearest]
        means = (first.points[rows] + second.points[matches]) / 2
        return _average(first, second, (rows, means), (matches, means))


class VoxelBinning(PointCloudAssembly):
    """One point per voxel: the mean of all points in it, with their number in the field `count`."""

    size: float = param(0.03, gt=0, unit="m", doc="edge length of a voxel")

    def join(self, first: PointCloud, second: PointCloud) -> PointCloud:
        weights = [_counts(each).astype(np.float64) for each in (first, second)]
        return voxelise(first, second, np.concatenate(weights), self.size)


class WeightedVoxel(PointCloudAssembly):
    """One point per voxel: the mean of all points in it, weighted by inverse variance."""

    size: float = param(0.03, gt=0, unit="m", doc="edge length of a voxel")

    def join(self, first: PointCloud, second: PointCloud) -> PointCloud:
        weights = np.concatenate([weights_of(first), weights_of(second)])
        return voxelise(first, second, weights, self.size)


def voxelise(first: PointCloud, second: PointCloud, weights: Floats, size: float) -> PointCloud:
    """Return weighted means over voxels of both clouds, with the other fields of the first point in each."""
    numbers = np.concatenate([_counts(first), _counts(second)])
    fused = fuse(np.concatenate([first.points, second.points]), weights, size, numbers)
    fields: Mapping[str, NDArray[Any]] = {
        **{name: values[fused.first] for name, values in join_fields(first, second).items()},
        "weight": fused.weight,
        "count": fused.number,
    }
    return replace(second, points=fused.points, fields=fields)


def crop(cloud: PointCloud, centre: Pose | None, radius: float) -> PointCloud:
    """Return the points within a radius (m) of a position; all points without a position."""
    if centre is None:
        return cloud
    offset = cloud.points - centre.position
    return select(cloud, np.einsum("ni,ni->n", offset, offset) < radius**2)


def _clouds(first: PointCloud | None, second: PointCloud) -> tuple[PointCloud, PointCloud]:
    """Return both clouds without NaN and in float64; a missing first cloud is empty."""
    if first is None:
        first = select(second, np.zeros(0, np.int64))
    both = (drop_nan_points(each) for each in (first, second))
    a, b = (replace(each, points=np.asarray(each.points, dtype=np.float64)) for each in both)
    return a, b


def _average(
    first: PointCloud,
    second: PointCloud,
    first_matches: tuple[Ints, Floats],
    second_matches: tuple[Ints, Floats],
) -> PointCloud:
    """Return the replaced points of the first cloud, then the displaced other points of both."""
    moved_first, rest_first = displace(first.points, *first_matches)
    moved_second, rest_second = displace(second.points, *second_matches)
    rows = np.concatenate([first_matches[0], rest_first, len(first) + rest_second])
    points = np.concatenate([first_matches[1], moved_first, moved_second])
    fields = {name: values[rows] for name, values in join_fields(first, second).items()}
    return replace(second, points=points, fields=fields)


def _counts(cloud: PointCloud) -> Ints:
    """Return the number of measurements (n,) that each point is the mean of."""
    return np.asarray(cloud.fields.get("count", np.ones(len(cloud))), dtype=np.int64)


class VoxelMeans(NamedTuple):
    """One point per voxel: means (m, 3), weights and numbers (m,), row of the first point (m,)."""

    points: Floats
    weight: Floats
    number: Ints
    first: Ints


class NearestPairs(NamedTuple):
    """Points (k,) of the second cloud with the nearest point (k,) of the first, and distances (k,)."""

    first: Ints
    second: Ints
    distance: Floats


def fuse(points: Floats, weights: Floats, size: float, numbers: Ints | None = None) -> VoxelMeans:
    """Weighted means of points (n, 3) in voxels of edge `size` (m), in the order of their first points.

    Parameters
    ----------
    points : (n, 3)
        Finite, m; the grid of voxels has a corner at the origin.
    weights : (n,)
        Positive.
    numbers : (n,) optional
        Number of measurements of each point; 1 by default.
    """
    if not len(points):
        return VoxelMeans(np.zeros((0, 3)), np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
    voxel_sums = load_compiled(__name__, "voxels").voxel_sums

    cloud = np.ascontiguousarray(points, dtype=np.float64)
    # By columns, because reducing (n, 3) along the first axis is several times slower.
    low = np.floor(np.array([axis.min() for axis in cloud.T]) / size)
    high = np.floor(np.array([axis.max() for axis in cloud.T]) / size)
    if not (high - low < MAX_VOXELS_PER_AXIS).all():
        raise GeometryError(
            f"voxels of {size:g} m are too small for a cloud {np.max(high - low) * size:.3g} m across",
            hint="remove distant points first, or use larger voxels",
        )
    weight = np.ascontiguousarray(weights, dtype=np.float64)
    counts = np.ones(len(cloud), np.int64) if numbers is None else np.ascontiguousarray(numbers, np.int64)
    sums, number, first = voxel_sums(cloud, weight, counts, float(size), low)
    return VoxelMeans(sums[:, 1:] / sums[:, :1] + low * size, sums[:, 0], number, first)


def weights_of(cloud: PointCloud) -> Floats:
    """Return the inverse variances (n,) of points.

    They are the field `weight` of a fused cloud, or follow from `sigma_along` and `sigma_across` of a stereo
    cloud, or from `covariance` (n, 9); otherwise the variance is proportional to the fourth power of the
    distance from the sensor, as that of stereo is.
    """
    fields = cloud.fields
    if "weight" in fields:
        return np.asarray(fields["weight"], dtype=np.float64)
    if "sigma_along" in fields and "sigma_across" in fields:
        along, across = (np.asarray(fields[name], np.float64) for name in ("sigma_along", "sigma_across"))
        return 1.0 / np.maximum(along**2 + 2 * across**2, np.finfo(np.float64).tiny)
    if "covariance" in fields:
        trace = np.trace(np.reshape(fields["covariance"], (-1, 3, 3)), axis1=1, axis2=2)
        return 1.0 / np.maximum(np.asarray(trace, np.float64), np.finfo(np.float64).tiny)
    offset = np.asarray(cloud.points, np.float64) - find_viewpoint(cloud)
    square = np.einsum("ni,ni->n", offset, offset)
    return 1.0 / np.maximum(square, MIN_WEIGHT_RANGE_M**2) ** 2


def nearest_within(first: Floats, second: Floats, max_distance: float) -> NearestPairs:
    """Pair points of the second cloud (m, 3) with the nearest point of the first (n, 3) within a distance."""
    from scipy.spatial import KDTree

    if not (len(first) and len(second)):
        return NearestPairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    distance, nearest = KDTree(first).query(second, distance_upper_bound=max_distance)
    found = np.flatnonzero(np.isfinite(distance))
    return NearestPairs(np.asarray(nearest, np.int64)[found], found, np.asarray(distance)[found])


def displace(points: Floats, replaced: Ints, moved: Floats) -> tuple[Floats, Ints]:
    """Move the points (n, 3) that were not replaced like the nearest replaced one.

    Parameters
    ----------
    replaced : (k,)
        Rows of the replaced points; `moved` (k, 3) are their new positions.

    Returns
    -------
    The new positions (n - k, 3) of the other points, and their rows (n - k,).
    """
    from scipy.spatial import KDTree

    rest = np.setdiff1d(np.arange(len(points)), replaced)
    if not (len(rest) and len(replaced)):
        return points[rest], rest
    nearest = np.asarray(KDTree(points[replaced]).query(points[rest])[1])
    return points[rest] + (moved - points[replaced])[nearest], rest
