"""Clouds, and those that they are to be registered to."""

from __future__ import annotations

from transect.engine import Latest, Node, outputs
from transect.types import PointCloud, Pose

from ._scene import Memory
from .point_cloud_transformation import transform


@outputs
class CloudPair:
    """A cloud, and the last one before it whose pose became known, in the frame of the scene."""

    cloud: PointCloud
    reference: PointCloud


class SceneCloud(Node):
    """Pairs each cloud with the last one before it whose pose became known; the first one has none.

    `view` comes back by a delayed wire: the pose of the cloud's frame in the scene, at the cloud's time.
    """

    def reset(self) -> None:
        self.memory = Memory[PointCloud]()

    def process(self, cloud: PointCloud, view: Latest[Pose | None] = None) -> CloudPair | None:
        before = self.memory.after(cloud, self.ctx.time, view, transform)
        return None if before is None else CloudPair(cloud, before)
