"""Filters: a cloud in, the points worth keeping out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect.algorithms.clouds.selection import find_viewpoint, select, without_gaps
from transect.engine import Node, param
from transect.errors import UsageError
from transect.geometry import neighbours, se3, surfaces
from transect.types import PointCloud


class PointCloudFiltering(Node, interface=True):
    """Leaves points out of a cloud; those with NaN always. Whatever belongs to a point stays with it."""

    out_name = "filteredPointCloud"

    def process(self, pointCloud: PointCloud) -> PointCloud | None:
        return self.filter(pointCloud)

    def filter(self, cloud: PointCloud) -> PointCloud | None:
        """Return what is kept of a cloud; None, and the reason is counted, if that is nothing."""
        raise NotImplementedError


class StatisticalOutlierRemoval(PointCloudFiltering):
    """Leaves out points farther from their neighbours than points of the cloud usually are (Rusu 2008)."""

    neighbours: int = param(20, ge=1, doc="number of nearest points of which the mean distance is taken")
    deviations: float = param(
        2.0, gt=0, doc="largest mean distance that is kept, in standard deviations above the average"
    )

    def filter(self, cloud: PointCloud) -> PointCloud | None:
        return select(cloud, neighbours.statistical_inliers(cloud.points, self.neighbours, self.deviations))


class VoxelGrid(PointCloudFiltering):
    """One point for each voxel: the mean of those in it, with the other fields of the first of them."""

    size: float = param(
        0.0, ge=0, unit="m", doc="edge length of a voxel; 0: chosen so that about `points` points are left"
    )
    points: int = param(5000, ge=10, doc="approximate number of points that are left where `size` is 0")

    def filter(self, cloud: PointCloud) -> PointCloud | None:
        cloud = without_gaps(cloud)
        if len(cloud) < 2:
            return self.ctx.skip("too few points")
        size = self.size or surfaces.voxel_for(cloud.points, self.points)
        thinned = select(cloud, neighbours.voxel_indices(cloud.points, size))
        return replace(thinned, points=neighbours.voxel_means(cloud.points, size))


class DynamicRadius(PointCloudFiltering):
    """Leaves out returns with too few neighbours for their range: rain, snow, dust (DROR, Charron 2018)."""

    resolution: float = param(0.004, gt=0, unit="rad", doc="angle between neighbouring beams")
    neighbours: int = param(3, ge=1, doc="smallest number of neighbours within the radius")
    multiplier: float = param(
        3.0, gt=0, doc="factor of the search radius, which is this times range times resolution"
    )
    least_radius: float = param(0.04, gt=0, unit="m", doc="smallest search radius, used near the sensor")

    def filter(self, cloud: PointCloud) -> PointCloud | None:
        keep = neighbours.dynamic_radius_inliers(
            cloud.points,
            self.resolution,
            self.neighbours,
            self.multiplier,
            self.least_radius,
            find_viewpoint(cloud),
        )
        return select(cloud, keep)


class RangeFilter(PointCloudFiltering):
    """Keeps what lies between two distances from the sensor."""

    nearest: float = param(0.5, ge=0, unit="m", doc="smallest distance of the points that are kept")
    farthest: float = param(100.0, gt=0, unit="m", doc="largest distance of the points that are kept")

    def filter(self, cloud: PointCloud) -> PointCloud | None:
        reach = np.linalg.norm(cloud.points - find_viewpoint(cloud), axis=1)
        return select(cloud, (reach >= self.nearest) & (reach <= self.farthest))


class SelfFilter(PointCloudFiltering):
    """Leaves out the robot itself: what lies in boxes around its body."""

    boxes: list = param(  # pyright: ignore[reportMissingTypeArgument, reportUnknownVariableType]
        [[-0.5, -0.4, -0.5, 0.5, 0.4, 0.5]],
        unit="m",
        doc="boxes whose points are removed, each as lowest x, y, z then highest x, y, z in `frame`",
    )
    frame: str = param("", doc="frame of the boxes; empty: the frame of the cloud")

    def filter(self, cloud: PointCloud) -> PointCloud | None:
        points = cloud.points
        if self.frame and self.frame != cloud.frame:
            points = se3.apply(self.ctx.frames.lookup(self.frame, cloud.frame, self.ctx.time), points)
        keep = np.asarray(np.isfinite(points).all(axis=1))
        for low, high in self._corners():
            keep &= ~((points >= low) & (points <= high)).all(axis=1)
        return select(cloud, keep)

    def _corners(self) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
        """Return the boxes (k, 2, 3)."""
        corners = np.array(self.boxes, dtype=np.float64)
        if corners.ndim != 2 or corners.shape[1] != 6 or (corners[:, :3] > corners[:, 3:]).any():
            raise UsageError(
                f"SelfFilter.boxes cannot be {self.boxes!r}",
                why="expected boxes of six numbers, lowest x, y, z then highest x, y, z",
            )
        return corners.reshape(-1, 2, 3)
