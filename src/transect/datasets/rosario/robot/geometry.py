"""Geometry of the weeding robot: the lever arm of its antenna, IMU units, headings, camera calibration.

Table 1 has the GPS antenna at (1.8, -0.030, 1.593) m in base_link. Only the heading of the robot is known, so
that the ground is assumed to be level.
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
MAX_SPEED_M_S = 3.0
"""The robot drives at most 1.4 m/s: faster wheels are in turns per minute, faster fixes are jumps."""


@dataclass(frozen=True)
class WeederGeometry(AckermannGeometry):
    """Wheels, steering and lever arm."""

    antenna: Floats  # (3,) GPS antenna in base_link, m

    @classmethod
    def of(cls, robot: Robot) -> WeederGeometry:
        """Return the geometry of a robot's constants and frames."""
        wheels = AckermannGeometry.of(robot)
        return cls(**vars(wheels), antenna=robot.frames.lookup(BASE, ANTENNA)[:3, 3])


def antenna_from_base(base: ArrayLike, heading: ArrayLike, lever: ArrayLike) -> Floats:
    """Return positions (..., 3) of the antenna for positions (..., 3) of base_link.

    Parameters
    ----------
    base : (..., 3) array
        m, in a frame with z up.
    heading : (...) array
        Heading of base_link, rad from x to y.
    lever : (3,) array
        Antenna in base_link, m (`WeederGeometry.antenna`).
    """
    yaw = rotations.quaternion_from_euler("z", np.asarray(heading, dtype=np.float64)[..., None])
    return np.asarray(base, dtype=np.float64) + rotations.rotate(yaw, lever)


def local_from_fixes(
    fixes: ArrayLike, origin: ArrayLike | None = None, axes: Axes = "ENU"
) -> tuple[Floats, Floats]:
    """Convert fixes (n, 3), latitude and longitude in rad and height in m, to metres from an origin.

    Parameters
    ----------
    origin : (3,) array, optional
        Geodetic; default the first measured fix.

    Returns
    -------
    positions : (n, 3) array
        In `axes`; NaN without a fix.
    origin : (3,) array
    """
    points = np.asarray(fixes, dtype=np.float64)
    start = _first_measured(points) if origin is None else np.asarray(origin, dtype=np.float64)
    return geodesy.local_from_geodetic(points, start, axes), start


def _first_measured(points: Floats) -> Floats:
    measured = points[np.isfinite(points).all(axis=-1)]
    if not len(measured):
        raise GeometryError("there is no fix for the origin", why=f"all {len(points)} are NaN")
    return measured[0]


RAD_S_PER_DEG_S = unit_of("deg/s").scale
M_S2_PER_MILLI_G = unit_of("mg").scale


def si_from_raw(
    gyro: ArrayLike,
    acc: ArrayLike,
    gyro_offset: ArrayLike | None = None,
    acc_offset: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Return angular velocity, rad/s, and specific force, m/s2, both (..., 3), of raw IMU values.

    Parameters
    ----------
    gyro, acc : (..., 3) array
        deg/s and milli-g.
    gyro_offset, acc_offset : (3,) array, optional
        Kalibr's estimates for the sequence, in the same units; subtracted.
    """
    return _scale(RAD_S_PER_DEG_S, gyro, gyro_offset), _scale(M_S2_PER_MILLI_G, acc, acc_offset)


def _scale(unit: float, raw: ArrayLike, offset: ArrayLike | None) -> Floats:
    values = np.asarray(raw, dtype=np.float64)
    return unit * (values if offset is None else values - np.asarray(offset, dtype=np.float64))


def path_headings(positions: ArrayLike, min_step: float = 1e-6) -> Floats:
    """Return headings (n,), rad, unwrapped, of an odometry with positions (n, 2) or (n, 3) only.

    The rear axle moves along the heading, forwards or backwards: the direction of the path determines it up
    to half a turn, and the odometry starts with heading 0. A change of direction by more than 90 degrees
    between two steps is a change of gear. At rest the heading is constant.

    Parameters
    ----------
    min_step : float
        Shorter steps, m, have no direction.
    """
    p = np.asarray(positions, dtype=np.float64)
    steps = np.diff(p[:, :2], axis=0)
    moving = np.flatnonzero(np.hypot(*steps.T) > min_step)
    if not len(moving):
        return np.zeros(len(p))
    direction = np.arctan2(*steps[moving].T[::-1])
    gear = np.cumprod(np.where(np.cos(np.diff(direction, prepend=0.0)) < 0, -1.0, 1.0))
    heading = np.unwrap(np.concatenate([[0.0], direction + np.pi * (gear < 0)]))
    return heading[np.searchsorted(moving, np.arange(len(p)), side="right")]


FORWARD = np.array([0.0, 0.0, 1.0])
"""The camera's optical axis."""
BODY_FROM_OPTICAL = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
"""Rotation from x right, y down, z forward to x forward, y left, z up: Rz(-90) Rx(-90).

Eq. 1 prints +90 degrees twice, which would exchange left and right; the rotations published by its authors
(`R camara a odom`) have the opposite sign.
"""


def mean_direction(positions: ArrayLike) -> Floats:
    """Return the unit vector (3,) along which a camera moved from its origin through positions (n, 3).

    As the paper's "averaged the normalized estimated positions", it has equal weights for all distances.
    """
    p = np.asarray(positions, dtype=np.float64)
    distance = np.linalg.norm(p, axis=-1)
    known = p[distance > 0] / distance[distance > 0, None]
    mean = known.mean(axis=0) if len(known) else np.zeros(3)
    if np.linalg.norm(mean) < 0.5:
        raise GeometryError(
            "the camera has no direction of motion",
            why=f"its {len(known)} positions are all around the origin" if len(known) else "it stands",
            hint="use a straight segment",
        )
    return mean / np.linalg.norm(mean)


def rotation_between(direction: ArrayLike, target: ArrayLike = FORWARD) -> Floats:
    """Return the smallest rotation (3, 3) of one direction (3,) to another: R(theta) of eq. 1."""
    a, b = (np.asarray(v, dtype=np.float64) / np.linalg.norm(v) for v in (direction, target))
    if not np.cross(a, b).any() and a @ b < 0:
        raise GeometryError("opposite directions have no smallest rotation between them")
    return rotations.rotation_between(a, b)


def odometry_from_camera(positions: ArrayLike) -> Floats:
    """Return ``R_odometry_camera`` (3, 3) of eq. 1, by a camera's positions (n, 3) on a straight segment.

    Parameters
    ----------
    positions : (n, 3) array
        In the left camera's frame at the start (x right, y down, z forward), driving forwards, in any unit.
    """
    return BODY_FROM_OPTICAL @ rotation_between(mean_direction(positions))
