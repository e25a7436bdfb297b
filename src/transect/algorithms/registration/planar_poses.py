"""Poses of the plane (x, y and heading), and what they are in space."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats

FLAT = np.array([1e-3, 1e-3, 1e-3])
"""Sigma of height, roll and pitch of a body that stays in its plane: m and rad."""
PLANAR = np.array([0, 1, 5])
"""x, y and heading among the six."""


def relate(first: Floats, second: Floats) -> Floats:
    """Return the motion (3,) from one pose (3,) to another in the axes of the first."""
    c, s = np.cos(first[2]), np.sin(first[2])
    x, y, turn = second - first
    return np.array([c * x + s * y, c * y - s * x, (turn + np.pi) % (2 * np.pi) - np.pi])


def compose(first: Floats, motion: Floats) -> Floats:
    """Return the pose (3,) after a motion (3,) in the axes of a pose (3,)."""
    c, s = np.cos(first[2]), np.sin(first[2])
    x, y, turn = motion
    return np.array([first[0] + c * x - s * y, first[1] + s * x + c * y, first[2] + turn])


def place(points: Floats, pose: Floats) -> Floats:
    """Return where points (n, 2) of a body at a pose (3,) are."""
    return points @ lift_pose(pose)[:2, :2].T + pose[:2]


def lift_pose(pose: Floats) -> Floats:
    """Return a pose (3,) of the plane as a transform (4, 4)."""
    c, s = np.cos(pose[2]), np.sin(pose[2])
    lifted = np.eye(4)
    lifted[:2, :2] = ((c, -s), (s, c))
    lifted[:2, 3] = pose[:2]
    return lifted


def flatten_pose(transform: Floats) -> Floats:
    """Return x, y and heading (3,) of a transform (4, 4)."""
    return np.array([*transform[:2, 3], np.arctan2(transform[1, 0], transform[0, 0])])


def lift_covariance(covariance: Floats, heading: float) -> Floats:
    """Return a covariance (3, 3) in the axes of a plane as that (6, 6) in the axes of a body."""
    c, s = np.cos(heading), np.sin(heading)
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    lifted = np.diag([0.0, 0.0, FLAT[0] ** 2, FLAT[1] ** 2, FLAT[2] ** 2, 0.0])
    lifted[np.ix_(PLANAR, PLANAR)] = turn @ covariance @ turn.T
    return lifted
