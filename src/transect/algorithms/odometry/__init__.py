"""Odometry by lidar, planar laser, stereo pair, one camera, or wheels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .laser_odometer import LaserMotion, LaserOdometer
    from .laser_scans import LaserFieldOfView
    from .lidar_odometer import LidarMotion, LidarOdometer, LidarOdometrySettings
    from .mono_odometer import MonoImage, MonoOdometer, MonoOdometrySettings, MonoPose
    from .stereo_odometer import StereoOdometer, StereoOdometrySettings, StereoPose
    from .stereo_rig import StereoRig, stereo_rig_of
    from .stereo_tracking_methods import DescriptorTracking, GrayPair, KltTracking
    from .wheel_odometer import WheelReckoning, differential_motion

__all__ = [
    "DescriptorTracking",
    "GrayPair",
    "KltTracking",
    "LaserFieldOfView",
    "LaserMotion",
    "LaserOdometer",
    "LidarMotion",
    "LidarOdometer",
    "LidarOdometrySettings",
    "MonoImage",
    "MonoOdometer",
    "MonoOdometrySettings",
    "MonoPose",
    "StereoOdometer",
    "StereoOdometrySettings",
    "StereoPose",
    "StereoRig",
    "WheelReckoning",
    "differential_motion",
    "stereo_rig_of",
]

__getattr__ = importer(
    __name__,
    {
        "laser_odometer": ("LaserMotion", "LaserOdometer"),
        "laser_scans": ("LaserFieldOfView",),
        "lidar_odometer": ("LidarMotion", "LidarOdometer", "LidarOdometrySettings"),
        "mono_odometer": ("MonoImage", "MonoOdometer", "MonoOdometrySettings", "MonoPose"),
        "stereo_odometer": ("StereoOdometer", "StereoOdometrySettings", "StereoPose"),
        "stereo_rig": ("StereoRig", "stereo_rig_of"),
        "stereo_tracking_methods": ("DescriptorTracking", "GrayPair", "KltTracking"),
        "wheel_odometer": ("WheelReckoning", "differential_motion"),
    },
)
