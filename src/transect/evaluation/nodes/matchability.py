"""How many features of an image are matched, and whether their response tells which."""

from __future__ import annotations

import numpy as np

from transect.engine import Node, outputs
from transect.errors import UsageError
from transect.evaluation.vision import matchability
from transect.types import Correspondences2D, Features2D


@outputs
class MatchedFeatures:
    """How good a set of features is for matching.

    Attributes
    ----------
    matchability : float
        Matched features divided by all.
    auc : float
        Probability that a matched feature has a larger response than one that was not matched; 0.5 if the
        response tells nothing.
    """

    matchability: float
    auc: float | None = None


class Matchability(Node):
    """Judges the features of an image by which of them were matched (CDFF's quality of FeaturesExtraction2D).

    Inputs
    ------
    features
        Of the first image of the matches.
    matches
        With the rows of those features.
    """

    def process(self, features: Features2D, matches: Correspondences2D) -> MatchedFeatures | None:
        if matches.source_index is None:
            raise UsageError(
                "the matches do not say which features they are of", hint="take those of FeaturesMatching2D"
            )
        if not len(features):
            return self.ctx.skip("there are no features")
        matched = np.zeros(len(features), np.bool_)
        matched[matches.source_index] = True
        found = matchability(matched, features.response)
        return MatchedFeatures(found.share, found.auc if np.isfinite(found.auc) else None)
