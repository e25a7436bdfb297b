"""Keypoints of point clouds and their descriptors."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from transect.algorithms.clouds.selection import drop_nan_points, find_viewpoint
from transect.base.arrays import Floats, Ints
from transect.engine import Node, param
from transect.geometry import descriptors, surfaces
from transect.types import Features3D, PointCloud


class FeaturesExtraction3D(Node, interface=True):
    """Detects keypoints of a cloud; downsample it first: default radii are multiples of its spacing."""

    out_name = "features"
    min_points: ClassVar[int] = 20
    """Smaller clouds are skipped."""

    def process(self, pointcloud: PointCloud) -> Features3D | None:
        cloud = drop_nan_points(pointcloud)
        if len(cloud) < self.min_points:
            return self.ctx.skip("too few points")
        found = self.detect(cloud)
        points: Floats = np.asarray(cloud.points[found.rows], dtype=np.float64)
        return Features3D(points, response=found.response, t_ns=cloud.t_ns, frame=cloud.frame)

    def detect(self, cloud: PointCloud) -> surfaces.Keypoints:
        """Return the keypoints of a cloud without NaN."""
        raise NotImplementedError


class Iss(FeaturesExtraction3D):
    """Intrinsic shape signatures: points with three different principal variances (Zhong 2009)."""

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
    """Corners by the Harris response of normals instead of gradients."""

    radius: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="radius of the neighbourhood of a keypoint; 0: six times the point spacing of the cloud",
    )
    neighbours: int = param(12, ge=5, doc="number of points from which a normal is estimated")
    min_response: float = param(
        1e-3, ge=0, doc="smallest corner response; a corner of three planes has 0.037"
    )
    suppression: float = param(
        0.0, ge=0, unit="m", doc="distance within which only the strongest corner is kept; 0: the radius"
    )

    def detect(self, cloud: PointCloud) -> surfaces.Keypoints:
        normals = surfaces.normals(cloud.points, self.neighbours, find_viewpoint(cloud)).normals
        radius = self.radius or 6 * surfaces.spacing(cloud.points)
        suppression = self.suppression or radius
        return surfaces.harris_keypoints(cloud.points, normals, radius, self.min_response, suppression)


class Uniform(FeaturesExtraction3D):
    """All points: in a cloud downsampled to voxels, this is more robust than matching a few corners."""

    min_points = 0

    def detect(self, cloud: PointCloud) -> surfaces.Keypoints:
        return surfaces.Keypoints(np.arange(len(cloud)), np.ones(len(cloud)))


class FeaturesDescription3D(Node, interface=True):
    """Computes descriptors of keypoints, which are points of the cloud. Normals are estimated unless given.

    `normals` is a cloud whose points are the normals, row by row; or the cloud has a field `normal`.
    """

    out_name = "features"
    radius: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="radius of the neighbourhood that is described; 0: seven times the point spacing of the cloud",
    )
    neighbours: int = param(20, ge=5, doc="number of points from which a normal is estimated")

    def process(
        self, pointcloud: PointCloud, features: Features3D, normals: PointCloud | None = None
    ) -> Features3D | None:
        cloud = drop_nan_points(_add_normals(pointcloud, normals))
        if len(cloud) < self.neighbours or not len(features):
            return self.ctx.skip("too few points")
        points: Floats = np.asarray(cloud.points, dtype=np.float64)
        directions: Floats = np.asarray(
            cloud.fields["normal"]
            if "normal" in cloud.fields
            else surfaces.normals(points, self.neighbours, find_viewpoint(cloud)).normals
        )
        rows = _nearest_rows(features.points, points)
        found = self.describe(points, directions, self.radius or 7 * surfaces.spacing(points), rows)
        return replace(features, descriptors=found.astype(np.float32), normals=directions[rows])

    def describe(self, points: Floats, normals: Floats, radius: float, rows: Ints) -> Floats:
        """Return descriptors (k, d) of some rows (k,) of points (n, 3), from neighbours within `radius` m."""
        raise NotImplementedError


class Fpfh(FeaturesDescription3D):
    """Fast point feature histograms of 33 numbers (Rusu 2009)."""

    def describe(self, points: Floats, normals: Floats, radius: float, rows: Ints) -> Floats:
        return descriptors.fpfh(points, normals, radius, rows)


class PfhDescriptor3D(FeaturesDescription3D):
    """Point feature histograms of 125 numbers (Rusu 2008): all pairs of neighbours, slower than `Fpfh`."""

    def describe(self, points: Floats, normals: Floats, radius: float, rows: Ints) -> Floats:
        return descriptors.pfh(points, normals, radius, rows)


class ShotDescriptor3D(FeaturesDescription3D):
    """Histograms of normals in 32 parts of a sphere, 352 numbers (SHOT; Tombari 2010)."""

    def describe(self, points: Floats, normals: Floats, radius: float, rows: Ints) -> Floats:
        return descriptors.shot(points, normals, radius, rows)


def _add_normals(cloud: PointCloud, normals: PointCloud | None) -> PointCloud:
    if normals is None or len(normals) != len(cloud):
        return cloud
    return replace(cloud, fields={**cloud.fields, "normal": normals.points})


def _nearest_rows(keypoints: Floats, points: Floats) -> Ints:
    """Rows (k,) of the cloud's points nearest to keypoints (k, 3)."""
    from scipy.spatial import KDTree

    return np.asarray(KDTree(points).query(keypoints)[1], dtype=np.int64)
