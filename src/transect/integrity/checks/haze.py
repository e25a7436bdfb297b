"""C10: is there a veil over images, in any scene."""

from __future__ import annotations

import numpy as np

from transect.integrity.image_statistics import CameraCheck, middle
from transect.integrity.model import Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import Image

PLAIN = 0.15
"""Local contrast above which there is no veil, however bright the scene."""
VEILED = 0.85
"""Transmission above which images without contrast are dark, smooth or blurred, and not veiled."""
BURNED = 0.4
"""Part of an image that is white, from which on it is overexposed and nothing is said of the air."""
EDGE = 0.1
"""Local contrast (p99) above which there is an edge."""
NOISE, SCENE = 0.02, 1.8
"""Local contrast (p90), and the same over the median, below which there may be nothing but noise."""
DOUBT = 0.2
"""Smallest score of images that may show a wall."""


class Haze(CameraCheck, id="C10", group="content"):
    """How much light comes through, by the dark channel, and how much contrast is left in small parts.

    ``transmission = 1 - 0.95 median(dark) / A``: dark is the smallest colour within 15 x 15 pixels of the
    image reduced to 160 columns, A its 99th percentile of brightness. ``contrast``: 90th percentile of
    std / mean within 3 x 3 of these pixels. Bright ground has no dark pixels either, but contrast: the
    transmission counts where the contrast is at most 0.15, the contrast where the transmission is at most
    0.85. A wall before the camera has no contrast either: where the 99th percentile is above 0.1 (an edge),
    or the 90th below 0.02 and less than 1.8 times the median (noise alone), it is SUSPECT and never BAD.
    Water on the lens looks the same as haze.

    Motive: Document 004, 5.3: what smoke and dust do to colour images.
    """

    transmission = Limit(0.6, 0.3, "HAZE", "", "part of the scene's light that comes through")
    contrast = Limit(0.1, 0.03, "HAZE", "", "local contrast of the clearest parts")

    def look(self, camera: Window[Image]) -> Finding | Unknown:
        """Measure the veil."""
        pictures = self.see(camera)
        if isinstance(pictures, Unknown):
            return pictures
        if pictures[0].thermal:
            return Unknown("THERMAL", "its grey levels are no light", len(pictures))
        if middle(pictures, "bright") > BURNED:
            return Unknown("OVEREXPOSED", "white pixels have no contrast", len(pictures))
        light = middle(pictures, "transmission")
        usual, contrast, edge = np.median([picture.contrasts for picture in pictures], axis=0).tolist()
        statistics = {
            "transmission": light if contrast <= PLAIN else 1.0,
            "contrast": contrast if light <= VEILED else np.nan,
        }
        found = {"measured": light, "local_contrast": contrast, "strongest": edge}
        doubtful = edge > EDGE or contrast < min(NOISE, SCENE * usual)
        unclear = doubtful and contrast < self.contrast.warn
        note = "a wall close to the camera looks the same" if unclear else ""
        return Finding(statistics, len(pictures), found, note=note, floor=DOUBT if doubtful else 0.0)
