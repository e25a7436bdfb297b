"""The walls that the last scans saw, with which the next one is matched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Mask

from ..registration.planar_poses import place, relate
from ..registration.scan_matching import LikelihoodField
from .laser_visibility import Sight

SPACING = 0.05
"""Metres between points of a wall."""
KEY_DISTANCE, KEY_TURN, KEYS = 0.5, 0.3, 12
"""A scan becomes part of the local map after metres or radians; so many of them are kept."""


@dataclass(frozen=True, eq=False)
class Key:
    """A scan of the local map.

    Attributes
    ----------
    pose : (3,)
    walls : (n, 2)
        That it saw, about the body.
    sight : Sight
        How far it looked.
    known : (3,) or None
        Pose of the odometry then.
    """

    pose: Floats
    walls: Floats
    sight: Sight
    known: Floats | None


class LaserLocalMap:
    """The last scans; a copy may be shared, for it never changes."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self.keys = tuple(keys)[-KEYS:]
        self.field = LikelihoodField(place_walls((key.pose, key.walls) for key in self.keys))

    def __deepcopy__(self, memo: object) -> LaserLocalMap:
        return self

    @property
    def last(self) -> Key:
        """The newest scan."""
        return self.keys[-1]

    def is_left(self, pose: Floats) -> bool:
        """Tell whether a body at a pose (3,) is so far from the newest scan that its own should follow."""
        moved = relate(self.last.pose, pose)
        return bool(np.hypot(*moved[:2]) >= KEY_DISTANCE or abs(moved[2]) >= KEY_TURN)

    def covers(self, points: Floats, pose: Floats, slack: float) -> Mask:
        """Tell which points (n, 2) of a body at a pose (3,) are where the map was looked at.

        Others would draw a scan back to where walls end only because nobody looked further.

        Parameters
        ----------
        slack : float
            Metres by which the pose may be off.
        """
        covered = np.zeros(len(points), bool)
        for key in self.keys:
            covered |= key.sight.covers(place(points, relate(key.pose, pose)), slack)
        return covered


def place_walls(seen: Iterable[tuple[Floats, Floats]]) -> Floats:
    """Return the walls (n, 2) of scans, of each its pose (3,) and its walls (m, 2)."""
    return np.concatenate([place(walls, pose) for pose, walls in seen])
