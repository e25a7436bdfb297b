"""Where the cameras are in the scene that they reconstruct."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats
from transect.engine import Batch, Node, outputs, param
from transect.geometry import se3
from transect.nodes._attempts import Attempts
from transect.nodes.cloud._scene import SCENE, matrix_of, pose_of
from transect.types import PointCloud, Pose, StereoPair


@outputs
class Located:
    """Where a pair of pictures was taken.

    Attributes
    ----------
    pose : Pose
        Of the left camera, as the recording calls it, in the scene: where that camera had its first pose.
    view : Pose
        Of the frame of the cloud, which is the rectified left camera, in the scene.
    expected : Pose
        The next view, if the camera moves on as it did; also where the pose is not known.
    cloud : PointCloud
        What the pair showed; as `view`, only where the pose is known.
    success : bool
        Whether it is.
    """

    pose: Pose | None = None
    view: Pose | None = None
    expected: Pose | None = None
    cloud: PointCloud | None = None
    success: bool = False


class ScenePose(Node):
    """Takes the pose that was found for a pair, or says that there is none; the first one begins the scene.

    `found` are poses of the rectified left camera in the scene, or in any other frame that does not move:
    then the first of them tells how that frame lies. `better` goes before `found` where there is one. A pair
    without either, or without a cloud, has no pose, and the next one goes on from the last that had.
    """

    max_step: float = param(
        3.0, gt=0, unit="m", doc="largest motion between two pairs; a camera that moved farther is lost"
    )
    max_failed_ratio: float = param(
        0.5, ge=0, le=1, doc="largest ratio of failed attempts in a result that can be trusted"
    )

    def reset(self) -> None:
        self.T_scene_world: Floats | None = None
        self.T_scene_view = np.eye(4)
        self.step = np.eye(4)
        self.missed = 0
        self.attempts = Attempts(self.max_failed_ratio)

    def process(
        self,
        pair: StereoPair,
        cloud: Batch[PointCloud] = (),
        found: Batch[Pose] = (),
        better: Batch[Pose] = (),
    ) -> Located:
        if not cloud:
            return self._lose("no surface was seen")
        T_left_view = self.ctx.frames.lookup(pair.left.frame, cloud[-1].frame)
        poses = better or found
        if self.T_scene_world is None:
            T_world_view = matrix_of(poses[-1]) if poses else np.eye(4)
            self.T_scene_world = T_left_view @ se3.invert(T_world_view)
            self.T_scene_view = T_left_view
        elif not poses:
            return self._lose("no pose was found")
        elif not self._move(self.T_scene_world @ matrix_of(poses[-1])):
            return self._lose("moved too far to be believed")
        self.missed = 0
        self.attempts.add(True)
        return self._locate(pair.left.frame, T_left_view, cloud[-1])

    def finish(self) -> None:
        """Say how many pairs have no pose."""
        self.attempts.report(self.ctx, "pairs of images have no pose", "the model and the poses")

    def _move(self, T_scene_view: Floats) -> bool:
        """Go to a pose; False if it is too far away."""
        step = se3.invert(self.T_scene_view) @ T_scene_view
        if np.linalg.norm(step[:3, 3]) > self.max_step * (self.missed + 1):
            return False
        self.step = se3.exp(se3.log(step) / (self.missed + 1))
        self.T_scene_view = T_scene_view
        return True

    def _locate(self, left: str, T_left_view: Floats, cloud: PointCloud) -> Located:
        T, now = self.T_scene_view, self.ctx.time
        return Located(
            pose=pose_of(T @ se3.invert(T_left_view), now, SCENE, left),
            view=pose_of(T, now, SCENE, cloud.frame),
            expected=self._expect(),
            cloud=cloud,
            success=True,
        )

    def _lose(self, reason: str) -> Located:
        self.missed += 1
        self.attempts.add(False)
        self.ctx.skip(reason)
        return Located(expected=self._expect())

    def _expect(self) -> Pose | None:
        if self.T_scene_world is None:
            return None
        T = self.T_scene_view @ se3.exp((self.missed + 1) * se3.log(self.step))
        return pose_of(T, self.ctx.time, SCENE, "")
