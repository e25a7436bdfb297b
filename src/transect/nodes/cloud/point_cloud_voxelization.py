"""Clouds as octrees."""

from __future__ import annotations

import numpy as np

from transect.algorithms.clouds.octree import octree
from transect.algorithms.clouds.selection import find_measured
from transect.engine import Node, param
from transect.types import Octree, PointCloud


class PointCloudVoxelization(Node):
    """Space that a cloud shows to be occupied: cubes of equal size around its points."""

    out_name = "octree"
    resolution: float = param(0.1, gt=0, unit="m", doc="edge length of the smallest cubes")

    def process(self, pointCloud: PointCloud) -> Octree | None:
        points = np.asarray(pointCloud.points[find_measured(pointCloud)], dtype=np.float64)
        if not len(points):
            return self.ctx.skip("the cloud is empty")
        return octree(points, self.resolution, pointCloud.t_ns, pointCloud.frame)
