"""A constant error of all disparities, found without truth.

Rectification that is a little off adds the same number of pixels to every disparity, and a stereo odometry
then measures every step too long or too short by about the same percentage. The offset is the one that lets
points move most rigidly. That is the minimum which a parabola through passes at -0.3, 0 and +0.3 px
approximates, with its uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.geometry import robust
from transect.types import CameraModel

from .stereo_information import (
    CALIBRATION_ERROR_SIGMAS,
    Frame,
    FrameInformation,
    Pull,
    Rig,
    StereoTracks,
    long_run_covariance,
    measure_frame,
    offset_only,
    solve_motion,
)
from .stereo_lens import LensEstimate

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


def _pulls(frames: Sequence[Frame], rig: Rig, delta: float) -> list[Pull]:
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
