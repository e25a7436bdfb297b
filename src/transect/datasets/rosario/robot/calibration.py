"""How the camera, the imu and the ground truth got their rotations (document 001, 4.1.2 and 4.7).

Rotations take vectors of the second frame to the first: ``R_odometry_camera`` is the paper's R^rc.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError
from transect.geometry import align, rotations, se3
from transect.geometry.align import Alignment

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
