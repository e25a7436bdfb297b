"""SLAM: place recognition for each kind of sensor, and the pose graph they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .laser_recogniser import LaserRecogniser
    from .lidar_recogniser import LidarRecogniser
    from .localiser import Localiser
    from .mapper import Mapper
    from .occupancy_grid import build_occupancy_grid
    from .place_maps import merge_maps
    from .place_recognition import Loop, LoopSettings, MappingSettings, PosePrior, Recogniser
    from .pose_graph import PoseEdge, PoseGraph
    from .stereo_recogniser import StereoRecogniser

__all__ = [
    "LaserRecogniser",
    "LidarRecogniser",
    "Localiser",
    "Loop",
    "LoopSettings",
    "Mapper",
    "MappingSettings",
    "PoseEdge",
    "PoseGraph",
    "PosePrior",
    "Recogniser",
    "StereoRecogniser",
    "build_occupancy_grid",
    "merge_maps",
]

__getattr__ = importer(
    __name__,
    {
        "laser_recogniser": ("LaserRecogniser",),
        "lidar_recogniser": ("LidarRecogniser",),
        "localiser": ("Localiser",),
        "mapper": ("Mapper",),
        "occupancy_grid": ("build_occupancy_grid",),
        "place_maps": ("merge_maps",),
        "place_recognition": ("Loop", "LoopSettings", "MappingSettings", "PosePrior", "Recogniser"),
        "pose_graph": ("PoseEdge", "PoseGraph"),
        "stereo_recogniser": ("StereoRecogniser",),
    },
)
