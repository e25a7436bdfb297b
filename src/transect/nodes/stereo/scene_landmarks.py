"""Points that both cameras saw, and those of the last pair whose place is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from transect.algorithms.vision.keypoints import take_features, take_matches
from transect.base.arrays import Floats
from transect.engine import Latest, Node, outputs
from transect.errors import UsageError
from transect.nodes.cloud._scene import Memory
from transect.nodes.cloud.point_cloud_transformation import transform
from transect.types import Correspondences2D, Features2D, PointCloud, Pose


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
        good = take_matches(matches, np.asarray(points.fields["index"]))
        now = _Seen(take_features(features, np.asarray(good.source_index)), points)
        before = self.memory.after(now, self.ctx.time, view, _place)
        return Landmarks(good) if before is None else Landmarks(good, *now, *before)


def _place(seen: _Seen, T_scene_camera: Floats, frame: str) -> _Seen:
    # Covariances would be turned too, and nobody asks for them.
    bare = PointCloud(seen.points.points, {}, seen.points.t_ns, seen.points.frame)
    return _Seen(seen.features, transform(bare, T_scene_camera, frame))
