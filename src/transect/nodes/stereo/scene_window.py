"""The last pairs of pictures, for whoever adjusts their poses together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Floats
from transect.engine import Batch, Latest, Node, outputs, param
from transect.geometry import se3
from transect.nodes.cloud._scene import SCENE, matrix_of, pose_of
from transect.types import CorrespondenceMaps2D, Correspondences2D, Pose, Trajectory


@dataclass(frozen=True, eq=False)
class Frame:
    """A pair of pictures.

    Attributes
    ----------
    t_ns : int
    stereo : Correspondences2D
        Between its images.
    before : Correspondences2D or None
        From the left image of the frame before it to its own; None for the first.
    T_scene_view : (4, 4)
    """

    t_ns: int
    stereo: Correspondences2D
    before: Correspondences2D | None
    T_scene_view: Floats


@outputs
class Window:
    """What the last pairs share.

    Attributes
    ----------
    correspondenceMapsSequence : CorrespondenceMaps2D
        Between the images left, right, left, right, ....
    guessedPosesSequence : Trajectory
        Of their cameras, in the first one.
    anchor : Pose
        Of that one in the scene.
    """

    correspondenceMapsSequence: CorrespondenceMaps2D
    guessedPosesSequence: Trajectory
    anchor: Pose


class SceneWindow(Node):
    """Keeps the matches of the last pairs whose poses are known, and gives them with those of a new one.

    `stereo` are the matches between its images, `eyes` is the pose of the right camera in the left one,
    `matches` go from the left image of the last pair whose pose is known to the new one, and `found` is its
    pose in the scene so far. `view` comes back by a delayed wire.
    """

    pairs: int = param(4, ge=2, doc="number of image pairs in the window")

    def reset(self) -> None:
        self.frames: list[Frame] = []
        self.newest: Frame | None = None

    def process(
        self,
        stereo: Correspondences2D,
        eyes: Latest[Pose],
        matches: Batch[Correspondences2D] = (),
        found: Batch[Pose] = (),
        view: Latest[Pose | None] = None,
    ) -> Window | None:
        if self.newest is not None and view is not None and view.t_ns == self.newest.t_ns:
            self.frames = [*self.frames, replace(self.newest, T_scene_view=matrix_of(view))][
                -self.pairs + 1 :
            ]
        self.newest = Frame(
            self.ctx.time,
            stereo,
            matches[-1] if matches else None,
            matrix_of(found[-1]) if found else np.eye(4),
        )
        if not self.frames or not found or not matches:
            return None
        return self._window([*self.frames, self.newest], matrix_of(eyes))

    def _window(self, frames: list[Frame], T_left_right: Floats) -> Window:
        maps, pairs = list[Correspondences2D](), list[tuple[int, int]]()
        for k, frame in enumerate(frames):
            if k and frame.before is not None:
                maps.append(frame.before)
                pairs.append((2 * k - 2, 2 * k))
            maps.append(frame.stereo)
            pairs.append((2 * k, 2 * k + 1))
        first = frames[0].T_scene_view
        lefts = se3.invert(first) @ np.array([frame.T_scene_view for frame in frames])
        cameras = np.stack([lefts, lefts @ T_left_right], axis=1).reshape(-1, 4, 4)
        turned, places = se3.to_quaternion(cameras)
        times, now = np.repeat([frame.t_ns for frame in frames], 2), self.ctx.time
        return Window(
            CorrespondenceMaps2D(tuple(maps), tuple(pairs), now),
            Trajectory(times, places, turned),
            pose_of(first, now, SCENE, ""),
        )
