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
"""Transforms a thing by ``T_scene_thing`` (4, 4) to the scene's frame."""

SCENE = "scene"
"""The frame of a scene: that of the left camera at its first pose."""


def matrix_of(pose: Pose) -> Floats:
    """Return ``T_frame_child`` (4, 4)."""
    return se3.from_quaternion(pose.orientation, pose.position)


def pose_of(T_frame_child: Floats, t_ns: int, frame: str, child: str) -> Pose:
    """Return a transform (4, 4) as a pose."""
    orientation, position = se3.to_quaternion(T_frame_child)
    return Pose(position, orientation, t_ns, frame, child)


@dataclass
class Memory(Generic[T]):
    """The newest thing of a kind, and the last one with a known pose.

    Poses arrive by a delayed wire, after the thing that they belong to. If a pose is missing, the memory is
    unchanged, so that the next attempt is against the last success.
    """

    newest: T | None = None  # in its own frame
    newest_ns: int = 0
    placed: T | None = None  # in the frame of the scene

    def exchange(self, new: T, t_ns: int, view: Pose | None, place: Place[T]) -> T | None:
        """Store a new thing, and return the last one before it with a known pose, in the scene's frame."""
        if self.newest is not None and view is not None and view.t_ns == self.newest_ns:
            self.placed = place(self.newest, matrix_of(view), view.frame)
        self.newest, self.newest_ns = new, t_ns
        return self.placed


NO_ROTATION = np.array([0.0, 0.0, 0.0, 1.0])


class SceneEyes(Node):
    """The pose of the right camera of a rectified pair in the left one, from the cameras of their matches."""

    out_name = "pose"

    def process(self, matches: Correspondences2D) -> Pose:
        left, right = matches.source_camera, matches.sink_camera
        if left is None or right is None or not is_rectified_pair(left, right):
            raise TransectError(
                "these matches are not those of a rectified pair",
                why="their cameras are not known, not rectified, or have no baseline in P",
                hint="put StereoRectification before the features",
            )
        baseline = np.array([pair_baseline(left, right), 0.0, 0.0])
        return Pose(baseline, NO_ROTATION, self.ctx.time, left.frame, right.frame)


class ScenePick(Node):
    """One of the poses of a trajectory, in the scene.

    `anchor` is the pose of the trajectory's frame in the scene; without it that frame is the scene's.
    """

    out_name = "pose"
    row: int = param(-1, doc="index of the pose; negative values count from the end")

    def process(self, poses: Trajectory, anchor: Latest[Pose | None] = None) -> Pose | None:
        if poses.orientations is None or not np.any(poses.orientations[self.row]):
            return self.ctx.skip("this pose was not found")
        T = se3.from_quaternion(poses.orientations[self.row], poses.positions[self.row])
        T_scene_frame = np.eye(4) if anchor is None else matrix_of(anchor)
        return pose_of(T_scene_frame @ T, self.ctx.time, SCENE, poses.child)


@outputs
class LocatedPair:
    """The poses of an image pair; `success` is whether they are known."""

    pose: Pose | None = None  # of the original left camera in the scene, the frame of its first pose
    view: Pose | None = None  # of the frame of the cloud, the rectified left camera, in the scene
    expected: Pose | None = None  # the next view at constant velocity; also if the pose is not known
    cloud: PointCloud | None = None  # of the pair, if its pose is known
    success: bool = False


class ScenePose(Node):
    """Accepts the pose that was estimated for an image pair, or reports that there is none.

    `found` are poses of the rectified left camera in the scene, or in another fixed frame, whose transform
    then follows from the first of them. `better` takes precedence over `found`. A pair without either, or
    without a cloud, has no pose, and the next one continues from the last that has.
    """

    max_step: float = param(
        3.0, gt=0, unit="m", doc="largest motion between two pairs; a larger one is rejected"
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
    ) -> LocatedPair:
        if not cloud:
            return self._skip_pair("no surface was seen")
        T_left_view = self.ctx.frames.lookup(pair.left.frame, cloud[-1].frame)
        poses = better or found
        if self.T_scene_world is None:
            T_world_view = matrix_of(poses[-1]) if poses else np.eye(4)
            self.T_scene_world = T_left_view @ se3.invert(T_world_view)
            self.T_scene_view = T_left_view
        elif not poses:
            return self._skip_pair("no pose was found")
        elif not self._accept_view(self.T_scene_world @ matrix_of(poses[-1])):
            return self._skip_pair("the motion exceeds max_step")
        self.missed = 0
        self.attempts.add(True)
        return self._locate(pair.left.frame, T_left_view, cloud[-1])

    def finish(self) -> None:
        """Report the number of pairs without a pose."""
        self.attempts.report(self.ctx, "pairs of images have no pose", "the model and the poses")

    def _accept_view(self, T_scene_view: Floats) -> bool:
        """Update the state with a view; return False if it is too far from the last one."""
        step = se3.invert(self.T_scene_view) @ T_scene_view
        if np.linalg.norm(step[:3, 3]) > self.max_step * (self.missed + 1):
            return False
        self.step = se3.exp(se3.log(step) / (self.missed + 1))
        self.T_scene_view = T_scene_view
        return True

    def _locate(self, left: str, T_left_view: Floats, cloud: PointCloud) -> LocatedPair:
        T, now = self.T_scene_view, self.ctx.time
        return LocatedPair(
            pose=pose_of(T @ se3.invert(T_left_view), now, SCENE, left),
            view=pose_of(T, now, SCENE, cloud.frame),
            expected=self._predict_view(),
            cloud=cloud,
            success=True,
        )

    def _skip_pair(self, reason: str) -> LocatedPair:
        self.missed += 1
        self.attempts.add(False)
        self.ctx.skip(reason)
        return LocatedPair(expected=self._predict_view())

    def _predict_view(self) -> Pose | None:
        if self.T_scene_world is None:
            return None
        T = self.T_scene_view @ se3.exp((self.missed + 1) * se3.log(self.step))
        return pose_of(T, self.ctx.time, SCENE, "")


@dataclass(frozen=True, eq=False)
class PairMatches:
    """The matches of an image pair, and its pose."""

    t_ns: int
    stereo: Correspondences2D  # between its images
    before: Correspondences2D | None  # from the left image of the pair before to its own; None for the first
    T_scene_view: Floats  # (4, 4)


@outputs
class AdjustmentWindow:
    """Matches and poses of the last pairs, for a bundle adjustment."""

    correspondenceMapsSequence: CorrespondenceMaps2D  # between the images left, right, left, right, ...
    guessedPosesSequence: Trajectory  # of their cameras in the first one
    anchor: Pose  # of the first camera in the scene


class SceneWindow(Node):
    """Stores the matches of the last pairs with known poses, and emits them with those of a new pair.

    `stereo` are the matches between its images, `eyes` is the pose of the right camera in the left one,
    `matches` are from the left image of the last pair with a known pose to the new one, and `found` is its
    pose in the scene so far. `view` arrives by a delayed wire.
    """

    pairs: int = param(4, ge=2, doc="number of image pairs in the window")

    def reset(self) -> None:
        self.frames: list[PairMatches] = []
        self.newest: PairMatches | None = None

    def process(
        self,
        stereo: Correspondences2D,
        eyes: Latest[Pose],
        matches: Batch[Correspondences2D] = (),
        found: Batch[Pose] = (),
        view: Latest[Pose | None] = None,
    ) -> AdjustmentWindow | None:
        if self.newest is not None and view is not None and view.t_ns == self.newest.t_ns:
            self.frames = [*self.frames, replace(self.newest, T_scene_view=matrix_of(view))][
                -self.pairs + 1 :
            ]
        self.newest = PairMatches(
            self.ctx.time,
            stereo,
            matches[-1] if matches else None,
            matrix_of(found[-1]) if found else np.eye(4),
        )
        if not self.frames or not found or not matches:
            return None
        return self._window([*self.frames, self.newest], matrix_of(eyes))

    def _window(self, frames: list[PairMatches], T_left_right: Floats) -> AdjustmentWindow:
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
        orientations, positions = se3.to_quaternion(cameras)
        times, now = np.repeat([frame.t_ns for frame in frames], 2), self.ctx.time
        return AdjustmentWindow(
            CorrespondenceMaps2D(tuple(maps), tuple(pairs), now),
            Trajectory(times, positions, orientations),
            pose_of(first, now, SCENE, ""),
        )
