"""Which feature of one image is which of another (CDFF's FeaturesMatching2D)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.engine import Node, outputs, param
from transect.errors import UsageError
from transect.types import Correspondences2D, Features2D

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
