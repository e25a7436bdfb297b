"""Points on things that move, left out because earlier scans saw through where they are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from transect.algorithms.clouds.selection import select, without_gaps
from transect.base.arrays import Floats, Ints, Mask
from transect.engine import At, Node, outputs, param
from transect.geometry import se3
from transect.types import PointCloud, Pose


@outputs
class Suppressed:
    """A scan without what moves, what moves, and how many points that are."""

    staticPointCloud: PointCloud | None = None
    movingPointCloud: PointCloud | None = None
    suppressed: int | None = None


class MovingTargetSuppression(Node, interface=True):
    """Leaves out of scans what moves; of clouds and planar lasers, in the sensor's frame.

    `pose` is the sensor's in a frame that stands still; without it the sensor stands still.
    """

    def process(self, pointCloud: PointCloud, pose: At[Pose] | None = None) -> Suppressed | None:
        cloud = without_gaps(pointCloud)
        if not len(cloud):
            return self.ctx.skip("the cloud is empty")
        T = np.eye(4) if pose is None else se3.from_quaternion(pose.orientation, pose.position)
        moving = self.find_moving(np.asarray(cloud.points, dtype=np.float64), T)
        return Suppressed(select(cloud, ~moving), select(cloud, moving), int(moving.sum()))

    def find_moving(self, points: Floats, T_fixed_sensor: Floats) -> Mask:
        """Return which points (n, 3) of a scan, in the sensor's frame, are on things that move."""
        raise NotImplementedError


class FreeSpace(MovingTargetSuppression):
    """A point moves if earlier scans saw something behind it: space that was free is taken now.

    What has no earlier measurement in its direction stays. Where some scans saw through a place and others
    saw something there, the greater number decides.
    """

    scans: int = param(10, ge=1, doc="number of earlier scans that vote on each point")
    least_votes: int = param(
        3, ge=1, doc="smallest number of scans that saw through the place of a moving point"
    )
    margin: float = param(
        0.2,
        gt=0,
        unit="m",
        doc="distance by which a point must lie in front of the surface that was seen earlier",
    )
    margin_share: float = param(
        0.03, ge=0, doc="share of the range that is added to the margin, for inexact poses"
    )
    step_degrees: float = param(
        1.0,
        gt=0,
        le=30,
        doc="angular size in degrees of a cell of the range image; about twice the beam spacing",
    )

    def reset(self) -> None:
        self.views: list[View] = []

    def find_moving(self, points: Floats, T_fixed_sensor: Floats) -> Mask:
        step = math.radians(self.step_degrees)
        moving = self._seen_through(se3.apply(T_fixed_sensor, points), step)
        self.views = [*self.views, view_of(points[~moving], T_fixed_sensor, step)][-self.scans :]
        return moving

    def _seen_through(self, points: Floats, step: float) -> Mask:
        """Tell which points (n, 3) of the fixed frame stand where earlier scans saw through."""
        through, there = np.zeros(len(points), np.int64), np.zeros(len(points), np.int64)
        for view in self.views:
            ranges, seen = ranges_in(view, points, step)
            margin = self.margin + self.margin_share * ranges
            known = np.isfinite(seen)
            through += known & (seen > ranges + margin)
            there += known & (np.abs(seen - ranges) <= margin)
        return (through >= self.least_votes) & (through > there)


@dataclass(frozen=True, eq=False)
class View:
    """One scan as an image of ranges.

    Attributes
    ----------
    T_sensor_fixed : (4, 4)
        Takes points of the fixed frame to the sensor's, at the time of the scan.
    nearest : (rows, columns)
        Metres to the nearest return in and around every cell of elevation and azimuth; infinite where the
        cell itself has none: there nothing is known.
    """

    T_sensor_fixed: Floats
    nearest: Floats


def view_of(points: Floats, T_fixed_sensor: Floats, step: float) -> View:
    """Return the view of a scan (n, 3) in the sensor's frame, with cells of that angle (rad)."""
    ranges, cells = _cells(points, step)
    image = np.full(_shape(step), np.inf)
    np.minimum.at(image, cells, ranges)
    beside = np.minimum.reduce([np.roll(image, shift, axis=1) for shift in (-1, 0, 1)])
    padded = np.pad(beside, ((1, 1), (0, 0)), constant_values=np.inf)
    around = np.minimum.reduce([padded[:-2], beside, padded[2:]])
    return View(se3.invert(T_fixed_sensor), np.where(np.isfinite(image), around, np.inf))


def ranges_in(view: View, points: Floats, step: float) -> tuple[Floats, Floats]:
    """Return how far points (n, 3) of the fixed frame were from the sensor, and how far it saw that way."""
    ranges, cells = _cells(se3.apply(view.T_sensor_fixed, points), step)
    return ranges, view.nearest[cells]


def _cells(points: Floats, step: float) -> tuple[Floats, tuple[Ints, Ints]]:
    ranges = np.linalg.norm(points, axis=1)
    elevation = np.arcsin(np.clip(points[:, 2] / np.maximum(ranges, 1e-9), -1, 1))
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    rows, columns = _shape(step)
    row = np.clip(np.floor((elevation + np.pi / 2) / np.pi * rows), 0, rows - 1).astype(np.int64)
    column = np.clip(np.floor((azimuth + np.pi) / (2 * np.pi) * columns), 0, columns - 1).astype(np.int64)
    return ranges, (row, column)


def _shape(step: float) -> tuple[int, int]:
    # An odd number of rows, so that a planar laser looks along the middle of one and not along an edge.
    rows = max(int(np.pi / step), 1) // 2 * 2 + 1
    return rows, max(int(2 * np.pi / step), 4)
