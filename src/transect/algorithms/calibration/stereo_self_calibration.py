"""Recursive estimation of the calibration errors of a rectified pair from the frames of a drive.

Rectification with a small error adds a constant to every disparity, and a stereo odometry then measures every
step too long or too short by about the same percentage. The disparity offset is estimated as the one with
which points move most rigidly (`stereo_information`), the residual distortion by `stereo_lens`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import robust
from transect.types import CameraModel

from .stereo_information import (
    CALIBRATION_ERROR_SIGMAS,
    FrameInformation,
    OffsetMeasurement,
    StereoTracks,
    frame_information,
    long_run_covariance,
    offset_only,
)
from .stereo_lens import LensEstimate, estimate_lens


@dataclass(frozen=True)
class SelfCalibrationSettings:
    """Settings of the recursive estimation."""

    # Bias of tracked points that is common to all disparities; the residuals do not contain it.
    tracking_bias_px: float = 0.03
    # Fewer frames do not determine the correlation of their errors, and so the uncertainty of the result.
    min_frames: int = 30
    # Stored frames, about 20 kB each. When more arrive, every second one is dropped and the stride is
    # doubled, so that a long drive is covered evenly.
    max_frames: int = 1000
    # Gauss-Newton steps over all frames at the end of the estimation; a distortion of 9 px needs two.
    max_relinearisations: int = 3


SETTINGS = SelfCalibrationSettings()


def estimate_offset(frames: Sequence[FrameInformation], lens: LensEstimate | None) -> tuple[float, float]:
    """Return the disparity offset with its Gaussian prior, and its standard deviation, both in pixels.

    If other errors are removed, it is the offset that was estimated jointly with them.
    """
    errors = offset_only() if lens is None else lens.errors
    pulls = [each.measure_offset(errors) for each in frames]
    delta, sigma = combine_offsets([pull for pull in pulls if pull is not None])
    if not np.isfinite(sigma):
        return delta, sigma
    if errors.any() and lens is not None:
        return float(errors[0]), max(sigma, lens.offset_sigma_px)
    gain = 1 / (1 + (sigma / CALIBRATION_ERROR_SIGMAS["offset"]) ** 2)
    return gain * delta, float(np.sqrt(gain)) * sigma


def combine_offsets(pulls: Sequence[OffsetMeasurement]) -> tuple[float, float]:
    """Return the weighted mean offset of many frames, and its standard deviation, both in pixels."""
    if not pulls:
        return 0.0, float("inf")
    offsets, information = np.array([[pull.delta_px, pull.information] for pull in pulls]).T
    total = np.sum(information)
    delta = float(np.sum(information * offsets) / total)
    scores = information * (offsets - delta) / total
    sandwich = max(float(scores @ scores), float(long_run_covariance(scores[:, None])[0, 0]))
    return delta, float(np.sqrt(max(1 / total, sandwich)))


def shrink(delta_px: float, sigma_px: float) -> float:
    """Shrink an offset by the non-negative garrote (Breiman 1995): 0 up to two sigma, then a smooth rise.

    A hard threshold would switch the correction on and off during a drive.
    """
    threshold = 2 * float(np.hypot(sigma_px, SETTINGS.tracking_bias_px))
    return delta_px * (1 - (threshold / delta_px) ** 2) if abs(delta_px) > threshold else 0.0


def vertical_offset(tracks: Sequence[StereoTracks]) -> float:
    """Return the median of row left - row right in pixels; 0 without any points."""
    rows = [each.now_left[:, 1] - each.now_right[:, 1] for each in tracks]
    middle = robust.median(np.concatenate(rows)) if rows else np.nan
    return float(np.nan_to_num(middle))


class CalibrationFrame(NamedTuple):
    """The tracks of a frame-to-frame step, its camera, and its information on the calibration errors."""

    tracks: StereoTracks
    camera: CameraModel
    information: FrameInformation


@dataclass
class PairCalibrator:
    """Estimates the disparity offset and the residual distortion of a pair, frame by frame."""

    with_lens: bool = True
    frames: list[CalibrationFrame] = field(default_factory=list)
    stride: int = 1
    seen: int = 0
    lens: LensEstimate | None = None
    offset_px: float = 0.0
    offset_sigma_px: float = float("inf")

    def add(self, tracks: StereoTracks, camera: CameraModel) -> None:
        """Add a frame, linearised at the estimate so far, and update the estimate."""
        self.seen += 1
        if self.seen % self.stride:
            return
        information = frame_information(tracks, camera, self.errors)
        if information is None:
            return
        if len(self.frames) == SETTINGS.max_frames:
            self.frames, self.stride = self.frames[::2], 2 * self.stride
        self.frames.append(CalibrationFrame(tracks, camera, information))
        self._update()

    @property
    def errors(self) -> Floats:
        """Calibration errors (14,) to be removed, shrunk by their uncertainty.

        With radial distortion the joint estimate is used, as the errors are correlated.
        """
        if self.lens is not None and self.lens.removed.any():
            return self.lens.errors
        return offset_only(shrink(self.offset_px, self.offset_sigma_px))

    def is_settled(self, offset_sigma_px: float, lens_sigma_px: float) -> bool:
        """Return whether offset and lens are known to these standard deviations."""
        if len(self.frames) < SETTINGS.min_frames:
            return False
        lens_known = self.lens is None or self.lens.sigma_px <= lens_sigma_px
        return lens_known and self.offset_sigma_px <= offset_sigma_px

    def relinearise(self) -> None:
        """Recompute the information of all frames at the estimate, until it moves by less than 0.1 sigma."""
        for _ in range(SETTINGS.max_relinearisations):
            if self.lens is None or not self.lens.removed.any():
                return
            last, errors = self.lens, self.errors
            again = [(f, frame_information(f.tracks, f.camera, errors)) for f in self.frames]
            self.frames = [f._replace(information=found) for f, found in again if found is not None]
            self._update()
            if abs(self.lens.edge_px - last.edge_px) < 0.1 * self.lens.sigma_px:
                return

    def _update(self) -> None:
        information = [frame.information for frame in self.frames]
        if self.with_lens:
            self.lens = estimate_lens(information, self.frames[-1].camera)
        self.offset_px, self.offset_sigma_px = estimate_offset(information, self.lens)
