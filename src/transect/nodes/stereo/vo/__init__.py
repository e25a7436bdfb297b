"""Visual odometry of pairs: cameras, points found and followed, motion, keyframes adjusted together."""

from .camera import Rig, rig_of
from .fronts import Descriptors, Front, Klt, Pair
from .landmarks import Landmarks, gray_at
from .motion import Located, locate, refine
from .odometer import AGREE, Odometer, Settings, is_dark
from .tracking import coarse_disparities, corners, follow

__all__ = [
    "AGREE",
    "Descriptors",
    "Front",
    "Klt",
    "Landmarks",
    "Located",
    "Odometer",
    "Pair",
    "Rig",
    "Settings",
    "coarse_disparities",
    "corners",
    "follow",
    "gray_at",
    "is_dark",
    "locate",
    "refine",
    "rig_of",
]
