"""Headings of an odometry whose positions alone were published."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats


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
