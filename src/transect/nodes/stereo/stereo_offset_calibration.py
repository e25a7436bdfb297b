"""Estimation and removal of the remaining calibration errors of rectified pairs, without ground truth."""

from __future__ import annotations

import dataclasses
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.calibration.stereo_information import LENS, StereoTracks
from transect.algorithms.calibration.stereo_lens import describe_lens, undistort_pair
from transect.algorithms.calibration.stereo_self_calibration import PairCalibrator, vertical_offset
from transect.algorithms.odometry.stereo_tracking import coarse_disparities, find_corners, track_points
from transect.algorithms.vision.image_conversion import gray_of
from transect.algorithms.vision.rectification import (
    disparity_camera,
    require_camera,
    zero_disparity,
)
from transect.engine import Node, Shape, outputs, param
from transect.geometry import robust
from transect.types import CameraModel, StereoPair


class GrayImages(NamedTuple):
    """Both images of a pair as (h, w) uint8."""

    left: NDArray[np.uint8]
    right: NDArray[np.uint8]


class PendingStep(NamedTuple):
    """The step between two pairs while its points are tracked."""

    tracks: Future[StereoTracks]
    camera: CameraModel
    shift: float  # px, distance of the principal points


@outputs
class CalibratedStereoPair:
    """A pair with corrected calibration, and the estimated errors."""

    calibratedStereoPair: StereoPair
    offset: float  # px, error of all disparities that was removed
    sigma: float  # px, standard deviation of the estimated offset; infinite if it is unobserved
    vertical: float  # px, median of row left - row right
    lens: Annotated[NDArray[np.float64], Shape(2)]  # k1 and k2 of the radial distortion that was removed


class StereoOffsetCalibration(Node, interface=True):
    """Estimates the disparity offset and residual distortion with which the scene moves most rigidly.

    A disparity offset of 0.1 px changes distances by percents. The offset is written into the calibration as
    a shift of the right camera's principal point, which nodes subtract from disparities. Significant residual
    radial distortion is removed from the images. Both are shrunk by their uncertainty, so a stationary or
    well calibrated camera is not changed. If not `enabled`, pairs pass unchanged.
    """

    calibrated = ("originalStereoPair",)

    enabled: bool = param(True, doc="whether the disparity offset is estimated and removed")
    undistort: bool = param(
        True, doc="whether residual radial distortion of the rectified images is estimated and removed"
    )
    features: int = param(300, ge=50, doc="largest number of corners per image")
    stride: int = param(
        1, ge=1, doc="use the motion of every n-th pair; neighbouring pairs have correlated errors"
    )
    settled: float = param(
        0.02, gt=0, unit="px", doc="standard deviation of the offset at which the estimation ends"
    )
    lens_settled: float = param(
        0.5,
        gt=0,
        unit="px",
        doc="standard deviation of the distortion at the edge of the image at which the estimation ends",
    )

    behind = 0
    """Number of steps that may be tracked in the background."""

    def reset(self) -> None:
        self.pairs = 0
        self.before: GrayImages | None = None
        self.steps = deque[PendingStep]()
        self.calibrator = PairCalibrator(self.undistort)
        self.rows: list[float] = []

    def process(self, originalStereoPair: StereoPair) -> CalibratedStereoPair | None:
        corrects = self.ctx.pass_index >= self.passes - 1  # only the last pass has outputs
        if self.passes == 1 or not corrects:
            self.observe(originalStereoPair)
        return self.correct(originalStereoPair) if corrects else None

    def observe(self, pair: StereoPair) -> None:
        """Add the step to this pair to the estimate, unless that is settled."""
        number, self.pairs = self.pairs, self.pairs + 1
        begins, ends = number % self.stride == 0, (number - 1) % self.stride == 0
        if not (self.enabled and (begins or ends)) or self._is_settled():
            return
        now = GrayImages(gray_of(pair.left), gray_of(pair.right))
        before, self.before = self.before, now
        if not ends or before is None or before.left.shape != now.left.shape:
            return
        camera = disparity_camera(pair.left, pair.right)
        shift = zero_disparity(camera, require_camera(pair.right))
        cell = max(round(float(np.sqrt(now.left.size / self.features))), 8)
        tracks = _tracking_thread().submit(stereo_tracks, before, now, cell)
        self.steps.append(PendingStep(tracks, camera, shift))
        self._catch_up(self.behind)

    def _catch_up(self, behind: int = 0) -> None:
        """Wait for all steps but the last `behind`, and add them to the estimate."""
        while len(self.steps) > behind:
            step = self.steps.popleft()
            tracks = step.tracks.result()
            if self._is_settled():
                continue
            if len(tracks.now_left):
                self.rows.append(vertical_offset([tracks]))
            self.calibrator.add(_align_principal_points(tracks, step.shift), step.camera)

    def freeze(self) -> dict[str, Any]:
        """Return a copy of the state without pending steps."""
        self._catch_up()
        return super().freeze()

    def _is_settled(self) -> bool:
        return self.calibrator.is_settled(self.settled, self.lens_settled)

    def correct(self, pair: StereoPair) -> CalibratedStereoPair:
        """Return the pair without the errors estimated so far."""
        self._catch_up()
        errors, sigma = self.calibrator.errors, self.calibrator.offset_sigma_px
        vertical = float(robust.median(self.rows)) if self.rows else 0.0
        left, right = pair.left, pair.right
        if errors[LENS].any():
            camera, vertical = disparity_camera(left, right), float(errors[1])
            shift = zero_disparity(camera, require_camera(right))
            left, right = undistort_pair(left, right, camera, shift, errors)
        if self.calibrator.frames:
            row = require_camera(left).K[1, 2] - vertical
            right = dataclasses.replace(right, camera=_shift(require_camera(right), float(errors[0]), row))
        found = dataclasses.replace(pair, left=left, right=right)
        return CalibratedStereoPair(found, float(errors[0]), sigma, vertical, errors[LENS])


class RunningOffset(StereoOffsetCalibration):
    """Causal: each pair is corrected by the estimate from the pairs up to it."""

    undistort: bool = param(
        False, doc="whether radial distortion is removed; the images change when it becomes significant"
    )


class TwoPassOffset(StereoOffsetCalibration, passes=2):
    """Estimates in a first pass over the recording, then corrects all pairs equally."""

    behind = 2

    def is_satisfied(self) -> bool:
        return not self.enabled or self._is_settled()

    def finish(self) -> None:
        """Complete the estimate at the end of the first pass, and report it."""
        self._catch_up()
        if self.ctx.pass_index == 0 and self.enabled and self.undistort:
            self.calibrator.relinearise()
            self.ctx.conclude(describe_lens(self.calibrator.lens))


def _shift(camera: CameraModel, offset: float, row: float) -> CameraModel:
    """Return a rectified camera with its principal point moved left by `offset`, and to a row (px)."""
    K = camera.K.copy()
    K[0, 2], K[1, 2] = K[0, 2] - offset, row
    P = None if camera.P is None else np.hstack([K, camera.P[:, 3:]])
    return dataclasses.replace(camera, K=K, P=P)


def _align_principal_points(tracks: StereoTracks, shift: float) -> StereoTracks:
    """Return tracks as observed by cameras with equal principal points."""
    move = partial(np.add, np.array([shift, 0.0]))
    return dataclasses.replace(
        tracks, before_right=move(tracks.before_right), now_right=move(tracks.now_right)
    )


@cache
def _tracking_thread() -> ThreadPoolExecutor:
    """Return the thread that tracks points while the estimate is computed."""
    return ThreadPoolExecutor(1, "tracking")


def stereo_tracks(
    before: GrayImages,
    now: GrayImages,
    cell: int,
    max_loop_error_px: float = 0.7,
    max_disparity_ratio: float = 0.25,
) -> StereoTracks:
    """Track corners through all four images of two pairs and back, and keep consistent ones.

    Parameters
    ----------
    cell : int
        Edge in pixels of the squares with one corner each.
    max_loop_error_px : float
        Largest distance of a point from its start after tracking through all four images.
    max_disparity_ratio : float
        Largest disparity of a corner relative to the width of the image.
    """
    pixels = find_corners(before.left, np.zeros((0, 2)), cell, reduction=2)
    guess = coarse_disparities(before.left, before.right, pixels, max_disparity_ratio * before.left.shape[1])
    pixels, guess = pixels[np.isfinite(guess)], guess[np.isfinite(guess)]
    offsets = np.stack([guess, np.zeros_like(guess)], axis=1)
    right, seen = track_points(before.left, before.right, pixels, pixels - offsets)
    pixels, right = pixels[seen], right[seen]
    moved, seen = track_points(before.left, now.left, pixels, pixels)
    pixels, right, moved = pixels[seen], right[seen], moved[seen]
    moved_right, seen = track_points(now.left, now.right, moved, moved - pixels + right)
    pixels, right, moved, moved_right = pixels[seen], right[seen], moved[seen], moved_right[seen]
    looped, seen = track_points(now.right, before.right, moved_right, right)
    good = seen & (np.linalg.norm(looped - right, axis=1) < max_loop_error_px)
    return StereoTracks(pixels[good], right[good], moved[good], moved_right[good])
