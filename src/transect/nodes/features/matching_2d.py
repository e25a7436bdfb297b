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

LSH_INDEX = {"algorithm": 6, "table_number": 12, "key_size": 20, "multi_probe_level": 2}
KD_TREE_INDEX = {"algorithm": 1, "trees": 4}
"""Parameters of FLANN's indices for binary and for other descriptors."""


@outputs
class MatchedFeatures2D:
    """Matches of two sets of features."""

    # In the order of the source's features. `probability` is 1 - d1/d2 of the distances to the nearest and
    # the second nearest descriptor: near 0 for ambiguous matches.
    matches: Correspondences2D
    matched: float  # ratio of the smaller set of features


class FeaturesMatching2D(Node, interface=True):
    """Matches features by their descriptors."""

    ratio: float = param(
        0.8,
        gt=0,
        le=1,
        doc="largest ratio of the best to the second best distance (Lowe 2004); 1: no ratio test",
    )
    cross_check: bool = param(True, doc="whether a match must be the best one in both directions")
    min_matches: int = param(8, ge=1, doc="smallest number of matches; a fundamental matrix needs 8")

    def process(self, sourceFeatures: Features2D, sinkFeatures: Features2D) -> MatchedFeatures2D | None:
        import cv2

        if sourceFeatures is sinkFeatures:  # a delayed wire, triggered by another stream
            return self.ctx.skip("the same features twice")
        one, other = _descriptors(sourceFeatures), _descriptors(sinkFeatures)
        if min(len(one), len(other)) < 2:
            return self.ctx.skip("too few features to match")
        matcher = self.make_matcher(binary=one.dtype == np.uint8)
        cv2.setRNGSeed(0)  # FLANN has hidden random state: a second call would differ from the first
        best, probability = _nearest(matcher.knnMatch(one, other, k=2), len(one))
        good = (best >= 0) & (probability >= 1 - self.ratio)
        if self.cross_check:
            reverse_matches, _ = _nearest(matcher.knnMatch(other, one, k=2), len(other))
            good &= reverse_matches[best] == np.arange(len(one))
        rows = np.flatnonzero(good)
        if len(rows) < self.min_matches:
            return self.ctx.skip("too few matches")
        matches = _correspondences(sourceFeatures, sinkFeatures, rows, best[rows], probability[rows])
        return MatchedFeatures2D(matches, len(rows) / min(len(one), len(other)))

    def make_matcher(self, binary: bool) -> Any:
        """Return an OpenCV matcher of binary descriptors, or of others."""
        raise NotImplementedError


class BruteForceMatcher(FeaturesMatching2D):
    """Exhaustive comparison of all descriptors."""

    def make_matcher(self, binary: bool) -> Any:
        import cv2

        return cv2.BFMatcher(cv2.NORM_HAMMING if binary else cv2.NORM_L2)


class FlannMatcher(FeaturesMatching2D):
    """Approximate search in trees or hash tables (Muja and Lowe 2009): faster for thousands of features."""

    checks: int = param(
        64, ge=1, doc="number of leaves that are searched; more is slower and closer to exact"
    )

    def make_matcher(self, binary: bool) -> Any:
        import cv2

        return cv2.FlannBasedMatcher(dict(LSH_INDEX if binary else KD_TREE_INDEX), {"checks": self.checks})


def _descriptors(features: Features2D) -> NDArray[Any]:
    if features.descriptors is None:
        raise UsageError(
            "these features have no descriptors to match",
            why=f"{len(features)} points have none",
            hint="put FeaturesDescription2D before FeaturesMatching2D, or track them by FeaturesTracking2D",
        )
    return np.ascontiguousarray(features.descriptors)


def _nearest(found: Sequence[Sequence[Any]], n: int) -> tuple[Ints, Floats]:
    """Return the nearest of each descriptor, -1 for none, and 1 minus the distance ratio; both (n,)."""
    best, probability = np.full(n, -1, np.int64), np.zeros(n)
    for row, pair in enumerate(found):
        if not pair:
            continue
        best[row] = pair[0].trainIdx
        # Hash tables may not find a second match; then the ambiguity is unknown.
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
class TrackedFeatures:
    """Features that were tracked to another image."""

    # In the order of the features; `source_index` is their row. `probability` decreases from 1 to 0 as the
    # error of tracking forward and back increases to `consistency`.
    matches: Correspondences2D
    tracked: float  # ratio of the features


class FeaturesTracking2D(Node, interface=True):
    """Tracks features to the next image, or to the image of a nearby camera."""

    def process(
        self, sourceFrame: Image, sinkFrame: Image, sourceFeatures: Features2D
    ) -> TrackedFeatures | None:
        if sourceFrame is sinkFrame:  # a delayed wire, triggered by another stream
            return self.ctx.skip("the same image twice")
        if not len(sourceFeatures):
            return self.ctx.skip("no features to track")
        matches = self.track(sourceFrame, sinkFrame, sourceFeatures)
        return None if matches is None else TrackedFeatures(matches, len(matches) / len(sourceFeatures))

    def track(self, source: Image, sink: Image, features: Features2D) -> Correspondences2D | None:
        """Return the tracked features; None, with a reason that is counted, if they are too few."""
        raise NotImplementedError


class KltTracker(FeaturesTracking2D):
    """Pyramidal Lucas-Kanade tracking (1981), forward and back."""

    window: int = param(21, ge=5, odd=True, unit="px", doc="side length of the tracking window")
    levels: int = param(3, ge=0, doc="number of pyramid levels; each doubles the motion that can be tracked")
    consistency: float = param(
        0.5, gt=0, unit="px", doc="largest distance from the start after tracking forward and back"
    )
    texture: float = param(
        1e-4, ge=0, doc="smallest eigenvalue of the gradient matrix per pixel of a tracked feature"
    )
    min_tracked: int = param(8, ge=1, doc="smallest number of tracked features")
    min_ratio: float = param(0.1, ge=0, le=1, doc="smallest ratio of the features that must be tracked")

    def track(self, source: Image, sink: Image, features: Features2D) -> Correspondences2D | None:
        before, now = gray_of(source), gray_of(sink)
        points = np.ascontiguousarray(features.points, np.float32)
        tracked, found = self._flow(before, now, points)
        back, returned = self._flow(now, before, tracked)
        error = np.hypot(*(back - points).T)
        good = found & returned & (error <= self.consistency) & _is_inside(tracked, sink)
        rows = np.flatnonzero(good)
        if len(rows) < max(self.min_tracked, self.min_ratio * len(points)):
            return self.ctx.skip("too few features could be tracked")
        probability = (1 - error[rows] / self.consistency).astype(np.float32)
        cameras = source.camera, sink.camera
        return Correspondences2D(points[rows], tracked[rows], probability, rows, rows, *cameras, sink.t_ns)

    def _flow(self, one: NDArray[Any], other: NDArray[Any], points: Singles) -> tuple[Singles, Mask]:
        """Return the positions of points (n, 2) in the other image, and which were found."""
        import cv2

        cv: Any = cv2  # its stubs require an initial guess
        tracked, status, _ = cv.calcOpticalFlowPyrLK(
            one,
            other,
            points,
            None,
            winSize=(self.window, self.window),
            maxLevel=self.levels,
            minEigThreshold=self.texture,
        )
        return tracked, np.ravel(status) == 1


def _is_inside(points: Singles, image: Image) -> Mask:
    """Return which points (n, 2) are on valid pixels of an image."""
    edge = np.array([image.width, image.height]) - 0.5
    inside = np.asarray(((points >= -0.5) & (points < edge)).all(axis=1))
    if image.valid is not None:
        column, row = np.rint(points[inside]).astype(np.int64).T
        inside[inside] = image.valid[row, column]
    return inside
