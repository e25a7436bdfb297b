"""What the surface around a keypoint looks like, in numbers that do not depend on where it is seen from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.engine import Node, param
from transect.geometry import surfaces
from transect.types import Features3D, PointCloud

from ._clouds import seen_from, without_gaps


class FeaturesDescription3D(Node, interface=True):
    """The same keypoints with descriptors; they are points of the cloud. Normals are made unless given.

    `normals` has a normal in place of each point of the cloud; a field `normal` of the cloud will do.
    """

    out_name = "features"

    def process(
        self, pointcloud: PointCloud, features: Features3D, normals: PointCloud | None = None
    ) -> Features3D | None: ...


class Fpfh(FeaturesDescription3D):
    """Fast point feature histograms of 33 numbers (Rusu 2009)."""

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
        given = self._with_normals(pointcloud, normals)
        cloud = without_gaps(given)
        if len(cloud) < self.neighbours or not len(features):
            return self.ctx.skip("too few points")
        points: Floats = np.asarray(cloud.points, dtype=np.float64)
        directions: Floats = np.asarray(
            cloud.fields["normal"]
            if "normal" in cloud.fields
            else surfaces.normals(points, self.neighbours, seen_from(cloud)).normals
        )
        rows = _rows_of(features.points, points)
        radius = self.radius or 7 * surfaces.spacing(points)
        found = surfaces.fpfh(points, directions, radius, rows)
        return replace(features, descriptors=found.astype(np.float32), normals=directions[rows])

    def _with_normals(self, cloud: PointCloud, normals: PointCloud | None) -> PointCloud:
        if normals is None or len(normals) != len(cloud):
            return cloud
        return replace(cloud, fields={**cloud.fields, "normal": normals.points})


def _rows_of(keypoints: Floats, points: Floats) -> NDArray[np.int64]:
    """Rows (k,) of the cloud's points nearest to keypoints (k, 3)."""
    from scipy.spatial import KDTree

    return np.asarray(KDTree(points).query(keypoints)[1], dtype=np.int64)
