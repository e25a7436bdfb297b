"""Laser returns and range error codes, defined here for every format.

A measured range is a number in metres. Beams without a measurement have the range NaN, and the column
`range_error` may have the reason, as the code of the sensor or format:

============ ===============================================================================================
0            a range was measured, or the reason is unknown
1 to 4       Rock: too far (no return), too near, measurement error, other error
8183 to 8191 SICK LMS 2xx in its modes of 8 m (mm) and 80 m (cm), see `SICK`
============ ===============================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Mask

TOO_FAR, TOO_NEAR, MEASUREMENT_ERROR, OTHER_ERROR = 1, 2, 3, 4
"""Codes of `base::samples::LaserScan` of Rock."""
NOT_VALID, BEYOND_MAXIMUM = 8191, 8183
SICK = {
    NOT_VALID: "measured value not valid: no return",
    8190: "dazzled",
    8189: "operation overflow",
    8188: "reserved",
    8187: "signal to noise ratio too small",
    8186: "error when reading channel 1",
    8185: "reserved",
    8184: "reserved",
    BEYOND_MAXIMUM: "measured value larger than the maximum",
}
"""Codes that a SICK LMS 2xx sends instead of a range, in the units of its mode (its telegram listing)."""
NO_RETURN = (TOO_FAR, NOT_VALID, BEYOND_MAXIMUM)
"""Codes of beams without an obstacle within the maximum range; the other codes do not imply free space."""
Errors = NDArray[np.uint16]


def find_returns(ranges: ArrayLike, nearest: ArrayLike = 0.0, farthest: ArrayLike = np.inf) -> Mask:
    """Return which ranges lie between two limits in metres, excluding the limits.

    Parameters
    ----------
    ranges : array
        m; NaN, infinite, zero and negative ranges are no returns.
    nearest, farthest : float or array
        Limits, for all ranges or for each; NaN is no limit. A range equal to the maximum is excluded because
        many drivers send it for beams without a return.
    """
    r = np.asarray(ranges, dtype=np.float64)
    low = np.fmax(np.nan_to_num(np.asarray(nearest, dtype=np.float64)), 0.0)
    high = np.fmin(np.asarray(farthest, dtype=np.float64), np.inf)
    return (r > low) & (r < high)


def sick_errors(numbers: Floats) -> Errors:
    """Return the error code of each number of a SICK laser, in the units of its mode; 0 for a range."""
    errors = np.zeros(len(numbers), np.uint16)
    near = np.flatnonzero((numbers > BEYOND_MAXIMUM - 0.5) & (numbers < NOT_VALID + 0.5))
    whole = np.rint(numbers[near])
    coded = np.abs(numbers[near] - whole) < 1e-4
    errors[near[coded]] = whole[coded]
    return errors


def errors_from_infinities(ranges: Floats) -> Errors:
    """Return the codes of ranges as defined by REP 117 of ROS: inf too far, -inf too near, NaN error."""
    kinds = [np.isposinf(ranges), np.isneginf(ranges), np.isnan(ranges)]
    return np.select(kinds, [TOO_FAR, TOO_NEAR, MEASUREMENT_ERROR], 0).astype(np.uint16)


def infinities_from_errors(ranges: Floats, errors: NDArray[Any]) -> Floats:
    """Return ranges in the convention of REP 117: the inverse of `errors_from_infinities`."""
    absent = np.isnan(ranges)
    kinds = [absent & np.isin(errors, NO_RETURN), absent & (errors == TOO_NEAR)]
    return np.select(kinds, [np.inf, -np.inf], ranges)
