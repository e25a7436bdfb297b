"""Checks of stereo pairs: exchanged cameras, and features, points and pose (X09, E05)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.evaluation.vision import FAIL_INLIER_RATIO, WARN_INLIER_RATIO
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.stereo_pairs import PairQuality, find_pair, pair_quality
from transect.integrity.windows import Window
from transect.types import Image, Record

CAMERAS_EXCHANGED = "the left and the right camera are exchanged; exchange their streams or their tags"
CAMERA_TURNED = "one of the cameras has turned towards the other; check their mounts and calibrate again"


@dataclass(frozen=True)
class SidesSettings:
    """Numbers of the comparison of the two assignments."""

    min_matches: int = 20  # Matches in front of the cameras, for the better assignment.


class Sides(Check, id="X09", group="cross"):
    """Fraction of the matches of a stereo pair in front of the cameras only if these are exchanged.

    ORB features are matched between both images. Matches on their epipolar lines whose rays meet in front
    of the cameras are counted for both assignments of the images: ``n_exchanged / (n + n_exchanged)``. In
    rectified images exchanged cameras have negative disparities. Cameras that were right at first are not
    exchanged later: then one of them has turned.

    Motive: Mistakes of descriptions: topics or folders of the two cameras are confused.
    """

    settings = SidesSettings()

    exchanged = Limit(0.5, 0.8, "EXTRINSIC", "", "fraction of the matches that fit exchanged cameras only")

    def reset(self) -> None:
        """Start without a pair."""
        self._was_right = False

    def evaluate(self, camera: Window[Image], others: Sequence[Window[Image]] = ()) -> Finding | Unknown:
        """Try both assignments on the last pair of a window."""
        pair = find_pair(camera, others)
        if pair is None or not len(pair[0]):
            return Unknown("NO_PEER", "it is not one of a stereo pair", len(camera))
        quality = pair_quality(*pair, self.context)
        if isinstance(quality, Unknown):
            return quality
        if max(quality.in_front, quality.in_front_exchanged) < self.settings.min_matches:
            return Unknown("TOO_FEW", "too few features are in both images", len(camera))
        share = quality.in_front_exchanged / (quality.in_front + quality.in_front_exchanged)
        peers = tuple(each.stream.name for each in pair if each.stream is not camera.stream)
        evidence = {"ahead": float(quality.in_front), "ahead_exchanged": float(quality.in_front_exchanged)}
        self._was_right |= share <= self.exchanged.warn
        note = "" if share <= self.exchanged.warn else CAMERA_TURNED if self._was_right else CAMERAS_EXCHANGED
        return Finding({"exchanged": share}, 1, evidence, note=note, peers=peers)


QUALITY_NAMES = ("inliers", "roundness")
"""Last parts of the names of the quality streams of `StereoQuality` and `VisualOdometry`."""


@dataclass(frozen=True)
class VisionChainSettings:
    """Numbers of a sound stereo pair."""

    # Consistent left-right matches with which a pair is sound, however few points are tracked; ...
    sound_matches: int = 50
    sound_score: float = 0.2  # ... its minimum score.
    min_matches: int = 20  # Matches that can show a wrong calibration.


class VisionChain(Check, id="E05", group="state", version=2):
    """Ratio and number of PnP inliers, and shape of the point covariances, of a stereo pair.

    ORB features of the last pair of a window and of the pair before are matched between left and right,
    and triangulated if they agree with the calibration, then matched in the later left image, whose pose
    is estimated by PnP; with four times as many features if few are tracked. `inliers` are the points
    that agree with the pose over all that were matched; `agreeing` is the ratio of left-right matches on
    their epipolar lines and in front of the cameras; `roundness` is the median of ``sqrt(l3 / l1)`` of
    the points' covariances. The qualities that a run recorded are judged directly. A pair with 50
    consistent matches is SUSPECT at most: it shows the scene, and another view a moment later is caused
    by motion. The match ratio (mean distance of accepted matches over that of all) is only evidence, as
    it is 0.5 to 0.7 in clear and in blurred images.

    Motive: CDFF: "Low-level inliers ... always resulted in a completely off estimation".
    """

    settings = VisionChainSettings()

    inliers = Limit(
        WARN_INLIER_RATIO,
        FAIL_INLIER_RATIO,
        "INLIERS",
        "",
        "fraction of the tracked points that are PnP inliers",
    )
    points = Limit(12.0, 6.0, "INLIERS", "", "PnP inliers")
    agreeing = Limit(0.4, 0.15, "EXTRINSIC", "", "fraction of the matches that agree with the calibration")
    roundness = Limit(0.002, 0.0005, "ROUNDNESS", "", "median roundness of the points' covariances")

    def evaluate(
        self, stream: Window[Image | Record], others: Sequence[Window[Image]] = ()
    ) -> Finding | Unknown:
        """Judge the last pair of a window, or the qualities that a run recorded."""
        if issubclass(stream.stream.type, Record):
            return self._judge_record(stream)
        pair = find_pair(stream, others)
        if pair is None:
            return Unknown("NO_PEER", "it is not one of a stereo pair", len(stream))
        if not len(pair[0]):
            return Unknown("NO_PEER", "the other camera has no image at that time", len(stream))
        quality = pair_quality(*pair, self.context)
        if isinstance(quality, Unknown):
            return quality
        if quality.in_front_exchanged > quality.in_front:
            return Unknown("EXCHANGED", "left and right camera are exchanged (X09)", len(stream))
        peers = tuple(each.stream.name for each in pair if each.stream is not stream.stream)
        statistics, n, evidence = _statistics(quality, self.settings)
        sound = (
            min(
                statistics.get("agreeing", 0.0) / self.agreeing.warn,
                quality.in_front / self.settings.sound_matches,
            )
            >= 1.0
        )
        return Finding(
            statistics, n, evidence, peers=peers, min_score=self.settings.sound_score if sound else 0.0
        )

    def _judge_record(self, stream: Window[Any]) -> Finding | Unknown:
        kind = stream.stream.name.rpartition("/")[2].lower()
        if kind not in QUALITY_NAMES or not stream.has("value"):
            return Unknown("NO_NUMBERS", n=len(stream))
        value = float(np.median(stream.array("value")))
        if kind == "inliers" and value > 1:
            kind = "points"
        return Finding({kind: value}, len(stream))


def _statistics(
    quality: PairQuality, settings: VisionChainSettings
) -> tuple[dict[str, float], int, dict[str, float]]:
    evidence = {
        "features": float(quality.features),
        "matches": float(quality.matches),
        "match_ratio": quality.ratio,
    }
    statistics = {"roundness": quality.roundness}
    if quality.matches >= settings.min_matches:
        statistics["agreeing"] = quality.in_front / quality.matches
    if quality.tracked >= 0:
        statistics["points"] = float(quality.inliers)
        statistics["inliers"] = quality.inliers / quality.tracked if quality.tracked else np.nan
    return statistics, 2 if quality.tracked >= 0 else 1, evidence
