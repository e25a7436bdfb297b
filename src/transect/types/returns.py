"""Which beams of a laser came back, and what the sensor said where none did: decided here for every format.

A range that was measured is a number in metres. Where none was measured the range is NaN, and the column
`range_error` may say why, with the numbers that sensors and formats themselves send:

============ ===============================================================================================
0            a range was measured, or the reason is not known
1 to 4       Rock's codes: too far (nothing came back), too near, measurement error, other error
8183 to 8191 the codes of a SICK LMS 2xx in its modes of 8 m (mm) and 80 m (cm), see `SICK`
============ ===============================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Mask

TOO_FAR, TOO_NEAR, MEASUREMENT_ERROR, OTHER_ERROR = 1, 2, 3, 4
"""As `base::samples::LaserScan` of Rock numbers them."""
NOT_VALID, BEYOND_MAXIMUM = 8191, 8183
SICK = {
    NOT_VALID: "measured value not valid: nothing came back",
    8190: "dazzled",
    8189: "operation overflow",
    8188: "reserved",
    8187: "signal to noise ratio too small",
    8186: "error when reading channel 1",
    8185: "reserved",
    8184: "reserved",
    BEYOND_MAXIMUM: "measured value larger than the maximum",
}
"""What a SICK LMS 2xx sends instead of a range, in the units of its mode (its telegram listing)."""
NO_RETURN = (TOO_FAR, NOT_VALID, BEYOND_MAXIMUM)
"""Codes of beams that met nothing within the sensor's reach; the others say nothing about what is there."""
Errors = NDArray[np.uint16]


def find_returns(ranges: ArrayLike, nearest: ArrayLike = 0.0, farthest: ArrayLike = np.inf) -> Mask:
    """Return which ranges were measured between two limits in metres, the limits themselves excluded.

    Parameters
    ----------
    ranges : array
        m; NaN, infinite, zero and negative ranges are no returns.
    nearest, farthest : float or array
        Limits, for all ranges or for each; NaN is no limit. Many drivers send the largest range itself where
        nothing came back, so it is not believed.
    """
    r = np.asarray(ranges, dtype=np.float64)
    low = np.fmax(np.nan_to_num(np.asarray(nearest, dtype=np.float64)), 0.0)
    high = np.fmin(np.asarray(farthest, dtype=np.float64), np.inf)
    return (r > low) & (r < high)


def sick_errors(numbers: Floats) -> Errors:
    """Return which of the numbers of a SICK laser, in the units of its mode, are codes: the code, else 0."""
    errors = np.zeros(len(numbers), np.uint16)
    near = np.flatnonzero((numbers > BEYOND_MAXIMUM - 0.5) & (numbers < NOT_VALID + 0.5))
    whole = np.rint(numbers[near])
    coded = np.abs(numbers[near] - whole) < 1e-4
    errors[near[coded]] = whole[coded]
    return errors


def errors_from_infinities(ranges: Floats) -> Errors:
    """Return the codes of ranges as ROS has them (REP 117): inf too far, -inf too near, NaN an error."""
    kinds = [np.isposinf(ranges), np.isneginf(ranges), np.isnan(ranges)]
    return np.select(kinds, [TOO_FAR, TOO_NEAR, MEASUREMENT_ERROR], 0).astype(np.uint16)


def infinities_from_errors(ranges: Floats, errors: NDArray[Any]) -> Floats:
    """Return ranges as REP 117 has them where none was measured: the inverse of `errors_from_infinities`."""
    absent = np.isnan(ranges)
    kinds = [absent & np.isin(errors, NO_RETURN), absent & (errors == TOO_NEAR)]
    return np.select(kinds, [np.inf, -np.inf], ranges)
