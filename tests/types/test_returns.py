"""Which beams came back is decided in one place."""

from __future__ import annotations

import numpy as np

from transect.types import LaserScan
from transect.types.returns import (
    SICK,
    errors_from_infinities,
    find_returns,
    infinities_from_errors,
    sick_errors,
)


def test_limits_are_for_all_ranges_or_for_each_and_nan_is_no_limit():
    ranges = np.array([np.nan, -1.0, 0.0, 0.5, 5.0, 8.0, np.inf])
    assert find_returns(ranges).tolist() == [False, False, False, True, True, True, False]
    assert find_returns(ranges, 0.5, 8.0).tolist() == [*[False] * 4, True, False, False]
    assert find_returns(ranges, np.nan, np.nan).tolist() == find_returns(ranges).tolist()
    assert find_returns([5.0, 5.0], [0.0, 6.0], np.inf).tolist() == [True, False]


def test_the_codes_of_a_sick_are_whole_numbers_from_8183_to_8191():
    numbers = np.array([8182.0, 8183.0, 8186.5, 8191.0, 8192.0, np.nan, 81.91 * 100])
    assert sick_errors(numbers).tolist() == [0, 8183, 0, 8191, 0, 0, 8191]
    assert set(SICK) == set(range(8183, 8192))
    assert sick_errors(np.zeros(0)).tolist() == []


def test_codes_become_infinities_and_back():
    ranges = np.array([1.0, np.inf, -np.inf, np.nan])
    errors = errors_from_infinities(ranges)
    np.testing.assert_array_equal(infinities_from_errors(np.array([1.0, *[np.nan] * 3]), errors), ranges)
    dazzled = infinities_from_errors(np.full(3, np.nan), np.array([8190, 8183, 0]))
    np.testing.assert_array_equal(dazzled, [np.nan, np.inf, np.nan])


def test_measured_ranges_are_nan_outside_the_limits_of_the_sensor():
    scan = LaserScan(np.array([0.1, 5.0, 30.0, np.inf]), 0.0, 0.1, range_min=0.2, range_max=30.0)
    np.testing.assert_array_equal(scan.measured, [np.nan, 5.0, np.nan, np.nan])
