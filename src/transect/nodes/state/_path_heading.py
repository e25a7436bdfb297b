"""Headings of a track whose positions alone are known."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats

LEAST_STEP = 1e-6
"""Metres; shorter steps have no direction."""


class PathHeading:
    """Follows a dead-reckoned path, whose body moves along its own heading, forwards or backwards.

    The causal form of `robots.weeder.odometry.path_headings`: the path's direction gives the heading up to
    half a turn. Between two steps a body cannot turn by 90 degrees, so where the direction does, it has
    changed gear. While it stands the heading stays.
    """

    def __init__(self) -> None:
        self.place: Floats | None = None
        self.heading = 0.0

    def follow(self, place: Floats) -> float:
        """Return the heading in rad at a new place (2,) or (3,) of the path."""
        if self.place is None:
            self.place = np.array(place[:2])
        step = place[:2] - self.place
        if np.linalg.norm(step) > LEAST_STEP:
            self.place = np.array(place[:2])
            self._turn(float(np.arctan2(step[1], step[0])))
        return self.heading

    def _turn(self, direction: float) -> None:
        turn = direction - self.heading
        if np.cos(turn) < 0:
            turn += np.pi
        self.heading += (turn + np.pi) % (2 * np.pi) - np.pi
