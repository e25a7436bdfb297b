"""C07: are images less sharp than usual."""

from __future__ import annotations

from transect.integrity.image_statistics import CameraCheck, Clear, middle
from transect.integrity.model import Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import Image

CRISP, KEPT = 0.3, 0.2
"""Variance of the Laplacian over that of the reduced image, and over the usual, above which it is sharp."""
DOUBT = 0.2
"""Smallest score of an image that has sharp edges."""
BURNED, VEILED, LIT = 0.15, 0.8, 1.1
"""White part of the pixels; transmission and mean over the usual: beyond them blur cannot be told."""


class Blur(CameraCheck, id="C07", group="content"):
    """Sharpness of the images of a window over that of the last clear windows.

    ``ratio = (L / L_usual) / min(1, V / V_usual)``, L the variance of the Laplacian, V that of the reduced
    image, medians of the window: haze and light take from both, blur only from L. Another scene has other
    edges: images with L > 0.3 V when 160 pixels wide, and L / V more than a fifth of the usual, have sharp
    ones, and are never BAD. Nothing is said of overexposed images, and where haze (C10) brightens them.

    Motive: Document 001: the robot's bumpy motion.
    """

    ratio = Limit(0.5, 0.2, "BLUR", "", "sharpness over the usual one")

    learns_baseline = True

    def reset(self) -> None:
        """Nothing is usual yet."""
        self._clear = Clear()

    def look(self, camera: Window[Image]) -> Finding | Unknown:
        """Compare sharpness with the usual one."""
        pictures = self.see(camera)
        if isinstance(pictures, Unknown):
            return pictures
        if middle(pictures, "bright") > BURNED:
            return Unknown("OVEREXPOSED", "white pixels have no edges", len(pictures))
        now = [
            middle(pictures, name) for name in ("sharpness", "variance", "transmission", "mean", "crispness")
        ]
        found = {"sharpness": now[0], "variance": now[1], "crispness": now[4]}
        if (usual := self._clear.usual) is None:
            self._clear.learn(now)
            return Unknown("LEARNING", n=len(pictures), evidence=found)
        if now[2] < VEILED * usual[2] and now[3] > LIT * usual[3]:
            return Unknown("HAZE", "haze takes edges, too", len(pictures), found)
        lost = min(1.0, now[1] / max(float(usual[1]), 1e-6))
        ratio = now[0] / max(float(usual[0]) * lost, 1e-6)
        if ratio >= self.ratio.warn:
            self._clear.learn(now)
        sharp = now[4] > max(CRISP, KEPT * float(usual[4]))
        return Finding({"ratio": ratio}, len(pictures), found, floor=DOUBT if sharp else 0.0)
