"""Two clouds of one scene made one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.engine import Latest, Node, param
from transect.engine.ports import Unit
from transect.types import PointCloud, Pose

from ._clouds import joined_fields, select, without_gaps
from ._fusing import displace, fuse, nearest_within, weights_of


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
        **{name: values[fused.first] for name, values in joined_fields(first, second).items()},
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
    both = (without_gaps(each) for each in (first, second))
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
    fields = {name: values[rows] for name, values in joined_fields(first, second).items()}
    return replace(second, points=points, fields=fields)


def _counts(cloud: PointCloud) -> Ints:
    """Return of how many points each is the mean."""
    return np.asarray(cloud.fields.get("count", np.ones(len(cloud))), dtype=np.int64)
