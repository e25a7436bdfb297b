"""E05: do the images of a stereo pair carry features, points and a pose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.evaluation.vision import FAIL, WARN
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.stereo_pairs import Glance, find_pair, glance
from transect.integrity.windows import Window
from transect.types import Image, Record

SOUND, AT_MOST_SUSPECT = 50, 0.2
"""Matches between left and right that agree with the calibration, with which the images are sound whatever is
followed from one to the next; and the score that these have at least."""
LEAST = 20
"""Matches that tell whether the calibration is right."""
KINDS = ("inliers", "roundness")
"""Last names of recorded streams of quality, as `StereoQuality` and `VisualOdometry` write them."""


class VisionChain(Check, id="E05", group="state", version=2):
    """Part and number of the points that agree on a pose, and how round the covariances of points are.

    Of each window's last stereo pair and the one before: ORB features matched between left and right and
    kept where they agree with the calibration are triangulated, matched in the later left image and laid on
    it by PnP; with four times the features where few are followed. `inliers` are the points that agree with
    that pose, divided by all that were matched; `agreeing` is the part of the matches between left and
    right that lie on their epipolar lines, before the cameras; `roundness` is the median of ``sqrt(l3 /
    l1)`` of the points' covariances. The qualities that a run recorded are judged as they are. A pair with
    50 matches that agree with the calibration is SUSPECT at most: it shows where things are, and another
    view a moment later is the motion's fault. The match ratio (mean distance of accepted matches over that
    of all) is evidence: it is 0.5 to 0.7 in clear and in blurred images alike.

    Motive: Document 003: "Low-level inliers ... always resulted in a completely off estimation".
    """

    inliers = Limit(WARN, FAIL, "INLIERS", "", "part of the points that agree on a pose")
    points = Limit(12.0, 6.0, "INLIERS", "", "points that agree on a pose")
    agreeing = Limit(0.4, 0.15, "EXTRINSIC", "", "part of the matches that agree with the calibration")
    roundness = Limit(0.002, 0.0005, "ROUNDNESS", "", "median roundness of the points' covariances")

    def look(self, stream: Window[Image | Record], others: Sequence[Window[Image]] = ()) -> Finding | Unknown:
        """Judge the last pair of a window, or what a run said of its pairs."""
        if issubclass(stream.stream.type, Record):
            return self._judge_record(stream)
        pair = find_pair(stream, others)
        if pair is None:
            return Unknown("NO_PEER", "it is not one of a stereo pair", len(stream))
        if not len(pair[0]):
            return Unknown("NO_PEER", "the other camera has no image at that time", len(stream))
        seen = glance(*pair, self.about)
        if isinstance(seen, Unknown):
            return seen
        if seen.exchanged > seen.ahead:
            return Unknown("EXCHANGED", "its left camera sees what the right one should (X09)", len(stream))
        peers = tuple(each.stream.name for each in pair if each.stream is not stream.stream)
        statistics, n, evidence = _statistics(seen)
        sound = min(statistics.get("agreeing", 0.0) / self.agreeing.warn, seen.ahead / SOUND) >= 1.0
        return Finding(statistics, n, evidence, peers=peers, floor=AT_MOST_SUSPECT if sound else 0.0)

    def _judge_record(self, stream: Window[Any]) -> Finding | Unknown:
        kind = stream.stream.name.rpartition("/")[2].lower()
        if kind not in KINDS or not stream.has("value"):
            return Unknown("NO_NUMBERS", n=len(stream))
        value = float(np.median(stream.array("value")))
        if kind == "inliers" and value > 1:
            kind = "points"
        return Finding({kind: value}, len(stream))


def _statistics(seen: Glance) -> tuple[dict[str, float], int, dict[str, float]]:
    evidence = {"features": float(seen.features), "matches": float(seen.matches), "match_ratio": seen.ratio}
    statistics = {"roundness": seen.roundness}
    if seen.matches >= LEAST:
        statistics["agreeing"] = seen.ahead / seen.matches
    if seen.followed >= 0:
        statistics["points"] = float(seen.inliers)
        statistics["inliers"] = seen.inliers / seen.followed if seen.followed else np.nan
    return statistics, 2 if seen.followed >= 0 else 1, evidence
