"""Where the features of one image are in the next, by its pixels and without descriptors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.vision.gray_images import gray_of
from transect.base.arrays import Mask, Singles
from transect.engine import Node, outputs, param
from transect.types import Correspondences2D, Features2D, Image


@outputs
class Tracked:
    """Features that were found again.

    Attributes
    ----------
    matches : Correspondences2D
        In the order of the features; `source_index` is their row. `probability` falls from 1 to 0 as the
        distance between a feature and what tracking back leads to grows to `consistency`.
    tracked : float
        Part of the features.
    """

    matches: Correspondences2D
    tracked: float


class FeaturesTracking2D(Node, interface=True):
    """Follows features from one image to another that was taken soon after, or by a camera nearby."""

    def process(self, sourceFrame: Image, sinkFrame: Image, sourceFeatures: Features2D) -> Tracked | None:
        if sourceFrame is sinkFrame:  # a delayed wire that another stream's sample moved on
            return self.ctx.skip("the same image twice")
        if not len(sourceFeatures):
            return self.ctx.skip("no features to follow")
        matches = self.follow(sourceFrame, sinkFrame, sourceFeatures)
        return None if matches is None else Tracked(matches, len(matches) / len(sourceFeatures))

    def follow(self, source: Image, sink: Image, features: Features2D) -> Correspondences2D | None:
        """Find features of one image in another; None, and the reason is counted, where it finds too few."""
        raise NotImplementedError


class KltTracker(FeaturesTracking2D):
    """Lucas and Kanade (1981) on a pyramid, forwards and back again."""

    window: int = param(21, ge=5, odd=True, unit="px", doc="side length of the tracking window")
    levels: int = param(3, ge=0, doc="number of pyramid levels; each doubles the motion that can be tracked")
    consistency: float = param(
        0.5, gt=0, unit="px", doc="largest distance from the start after tracking forward and back"
    )
    texture: float = param(
        1e-4, ge=0, doc="smallest eigenvalue of the gradient matrix per pixel of a tracked feature"
    )
    least: int = param(8, ge=1, doc="smallest number of tracked features")
    share: float = param(0.1, ge=0, le=1, doc="smallest share of the features that must be tracked")

    def follow(self, source: Image, sink: Image, features: Features2D) -> Correspondences2D | None:
        before, now = gray_of(source), gray_of(sink)
        points = np.ascontiguousarray(features.points, np.float32)
        there, found = self._flow(before, now, points)
        back, returned = self._flow(now, before, there)
        apart = np.hypot(*(back - points).T)
        good = found & returned & (apart <= self.consistency) & _inside(there, sink)
        rows = np.flatnonzero(good)
        if len(rows) < max(self.least, self.share * len(points)):
            return self.ctx.skip("too few features could be followed")
        probability = (1 - apart[rows] / self.consistency).astype(np.float32)
        cameras = source.camera, sink.camera
        return Correspondences2D(points[rows], there[rows], probability, rows, rows, *cameras, sink.t_ns)

    def _flow(self, one: NDArray[Any], other: NDArray[Any], points: Singles) -> tuple[Singles, Mask]:
        """Return where points (n, 2) of one image are in the other, and which were found."""
        import cv2

        cv: Any = cv2  # its stubs want a first guess
        there, status, _ = cv.calcOpticalFlowPyrLK(
            one,
            other,
            points,
            None,
            winSize=(self.window, self.window),
            maxLevel=self.levels,
            minEigThreshold=self.texture,
        )
        return there, np.ravel(status) == 1


def _inside(points: Singles, image: Image) -> Mask:
    """Return which points (n, 2) are in an image, on pixels that were measured."""
    edge = np.array([image.width, image.height]) - 0.5
    inside = np.asarray(((points >= -0.5) & (points < edge)).all(axis=1))
    if image.valid is not None:
        column, row = np.rint(points[inside]).astype(np.int64).T
        inside[inside] = image.valid[row, column]
    return inside
