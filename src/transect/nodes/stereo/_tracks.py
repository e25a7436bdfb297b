"""Points seen by both cameras of a pair, and by both again in the next pair."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._offset import StereoTracks
from ._vo_tracking import coarse_disparities, corners, follow

CLOSED = 0.7
"""Pixels by which a point may miss its start after a round through all four images; tenths are noise."""
WIDEST = 0.25
"""Largest disparity that is looked for, as a share of the width."""


class Grays(NamedTuple):
    """Both images of a pair as (h, w) uint8."""

    left: NDArray[np.uint8]
    right: NDArray[np.uint8]


def stereo_tracks(before: Grays, now: Grays, cell: int) -> StereoTracks:
    """Follow corners from the left image before to the right one, to the left one now, and round.

    Parameters
    ----------
    cell : int
        Pixels: of each square of this edge the best corner is taken.
    """
    pixels = corners(before.left, np.zeros((0, 2)), cell)
    guess = coarse_disparities(before.left, before.right, pixels, WIDEST * before.left.shape[1])
    pixels, guess = pixels[np.isfinite(guess)], guess[np.isfinite(guess)]
    beside = np.stack([guess, np.zeros_like(guess)], axis=1)
    right, seen = follow(before.left, before.right, pixels, pixels - beside)
    moved, still = follow(before.left, now.left, pixels, pixels)
    moved_right, both = follow(now.left, now.right, moved, moved - pixels + right)
    round_, back = follow(now.right, before.right, moved_right, right)
    good = seen & still & both & back & (np.linalg.norm(round_ - right, axis=1) < CLOSED)
    return StereoTracks(pixels[good], right[good], moved[good], moved_right[good])
