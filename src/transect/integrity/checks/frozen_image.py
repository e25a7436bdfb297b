"""C11: does a camera give one image over and over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.integrity.image_statistics import CameraCheck, Picture
from transect.integrity.model import Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import Image

SAME = 0.1
"""Mean absolute difference, grey levels, below which images of a robot that moves are the same."""


class FrozenImage(CameraCheck, id="C11", group="content"):
    """How often an image was repeated without a break, up to the end of any of the window's images.

    Images are the same if all their bytes are, or, while the robot moves, if their reduced images differ by
    less than 0.1 grey levels on average. Of two images that are the same, all between them are taken to be.
    A camera that never gave two different images is believed while the robot is not known to move.

    Motive: a driver that hands out its last buffer again and again, with new times.
    """

    repeats = Limit(2.0, 5.0, "FROZEN_IMAGE", "images", "how often one image was repeated")

    def reset(self) -> None:
        """No image was seen yet."""
        self._last: Picture | None = None
        self._since = 0
        self._alive = False

    def look(self, camera: Window[Image], moving: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Compare each image with the one before."""
        pictures = self.see(camera)
        if isinstance(pictures, Unknown):
            return pictures
        moves = bool(is_moving(moving))
        repeats, least = 0, np.inf
        for picture in pictures:
            if self._last is not None:
                difference = _difference(picture, self._last)
                least = min(least, difference)
                if picture.digest == self._last.digest or (moves and difference < SAME):
                    repeats = max(repeats, picture.row - self._since)
                else:
                    self._alive, self._since = True, picture.row
            else:
                self._since = picture.row
            self._last = picture
        found = {"difference": float(least)} if np.isfinite(least) else {}
        if repeats and not self._alive and not moves:
            return Unknown("AT_REST", "nothing has moved yet", len(pictures), found)
        if not found:
            return Unknown("TOO_FEW", n=len(pictures))
        return Finding({"repeats": float(repeats)}, len(pictures), found)


def _difference(a: Picture, b: Picture) -> float:
    return float(np.abs(a.grey - b.grey).mean()) if a.grey.shape == b.grey.shape else np.inf
