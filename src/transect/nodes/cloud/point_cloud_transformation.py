"""Clouds seen from another frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect.base.arrays import Floats
from transect.engine import Latest, Node
from transect.geometry import rotations, se3
from transect.types import PointCloud, Pose


class PointCloudTransformation(Node, interface=True):
    """The cloud as seen from an external system, in which `pose` is the pose of the cloud's own."""

    out_name = "transformedPointCloud"

    def process(self, pointCloud: PointCloud, pose: Latest[Pose]) -> PointCloud | None:
        if not (np.isfinite(pose.position).all() and np.isfinite(pose.orientation).all()):
            return self.ctx.skip("the pose is not known")
        return self.move(pointCloud, se3.from_quaternion(pose.orientation, pose.position), pose.frame)

    def move(self, cloud: PointCloud, T_frame_cloud: Floats, frame: str) -> PointCloud:
        """Return a cloud taken to another frame by ``T_frame_cloud`` (4, 4)."""
        raise NotImplementedError


class CartesianSystemTransform(PointCloudTransformation):
    """Turns and moves points, normals, covariances and the viewpoint; without one, that was the origin."""

    def move(self, cloud: PointCloud, T_frame_cloud: Floats, frame: str) -> PointCloud:
        return transform(cloud, T_frame_cloud, frame)


def transform(cloud: PointCloud, T_frame_cloud: Floats, frame: str) -> PointCloud:
    """Return a cloud taken to another frame by ``T_frame_cloud`` (4, 4).

    Of its fields, `normal` (n, 3) and `covariance` (n, 9) are turned too.
    """
    turn, fields = T_frame_cloud[:3, :3], dict(cloud.fields)
    if "normal" in fields:
        fields["normal"] = fields["normal"] @ turn.T
    if "covariance" in fields:
        turned = np.einsum("ij,njk,lk->nil", turn, fields["covariance"].reshape(-1, 3, 3), turn)
        fields["covariance"] = turned.reshape(fields["covariance"].shape)
    before = np.array([0.0, 0, 0, 0, 0, 0, 1]) if cloud.viewpoint is None else cloud.viewpoint
    attitude = rotations.multiply(rotations.quaternion_from_matrix(turn), before[3:])
    viewpoint = np.concatenate([se3.apply(T_frame_cloud, before[:3]), attitude])
    points = se3.apply(T_frame_cloud, cloud.points)
    return replace(cloud, points=points, fields=fields, frame=frame, viewpoint=viewpoint)
