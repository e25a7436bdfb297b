"""C08: are images too dark, or too bright."""

from __future__ import annotations

from transect.integrity.image_statistics import CameraCheck, middle
from transect.integrity.model import Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import Image

NIGHT, NOON = 60.0, 200.0
"""Mean grey levels below and above which few levels are a matter of exposure, and not of fog or a wall."""


class Exposure(CameraCheck, id="C08", group="content"):
    """Part of the pixels that are black or white, and how many grey levels are left.

    Medians over the images of a window of ``mean(I <= 5)``, ``mean(I >= 250)`` and the entropy of the grey
    levels, I from 0 to 255. The entropy counts where the mean is below 60 (DARK) or above 200 (OVEREXPOSED).
    At night a robot may be content with less: state other limits under the condition `night`.

    Motive: Document 001: "auto-exposure ... burned images"; document 004: the night datasets 25 to 28.
    """

    dark = Limit(0.15, 0.5, "DARK", "", "part of the pixels that are black")
    bright = Limit(0.15, 0.4, "OVEREXPOSED", "", "part of the pixels that are white")
    entropy = Limit(5.0, 3.0, "DARK", "bits", "information in the grey levels")

    def look(self, camera: Window[Image]) -> Finding | Unknown:
        """Count black and white pixels."""
        pictures = self.see(camera)
        if isinstance(pictures, Unknown):
            return pictures
        if pictures[0].thermal:
            return Unknown("THERMAL", "its grey levels are no light", len(pictures))
        mean, entropy = middle(pictures, "mean"), middle(pictures, "entropy")
        dark, bright = middle(pictures, "dark"), middle(pictures, "bright")
        extreme = not NIGHT <= mean <= NOON
        statistics = {"dark": dark, "bright": bright, "entropy": entropy if extreme else float("nan")}
        burned = extreme and mean > NOON
        found = {"mean": mean, "entropy": entropy}
        return Finding(statistics, len(pictures), found, reason="OVEREXPOSED" if burned else "")
