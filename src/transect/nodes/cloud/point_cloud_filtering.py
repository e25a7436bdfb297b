"""Filters of point clouds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from transect.algorithms.clouds.selection import drop_nan_points, find_viewpoint, select
from transect.base.arrays import Floats, Ints, Mask
from transect.engine import At, Node, outputs, param
from transect.errors import UsageError
from transect.geometry import neighbours, se3, surfaces
from transect.types import PointCloud, Pose


class PointCloudFiltering(Node, interface=True):
    """Removes points from a cloud, including those with NaN; fields are filtered with the points."""

    out_name = "filteredPointCloud"

    def process(self, pointCloud: PointCloud) -> PointCloud | None:
        return self.filter(pointCloud)

    def filter(self, cloud: PointCloud) -> PointCloud | None:
        """Return the filtered cloud; None, with a counted reason, if it is empty."""
        raise NotImplementedError


class StatisticalOutlierRemoval(PointCloudFiltering):
    """Removes points whose mean distance to their neighbours is an outlier (Rusu 2008)."""

    neighbours: int = param(20, ge=1, doc="number of nearest points for the mean distance")
    deviations: float = param(
        2.0, gt=0, doc="largest mean distance that is kept, in standard deviations above the average"
    )

    def filter(self, cloud: PointCloud) -> PointCloud | None:
        return select(cloud, neighbours.statistical_inliers(cloud.points, self.neighbours, self.deviations))


class VoxelGrid(PointCloudFiltering):
    """One point per voxel: the mean of those in it, with the other fields of the first of them."""

    size: float = param(
        0.0, ge=0, unit="m", doc="edge length of a voxel; 0: chosen so that about `points` points remain"
    )
    points: int = param(5000, ge=10, doc="approximate number of points that remain if `size` is 0")

    def filter(self, cloud: PointCloud) -> PointCloud | None:
        cloud = drop_nan_points(cloud)
        if len(cloud) < 2:
            return self.ctx.skip("too few points")
        size = self.size or surfaces.voxel_for(cloud.points, self.points)
        downsampled = select(cloud, neighbours.voxel_indices(cloud.points, size))
        return replace(downsampled, points=neighbours.voxel_means(cloud.points, size))


class DynamicRadius(PointCloudFiltering):
    """Removes returns with too few neighbours for their range: rain, snow, dust (DROR, Charron 2018)."""

    resolution: float = param(0.004, gt=0, unit="rad", doc="angle between neighbouring beams")
    neighbours: int = param(3, ge=1, doc="smallest number of neighbours within the radius")
    multiplier: float = param(
        3.0, gt=0, doc="factor of the search radius, which is this times range times resolution"
    )
    min_radius: float = param(0.04, gt=0, unit="m", doc="smallest search radius, used near the sensor")

    def filter(self, cloud: PointCloud) -> PointCloud | None:
        keep = neighbours.dynamic_radius_inliers(
            cloud.points,
            self.resolution,
            self.neighbours,
            self.multiplier,
            self.min_radius,
            find_viewpoint(cloud),
        )
        return select(cloud, keep)


class RangeFilter(PointCloudFiltering):
    """Keeps points in an interval of distances from the sensor."""

    min_range: float = param(0.5, ge=0, unit="m", doc="smallest distance of the points that are kept")
    max_range: float = param(100.0, gt=0, unit="m", doc="largest distance of the points that are kept")

    def filter(self, cloud: PointCloud) -> PointCloud | None:
        ranges = np.linalg.norm(cloud.points - find_viewpoint(cloud), axis=1)
        return select(cloud, (ranges >= self.min_range) & (ranges <= self.max_range))


class SelfFilter(PointCloudFiltering):
    """Removes the robot itself: points in boxes around its body."""

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


@outputs
class Suppressed:
    """The static and the moving points of a scan, and the number of the latter."""

    staticPointCloud: PointCloud | None = None
    movingPointCloud: PointCloud | None = None
    suppressed: int | None = None


class MovingTargetSuppression(Node, interface=True):
    """Removes moving objects from scans of lidars and planar lasers, in the sensor's frame.

    `pose` is the sensor's in a fixed frame; without it the sensor is stationary.
    """

    def process(self, pointCloud: PointCloud, pose: At[Pose] | None = None) -> Suppressed | None:
        cloud = drop_nan_points(pointCloud)
        if not len(cloud):
            return self.ctx.skip("the cloud is empty")
        T = np.eye(4) if pose is None else se3.from_quaternion(pose.orientation, pose.position)
        moving = self.find_moving(np.asarray(cloud.points, dtype=np.float64), T)
        return Suppressed(select(cloud, ~moving), select(cloud, moving), int(moving.sum()))

    def find_moving(self, points: Floats, T_fixed_sensor: Floats) -> Mask:
        """Return which points (n, 3) of a scan, in the sensor's frame, are on moving objects."""
        raise NotImplementedError


class FreeSpace(MovingTargetSuppression):
    """A point is moving if it is in space that earlier scans measured as free.

    Points without an earlier measurement in their direction are static. If scans disagree about a position,
    the majority decides.
    """

    scans: int = param(10, ge=1, doc="number of earlier scans that vote on each point")
    min_votes: int = param(
        3, ge=1, doc="smallest number of scans that measured the position of a moving point as free"
    )
    margin: float = param(
        0.2,
        gt=0,
        unit="m",
        doc="smallest distance of a moving point in front of the surface measured earlier",
    )
    margin_ratio: float = param(
        0.03, ge=0, doc="ratio of the range that is added to the margin, for inexact poses"
    )
    cell_degrees: float = param(
        1.0,
        gt=0,
        le=30,
        doc="angular size in degrees of a cell of the range image; about twice the beam spacing",
    )

    def reset(self) -> None:
        self.images: list[RangeImage] = []

    def find_moving(self, points: Floats, T_fixed_sensor: Floats) -> Mask:
        step = math.radians(self.cell_degrees)
        moving = self._find_in_free_space(se3.apply(T_fixed_sensor, points), step)
        self.images = [*self.images, make_range_image(points[~moving], T_fixed_sensor, step)][-self.scans :]
        return moving

    def _find_in_free_space(self, points: Floats, step: float) -> Mask:
        """Return which points (n, 3) of the fixed frame are where earlier scans measured free space."""
        free, occupied = np.zeros(len(points), np.int64), np.zeros(len(points), np.int64)
        for image in self.images:
            ranges, measured = ranges_in(image, points, step)
            margin = self.margin + self.margin_ratio * ranges
            known = np.isfinite(measured)
            free += known & (measured > ranges + margin)
            occupied += known & (np.abs(measured - ranges) <= margin)
        return (free >= self.min_votes) & (free > occupied)


@dataclass(frozen=True, eq=False)
class RangeImage:
    """A scan as an image of ranges."""

    T_sensor_fixed: Floats  # (4, 4), at the time of the scan
    # (rows, columns) m to the nearest return in and around each cell of elevation and azimuth; infinite, i.e.
    # not known, if the cell itself has none.
    nearest: Floats


def make_range_image(points: Floats, T_fixed_sensor: Floats, step: float) -> RangeImage:
    """Return the range image of a scan (n, 3) in the sensor's frame, with cells of `step` rad."""
    ranges, cells = _cells(points, step)
    image = np.full(_shape(step), np.inf)
    np.minimum.at(image, cells, ranges)
    horizontal = np.minimum.reduce([np.roll(image, shift, axis=1) for shift in (-1, 0, 1)])
    padded = np.pad(horizontal, ((1, 1), (0, 0)), constant_values=np.inf)
    around = np.minimum.reduce([padded[:-2], horizontal, padded[2:]])
    return RangeImage(se3.invert(T_fixed_sensor), np.where(np.isfinite(image), around, np.inf))


def ranges_in(image: RangeImage, points: Floats, step: float) -> tuple[Floats, Floats]:
    """Return the ranges (n,) of points (n, 3) of the fixed frame, and those measured in their direction."""
    ranges, cells = _cells(se3.apply(image.T_sensor_fixed, points), step)
    return ranges, image.nearest[cells]


def _cells(points: Floats, step: float) -> tuple[Floats, tuple[Ints, Ints]]:
    ranges = np.linalg.norm(points, axis=1)
    elevation = np.arcsin(np.clip(points[:, 2] / np.maximum(ranges, 1e-9), -1, 1))
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    rows, columns = _shape(step)
    row = np.clip(np.floor((elevation + np.pi / 2) / np.pi * rows), 0, rows - 1).astype(np.int64)
    column = np.clip(np.floor((azimuth + np.pi) / (2 * np.pi) * columns), 0, columns - 1).astype(np.int64)
    return ranges, (row, column)


def _shape(step: float) -> tuple[int, int]:
    # An odd number of rows, so that the plane of a planar laser is at the centre of a row and not at an edge.
    rows = max(int(np.pi / step), 1) // 2 * 2 + 1
    return rows, max(int(2 * np.pi / step), 4)
