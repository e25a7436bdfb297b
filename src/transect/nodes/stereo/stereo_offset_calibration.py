"""What rectification left wrong in a pair, found without truth and taken off."""

from __future__ import annotations

import dataclasses
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.engine import Node, Shape, outputs, param
from transect.geometry import robust
from transect.nodes.image._gray import gray_of
from transect.nodes.image._lens import require_camera
from transect.types import CameraModel, StereoPair

from ._pairs import disparity_camera, replace_images, zero_disparity
from .calibration import (
    LENS,
    LENS_KNOWN,
    Evidence,
    LensEstimate,
    StereoTracks,
    describe_lens,
    estimate_lens,
    estimate_offset,
    faults_of,
    frame_evidence,
    shrink,
    straighten_pair,
    vertical_offset,
)
from .vo import coarse_disparities, corners, follow

CLOSED = 0.7
"""Pixels by which a point may miss its start after a round through all four images; tenths are noise."""
WIDEST = 0.25
"""Largest disparity that is looked for, as a share of the width."""
LEAST_PULLS, MOST_PULLS = 30, 200
"""Steps that must have been looked at before no more are; and at most, where a drive never tells the lens."""


class Grays(NamedTuple):
    """Both images of a pair as (h, w) uint8."""

    left: NDArray[np.uint8]
    right: NDArray[np.uint8]


class Step(NamedTuple):
    """Two pairs whose points are being followed, and the pixels by which principal points differ."""

    tracks: Future[StereoTracks]
    camera: CameraModel
    shift: float


@outputs
class Calibrated:
    """A pair whose calibration was mended, and what was wrong with it.

    Attributes
    ----------
    calibratedStereoPair : StereoPair
        The right camera's principal point was moved; where a lens was found, the images are straightened.
    offset : float
        Pixels that every measured disparity has too many, as far as is believed and was taken off.
    sigma : float
        Standard deviation of what was found, pixels; infinite where nothing could be.
    vertical : float
        Median of row left - row right, pixels.
    lens : (2,)
        k1 and k2 of the radial distortion that the images had, as far as is believed and was taken out; 0
        where the drive cannot tell, or nothing stands out.
    """

    calibratedStereoPair: StereoPair
    offset: float
    sigma: float
    vertical: float
    lens: Annotated[NDArray[np.float64], Shape(2)]


class StereoOffsetCalibration(Node, interface=True):
    """Finds a constant disparity offset, and a lens, by asking with which the scene moves most rigidly.

    A tenth of a pixel makes distances wrong by percents. What is found is written into the calibration: the
    principal point of the right camera moves, and nodes that make depth of disparities take it off. An offset
    is believed as far as it stands out of its uncertainty (`shrink`), so a camera that stands still,
    or sees nothing, or is calibrated well, changes nothing. Radial distortion that rectification left is
    believed if it is known to a pixel at the edge of the image: turns tell it, a straight street does not.
    Then the images are straightened. Off, pairs pass as they are.
    """

    enabled: bool = param(True, doc="whether the disparity offset is estimated and removed")
    straighten: bool = param(
        True, doc="whether radial distortion that is left in rectified images is estimated and removed"
    )
    cell: int = param(
        40, ge=8, unit="px", doc="edge length of the squares of which the best corner is tracked"
    )
    stride: int = param(
        1, ge=1, doc="every how many pairs the motion is used; neighbouring pairs tell the same"
    )
    settled: float = param(
        0.02, gt=0, unit="px", doc="standard deviation of the offset at which the search ends"
    )

    behind = 0
    """Steps whose points may still be followed while the next pair is taken."""

    def reset(self) -> None:
        self.pairs = 0
        self.before: Grays | None = None
        self.steps = deque[Step]()
        self.evidence: list[Evidence] = []
        self.lens: LensEstimate | None = None
        self.offset = 0.0, float("inf")
        self.rows: list[float] = []

    def process(self, originalStereoPair: StereoPair) -> Calibrated | None:
        mends = self.ctx.pass_index >= self.passes - 1  # before the last pass nothing is given
        if self.passes == 1 or not mends:
            self.look_at(originalStereoPair)
        return self.mend(originalStereoPair) if mends else None

    def look_at(self, pair: StereoPair) -> None:
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
        shift = zero_disparity(camera, require_camera(pair.right))
        tracks = _tracking_thread().submit(stereo_tracks, before, now, self.cell)
        self.steps.append(Step(tracks, camera, shift))
        self._catch_up(self.behind)

    def _catch_up(self, behind: int = 0) -> None:
        """Take in all steps but so many."""
        while len(self.steps) > behind:
            self._take_in(self.steps.popleft())

    def freeze(self) -> dict[str, Any]:
        """Return a copy of its state, in which no step is under way."""
        self._catch_up()
        return super().freeze()

    def _take_in(self, step: Step) -> None:
        """Wait for the points of a step, and learn from them unless enough is known meanwhile."""
        tracks, camera = step.tracks.result(), step.camera
        if self._is_known():
            return
        if len(tracks.now_left):
            self.rows.append(vertical_offset([tracks]))
        tracks = _centre(tracks, step.shift)
        found = frame_evidence(tracks, camera, self.faults)
        if found is not None:
            self.evidence.append(found)
            self._conclude(camera)

    def _is_known(self) -> bool:
        """Tell whether enough frames agree; of fewer nobody knows how far neighbours err alike."""
        if len(self.evidence) < LEAST_PULLS:
            return False
        known = not self.straighten or self.lens is None or self.lens.sigma_px <= LENS_KNOWN
        return (known and self.offset[1] <= self.settled) or len(self.evidence) >= MOST_PULLS

    def _conclude(self, camera: CameraModel) -> None:
        """Put together what all frames so far say: the lens, then the offset that goes with it."""
        if self.straighten:
            self.lens = estimate_lens(self.evidence, camera)
        self.offset = estimate_offset(self.evidence, self.lens)

    @property
    def faults(self) -> Floats:
        """What is wrong with the pair (14,), as far as is believed."""
        others = np.zeros(0) if self.lens is None else self.lens.faults[1:]
        faults = faults_of(shrink(*self.offset))
        faults[1 : 1 + len(others)] = others
        return faults

    def mend(self, pair: StereoPair) -> Calibrated:
        """Return the pair with what is known by now taken off."""
        self._catch_up()
        faults, sigma = self.faults, self.offset[1]
        vertical = float(robust.median(self.rows)) if self.rows else 0.0
        left, right = pair.left, pair.right
        if faults[LENS].any():
            camera, vertical = disparity_camera(left, right), float(faults[1])
            shift = zero_disparity(camera, require_camera(right))
            left, right = straighten_pair(left, right, camera, shift, faults)
        if self.evidence:
            row = require_camera(left).K[1, 2] - vertical
            right = dataclasses.replace(right, camera=_shift(require_camera(right), float(faults[0]), row))
        found = replace_images(pair, left, right)
        return Calibrated(found, float(faults[0]), sigma, vertical, faults[LENS])


class RunningOffset(StereoOffsetCalibration):
    """Causal: each pair is mended by what the pairs up to it have told, until that is known well enough."""

    straighten: bool = param(
        False, doc="whether radial distortion is removed as well; when it is found, the images change at once"
    )


class TwoPassOffset(StereoOffsetCalibration, passes=2):
    """Sees as much of the recording as it needs first, then mends all pairs alike; after the field day."""

    behind = 2

    def is_satisfied(self) -> bool:
        return not self.enabled or self._is_known()

    def finish(self) -> None:
        """Say what was found, once the recording was looked at."""
        self._catch_up()
        if self.ctx.pass_index == 0 and self.enabled and self.straighten:
            self.ctx.conclude(describe_lens(self.lens))


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


@cache
def _tracking_thread() -> ThreadPoolExecutor:
    """Return the thread that follows points: what they say about the offset is computed meanwhile."""
    return ThreadPoolExecutor(1, "tracking")


def stereo_tracks(before: Grays, now: Grays, cell: int) -> StereoTracks:
    """Follow corners from the left image before to the right one, to the left one now, and round.

    Parameters
    ----------
    cell : int
        Pixels: of each square of this edge the best corner is taken.
    """
    pixels = corners(before.left, np.zeros((0, 2)), cell, reduced=2)
    guess = coarse_disparities(before.left, before.right, pixels, WIDEST * before.left.shape[1])
    pixels, guess = pixels[np.isfinite(guess)], guess[np.isfinite(guess)]
    beside = np.stack([guess, np.zeros_like(guess)], axis=1)
    right, seen = follow(before.left, before.right, pixels, pixels - beside)
    pixels, right = pixels[seen], right[seen]
    moved, seen = follow(before.left, now.left, pixels, pixels)
    pixels, right, moved = pixels[seen], right[seen], moved[seen]
    moved_right, seen = follow(now.left, now.right, moved, moved - pixels + right)
    pixels, right, moved, moved_right = pixels[seen], right[seen], moved[seen], moved_right[seen]
    round_, seen = follow(now.right, before.right, moved_right, right)
    good = seen & (np.linalg.norm(round_ - right, axis=1) < CLOSED)
    return StereoTracks(pixels[good], right[good], moved[good], moved_right[good])
