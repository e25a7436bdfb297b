"""Clouds, features and landmarks in the scene that a reconstruction builds (Reconstruction3D)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from transect.algorithms.clouds.selection import select, transform_cloud
from transect.algorithms.vision.features import select_features, select_matches
from transect.base.arrays import Floats
from transect.engine import Batch, Latest, Node, outputs, param
from transect.errors import UsageError
from transect.geometry import se3
from transect.types import (
    CorrespondenceMaps3D,
    Correspondences2D,
    Correspondences3D,
    Features2D,
    Features3D,
    PointCloud,
    Pose,
)

from .scene_poses import Memory


@outputs
class CloudPair:
    """A cloud, and the last one before it with a known pose, in the frame of the scene."""

    cloud: PointCloud
    reference: PointCloud


class SceneCloud(Node):
    """Pairs each cloud with the last one before it that has a known pose; the first cloud has none.

    `view` arrives by a delayed wire: the pose of the cloud's frame in the scene, at the cloud's time.
    """

    def reset(self) -> None:
        self.memory = Memory[PointCloud]()

    def process(self, cloud: PointCloud, view: Latest[Pose | None] = None) -> CloudPair | None:
        before = self.memory.exchange(cloud, self.ctx.time, view, transform_cloud)
        return None if before is None else CloudPair(cloud, before)


@outputs
class FeaturesPair:
    """Features of a cloud, and of the last one before it with a known pose, in the scene's frame."""

    features: Features3D
    reference: Features3D


class SceneFeatures(Node):
    """Pairs the features of each cloud with those of the last one before it that has a known pose.

    Descriptors do not depend on the viewpoint, and stay. `view` arrives by a delayed wire.
    """

    def reset(self) -> None:
        self.memory = Memory[Features3D]()

    def process(self, features: Features3D, view: Latest[Pose | None] = None) -> FeaturesPair | None:
        before = self.memory.exchange(features, self.ctx.time, view, _move_features)
        return None if before is None else FeaturesPair(features, before)


def _move_features(features: Features3D, T_scene_cloud: Floats, frame: str) -> Features3D:
    points = se3.apply(T_scene_cloud, features.points)
    normals = None if features.normals is None else features.normals @ T_scene_cloud[:3, :3].T
    return replace(features, points=points, normals=normals, frame=frame)


class SceneKeypoints(Node):
    """The points of features as a cloud with normals, for registration."""

    out_name = "pointCloud"

    def process(self, features: Features3D) -> PointCloud:
        fields = {} if features.normals is None else {"normal": features.normals}
        return PointCloud(features.points, fields, features.t_ns, features.frame)


class SceneModel(Node):
    """The model with every n-th cloud that was added, and at the end.

    Points with few measurements are removed, if the cloud has the field `count`.
    """

    out_name = "pointCloud"
    after: int = param(0, ge=0, doc="number of clouds after which the model is emitted; 0: once, at the end")
    min_count: int = param(1, ge=1, doc="smallest number of measurements of a point of the model")

    def reset(self) -> None:
        self.model: PointCloud | None = None
        self.added = 0
        self.given = 0

    def process(self, model: PointCloud) -> PointCloud | None:
        self.model, self.added = model, self.added + 1
        return self._show() if self.after and self.added % self.after == 0 else None

    def finish(self) -> PointCloud | None:
        return None if self.model is None or self.given == self.added else self._show()

    def _show(self) -> PointCloud | None:
        assert self.model is not None
        self.given = self.added
        count = self.model.fields.get("count")
        shown = self.model if count is None else select(self.model, count >= self.min_count)
        return replace(shown, t_ns=self.ctx.time)


class SceneSurface(Node):
    """The points of a stereo cloud with a small standard deviation of their range, `sigma_along`.

    It grows with the square of the distance, and is inversely proportional to baseline and focal length.
    """

    out_name = "surface"
    max_sigma: float = param(0.25, gt=0, unit="m", doc="largest standard deviation of a point along its ray")
    min_points: int = param(500, ge=1, doc="smallest number of points of a surface")

    def process(self, cloud: PointCloud) -> PointCloud | None:
        sigma = cloud.fields.get("sigma_along")
        kept = cloud if sigma is None else select(cloud, np.flatnonzero(sigma <= self.max_sigma))
        return kept if len(kept) >= self.min_points else self.ctx.skip("too few points with a small sigma")


class _LandmarkPoints(NamedTuple):
    """Features of a left image, and their points, row by row."""

    features: Features2D
    points: PointCloud


@outputs
class LandmarkFeatures:
    """Features of left images with their points, row by row."""

    matches: Correspondences2D  # between both images of this pair, of features that became points
    features: Features2D | None = None  # of this pair; None if there is nothing to match them with
    points: PointCloud | None = None  # of this pair, in the left camera
    referenceFeatures: Features2D | None = None  # of the last pair before it with a known pose
    referencePoints: PointCloud | None = None  # in the scene


class SceneLandmarks(Node):
    """Joins the features of a left image and the points that were triangulated from them.

    `matches` are between the features of the left and of the right image, `points` have the row of their
    match (`index`), and `view` arrives by a delayed wire: the pose of the left camera in the scene.
    """

    def reset(self) -> None:
        self.memory = Memory[_LandmarkPoints]()

    def process(
        self,
        points: PointCloud,
        features: Latest[Features2D],
        matches: Latest[Correspondences2D],
        view: Latest[Pose | None] = None,
    ) -> LandmarkFeatures:
        if matches.source_index is None:
            raise UsageError("these matches have no indices of their features")
        good = select_matches(matches, np.asarray(points.fields["index"]))
        now = _LandmarkPoints(select_features(features, np.asarray(good.source_index)), points)
        before = self.memory.exchange(now, self.ctx.time, view, _move_landmarks)
        return LandmarkFeatures(good) if before is None else LandmarkFeatures(good, *now, *before)


def _move_landmarks(landmarks: _LandmarkPoints, T_scene_camera: Floats, frame: str) -> _LandmarkPoints:
    # Without fields: nobody uses the covariances, which would be rotated as well.
    bare = PointCloud(landmarks.points.points, {}, landmarks.points.t_ns, landmarks.points.frame)
    return _LandmarkPoints(landmarks.features, transform_cloud(bare, T_scene_camera, frame))


@outputs
class MatchedLandmarks:
    """Landmarks that were found again, row by row."""

    points: PointCloud  # in the scene
    projections: Features2D  # pixels in the new left image
    matches: CorrespondenceMaps3D  # from the points of the new pair to those of the scene
    inliers: Correspondences2D  # pixels in the left image of the landmarks and in the new one


class SceneSightings(Node):
    """Looks up the points of landmarks that were matched with new ones.

    `inliers` are the matches that fit an epipolar geometry. Without one, as for flat ground, all matches are
    used, and later nodes reject outliers.
    """

    def process(
        self,
        matches: Correspondences2D,
        referencePoints: Latest[PointCloud],
        points: Latest[PointCloud],
        inliers: Batch[Correspondences2D] = (),
    ) -> MatchedLandmarks:
        good = inliers[-1] if inliers else matches
        if good.source_index is None or good.sink_index is None:
            raise UsageError("these matches have no indices of their landmarks")
        known, new = select(referencePoints, good.source_index), points.points[good.sink_index]
        pixels = Features2D(good.sink, t_ns=self.ctx.time, frame=points.frame, camera=good.sink_camera)
        pairs = Correspondences3D(
            np.asarray(new, np.float64), np.asarray(known.points, np.float64), t_ns=self.ctx.time
        )
        return MatchedLandmarks(known, pixels, CorrespondenceMaps3D((pairs,), ((0, 1),), self.ctx.time), good)
