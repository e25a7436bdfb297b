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
        before = self.memory.after(cloud, self.ctx.time, view, transform_cloud)
        return None if before is None else CloudPair(cloud, before)


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
        before = self.memory.after(features, self.ctx.time, view, _move_features)
        return None if before is None else FeaturesPair(features, before)


def _move_features(features: Features3D, T_scene_cloud: Floats, frame: str) -> Features3D:
    points = se3.apply(T_scene_cloud, features.points)
    normals = None if features.normals is None else features.normals @ T_scene_cloud[:3, :3].T
    return replace(features, points=points, normals=normals, frame=frame)


class SceneKeypoints(Node):
    """The points of features as a cloud, with their normals, so that they can be registered like one."""

    out_name = "pointCloud"

    def process(self, features: Features3D) -> PointCloud:
        fields = {} if features.normals is None else {"normal": features.normals}
        return PointCloud(features.points, fields, features.t_ns, features.frame)


class SceneModel(Node):
    """The model so far with every n-th cloud that was added, and once more when all are in.

    Points that too few pictures agree on are left out, where the cloud counts them (`count`).
    """

    out_name = "pointCloud"
    after: int = param(0, ge=0, doc="number of clouds after which the model is emitted; 0: once, at the end")
    least: int = param(1, ge=1, doc="smallest number of measurements of a point of the model")

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
        sure = self.model if count is None else select(self.model, count >= self.least)
        return replace(sure, t_ns=self.ctx.time)


class SceneSurface(Node):
    """The points of a stereo cloud whose distance is known well enough, by their `sigma_along`.

    How far that reaches depends on the cameras: the deviation grows with the square of the distance, and
    falls with baseline and focal length.
    """

    out_name = "surface"
    max_sigma: float = param(0.25, gt=0, unit="m", doc="largest standard deviation of a point along its ray")
    least: int = param(500, ge=1, doc="smallest number of points of a surface")

    def process(self, cloud: PointCloud) -> PointCloud | None:
        sigma = cloud.fields.get("sigma_along")
        sure = cloud if sigma is None else select(cloud, np.flatnonzero(sigma <= self.max_sigma))
        return sure if len(sure) >= self.least else self.ctx.skip("too little is near enough to be measured")


class _Seen(NamedTuple):
    """Features of a left image, and their points: row by row the same."""

    features: Features2D
    points: PointCloud


@outputs
class Landmarks:
    """Features of left images with their points in space, row by row.

    Attributes
    ----------
    matches : Correspondences2D
        Between the left and the right image of this pair, of features that became points.
    features, points : Features2D, PointCloud
        Of this pair; points in the left camera. None as long as there is nothing to match them with.
    referenceFeatures, referencePoints : Features2D, PointCloud
        Of the last pair before it whose pose is known; points in the scene.
    """

    matches: Correspondences2D
    features: Features2D | None = None
    points: PointCloud | None = None
    referenceFeatures: Features2D | None = None
    referencePoints: PointCloud | None = None


class SceneLandmarks(Node):
    """Puts together the features of a left image and the points that were triangulated of them.

    `matches` are between the features of the left and of the right image, `points` have the row of their
    match (`index`), and `view` comes back by a delayed wire: the pose of the left camera in the scene.
    """

    def reset(self) -> None:
        self.memory = Memory[_Seen]()

    def process(
        self,
        points: PointCloud,
        features: Latest[Features2D],
        matches: Latest[Correspondences2D],
        view: Latest[Pose | None] = None,
    ) -> Landmarks:
        if matches.source_index is None:
            raise UsageError("these matches do not say which features they are of")
        good = select_matches(matches, np.asarray(points.fields["index"]))
        now = _Seen(select_features(features, np.asarray(good.source_index)), points)
        before = self.memory.after(now, self.ctx.time, view, _move_landmarks)
        return Landmarks(good) if before is None else Landmarks(good, *now, *before)


def _move_landmarks(seen: _Seen, T_scene_camera: Floats, frame: str) -> _Seen:
    # Covariances would be turned too, and nobody asks for them.
    bare = PointCloud(seen.points.points, {}, seen.points.t_ns, seen.points.frame)
    return _Seen(seen.features, transform_cloud(bare, T_scene_camera, frame))


@outputs
class Sightings:
    """Points that were found again.

    Attributes
    ----------
    points : PointCloud
        In the scene.
    projections : Features2D
        Their pixels in the new left image; row i is that of point i.
    matches : CorrespondenceMaps3D
        The same points, from where the new pair has them to where they are in the scene.
    inliers : Correspondences2D
        Their pixels, in the left image that they are known from and in the new one.
    """

    points: PointCloud
    projections: Features2D
    matches: CorrespondenceMaps3D
    inliers: Correspondences2D


class SceneSightings(Node):
    """Takes matches of landmarks with new ones to the points that they are of.

    `inliers` are those of the matches that fit an epipolar geometry. Where none was found, as flat ground
    determines none, all matches are taken, and whoever uses them sorts them out.
    """

    def process(
        self,
        matches: Correspondences2D,
        referencePoints: Latest[PointCloud],
        points: Latest[PointCloud],
        inliers: Batch[Correspondences2D] = (),
    ) -> Sightings:
        good = inliers[-1] if inliers else matches
        if good.source_index is None or good.sink_index is None:
            raise UsageError("these matches do not say which landmarks they are of")
        known, new = select(referencePoints, good.source_index), points.points[good.sink_index]
        pixels = Features2D(good.sink, t_ns=self.ctx.time, frame=points.frame, camera=good.sink_camera)
        pairs = Correspondences3D(
            np.asarray(new, np.float64), np.asarray(known.points, np.float64), t_ns=self.ctx.time
        )
        return Sightings(known, pixels, CorrespondenceMaps3D((pairs,), ((0, 1),), self.ctx.time), good)
