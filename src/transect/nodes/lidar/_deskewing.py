"""A scan of a moving sensor as if all of it had been measured at one time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.geometry import rotations

EXACT = 1e-9
"""Where the series ends, relative to the largest coordinate: nanometres in a scan of metres."""


def straightened(points: NDArray[np.floating], seconds: Floats, twist: Floats) -> Floats:
    """Return points (n, 3) of a sensor as it would have measured them at second 0.

    Parameters
    ----------
    points : (n, 3)
        In the sensor's frame, each at its own time.
    seconds : (n,)
        Those times.
    twist : (6,)
        Velocity of the sensor in its own frame, steady over the scan: m/s, then rad/s.

    Notes
    -----
    ``exp(t xi) p`` by its series: a few products of all points at once, where Rodrigues' formula would need
    sine and cosine of each.
    """
    turning = rotations.skew(twist[3:])
    term = np.ascontiguousarray(points.T, dtype=np.float64)
    result = term.copy()
    term = (turning @ term + twist[:3, None]) * seconds
    angle = float(np.linalg.norm(twist[3:]) * np.abs(seconds).max(initial=0.0))
    order, size = 1, 1.0
    while size > EXACT:
        result += term
        order += 1
        term = (turning @ term) * (seconds / order)
        size *= angle / order
    return result.T
