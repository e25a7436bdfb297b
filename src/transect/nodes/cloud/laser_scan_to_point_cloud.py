"""Sweeps of a planar laser as points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.engine import Node, param
from transect.geometry.planar import points_from_polar
from transect.types import LaserScan, PointCloud


class LaserScanToPointCloud(Node):
    """Returns of a sweep in the laser's frame, z = 0; `beam` (n,) says which it was, `intensity` how strong.

    Beams without a return are left out, and so are ranges outside the sensor's own limits.
    """

    out_name = "pointCloud"
    nearest: float = param(0.0, ge=0, unit="m", doc="smallest range of the returns that are kept")
    farthest: float = param(
        0.0, ge=0, unit="m", doc="largest range of the returns that are kept; 0: the limit of the sensor"
    )

    def process(self, scan: LaserScan) -> PointCloud | None:
        beams = np.flatnonzero(scan.returned(self.nearest, self.farthest or np.inf))
        if not len(beams):
            return self.ctx.skip("no returns")
        points = points_from_polar(scan.ranges[beams], scan.angles[beams])
        fields: dict[str, NDArray[Any]] = {"beam": beams}
        if scan.remission is not None:
            fields["intensity"] = np.asarray(scan.remission)[beams]
        return PointCloud(points, fields, scan.t_ns, scan.frame)
