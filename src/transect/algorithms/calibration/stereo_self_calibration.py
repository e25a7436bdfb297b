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
    Pull,
    Rig,
    StereoMotion,
    StereoTracks,
    frame_information,
    long_run_covariance,
    measure_frame,
    offset_only,
    solve_motion,
)
from .stereo_lens import LensEstimate, estimate_lens

OFFSET_STEPS, AT_REST = 6, 0.1
"""Steps of the search; standard deviations of the offset: what moves less has been found."""
TRACKING_BIAS = 0.03
"""Pixels: what following points between images may add alike to all disparities; no residual shows it."""


@dataclass(frozen=True)
class OffsetEstimate:
    """What is wrong with the disparities of a rectified pair.

    Attributes
    ----------
    delta_px : float
        Pixels that every measured disparity (column left - column right) has too many; 0 where not known.
    vertical_px : float
        Median of row left - row right; 0 where nothing is known.
    sigma_px : float
        Standard deviation of `delta_px`: the larger of what the residuals promise and of what the frames,
        each by itself, disagree; infinite where nothing is known.
    frames : int
        How many steps between frames were used.
    """

    delta_px: float = 0.0
    vertical_px: float = 0.0
    sigma_px: float = float("inf")
    frames: int = 0

    @property
    def trusted_px(self) -> float:
        """The offset as far as it is believed (`trusted`), pixels."""
        return shrink(self.delta_px, self.sigma_px)


def disparity_offset(tracks: Sequence[StereoTracks], camera: CameraModel) -> OffsetEstimate:
    """Find the constant disparity offset that makes tracked points move most rigidly.

    Parameters
    ----------
    tracks : sequence of StereoTracks
        One for each step between consecutive pairs. Outliers may be among them; steps of under
        `MIN_POINTS` good points are left out. Without motion towards or past the points the offset cannot
        be seen, and `sigma_px` says so.
    camera : CameraModel
        Rectified; its `P` has the focal length, the principal point (of the left image) and the baseline.
    """
    rig, delta = Rig.of(camera), 0.0
    frames = [frame for each in tracks if (frame := measure_frame(each, rig)) is not None]
    pulls = _pulls(frames, rig, delta)
    for _ in range(OFFSET_STEPS):
        last, (delta, sigma) = delta, combine(pulls)
        if abs(delta - last) <= AT_REST * sigma:
            break
        pulls = _pulls(frames, rig, delta)
    delta, sigma = combine(pulls)
    return OffsetEstimate(delta, vertical_offset(tracks), sigma, len(pulls))


def _pulls(frames: Sequence[StereoMotion], rig: Rig, delta: float) -> list[Pull]:
    found = [solve_motion(frame, rig, offset_only(delta)) for frame in frames]
    pulls = [each.pull(offset_only()) for each in found if each is not None]
    return [pull for pull in pulls if pull is not None]


def estimate_offset(frames: Sequence[FrameInformation], lens: LensEstimate | None) -> tuple[float, float]:
    """Return the disparity offset with its Gaussian prior, and its standard deviation, both in pixels.

    Where other errors are removed, it is the offset that was estimated jointly with them.
    """
    errors = offset_only() if lens is None else lens.errors
    pulls = [each.pull(errors) for each in frames]
    delta, sigma = combine([pull for pull in pulls if pull is not None])
    if not np.isfinite(sigma):
        return delta, sigma
    if errors.any() and lens is not None:
        return float(errors[0]), max(sigma, lens.offset_sigma_px)
    gain = 1 / (1 + (sigma / CALIBRATION_ERROR_SIGMAS["offset"]) ** 2)
    return gain * delta, float(np.sqrt(gain)) * sigma


def combine(pulls: Sequence[Pull]) -> tuple[float, float]:
    """Return the offset that many frames agree on, and its standard deviation, both in pixels."""
    if not pulls:
        return 0.0, float("inf")
    wanted, information = np.array([[pull.delta_px, pull.information] for pull in pulls]).T
    total = np.sum(information)
    delta = float(np.sum(information * wanted) / total)
    errors = information * (wanted - delta) / total
    disagreed = max(float(errors @ errors), float(long_run_covariance(errors[:, None])[0, 0]))
    return delta, float(np.sqrt(max(1 / total, disagreed)))


def shrink(delta_px: float, sigma_px: float) -> float:
    """Return an offset as far as it stands out of its uncertainty: 0 up to twice that, nearly all beyond.

    Between the two it grows smoothly (the garrote of Breiman 1995), so that what is found while a robot
    drives does not switch on and off.
    """
    doubt = 2 * float(np.hypot(sigma_px, TRACKING_BIAS))
    return delta_px * (1 - (doubt / delta_px) ** 2) if abs(delta_px) > doubt else 0.0


def vertical_offset(tracks: Sequence[StereoTracks]) -> float:
    """Return the median of row left - row right in pixels; 0 without any points."""
    rows = [each.now_left[:, 1] - each.now_right[:, 1] for each in tracks]
    middle = robust.median(np.concatenate(rows)) if rows else np.nan
    return float(np.nan_to_num(middle))


MIN_FRAMES = 30
"""Frames below which the correlation of their errors, and so the uncertainty of the result, is unknown."""
MAX_FRAMES = 1000
"""Frames that are kept, about 20 kB each. When more arrive, every second one is dropped and the stride
doubles, so that a long drive is covered evenly."""
RELINEARISATIONS = 3
"""Gauss-Newton steps over all frames at the end of a search; a distortion of 9 px needs two."""


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
        if len(self.frames) == MAX_FRAMES:
            self.frames, self.stride = self.frames[::2], 2 * self.stride
        self.frames.append(CalibrationFrame(tracks, camera, information))
        self._update()

    @property
    def errors(self) -> Floats:
        """Calibration errors (14,) that are to be removed, shrunk by their uncertainty.

        With radial distortion they are removed as they were estimated, jointly: they are correlated, and the
        offset that fits best depends on the others.
        """
        if self.lens is not None and self.lens.removed.any():
            return self.lens.errors
        return offset_only(shrink(self.offset_px, self.offset_sigma_px))

    def is_settled(self, offset_sigma_px: float, lens_sigma_px: float) -> bool:
        """Return whether offset and lens are known to these standard deviations."""
        if len(self.frames) < MIN_FRAMES:
            return False
        lens_known = self.lens is None or self.lens.sigma_px <= lens_sigma_px
        return lens_known and self.offset_sigma_px <= offset_sigma_px

    def relinearise(self) -> None:
        """Recompute the information of all frames at the estimate, until it moves by less than 0.1 sigma."""
        for _ in range(RELINEARISATIONS):
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
