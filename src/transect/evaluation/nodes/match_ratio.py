"""How near the descriptors of accepted matches are, against those of all."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats
from transect.engine import Node, outputs
from transect.errors import UsageError
from transect.evaluation.vision import match_quality
from transect.types import Correspondences2D, Features2D


@outputs
class MatchRatios:
    """Distances of the accepted matches against those of all.

    Attributes
    ----------
    sum : float
        Sum over the accepted matches, divided by the mean of all: CDFF's definition.
    mean : float
        Mean over the accepted matches, divided by the mean of all; below 1 where the better ones were
        accepted. This is the one to compare runs by.
    accepted : float
        Accepted matches divided by all.
    """

    sum: float
    mean: float
    accepted: float


class MatchRatio(Node):
    """Judges matches by the distances of their descriptors (CDFF's quality of FeaturesMatching2D).

    All matches are those of each source feature with the nearest sink feature.

    Inputs
    ------
    sourceFeatures, sinkFeatures
        That were matched, with descriptors.
    matches
        Those that were accepted.
    """

    def process(
        self, sourceFeatures: Features2D, sinkFeatures: Features2D, matches: Correspondences2D
    ) -> MatchRatios | None:
        if matches.source_index is None:
            raise UsageError(
                "the matches do not say which features they are of", hint="take those of FeaturesMatching2D"
            )
        accepted = np.zeros(len(sourceFeatures), np.bool_)
        accepted[matches.source_index] = True
        found = match_quality(_nearest_distances(sourceFeatures, sinkFeatures), accepted)
        if not np.isfinite(found.q_mean):
            return self.ctx.skip("no match has a distance")
        return MatchRatios(found.q_sum, found.q_mean, found.accepted / found.count)


def _nearest_distances(source: Features2D, sink: Features2D) -> Floats:
    """Return the distance (n,) from each descriptor to the nearest one of the other image."""
    import cv2

    if source.descriptors is None or sink.descriptors is None:
        raise UsageError("the features have no descriptors", hint="FeaturesDescription2D gives them")
    kind = cv2.NORM_HAMMING if source.descriptors.dtype == np.uint8 else cv2.NORM_L2
    found = cv2.BFMatcher(kind).match(source.descriptors, sink.descriptors)
    distances = np.full(len(source), np.nan)
    distances[[match.queryIdx for match in found]] = [match.distance for match in found]
    return distances
