"""Calibration: cameras, stereo pairs, lidar channels, and a planar laser beside a camera."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .chessboards import Chessboard
    from .laser_camera import Sighting, mount_from_boards
    from .lidar_channels import ChannelFaults, find_channel_faults
    from .stereo_information import FrameInformation, StereoTracks, frame_information
    from .stereo_lens import LensEstimate, estimate_lens, undistort_pair
    from .stereo_self_calibration import OffsetEstimate, PairCalibrator, estimate_offset

__all__ = [
    "ChannelFaults",
    "Chessboard",
    "FrameInformation",
    "LensEstimate",
    "OffsetEstimate",
    "PairCalibrator",
    "Sighting",
    "StereoTracks",
    "estimate_lens",
    "estimate_offset",
    "find_channel_faults",
    "frame_information",
    "mount_from_boards",
    "undistort_pair",
]

__getattr__ = importer(
    __name__,
    {
        "chessboards": ("Chessboard",),
        "laser_camera": (
            "Sighting",
            "mount_from_boards",
        ),
        "lidar_channels": (
            "ChannelFaults",
            "find_channel_faults",
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
            "OffsetEstimate",
            "PairCalibrator",
            "estimate_offset",
        ),
    },
)
