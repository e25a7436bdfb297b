"""What the surface around a keypoint looks like, in numbers that do not depend on where it is seen from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect.algorithms.clouds.selection import find_viewpoint, without_gaps
from transect.base.arrays import Floats, Ints
from transect.engine import Node, param
from transect.geometry import descriptors, surfaces
from transect.types import Features3D, PointCloud


class FeaturesDescription3D(Node, interface=True):
    """The same keypoints with descriptors; they are points of the cloud. Normals are made unless given.

    `normals` has a normal in place of each point of the cloud; a field `normal` of the cloud will do.
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
        cloud = without_gaps(_add_normals(pointcloud, normals))
        if len(cloud) < self.neighbours or not len(features):
            return self.ctx.skip("too few points")
        points: Floats = np.asarray(cloud.points, dtype=np.float64)
        directions: Floats = np.asarray(
            cloud.fields["normal"]
            if "normal" in cloud.fields
            else surfaces.normals(points, self.neighbours, find_viewpoint(cloud)).normals
        )
        rows = _rows_of(features.points, points)
        found = self.describe(points, directions, self.radius or 7 * surfaces.spacing(points), rows)
        return replace(features, descriptors=found.astype(np.float32), normals=directions[rows])

    def describe(self, points: Floats, normals: Floats, radius: float, rows: Ints) -> Floats:
        """Return descriptors (k, d) of some rows (k,) of points (n, 3), by their neighbours.

        Parameters
        ----------
        radius : float
            Metres: how far neighbours may be away.
        """
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


def _rows_of(keypoints: Floats, points: Floats) -> Ints:
    """Rows (k,) of the cloud's points nearest to keypoints (k, 3)."""
    from scipy.spatial import KDTree

    return np.asarray(KDTree(points).query(keypoints)[1], dtype=np.int64)
