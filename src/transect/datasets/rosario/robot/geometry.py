"""The numbers of the weeding robot, from its YAML; where its antenna is, and the imu's units made SI.

Table 1 puts the gps antenna at (1.8, -0.030, 1.593) m in base_link. What is known of the robot's attitude is
its heading, so that the ground counts as level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.base.units import unit_of
from transect.errors import GeometryError
from transect.geometry import align, geodesy, rotations, se3
from transect.geometry.align import Alignment
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


def path_headings(positions: ArrayLike, least_step: float = 1e-6) -> Floats:
    """Headings (n,) in rad, unwrapped, of an odometry whose positions (n, 2) or (n, 3) alone are known.

    The rear axle moves along the heading, forwards or backwards: the path's direction gives it up to half a
    turn, and the odometry begins with heading 0. Between two steps the robot cannot turn by 90 degrees, so
    where the direction does, it has changed gear. While it stands the heading stays.

    Parameters
    ----------
    least_step : float
        Metres; shorter steps have no direction.
    """
    p = np.asarray(positions, dtype=np.float64)
    steps = np.diff(p[:, :2], axis=0)
    moving = np.flatnonzero(np.hypot(*steps.T) > least_step)
    if not len(moving):
        return np.zeros(len(p))
    direction = np.arctan2(*steps[moving].T[::-1])
    gear = np.cumprod(np.where(np.cos(np.diff(direction, prepend=0.0)) < 0, -1.0, 1.0))
    heading = np.unwrap(np.concatenate([[0.0], direction + np.pi * (gear < 0)]))
    return heading[np.searchsorted(moving, np.arange(len(p)), side="right")]


FORWARD = np.array([0.0, 0.0, 1.0])
"""The camera's optical axis."""
BODY_FROM_OPTICAL = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
"""x right, y down, z forward to x forward, y left, z up: Rz(-90) Rx(-90).

Eq. 1 prints +90 degrees twice, which would put left where right is; the rotations that its authors published
(`R camara a odom`) have the turns the other way round.
"""


def mean_direction(positions: ArrayLike) -> Floats:
    """Unit vector (3,) along which a camera moved from its origin through positions (n, 3).

    The paper's "averaged the normalized estimated positions": every position counts the same, however near
    to the origin it is.
    """
    p = np.asarray(positions, dtype=np.float64)
    distance = np.linalg.norm(p, axis=-1)
    known = p[distance > 0] / distance[distance > 0, None]
    mean = known.mean(axis=0) if len(known) else np.zeros(3)
    if np.linalg.norm(mean) < 0.5:
        raise GeometryError(
            "the camera has no direction of motion",
            why=f"its {len(known)} positions lie all around the origin" if len(known) else "it stands",
            hint="take a straight segment",
        )
    return mean / np.linalg.norm(mean)


def rotation_between(direction: ArrayLike, target: ArrayLike = FORWARD) -> Floats:
    """Smallest rotation (3, 3) that takes one direction (3,) to another: R(theta) of eq. 1."""
    a, b = (np.asarray(v, dtype=np.float64) / np.linalg.norm(v) for v in (direction, target))
    if not np.cross(a, b).any() and a @ b < 0:
        raise GeometryError("opposite directions have no smallest rotation between them")
    return rotations.rotation_between(a, b)


def odometry_from_camera(positions: ArrayLike) -> Floats:
    """``R_odometry_camera`` (3, 3) of eq. 1, from a camera's positions (n, 3) on a straight segment.

    Parameters
    ----------
    positions : (n, 3) array
        In the left camera's own frame at the start (x right, y down, z forward), driving forwards. Metres, or
        any other length.
    """
    return BODY_FROM_OPTICAL @ rotation_between(mean_direction(positions))


def odometry_from_imu(R_odometry_camera: ArrayLike, camera_xyz: ArrayLike, T_camera_imu: ArrayLike) -> Floats:
    """``T_odometry_imu`` (4, 4) of eq. 2: ``T^rc T^ci``.

    Parameters
    ----------
    R_odometry_camera : (3, 3) array
        By `odometry_from_camera`.
    camera_xyz : (3,) array
        The left camera in the odometry frame, measured on the robot, metres.
    T_camera_imu : (4, 4) array
        Takes imu points to the left camera (Kalibr's `T_cam_imu`).
    """
    return se3.compose(se3.from_matrix(R_odometry_camera, camera_xyz), T_camera_imu)


def straight_segments(positions: ArrayLike, length: float = 10.0, bow: float = 0.2) -> Ints:
    """Pieces (k, 2) of a track (n, 2) or (n, 3) that are straight: first sample and last, exclusive.

    The track is cut into pieces of `length` metres of way ("less than 10 m", 4.7); one in which the robot
    comes less than half as far is none.

    Parameters
    ----------
    bow : float
        Metres by which a straight piece may leave the line between its ends.
    """
    p = np.asarray(positions, dtype=np.float64)
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(p, axis=0), axis=-1))])
    cuts = np.searchsorted(way, np.arange(0.0, way[-1] + length, length), side="left")
    pieces = np.column_stack([cuts[:-1], cuts[1:]])
    chords = p[pieces[:, 1] - 1] - p[pieces[:, 0]]
    far = np.linalg.norm(chords, axis=-1) > length / 2
    straight = [_bow(p[first:stop]) <= bow for first, stop in pieces[far].tolist()]
    return pieces[far][np.array(straight, dtype=bool)]


def _bow(points: Floats) -> float:
    """Largest distance of points (n, k) from the line through the first and the last."""
    along = (points[-1] - points[0]) / np.linalg.norm(points[-1] - points[0])
    off = points - points[0]
    return float(np.linalg.norm(off - np.outer(off @ along, along), axis=-1).max())


def truth_rotation(track: ArrayLike, rtk: ArrayLike, level: bool = False) -> Alignment:
    """Alignment of RTK positions (n, 3) with the robot's track (n, 3) on a straight segment, by Horn (4.7).

    Its `rotation` takes vectors of the RTK frame to those of the track; row i of both is of one time.

    Parameters
    ----------
    level : bool
        Turn about z only. Horn's full rotation has the direction of the segment, but how the track is rolled
        about that comes from the few centimetres by which the segment is not straight: on the published
        segments it changes by tens of degrees if the times shift by 0.1 s.
    """
    return align.yaw(rtk, track) if level else align.horn(rtk, track)
