"""The robot of a recording, and the lander at the origin of its world."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats
from transect.recording import Recording, Robot
from transect.robots.constants import Constants

ROBOT = "interact"


def robot_of(recording: Recording) -> Robot:
    """Return the robot of a recording, or Interact as the document describes it."""
    from transect import robots

    return recording.robot or robots.load(ROBOT)


def lander_of(robot: Robot) -> Floats:
    """Return the origin of the NED world (section 5.2): latitude, longitude (rad), altitude (m)."""
    numbers = Constants(robot, "the world at the lander", "interact.yaml")
    return np.array([numbers["world_origin", key] for key in ("latitude", "longitude", "altitude")])
