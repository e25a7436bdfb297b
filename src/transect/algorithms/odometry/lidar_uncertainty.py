"""How far the motion from scan to scan can be believed.

The curvature of an alignment's sum of squares takes the errors of all points as independent. They are not:
a sensor that shakes while it scans bends whole sectors, and points beside each other lie off the same voxel.
So it tells variances a thousand times too small, and is only good for directions in which a scan can slide.

What the points share moves each pose on its own, while the motion itself changes slowly. So the third
differences of the poses, in which a steady acceleration cancels, are made of it, with twenty times its
variance (1 + 9 + 9 + 1). What of the motion is too quick for the rate of scans is in them, too, and rightly:
scans are straightened as if it were not there.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from transect.base.arrays import Floats

from ..registration.gicp import Aligned

KEPT, LEAST = 30, 3
"""Third differences that count, and that must be there."""
GAIN = 20.0


class Unsteadiness:
    """The last third differences of poses."""

    def __init__(self) -> None:
        self._velocities: deque[Floats] = deque(maxlen=3)
        self._squares: deque[Floats] = deque(maxlen=KEPT)

    def add(self, velocity: Floats, seconds: float) -> None:
        """Take the velocity (6,) of the sensor since the scan before, m/s and rad/s in its own axes."""
        self._velocities.append(velocity)
        if len(self._velocities) == 3:
            first, second, third = self._velocities
            self._squares.append(((third - 2 * second + first) * seconds) ** 2)

    def covariance(self, aligned: Aligned) -> Floats | None:
        """Return the covariance (6, 6) of the last step in the sensor's axes, m^2 then rad^2.

        Twice that of a pose, for its two ends. Divided by their number less two, few differences count for
        little: the mean of a variance of which n squares are known, and nothing before.
        """
        if len(self._squares) < LEAST:
            return None
        shared = np.sum(self._squares, axis=0) / (GAIN * (len(self._squares) - 2))
        return 2 * (np.diag(shared) + curvature_covariance(aligned))


def curvature_covariance(aligned: Aligned) -> Floats:
    """Return the covariance (6, 6) in the source's axes, were the errors of all points independent."""
    values, vectors = np.linalg.eigh(aligned.hessian)
    values = np.maximum(values, 1e-9 * values[-1])
    variance = 2 * aligned.error / max(3 * aligned.inliers - 6, 1)
    return variance * (vectors / values) @ vectors.T
