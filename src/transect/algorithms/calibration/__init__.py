"""Calibration: cameras, stereo pairs, lidar channels, and a planar laser beside a camera."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .chessboards import Chessboard
    from .laser_camera import BoardSighting, estimate_mount
    from .lidar_channels import ChannelErrors, estimate_channel_errors
    from .stereo_information import FrameInformation, StereoTracks, frame_information
    from .stereo_lens import LensEstimate, estimate_lens, undistort_pair
    from .stereo_self_calibration import PairCalibrator, estimate_offset

__all__ = [
    "BoardSighting",
    "ChannelErrors",
    "Chessboard",
    "FrameInformation",
    "LensEstimate",
    "PairCalibrator",
    "StereoTracks",
    "estimate_channel_errors",
    "estimate_lens",
    "estimate_mount",
    "estimate_offset",
    "frame_information",
    "undistort_pair",
]

__getattr__ = importer(
    __name__,
    {
        "chessboards": ("Chessboard",),
        "laser_camera": (
            "BoardSighting",
            "estimate_mount",
        ),
        "lidar_channels": (
            "ChannelErrors",
            "estimate_channel_errors",
        ),
        "stereo_information": (
            "FrameInformation",
            "StereoTracks",
            "frame_information",
        ),
        "stereo_lens": (
            "LensEstimate",
            "estimate_lens",
            "undistort_pair",
        ),
        "stereo_self_calibration": (
            "PairCalibrator",
            "estimate_offset",
        ),
    },
)
