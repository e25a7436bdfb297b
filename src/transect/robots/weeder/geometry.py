"""The numbers of the weeding robot that its models need, taken from its YAML."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.recording import Robot

BASE, ANTENNA = "base_link", "gps"
FASTEST = 3.0
"""m/s; the robot drives 1.4 at most: wheels that seem faster are in turns per minute, fixes have jumped."""


@dataclass(frozen=True)
class Geometry:
    """What turns wheels and steering into motion, and where the antenna is.

    Attributes
    ----------
    wheelbase, wheel_diameter : float
        Metres (document 001, 4.6).
    steering_limit : float
        Rad to either side.
    steering_unit : float
        Rad to the left per unit of the stepper.
    steering_zero_raw : float
        Units that the raw log shows when the robot drives straight ahead.
    steering_scale : float
        What the published scripts multiply the steering angle with.
    antenna : (3,) array
        Where the gps antenna is in base_link, metres.
    """

    wheelbase: float
    wheel_diameter: float
    steering_limit: float
    steering_unit: float
    steering_zero_raw: float
    steering_scale: float
    antenna: Floats

    @classmethod
    def of(cls, robot: Robot) -> Geometry:
        """Return the geometry that a robot's constants and frames describe."""
        names = [name for name in cls.__dataclass_fields__ if name != "antenna"]
        if missing := [name for name in names if name not in robot.constants]:
            raise TransectError(
                f"{robot.name} has no {', no '.join(missing)}",
                where=f"constants of the robot {robot.name}",
                hint="copy weeder.yaml and change its numbers to yours",
            )
        numbers = {name: float(robot.constants[name]) for name in names}
        return cls(**numbers, antenna=robot.frames.lookup(BASE, ANTENNA)[:3, 3])

    @property
    def rim_speed(self) -> float:
        """m/s at the rim of a wheel that turns once a minute."""
        return np.pi * self.wheel_diameter / 60.0

    def steering(self, units: ArrayLike, zero_raw: float = 0.0) -> Floats:
        """Steering angles (...) in rad to the left of units (...) of the stepper.

        Parameters
        ----------
        zero_raw : float
            Units that mean straight ahead: 0 in the cleaned log, `steering_zero_raw` in the raw one.
        """
        return self.steering_unit * (np.asarray(units, dtype=np.float64) - zero_raw)
