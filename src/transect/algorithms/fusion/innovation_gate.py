"""Gating: whether a measurement fits, how far its noise is what was said, and what a gate can find.

The normalised innovation squared (NIS) of a measurement that fits is chi-square distributed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from transect.base.arrays import Floats

USUAL = 0.95
"""Of the NIS should be below this quantile: noise is scaled so that they are."""
FALSE_ALARMS = 1e-3
"""Of the measurements that fit are outside of the gate."""
POWER = 0.8
"""With this probability the gate finds an error as large as `Sensor.detectable`."""
MOST_SCALE = 1e3
"""Bound of the factor on a sensor's variances."""


@cache
def limit(probability: float, numbers: int) -> float:
    """Quantile of the chi-square distribution with that many degrees of freedom."""
    from scipy.stats import chi2

    return float(chi2.ppf(probability, numbers))


@cache
def noncentrality(numbers: int) -> float:
    """How far off (squared, in sigmas) a measurement is that the gate finds with probability `POWER`."""
    from scipy.optimize import brentq
    from scipy.stats import ncx2

    gate = limit(1 - FALSE_ALARMS, numbers)
    found = brentq(lambda far: ncx2.sf(gate, numbers, far) - POWER, 1e-3, 1e3)
    return float(found)  # pyright: ignore[reportArgumentType]


def minimal_detectable(S: Floats) -> float:
    """Size of the smallest error that the gate finds with probability `POWER`, in its worst direction.

    Parameters
    ----------
    S : (m, m) array
        Covariance of the innovation; the answer has the unit of its square root.
    """
    return float(np.sqrt(noncentrality(len(S)) * np.linalg.eigvalsh(S)[-1]))


@dataclass
class Sensor:
    """What is known of one sensor's innovations.

    Attributes
    ----------
    least : float
        Bound of the scale.
    scale : float
        Factor on its variances, that makes 95 % of its NIS less than the 95 % limit.
    count, below, refused : int
        Innovations, those below the 95 % limit, and those outside of the gate.
    total : float
        Sum of all NIS, each divided by its degrees of freedom.
    row : int
        Refused one after the other.
    detectable : float
        Of the newest: see `minimal_detectable`.
    largest_detectable : float
    """

    least: float = 0.1
    scale: float = 1.0
    count: int = 0
    below: int = 0
    refused: int = 0
    total: float = 0.0
    row: int = 0
    detectable: float = float("nan")
    largest_detectable: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.count} innovations, {self.below / self.count:.1%} below the 95 % limit, mean NIS "
            f"{self.total / self.count:.2f} per number, {self.refused} outside of the gate, which finds an "
            f"error of {self.detectable:.3g} m (at the worst time {self.largest_detectable:.3g} m) with a "
            f"probability of {POWER:g}; variances x {self.scale:.3g}"
        )

    def judge(self, nis: float, S: Floats, gain: float, part: slice) -> bool:
        """Take note of an innovation, adapt the scale, and tell whether it is inside of the gate.

        Parameters
        ----------
        nis : float
            By S, the scale applied.
        gain : float
            How fast the scale follows; 0 to leave it.
        part : slice
            Of S: the numbers of one unit, for `detectable`.
        """
        numbers = len(S)
        usual = nis <= limit(USUAL, numbers)
        inside = nis <= limit(1 - FALSE_ALARMS, numbers)
        self.count += 1
        self.below += usual
        self.total += nis / numbers
        self.refused += not inside
        self.row = 0 if inside else self.row + 1
        self.detectable = minimal_detectable(S[part, part])
        self.largest_detectable = max(self.largest_detectable, self.detectable)
        # A quantile is followed by going up by 0.95 of a step where it is exceeded, down by 0.05 elsewhere.
        # Several refused in a row are not noise, and are left out of it.
        if self.row <= 1:
            moved = self.scale * float(np.exp(gain * ((0.0 if usual else 1.0) - (1 - USUAL))))
            self.scale = min(max(moved, self.least), MOST_SCALE)
        return inside
