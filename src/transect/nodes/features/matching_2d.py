"""Correspondences between two images, by descriptors (CDFF's FeaturesMatching2D) or by optical flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.vision.image_conversion import gray_of
from transect.base.arrays import Floats, Ints, Mask, Singles
from transect.engine import Node, outputs, param
from transect.errors import UsageError
from transect.types import Correspondences2D, Features2D, Image

LSH = {"algorithm": 6, "table_number": 12, "key_size": 20, "multi_probe_level": 2}
KD_TREES = {"algorithm": 1, "trees": 4}
"""FLANN's indices for binary and for other descriptors, numbered as it does."""


@outputs
class Matched:
    """Matches of two sets of features.

    Attributes
    ----------
    matches : Correspondences2D
        In the order of the source's features. `probability` is 1 - d1/d2 of the distances to the nearest and
        the second nearest descriptor: near 0 where the match could as well be another.
    matched : float
        Matches as a part of the smaller set of features.
    """

    matches: Correspondences2D
    matched: float


class FeaturesMatching2D(Node, interface=True):
    """Matches features by their descriptors."""

    ratio: float = param(
        0.8,
        gt=0,
        le=1,
        doc="largest ratio of the best to the second best distance (Lowe 2004); 1: no ratio test",
    )
    cross_check: bool = param(True, doc="whether a match must be the best one in both directions")
    least: int = param(8, ge=1, doc="smallest number of matches; a fundamental matrix needs 8")

    def process(self, sourceFeatures: Features2D, sinkFeatures: Features2D) -> Matched | None:
        import cv2

        if sourceFeatures is sinkFeatures:  # a delayed wire that another stream's sample moved on
            return self.ctx.skip("the same features twice")
        one, other = _descriptors(sourceFeatures), _descriptors(sinkFeatures)
        if min(len(one), len(other)) < 2:
            return self.ctx.skip("too few features to match")
        matcher = self.make_matcher(binary=one.dtype == np.uint8)
        cv2.setRNGSeed(0)  # FLANN draws from a hidden sequence: the second call would differ from the first
        best, probability = _nearest(matcher.knnMatch(one, other, k=2), len(one))
        good = (best >= 0) & (probability >= 1 - self.ratio)
        if self.cross_check:
            back, _ = _nearest(matcher.knnMatch(other, one, k=2), len(other))
            good &= back[best] == np.arange(len(one))
        rows = np.flatnonzero(good)
        if len(rows) < self.least:
            return self.ctx.skip("too few matches")
        matches = _correspondences(sourceFeatures, sinkFeatures, rows, best[rows], probability[rows])
        return Matched(matches, len(rows) / min(len(one), len(other)))

    def make_matcher(self, binary: bool) -> Any:
        """Return an OpenCV matcher of binary descriptors, or of others."""
        raise NotImplementedError


class BruteForceMatcher(FeaturesMatching2D):
    """Compares every descriptor with every other: exact."""

    def make_matcher(self, binary: bool) -> Any:
        import cv2

        return cv2.BFMatcher(cv2.NORM_HAMMING if binary else cv2.NORM_L2)


class FlannMatcher(FeaturesMatching2D):
    """Searches trees or hash tables (Muja and Lowe 2009): faster from some thousand features, not exact."""

    checks: int = param(
        64, ge=1, doc="number of leaves that are searched; more is slower and closer to exact"
    )

    def make_matcher(self, binary: bool) -> Any:
        import cv2

        return cv2.FlannBasedMatcher(dict(LSH if binary else KD_TREES), {"checks": self.checks})


def _descriptors(features: Features2D) -> NDArray[Any]:
    if features.descriptors is None:
        raise UsageError(
            "these features have no descriptors to match",
            why=f"{len(features)} points came without",
            hint="put FeaturesDescription2D before FeaturesMatching2D, or follow them by FeaturesTracking2D",
        )
    return np.ascontiguousarray(features.descriptors)


def _nearest(found: Sequence[Sequence[Any]], n: int) -> tuple[Ints, Floats]:
    """Return the nearest of each descriptor, -1 if none, and how far it stands out; both (n,)."""
    best, probability = np.full(n, -1, np.int64), np.zeros(n)
    for row, pair in enumerate(found):
        if not pair:
            continue
        best[row] = pair[0].trainIdx
        # Hash tables may know no second: nothing then tells how ambiguous the match is.
        if len(pair) > 1 and pair[1].distance > 0:
            probability[row] = 1 - pair[0].distance / pair[1].distance
    return best, probability


def _correspondences(
    source: Features2D, sink: Features2D, rows: Ints, others: Ints, probability: Floats
) -> Correspondences2D:
    return Correspondences2D(
        source.points[rows],
        sink.points[others],
        probability.astype(np.float32),
        rows,
        others,
        source.camera,
        sink.camera,
        max(source.t_ns, sink.t_ns),
    )


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
