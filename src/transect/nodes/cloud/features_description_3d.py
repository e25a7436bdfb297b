"""What the surface around a keypoint looks like, in numbers that do not depend on where it is seen from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.engine import Node, param
from transect.geometry import descriptors, surfaces
from transect.types import Features3D, PointCloud

from ._clouds import seen_from, without_gaps

Describe = Callable[[Floats, Floats, float, NDArray[np.int64]], Floats]
"""Takes points (n, 3), normals (n, 3), a radius (m) and rows (k,), and returns descriptors (k, d)."""


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
    ) -> Features3D | None: ...

    def describe(
        self, given: PointCloud, features: Features3D, normals: PointCloud | None, describe: Describe
    ) -> Features3D | None:
        """Return the features with what a function says about them."""
        cloud = without_gaps(self._with_normals(given, normals))
        if len(cloud) < self.neighbours or not len(features):
            return self.ctx.skip("too few points")
        points: Floats = np.asarray(cloud.points, dtype=np.float64)
        directions: Floats = np.asarray(
            cloud.fields["normal"]
            if "normal" in cloud.fields
            else surfaces.normals(points, self.neighbours, seen_from(cloud)).normals
        )
        rows = _rows_of(features.points, points)
        found = describe(points, directions, self.radius or 7 * surfaces.spacing(points), rows)
        return replace(features, descriptors=found.astype(np.float32), normals=directions[rows])

    def _with_normals(self, cloud: PointCloud, normals: PointCloud | None) -> PointCloud:
        if normals is None or len(normals) != len(cloud):
            return cloud
        return replace(cloud, fields={**cloud.fields, "normal": normals.points})


class Fpfh(FeaturesDescription3D):
    """Fast point feature histograms of 33 numbers (Rusu 2009)."""

    def process(
        self, pointcloud: PointCloud, features: Features3D, normals: PointCloud | None = None
    ) -> Features3D | None:
        return self.describe(pointcloud, features, normals, descriptors.fpfh)


class PfhDescriptor3D(FeaturesDescription3D):
    """Point feature histograms of 125 numbers (Rusu 2008): all pairs of neighbours, slower than `Fpfh`."""

    def process(
        self, pointcloud: PointCloud, features: Features3D, normals: PointCloud | None = None
    ) -> Features3D | None:
        return self.describe(pointcloud, features, normals, descriptors.pfh)


class ShotDescriptor3D(FeaturesDescription3D):
    """Histograms of normals in 32 parts of a sphere, 352 numbers (SHOT; Tombari 2010)."""

    def process(
        self, pointcloud: PointCloud, features: Features3D, normals: PointCloud | None = None
    ) -> Features3D | None:
        return self.describe(pointcloud, features, normals, descriptors.shot)


def _rows_of(keypoints: Floats, points: Floats) -> NDArray[np.int64]:
    """Rows (k,) of the cloud's points nearest to keypoints (k, 3)."""
    from scipy.spatial import KDTree

    return np.asarray(KDTree(points).query(keypoints)[1], dtype=np.int64)
