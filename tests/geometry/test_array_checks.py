import numpy as np
import pytest

from transect.errors import GeometryError
from transect.geometry.array_checks import check_times_ns, floats, same_length, times_ns


def test_a_wrong_shape_is_told_beside_the_expected_one():
    with pytest.raises(GeometryError, match=r"points: expected shape \(n, 3\), got \(4,\)"):
        floats("points", [1, 2, 3, 4], ("n", 3))
    with pytest.raises(GeometryError, match=r"q: expected shape \(\.\.\., 4\), got \(2, 3\)"):
        floats("q", np.zeros((2, 3)), (..., 4))
    with pytest.raises(GeometryError, match=r"v: expected shape \(n,\), got \(\)"):
        floats("v", 1.0, ("n",))


def test_leading_axes_are_free_where_the_pattern_says_so():
    assert floats("q", np.zeros((2, 5, 4)), (..., 4)).shape == (2, 5, 4)
    assert floats("q", np.zeros(4), (..., 4)).shape == (4,)
    assert floats("f", 0.5, (...,)).shape == ()


def test_what_is_not_numbers_is_refused():
    with pytest.raises(GeometryError, match="points is not an array of numbers"):
        floats("points", [[1, 2], [3]], ("n", 2))
    with pytest.raises(GeometryError, match="not an array of numbers"):
        floats("points", "north", ("n",))


def test_float_times_are_refused_because_they_cannot_hold_nanoseconds():
    with pytest.raises(GeometryError, match="expected int64 nanoseconds, got float64"):
        times_ns("t", [1656000000.1])
    with pytest.raises(GeometryError, match="uint64"):
        times_ns("t", np.array([2**63], dtype=np.uint64))


def test_an_empty_time_axis_and_short_integers_are_fine():
    assert times_ns("t", []).dtype == np.int64
    assert times_ns("t", np.array([1, 2], dtype=np.int32)).dtype == np.int64


def test_a_step_back_in_time_names_the_sample():
    with pytest.raises(GeometryError, match="sample 2"):
        check_times_ns("t", [1, 5, 4, 6])
    assert check_times_ns("t", [1, 1, 2]).tolist() == [1, 1, 2]


def test_unequal_lengths_are_told_with_their_shapes():
    with pytest.raises(GeometryError, match=r"times \(2,\), values \(3, 1\)"):
        same_length(times=np.zeros(2), values=np.zeros((3, 1)))
