"""Known points of a scene, where they are seen again."""

from __future__ import annotations

import numpy as np

from transect.algorithms.clouds.selection import select
from transect.engine import Batch, Latest, Node, outputs
from transect.errors import UsageError
from transect.types import CorrespondenceMaps3D, Correspondences2D, Correspondences3D, Features2D, PointCloud


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
