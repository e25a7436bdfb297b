"""The numbers of a platform on four steered wheels, as the functions of this package take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.recording import Robot

from ..constants import Constants


@dataclass(frozen=True, eq=False)
class FourWheelGeometry:
    """Platform and motors, SI and radians; wheels in the order of the encoders."""

    # half_length, half_width, wheel_height, swivel_length: L, W, H and d of document 000, section 4, m
    half_length: float
    half_width: float
    wheel_height: float
    swivel_length: float
    # ends, sides: (4,), +1 for a front and a left wheel, -1 for a rear and a right one
    ends: Floats
    sides: Floats
    drive_ticks_per_turn: float  # k_psi of eq. 4.
    # steer_ticks_per_metre, rack_at_rest, rack_offset, rack_per_radian, angle_at_rest: k_phi, r0, the 60.67
    # mm, the 1.125 mm/degree and phi0 of eq. 5.
    steer_ticks_per_metre: float
    rack_at_rest: float
    rack_offset: float
    rack_per_radian: float
    angle_at_rest: float
    polarity: Floats  # (4,), p of eq. 5.

    @classmethod
    def of(cls, robot: Robot) -> FourWheelGeometry:
        """Return the geometry that a robot's constants describe."""
        numbers = Constants(robot, "four steered wheels", "interact.yaml")
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
        )

    @property
    def swivels(self) -> Floats:
        """(4, 2): where each steering axis stands, x and y in Platform, m."""
        return np.stack([self.ends * self.half_length, self.sides * self.half_width], axis=-1)
