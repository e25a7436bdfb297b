"""Self-calibration of a rectified pair from its own drive: disparity offset and residual distortion."""

from .estimator import PairCalibrator
from .evidence import LENS, FrameInformation, Pull, StereoTracks, frame_information, offset_only
from .lens import LensEstimate, describe_lens, estimate_lens, undistort_pair
from .offset import OffsetEstimate, combine, disparity_offset, estimate_offset, shrink, vertical_offset

__all__ = [
    "LENS",
    "FrameInformation",
    "LensEstimate",
    "OffsetEstimate",
    "PairCalibrator",
    "Pull",
    "StereoTracks",
    "combine",
    "describe_lens",
    "disparity_offset",
    "estimate_lens",
    "estimate_offset",
    "frame_information",
    "offset_only",
    "shrink",
    "undistort_pair",
    "vertical_offset",
]
