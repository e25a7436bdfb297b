"""A constant error of all disparities of a rectified pair, found without truth and taken off."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.engine import Node, outputs, param
from transect.geometry import robust
from transect.nodes.image._gray import gray_of
from transect.nodes.image._lens import calibrated
from transect.types import CameraModel, StereoPair

from ._offset import Pull, StereoTracks, combine, frame_pull, shrink, vertical_offset
from ._pairs import disparity_camera, replace_images, zero_disparity
from .vo import coarse_disparities, corners, follow

CLOSED = 0.7
"""Pixels by which a point may miss its start after a round through all four images; tenths are noise."""
WIDEST = 0.25
"""Largest disparity that is looked for, as a share of the width."""
LEAST_PULLS = 30
"""Steps that must have been looked at before no more are."""


@outputs
class Calibrated:
    """A pair whose calibration was mended, and what was wrong with it.

    Attributes
    ----------
    calibratedStereoPair : StereoPair
        The same images; the right camera's principal point was moved.
    offset : float
        Pixels that every measured disparity has too many, as far as is believed and was taken off.
    sigma : float
        Standard deviation of what was found, pixels; infinite where nothing could be.
    vertical : float
        Median of row left - row right, pixels.
    """

    calibratedStereoPair: StereoPair
    offset: float
    sigma: float
    vertical: float


class StereoOffsetCalibration(Node, interface=True):
    """Finds a constant disparity offset by asking with which one the scene moves most rigidly (`_offset`).

    A tenth of a pixel makes distances wrong by percents. What is found is written into the calibration: the
    principal point of the right camera moves, and nodes that make depth of disparities take it off. An offset
    is believed as far as it stands out of its uncertainty (`_offset.trusted`), so a camera that stands still,
    or sees nothing, or is calibrated well, changes nothing. Off, pairs pass as they are.
    """

    enabled: bool = param(True, doc="whether the disparity offset is estimated and removed")
    cell: int = param(
        40, ge=8, unit="px", doc="edge length of the squares of which the best corner is tracked"
    )
    stride: int = param(
        1, ge=1, doc="every how many pairs the motion is used; neighbouring pairs tell the same"
    )
    settled: float = param(
        0.02, gt=0, unit="px", doc="standard deviation of the offset at which the search ends"
    )

    def reset(self) -> None:
        self.pairs = 0
        self.before: Grays | None = None
        self.pulls: list[Pull] = []
        self.rows: list[float] = []

    def process(self, originalStereoPair: StereoPair) -> Calibrated | None: ...

    def looked_at(self, pair: StereoPair) -> None:
        """Take what the step to this pair says about the offset, if more is to be known."""
        number, self.pairs = self.pairs, self.pairs + 1
        begins, ends = number % self.stride == 0, (number - 1) % self.stride == 0
        if not (self.enabled and (begins or ends)) or self._is_known():
            return
        now = Grays(gray_of(pair.left), gray_of(pair.right))
        before, self.before = self.before, now
        if not ends or before is None or before.left.shape != now.left.shape:
            return
        camera = disparity_camera(pair.left, pair.right)
        tracks = stereo_tracks(before, now, self.cell)
        if len(tracks.now_left):
            self.rows.append(vertical_offset([tracks]))
        pull = frame_pull(
            _centre(tracks, zero_disparity(camera, calibrated(pair.right))), camera, self.believed[0]
        )
        self.pulls += [] if pull is None else [pull]

    def _is_known(self) -> bool:
        """Tell whether enough frames agree; of fewer nobody knows how far neighbours err alike."""
        return len(self.pulls) >= LEAST_PULLS and self.believed[1] <= self.settled

    @property
    def believed(self) -> tuple[float, float]:
        """The offset as far as it is believed, and the deviation of what was found; pixels."""
        found, sigma = combine(self.pulls)
        return shrink(found, sigma), sigma

    def mend(self, pair: StereoPair) -> Calibrated:
        """Return the pair with what is known by now taken off."""
        offset, sigma = self.believed
        vertical = float(robust.median(self.rows)) if self.rows else 0.0
        right = pair.right
        if self.pulls:
            row = calibrated(pair.left).K[1, 2] - vertical
            right = dataclasses.replace(right, camera=_shift(calibrated(right), offset, row))
        return Calibrated(replace_images(pair, pair.left, right), offset, sigma, vertical)


class RunningOffset(StereoOffsetCalibration):
    """Causal: each pair is mended by what the pairs up to it have told, until that is known well enough."""

    def process(self, originalStereoPair: StereoPair) -> Calibrated:
        self.looked_at(originalStereoPair)
        return self.mend(originalStereoPair)


class TwoPassOffset(StereoOffsetCalibration, passes=2):
    """Sees as much of the recording as it needs first, then mends all pairs alike; after the field day."""

    def process(self, originalStereoPair: StereoPair) -> Calibrated | None:
        if self.ctx.pass_index == 0:
            self.looked_at(originalStereoPair)
            return None  # what comes after it would work twice
        return self.mend(originalStereoPair)


def _shift(camera: CameraModel, offset: float, row: float) -> CameraModel:
    """Return a rectified camera with its principal point `offset` columns further left, in a row."""
    K = camera.K.copy()
    K[0, 2], K[1, 2] = K[0, 2] - offset, row
    P = None if camera.P is None else np.hstack([K, camera.P[:, 3:]])
    return dataclasses.replace(camera, K=K, P=P)


def _centre(tracks: StereoTracks, shift: float) -> StereoTracks:
    """Return tracks as cameras with equal principal points would have seen them."""
    move = partial(np.add, np.array([shift, 0.0]))
    return dataclasses.replace(
        tracks, before_right=move(tracks.before_right), now_right=move(tracks.now_right)
    )


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
