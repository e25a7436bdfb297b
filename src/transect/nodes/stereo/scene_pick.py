"""One pose of several."""

from __future__ import annotations

import numpy as np

from transect.engine import Latest, Node, param
from transect.geometry import se3
from transect.nodes.cloud._scene import SCENE, matrix_of, pose_of
from transect.types import Pose, Trajectory


class ScenePick(Node):
    """One of the poses that an estimation gives, in the scene.

    `anchor` is the pose in the scene of the frame that they are in; without it they are in the scene's.
    """

    out_name = "pose"
    row: int = param(-1, doc="index of the pose that is picked; negative values count from the end")

    def process(self, poses: Trajectory, anchor: Latest[Pose | None] = None) -> Pose | None:
        if poses.orientations is None or not np.any(poses.orientations[self.row]):
            return self.ctx.skip("this pose was not found")
        T = se3.from_quaternion(poses.orientations[self.row], poses.positions[self.row])
        T_scene_frame = np.eye(4) if anchor is None else matrix_of(anchor)
        return pose_of(T_scene_frame @ T, self.ctx.time, SCENE, poses.child)
