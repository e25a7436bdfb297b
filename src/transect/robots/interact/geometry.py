"""The numbers of the machine, as the functions of this package take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.geometry import geodesy
from transect.recording import Recording, Robot

ROBOT = "interact"


@dataclass(frozen=True, eq=False)
class Geometry:
    """Platform, motors and place of the world, SI and radians; wheels in the order of the encoders.

    Attributes
    ----------
    half_length, half_width, wheel_height, swivel_length : float
        L, W, H and d of section 4, m.
    ends, sides : (4,)
        +1 for a front and a left wheel, -1 for a rear and a right one.
    drive_ticks_per_turn : float
        k_psi of eq. 4.
    steer_ticks_per_metre, rack_at_rest, rack_offset, rack_per_radian, angle_at_rest : float
        k_phi, r0, the 60.67 mm, the 1.125 mm/degree and phi0 of eq. 5.
    polarity : (4,)
        p of eq. 5.
    lander : (3,)
        Origin of the NED world (section 5.2): latitude, longitude (rad), altitude (m).
    """

    half_length: float
    half_width: float
    wheel_height: float
    swivel_length: float
    ends: Floats
    sides: Floats
    drive_ticks_per_turn: float
    steer_ticks_per_metre: float
    rack_at_rest: float
    rack_offset: float
    rack_per_radian: float
    angle_at_rest: float
    polarity: Floats
    lander: Floats

    @classmethod
    def of(cls, robot: Robot) -> Geometry:
        """Return the numbers of `interact.yaml`, or of a user's copy of it."""
        numbers = Numbers(robot)
        wheels = [str(wheel).split() for wheel in numbers["platform", "wheels"]]
        return cls(
            half_length=numbers["platform", "half_length"],
            half_width=numbers["platform", "half_width"],
            wheel_height=numbers["platform", "wheel_height"],
            swivel_length=numbers["platform", "swivel_length"],
            ends=np.array([1.0 if "front" in words else -1.0 for words in wheels]),
            sides=np.array([1.0 if "left" in words else -1.0 for words in wheels]),
            drive_ticks_per_turn=numbers["drive", "ticks_per_turn"],
            steer_ticks_per_metre=numbers["steer", "ticks_per_metre"],
            rack_at_rest=numbers["steer", "rack_at_rest"],
            rack_offset=numbers["steer", "rack_offset"],
            rack_per_radian=numbers["steer", "rack_per_radian"],
            angle_at_rest=numbers["steer", "angle_at_rest"],
            polarity=np.array(numbers["steer", "polarity"], dtype=np.float64),
            lander=np.array([numbers["world_origin", k] for k in ("latitude", "longitude", "altitude")]),
        )

    @property
    def swivels(self) -> Floats:
        """(4, 2): where each steering axis stands, x and y in Platform, m."""
        return np.stack([self.ends * self.half_length, self.sides * self.half_width], axis=-1)

    def local_from_geodetic(self, points: Floats, axes: geodesy.Axes = "NED") -> Floats:
        """Points (..., 3) in the world at the lander, m, of geodetic points (..., 3)."""
        return geodesy.local_from_geodetic(points, self.lander, axes)

    def geodetic_from_local(self, points: Floats, axes: geodesy.Axes = "NED") -> Floats:
        """Geodetic points (..., 3) of points (..., 3) in the world at the lander, m."""
        return geodesy.geodetic_from_local(points, self.lander, axes)


class Numbers:
    """Constants of a robot by group and key; one that is missing is named."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot

    def __getitem__(self, path: tuple[str, str]) -> Any:
        group, key = path
        values = self.robot.constants.get(group)
        if not isinstance(values, Mapping) or key not in values:
            raise TransectError(
                f"the robot {self.robot.name} does not say {group}.{key}",
                why="the model of Interact needs it",
                hint=f"copy the block `{group}` of interact.yaml and change its numbers",
            )
        return values[key]


def robot_of(recording: Recording) -> Robot:
    """Return the robot of a recording, or Interact as the document describes it."""
    from transect import robots

    return recording.robot or robots.load(ROBOT)
