"""Eq. 2 and section 4.7 of the Rosario paper, which its published calibration was computed with."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.geometry import align, se3
from transect.geometry.align import Alignment


def odometry_from_imu(R_odometry_camera: ArrayLike, camera_xyz: ArrayLike, T_camera_imu: ArrayLike) -> Floats:
    """Return ``T_odometry_imu`` (4, 4) of eq. 2: ``T^rc T^ci``.

    Parameters
    ----------
    R_odometry_camera : (3, 3) array
        Rotation of `odometry_from_camera`.
    camera_xyz : (3,) array
        The left camera in the odometry frame, measured on the robot, metres.
    T_camera_imu : (4, 4) array
        Takes imu points to the left camera (Kalibr's `T_cam_imu`).
    """
    return se3.compose(se3.from_matrix(R_odometry_camera, camera_xyz), T_camera_imu)


def straight_segments(positions: ArrayLike, length: float = 10.0, bow: float = 0.2) -> Ints:
    """Return the straight pieces (k, 2) of a track (n, 2) or (n, 3): first sample and last, exclusive.

    The track is divided into pieces of `length` m ("less than 10 m", 4.7); those whose chord is shorter than
    half of it are omitted.

    Parameters
    ----------
    bow : float
        Largest distance of a straight piece from the line between its ends, m.
    """
    p = np.asarray(positions, dtype=np.float64)
    distance = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(p, axis=0), axis=-1))])
    cuts = np.searchsorted(distance, np.arange(0.0, distance[-1] + length, length), side="left")
    pieces = np.column_stack([cuts[:-1], cuts[1:]])
    chords = p[pieces[:, 1] - 1] - p[pieces[:, 0]]
    far = np.linalg.norm(chords, axis=-1) > length / 2
    straight = [_bow(p[first:stop]) <= bow for first, stop in pieces[far].tolist()]
    return pieces[far][np.array(straight, dtype=bool)]


def _bow(points: Floats) -> float:
    """Return the largest distance of points (n, k) from the line through the first and the last."""
    along = (points[-1] - points[0]) / np.linalg.norm(points[-1] - points[0])
    off = points - points[0]
    return float(np.linalg.norm(off - np.outer(off @ along, along), axis=-1).max())


def truth_rotation(track: ArrayLike, rtk: ArrayLike, level: bool = False) -> Alignment:
    """Return the alignment of RTK positions (n, 3) with a straight track (n, 3), by Horn (4.7).

    Its `rotation` is from the RTK frame to that of the track; row i of both is of the same time.

    Parameters
    ----------
    level : bool
        Rotation about z only. The roll about the segment, in Horn's full rotation, is determined by the few
        centimetres by which the segment is not straight: on the published segments it changes by tens of
        degrees if the times shift by 0.1 s.
    """
    return align.yaw(rtk, track) if level else align.horn(rtk, track)
