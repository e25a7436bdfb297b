"""Points of a cloud that can be found again in another."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from transect.algorithms.clouds.selection import find_viewpoint, without_gaps
from transect.base.arrays import Floats
from transect.engine import Node, param
from transect.geometry import surfaces
from transect.types import Features3D, PointCloud


class FeaturesExtraction3D(Node, interface=True):
    """Keypoints of a cloud; thin it first, lengths are counted in its spacing unless they are given."""

    out_name = "features"
    least_points: ClassVar[int] = 20
    """Fewer points of a cloud have no neighbourhoods in which keypoints could be found."""

    def process(self, pointcloud: PointCloud) -> Features3D | None:
        cloud = without_gaps(pointcloud)
        if len(cloud) < self.least_points:
            return self.ctx.skip("too few points")
        found = self.detect(cloud)
        points: Floats = np.asarray(cloud.points[found.rows], dtype=np.float64)
        return Features3D(points, response=found.response, t_ns=cloud.t_ns, frame=cloud.frame)

    def detect(self, cloud: PointCloud) -> surfaces.Keypoints:
        """Return which points of a cloud without gaps are keypoints."""
        raise NotImplementedError


class Iss(FeaturesExtraction3D):
    """Where a surface spreads differently along all three axes (Zhong 2009)."""

    radius: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="radius of the neighbourhood of a keypoint; 0: six times the point spacing of the cloud",
    )
    ratio: float = param(
        0.975, gt=0, lt=1, doc="largest ratio of each eigenvalue of the neighbourhood to the next larger one"
    )

    def detect(self, cloud: PointCloud) -> surfaces.Keypoints:
        radius = self.radius or 6 * surfaces.spacing(cloud.points)
        return surfaces.iss_keypoints(cloud.points, radius, ratio=self.ratio)


class HarrisDetector3D(FeaturesExtraction3D):
    """Corners: where the normals around a point go in all directions (Harris on normals)."""

    radius: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="radius of the neighbourhood of a keypoint; 0: six times the point spacing of the cloud",
    )
    neighbours: int = param(12, ge=5, doc="number of points from which a normal is estimated")
    least: float = param(1e-3, ge=0, doc="smallest corner response; a corner of three planes has 0.037")
    suppression: float = param(
        0.0, ge=0, unit="m", doc="distance within which only the strongest corner is kept; 0: the radius"
    )

    def detect(self, cloud: PointCloud) -> surfaces.Keypoints:
        normals = surfaces.normals(cloud.points, self.neighbours, find_viewpoint(cloud)).normals
        radius = self.radius or 6 * surfaces.spacing(cloud.points)
        apart = self.suppression or radius
        return surfaces.harris_keypoints(cloud.points, normals, radius, self.least, apart)


class Uniform(FeaturesExtraction3D):
    """Every point: of a cloud thinned to voxels, matching them all is surer than matching a few corners."""

    least_points = 0

    def detect(self, cloud: PointCloud) -> surfaces.Keypoints:
        return surfaces.Keypoints(np.arange(len(cloud)), np.ones(len(cloud)))
