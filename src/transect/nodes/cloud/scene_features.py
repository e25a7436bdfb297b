"""Features, and those that they are to be matched with."""

from __future__ import annotations

from dataclasses import replace

from transect.base.arrays import Floats
from transect.engine import Latest, Node, outputs
from transect.geometry import se3
from transect.types import Features3D, Pose

from ._scene import Memory


@outputs
class FeaturesPair:
    """Features of a cloud, and of the last one before it whose pose became known, in the scene's frame."""

    features: Features3D
    reference: Features3D


class SceneFeatures(Node):
    """Pairs the features of each cloud with those of the last one before it whose pose became known.

    Descriptors stay as they are: they do not depend on where one stands. `view` comes back by a delayed wire.
    """

    def reset(self) -> None:
        self.memory = Memory[Features3D]()

    def process(self, features: Features3D, view: Latest[Pose | None] = None) -> FeaturesPair | None:
        before = self.memory.after(features, self.ctx.time, view, _place)
        return None if before is None else FeaturesPair(features, before)


def _place(features: Features3D, T_scene_cloud: Floats, frame: str) -> Features3D:
    points = se3.apply(T_scene_cloud, features.points)
    normals = None if features.normals is None else features.normals @ T_scene_cloud[:3, :3].T
    return replace(features, points=points, normals=normals, frame=frame)
