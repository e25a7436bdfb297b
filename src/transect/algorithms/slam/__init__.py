"""SLAM: place recognition for each kind of sensor, and the pose graph they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .laser_recogniser import LaserRecogniser
    from .lidar_recogniser import LidarRecogniser
    from .localiser import Localiser
    from .loop_consistency import LoopRules
    from .map_merging import merge_maps
    from .mapper import Mapper, MappingSettings
    from .occupancy_grid import occupancy_of
    from .place_recognition import Guess, Loop, Recogniser
    from .pose_graph import Edge, PoseGraph
    from .stereo_recogniser import StereoRecogniser

__all__ = [
    "Edge",
    "Guess",
    "LaserRecogniser",
    "LidarRecogniser",
    "Localiser",
    "Loop",
    "LoopRules",
    "Mapper",
    "MappingSettings",
    "PoseGraph",
    "Recogniser",
    "StereoRecogniser",
    "merge_maps",
    "occupancy_of",
]

__getattr__ = importer(
    __name__,
    {
        "laser_recogniser": ("LaserRecogniser",),
        "lidar_recogniser": ("LidarRecogniser",),
        "localiser": ("Localiser",),
        "loop_consistency": ("LoopRules",),
        "map_merging": ("merge_maps",),
        "mapper": (
            "Mapper",
            "MappingSettings",
        ),
        "occupancy_grid": ("occupancy_of",),
        "place_recognition": (
            "Guess",
            "Loop",
            "Recogniser",
        ),
        "pose_graph": (
            "Edge",
            "PoseGraph",
        ),
        "stereo_recogniser": ("StereoRecogniser",),
    },
)
