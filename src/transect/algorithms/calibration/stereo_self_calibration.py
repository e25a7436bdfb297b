"""Recursive estimation of the calibration errors of a rectified pair from the frames of a drive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from transect.base.arrays import Floats
from transect.types import CameraModel

from .stereo_information import FrameInformation, StereoTracks, frame_information, offset_only
from .stereo_lens import LensEstimate, estimate_lens
from .stereo_offset import estimate_offset, shrink

MIN_FRAMES = 30
"""Frames below which the correlation of their errors, and so the uncertainty of the result, is unknown."""
MAX_FRAMES = 1000
"""Frames that are kept, about 20 kB each. When more arrive, every second one is dropped and the stride
doubles, so that a long drive is covered evenly."""
RELINEARISATIONS = 3
"""Gauss-Newton steps over all frames at the end of a search; a distortion of 9 px needs two."""


class Frame(NamedTuple):
    """The tracks of a frame-to-frame step, its camera, and its information on the calibration errors."""

    tracks: StereoTracks
    camera: CameraModel
    information: FrameInformation


@dataclass
class PairCalibrator:
    """Estimates the disparity offset and the residual distortion of a pair, frame by frame."""

    with_lens: bool = True
    frames: list[Frame] = field(default_factory=list)
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
        self.frames.append(Frame(tracks, camera, information))
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
