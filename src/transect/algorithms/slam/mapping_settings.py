"""How maps of each kind of sensor are made: the distances between keyframes, and the limits of loops."""

from __future__ import annotations

import numpy as np

from transect.types.places import Observation

from ..odometry.laser_local_map import KEY_DISTANCE, KEY_TURN
from .laser_recogniser import ALIKE, AROUND
from .laser_recogniser import RIVAL as LASER_RIVAL
from .loop_consistency import LoopRules
from .mapper import MappingSettings
from .stereo_keyframes import median_depth

LASER_REACH, LASER_RECENT, LASER_LONE = 6.0, 8.0, 3.0
"""Metres, as in `MappingSettings` and `LoopRules`."""
LIDAR_SPACING, LIDAR_TURNING, LIDAR_REACH, LIDAR_RECENT = 1.0, 0.5, 5.0, 15.0
"""Metres and radians, as in `MappingSettings`."""
STEREO_SPACING = 0.1
"""Fraction of the median depth: from so far away a scene still looks the same."""
STEREO_REACH, STEREO_RECENT = 4.0, 15.0
"""Spacings within which two keyframes show the same things; and of the path behind that is not searched."""
STEREO_TURNING = 0.25
"""Radians between keyframes."""
EMPTY_DEPTH = 40.0
"""Baselines: the assumed depth of a scene in which nothing is seen."""
STEREO_TRIES = 4
"""Old keyframes that are verified at each keyframe."""
STEREO_RIVAL = 0.5
"""Fraction of the best keyframe's ratio of inliers from which on another keyframe contradicts it."""


def laser_mapping_settings(
    reach: float = LASER_REACH, recent: float = LASER_RECENT, lone: float = LASER_LONE
) -> MappingSettings:
    """Return how a map of a planar laser is made."""
    rules = LoopRules(lone=lone, beyond=False, rival=LASER_RIVAL)
    return MappingSettings(
        KEY_DISTANCE, KEY_TURN, reach, recent, tries=2, searches=2 + ALIKE, sure=AROUND, rules=rules
    )


def lidar_mapping_settings(
    spacing: float = LIDAR_SPACING,
    turning: float = LIDAR_TURNING,
    reach: float = LIDAR_REACH,
    recent: float = LIDAR_RECENT,
    around: bool = True,
) -> MappingSettings:
    """Return how a map of a lidar is made."""
    return MappingSettings(spacing, turning, reach, recent, tries=2, rules=LoopRules(lone=2.0), around=around)


def stereo_mapping_settings(spacing: float, turning: float = STEREO_TURNING) -> MappingSettings:
    """Return how a map of a stereo pair is made, by the distance (m) and the turn (rad) between keyframes."""
    return MappingSettings(
        spacing,
        turning,
        STEREO_REACH * spacing,
        STEREO_RECENT * spacing,
        STEREO_TRIES,
        searches=STEREO_TRIES,
        rules=LoopRules(rival=STEREO_RIVAL),
    )


def stereo_keyframe_spacing(view: Observation, baseline: float) -> float:
    """Return the distance between keyframes, m, by the first view; where that is empty, by the baseline."""
    depth = median_depth(view)
    return STEREO_SPACING * (depth if np.isfinite(depth) else EMPTY_DEPTH * baseline)
