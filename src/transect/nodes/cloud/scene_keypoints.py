"""Points of interest as a cloud."""

from __future__ import annotations

from transect.engine import Node
from transect.types import Features3D, PointCloud


class SceneKeypoints(Node):
    """The points of features as a cloud, with their normals, so that they can be registered like one."""

    out_name = "pointCloud"

    def process(self, features: Features3D) -> PointCloud:
        fields = {} if features.normals is None else {"normal": features.normals}
        return PointCloud(features.points, fields, features.t_ns, features.frame)
