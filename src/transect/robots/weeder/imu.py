"""The imu's own units, deg/s and milli-g with offsets, made SI (`imu_conversion.py` of document 001, 6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.base.units import unit_of

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
