"""Camera poses in the scene that a reconstruction builds (Reconstruction3D)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from transect.algorithms.vision.rectification import is_rectified_pair, pair_baseline
from transect.base.arrays import Floats
from transect.engine import Batch, Latest, Node, outputs, param
from transect.errors import TransectError
from transect.geometry import se3
from transect.nodes._attempts import Attempts
from transect.types import CorrespondenceMaps2D, Correspondences2D, PointCloud, Pose, StereoPair, Trajectory

T = TypeVar("T")
Place = Callable[[T, Floats, str], T]
"""Takes a thing, ``T_scene_thing`` (4, 4) and the scene's frame, and returns it in that frame."""

SCENE = "scene"
"""The frame of a scene: that of the left camera at its first pose."""


def matrix_of(pose: Pose) -> Floats:
    """Return ``T_frame_child`` (4, 4)."""
    return se3.from_quaternion(pose.orientation, pose.position)


def pose_of(T_frame_child: Floats, t_ns: int, frame: str, child: str) -> Pose:
    """Return a transform (4, 4) as a pose."""
    turned, place = se3.to_quaternion(T_frame_child)
    return Pose(place, turned, t_ns, frame, child)


@dataclass
class Memory(Generic[T]):
    """The newest of a kind, and the last one whose pose became known.

    Poses come back by a delayed wire, after the thing that they belong to. One that never comes leaves the
    memory as it was, so that the next attempt is against the last that succeeded.

    Attributes
    ----------
    newest : T or None
        In its own frame.
    newest_ns : int
        Its time.
    placed : T or None
        In the frame of the scene.
    """

    newest: T | None = None
    newest_ns: int = 0
    placed: T | None = None

    def after(self, new: T, t_ns: int, view: Pose | None, place: Place[T]) -> T | None:
        """Take a new one; return the last one before it whose pose is known, in the scene's frame."""
        if self.newest is not None and view is not None and view.t_ns == self.newest_ns:
            self.placed = place(self.newest, matrix_of(view), view.frame)
        self.newest, self.newest_ns = new, t_ns
        return self.placed


UNTURNED = np.array([0.0, 0.0, 0.0, 1.0])


class SceneEyes(Node):
    """The pose of the right camera of a rectified pair in the left one, by what their matches say of both."""

    out_name = "pose"

    def process(self, matches: Correspondences2D) -> Pose:
        left, right = matches.source_camera, matches.sink_camera
        if left is None or right is None or not is_rectified_pair(left, right):
            raise TransectError(
                "these matches are not those of a rectified pair",
                why="their cameras are not known, not rectified, or have no baseline in P",
                hint="put StereoRectification before the features",
            )
        apart = np.array([pair_baseline(left, right), 0.0, 0.0])
        return Pose(apart, UNTURNED, self.ctx.time, left.frame, right.frame)


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
