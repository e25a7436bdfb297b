"""Checks of single images: blur, exposure, repeated images (C07, C08, C11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.integrity.image_statistics import CameraCheck, ClearBaseline, ImageStatistics, median_of
from transect.integrity.model import Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import Image


@dataclass(frozen=True)
class BlurSettings:
    """Numbers that distinguish blur from haze, exposure and another scene."""

    # Laplacian variance over image variance, both reduced, of sharp edges, ...
    min_sharp_ratio: float = 0.3
    min_kept_ratio: float = 0.2  # ... and the same over its usual value.
    sharp_score: float = 0.2  # Minimum score of an image with sharp edges.
    max_white_ratio: float = 0.15  # Ratio of white pixels beyond which blur is undefined.
    max_haze_transmission: float = 0.8  # Haze: transmission and ...
    min_haze_brightness: float = 1.1  # ... mean, over their usual values.


class Blur(CameraCheck, id="C07", group="content"):
    """Sharpness of the images of a window over that of the last clear windows.

    ``ratio = (L / L_usual) / min(1, V / V_usual)``; L is the variance of the Laplacian, V that of the
    reduced image, medians of the window: haze and light reduce both, blur only L. Another scene has other
    edges: images with L > 0.3 V at a width of 160 pixels, and L / V more than a fifth of the usual, have
    sharp edges and are never BAD. Overexposed images, and those brightened by haze (C10), are UNKNOWN.

    Motive: Rosario: the robot's bumpy motion.
    """

    settings = BlurSettings()

    ratio = Limit(0.5, 0.2, "BLUR", "", "times the usual sharpness")

    learns_baseline = True

    def reset(self) -> None:
        """Start without a baseline."""
        self._clear = ClearBaseline()

    def evaluate(self, camera: Window[Image]) -> Finding | Unknown:
        """Compare the sharpness with its baseline."""
        pictures = self.measure(camera)
        if isinstance(pictures, Unknown):
            return pictures
        if median_of(pictures, "bright") > self.settings.max_white_ratio:
            return Unknown("OVEREXPOSED", "white pixels have no edges", len(pictures))
        now = [
            median_of(pictures, name)
            for name in ("sharpness", "variance", "transmission", "mean", "crispness")
        ]
        found = {"sharpness": now[0], "variance": now[1], "crispness": now[4]}
        if (usual := self._clear.usual) is None:
            self._clear.learn(now)
            return Unknown("LEARNING", n=len(pictures), evidence=found)
        if (
            now[2] < self.settings.max_haze_transmission * usual[2]
            and now[3] > self.settings.min_haze_brightness * usual[3]
        ):
            return Unknown("HAZE", "haze reduces the sharpness, too", len(pictures), found)
        lost = min(1.0, now[1] / max(float(usual[1]), 1e-6))
        ratio = now[0] / max(float(usual[0]) * lost, 1e-6)
        if ratio >= self.ratio.warn:
            self._clear.learn(now)
        sharp = now[4] > max(self.settings.min_sharp_ratio, self.settings.min_kept_ratio * float(usual[4]))
        return Finding(
            {"ratio": ratio}, len(pictures), found, min_score=self.settings.sharp_score if sharp else 0.0
        )


@dataclass(frozen=True)
class ExposureSettings:
    """Range of mean grey levels; outside it a low entropy is caused by exposure, not by fog or a wall."""

    min_mean_grey: float = 60.0
    max_mean_grey: float = 200.0


class Exposure(CameraCheck, id="C08", group="content"):
    """Fractions of black and white pixels, and entropy of the grey levels.

    Medians over the images of a window of ``mean(I <= 5)``, ``mean(I >= 250)`` and the entropy of the
    grey levels, I from 0 to 255. The entropy counts if the mean is below 60 (DARK) or above 200
    (OVEREXPOSED). At night a robot may accept less: set other limits under the condition `night`.

    Motive: Rosario: "auto-exposure ... burned images"; SDI: the night datasets 25 to 28.
    """

    settings = ExposureSettings()

    dark = Limit(0.15, 0.5, "DARK", "", "fraction of the pixels that are black")
    bright = Limit(0.15, 0.4, "OVEREXPOSED", "", "fraction of the pixels that are white")
    entropy = Limit(5.0, 3.0, "DARK", "bits", "entropy of the grey levels")

    def evaluate(self, camera: Window[Image]) -> Finding | Unknown:
        """Count black and white pixels."""
        pictures = self.measure(camera)
        if isinstance(pictures, Unknown):
            return pictures
        if pictures[0].thermal:
            return Unknown("THERMAL", "it measures heat, not light", len(pictures))
        mean, entropy = median_of(pictures, "mean"), median_of(pictures, "entropy")
        dark, bright = median_of(pictures, "dark"), median_of(pictures, "bright")
        extreme = not self.settings.min_mean_grey <= mean <= self.settings.max_mean_grey
        statistics = {"dark": dark, "bright": bright, "entropy": entropy if extreme else float("nan")}
        overexposed = extreme and mean > self.settings.max_mean_grey
        found = {"mean": mean, "entropy": entropy}
        return Finding(statistics, len(pictures), found, reason="OVEREXPOSED" if overexposed else "")


@dataclass(frozen=True)
class FrozenImageSettings:
    """Numbers of the comparison of consecutive images."""

    # Mean absolute difference, grey levels, below which images of a moving robot are equal.
    max_frozen_difference: float = 0.1


class FrozenImage(CameraCheck, id="C11", group="content"):
    """Number of consecutive repeats of an image, up to any image of the window.

    Images are equal if all their bytes are, or, while the robot moves, if their reduced images differ by
    less than 0.1 grey levels on average. All images between two equal ones are assumed to be equal. A
    camera that never gave two different images is not judged unless the robot is known to move.

    Motive: a driver that repeats its last buffer with new stamps.
    """

    settings = FrozenImageSettings()

    repeats = Limit(2.0, 5.0, "FROZEN_IMAGE", "images", "repeated")

    def reset(self) -> None:
        """Start without an image."""
        self._last: ImageStatistics | None = None
        self._since = 0
        self._has_changed = False

    def evaluate(self, camera: Window[Image], moving: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Compare each image with the one before."""
        pictures = self.measure(camera)
        if isinstance(pictures, Unknown):
            return pictures
        is_robot_moving = bool(is_moving(moving))
        repeats, smallest = 0, np.inf
        for picture in pictures:
            if self._last is not None:
                difference = _difference(picture, self._last)
                smallest = min(smallest, difference)
                if picture.digest == self._last.digest or (
                    is_robot_moving and difference < self.settings.max_frozen_difference
                ):
                    repeats = max(repeats, picture.row - self._since)
                else:
                    self._has_changed, self._since = True, picture.row
            else:
                self._since = picture.row
            self._last = picture
        found = {"difference": float(smallest)} if np.isfinite(smallest) else {}
        if repeats and not self._has_changed and not is_robot_moving:
            return Unknown("AT_REST", "no motion was seen yet", len(pictures), found)
        if not found:
            return Unknown("TOO_FEW", n=len(pictures))
        return Finding({"repeats": float(repeats)}, len(pictures), found)


def _difference(a: ImageStatistics, b: ImageStatistics) -> float:
    return float(np.abs(a.grey - b.grey).mean()) if a.grey.shape == b.grey.shape else np.inf
