"""The numbers of the weeding robot, from its YAML; where its antenna is, and the imu's units made SI.

Table 1 puts the gps antenna at (1.8, -0.030, 1.593) m in base_link. What is known of the robot's attitude is
its heading, so that the ground counts as level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.base.units import unit_of
from transect.errors import GeometryError
from transect.geometry import geodesy, rotations
from transect.geometry.geodesy import Axes
from transect.recording import Robot
from transect.robots.ackermann import BASE, AckermannGeometry

ANTENNA = "gps"
FASTEST = 3.0
"""m/s; the robot drives 1.4 at most: wheels that seem faster are in turns per minute, fixes have jumped."""


@dataclass(frozen=True)
class Geometry(AckermannGeometry):
    """The wheels and steering, and where the antenna is."""

    antenna: Floats  # (3,), where the gps antenna is in base_link, metres

    @classmethod
    def of(cls, robot: Robot) -> Geometry:
        """Return the geometry that a robot's constants and frames describe."""
        wheels = AckermannGeometry.of(robot)
        return cls(**vars(wheels), antenna=robot.frames.lookup(BASE, ANTENNA)[:3, 3])


def antenna_from_base(base: ArrayLike, heading: ArrayLike, lever: ArrayLike) -> Floats:
    """Positions (..., 3) of the antenna for positions (..., 3) of base_link.

    Parameters
    ----------
    base : (..., 3) array
        Metres, in a frame whose z axis points up.
    heading : (...) array
        Of base_link, rad from x to y.
    lever : (3,) array
        The antenna in base_link, metres (`Geometry.antenna`).
    """
    return np.asarray(base, dtype=np.float64) + _turn(heading, lever)


def base_from_antenna(antenna: ArrayLike, heading: ArrayLike, lever: ArrayLike) -> Floats:
    """Positions (..., 3) of base_link for those of the antenna: the inverse of `antenna_from_base`."""
    return np.asarray(antenna, dtype=np.float64) - _turn(heading, lever)


def _turn(heading: ArrayLike, lever: ArrayLike) -> Floats:
    turn = rotations.quaternion_from_euler("z", np.asarray(heading, dtype=np.float64)[..., None])
    return rotations.rotate(turn, lever)


def local_from_fixes(
    fixes: ArrayLike, origin: ArrayLike | None = None, axes: Axes = "ENU"
) -> tuple[Floats, Floats]:
    """Fixes (n, 3), latitude and longitude in rad and height in m, in metres about an origin.

    Parameters
    ----------
    origin : (3,) array, optional
        Geodetic; the first fix that was measured, if None.

    Returns
    -------
    positions : (n, 3) array
        East, north, up unless other axes are asked for; NaN where there was no fix.
    origin : (3,) array
    """
    points = np.asarray(fixes, dtype=np.float64)
    start = _first_measured(points) if origin is None else np.asarray(origin, dtype=np.float64)
    return geodesy.local_from_geodetic(points, start, axes), start


def _first_measured(points: Floats) -> Floats:
    measured = points[np.isfinite(points).all(axis=-1)]
    if not len(measured):
        raise GeometryError("there is no fix to measure from", why=f"all {len(points)} are NaN")
    return measured[0]


RADIANS = unit_of("deg/s").scale
"""Rad/s of 1 deg/s."""
MILLI_G = unit_of("mg").scale
"""m/s2 of 1 milli-g."""


def si_from_raw(
    gyro: ArrayLike,
    acc: ArrayLike,
    gyro_offset: ArrayLike | None = None,
    acc_offset: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Angular velocity in rad/s and specific force in m/s2, both (..., 3), of what the imu says.

    Parameters
    ----------
    gyro, acc : (..., 3) array
        deg/s and milli-g.
    gyro_offset, acc_offset : (3,) array, optional
        Kalibr's estimates for the sequence, in the same units; subtracted.
    """
    return _scale(RADIANS, gyro, gyro_offset), _scale(MILLI_G, acc, acc_offset)


def _scale(unit: float, raw: ArrayLike, offset: ArrayLike | None) -> Floats:
    values = np.asarray(raw, dtype=np.float64)
    return unit * (values if offset is None else values - np.asarray(offset, dtype=np.float64))
