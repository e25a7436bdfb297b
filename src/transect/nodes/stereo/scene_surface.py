"""What a pair shows well enough to become part of a model."""

from __future__ import annotations

import numpy as np

from transect.algorithms.clouds.selection import select
from transect.engine import Node, param
from transect.types import PointCloud


class SceneSurface(Node):
    """The points of a stereo cloud whose distance is known well enough, by their `sigma_along`.

    How far that reaches depends on the cameras: the deviation grows with the square of the distance, and
    falls with baseline and focal length.
    """

    out_name = "surface"
    max_sigma: float = param(0.25, gt=0, unit="m", doc="largest standard deviation of a point along its ray")
    least: int = param(500, ge=1, doc="smallest number of points of a surface")

    def process(self, cloud: PointCloud) -> PointCloud | None:
        sigma = cloud.fields.get("sigma_along")
        sure = cloud if sigma is None else select(cloud, np.flatnonzero(sigma <= self.max_sigma))
        return sure if len(sure) >= self.least else self.ctx.skip("too little is near enough to be measured")
