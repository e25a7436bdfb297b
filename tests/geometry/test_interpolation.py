import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp
from tests.geometry.strategies import quaternions

from transect.errors import GeometryError
from transect.geometry import rotations
from transect.geometry.interpolation import (
    BATCH_SAMPLES,
    Limits,
    bracket,
    interpolate_attitudes,
    interpolate_columns,
    interpolate_poses,
    nearest_index,
)

NOW_NS = 1_656_000_000_123_456_789  # a float64 of this size moves in steps of 256 ns
TIMES_NS = NOW_NS + np.array([0, 10, 20, 40])

times = st.lists(st.integers(NOW_NS - 1000, NOW_NS + 1000), min_size=1, max_size=12)


# Nearest


def test_the_nearest_sample_and_the_earlier_of_two_as_near():
    assert nearest_index(TIMES_NS, NOW_NS + np.array([-5, 4, 5, 6, 30, 31, 99])).tolist() == [
        0,
        0,
        0,
        1,
        2,
        3,
        3,
    ]


def test_beyond_the_tolerance_there_is_no_nearest_sample():
    assert nearest_index(TIMES_NS, NOW_NS + np.array([-3, -2, 12, 13, 43]), tolerance_ns=2).tolist() == [
        -1,
        0,
        1,
        -1,
        -1,
    ]


def test_the_extreme_times_that_stand_for_no_time_are_near_nothing():
    extremes = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    assert nearest_index(TIMES_NS, extremes, tolerance_ns=10**9).tolist() == [-1, -1]
    assert np.isnan(bracket(TIMES_NS, extremes, Limits(beyond_ns=10**9)).fraction).all()


@given(times, times)
def test_nearest_is_what_trying_all_samples_finds(axis, query):
    axis, query = np.sort(axis), np.array(query)
    found = nearest_index(axis, query)
    np.testing.assert_array_equal(np.abs(axis[found] - query), np.abs(axis[:, None] - query).min(axis=0))


# Bracket


def test_brackets_by_hand():
    around = bracket(TIMES_NS, NOW_NS + np.array([0, 5, 20, 35, 40]))
    assert around.left.tolist() == [0, 0, 2, 2, 3]
    assert around.right.tolist() == [1, 1, 3, 3, 3]
    assert around.fraction.tolist() == [0, 0.5, 0, 0.75, 0]


def test_outside_the_samples_is_nan_unless_held():
    query = NOW_NS + np.array([-6, -5, 45, 46])
    assert np.isnan(bracket(TIMES_NS, query).fraction).all()
    np.testing.assert_array_equal(
        bracket(TIMES_NS, query, Limits(beyond_ns=5)).fraction, [np.nan, 0, 0, np.nan]
    )


def test_in_a_long_gap_is_nan_but_not_on_its_ends():
    fraction = bracket(TIMES_NS, NOW_NS + np.array([15, 20, 30, 40]), Limits(gap_ns=10)).fraction
    np.testing.assert_array_equal(fraction, [0.5, 0, np.nan, 0])


def test_an_error_on_request_says_when_and_why():
    with pytest.raises(GeometryError, match="2 query times are outside") as caught:
        bracket(TIMES_NS, NOW_NS + np.array([5, 30, 50]), Limits(gap_ns=10, otherwise="error"))
    assert caught.value.where == f"first at {NOW_NS + 30} ns"
    assert bracket(TIMES_NS, [NOW_NS + 5], Limits(gap_ns=10, otherwise="error")).fraction.tolist() == [0.5]


def test_of_samples_with_equal_times_the_last_counts():
    axis = NOW_NS + np.array([0, 10, 10, 20])
    np.testing.assert_array_equal(
        interpolate_columns(axis, [0, 1, 2, 4], NOW_NS + np.array([5, 10, 15])), [0.5, 2, 3]
    )


def test_a_single_sample_answers_for_its_own_time_only():
    np.testing.assert_array_equal(
        interpolate_columns([NOW_NS], [7.0], [NOW_NS - 1, NOW_NS, NOW_NS + 1]), [np.nan, 7, np.nan]
    )


def test_an_axis_without_samples_or_out_of_order_or_in_floats_is_refused():
    with pytest.raises(GeometryError, match="at least one sample"):
        bracket([], [NOW_NS])
    with pytest.raises(GeometryError, match="time decreases"):
        nearest_index([2, 1], [0])
    with pytest.raises(GeometryError, match="expected int64 nanoseconds"):
        bracket(TIMES_NS, [1.5e18])


def test_no_queries_give_empty_arrays():
    assert interpolate_columns(TIMES_NS, np.zeros((4, 2)), []).shape == (0, 2)
    assert interpolate_attitudes(TIMES_NS, np.tile([0, 0, 0, 1.0], (4, 1)), []).shape == (0, 4)
    assert nearest_index(TIMES_NS, []).shape == (0,)


# Columns


def test_a_nanosecond_counts_at_the_present_day():
    values = interpolate_columns([NOW_NS, NOW_NS + 4], [0.0, 1.0], NOW_NS + np.arange(5))
    np.testing.assert_array_equal(values, [0, 0.25, 0.5, 0.75, 1])


@given(times, times)
def test_columns_agree_with_numpy_on_small_numbers(axis, query):
    axis, query = np.unique(axis), np.array(query)
    values = np.random.default_rng(0).normal(size=(len(axis), 2))
    ours = interpolate_columns(axis, values, query)
    for column in range(2):
        expected = np.interp(query - NOW_NS, axis - NOW_NS, values[:, column], left=np.nan, right=np.nan)
        np.testing.assert_allclose(ours[:, column], expected, atol=1e-12)


def test_a_nan_sample_spoils_its_neighbourhood_only():
    values = [[0.0, 1.0], [np.nan, 2.0], [2.0, 3.0], [4.0, 5.0]]
    found = interpolate_columns(TIMES_NS, values, NOW_NS + np.array([0, 5, 15, 20, 30]))
    np.testing.assert_array_equal(found[:, 0], [0, np.nan, np.nan, 2, 3])
    np.testing.assert_array_equal(found[:, 1], [1, 1.5, 2.5, 3, 4])


def test_unequal_lengths_and_odd_shapes_are_refused():
    with pytest.raises(GeometryError, match=r"times \(4,\), values \(3,\)"):
        interpolate_columns(TIMES_NS, [1, 2, 3], [NOW_NS])
    with pytest.raises(GeometryError, match=r"expected shape \(n,\) or \(n, k\), got \(4, 1, 1\)"):
        interpolate_columns(TIMES_NS, np.zeros((4, 1, 1)), [NOW_NS])
    with pytest.raises(GeometryError, match=r"times \(\), values \(4,\)"):
        interpolate_columns(NOW_NS, np.zeros(4), [NOW_NS])


# Attitudes and poses


@given(quaternions(), st.lists(st.integers(0, 10**9), min_size=1, max_size=8))
def test_attitudes_agree_with_scipy(q, query):
    half_turns = rotations.angle_between(q[1:], q[:-1]) > np.pi - 1e-3
    if len(q) < 2 or half_turns.any():
        return
    seconds = np.linspace(0, 1, len(q))
    axis = np.round(seconds * 10**9).astype(np.int64)
    expected = Slerp(axis / 1e9, Rotation.from_quat(q))(np.array(query) / 1e9).as_quat()
    ours = interpolate_attitudes(NOW_NS + axis, q, NOW_NS + np.array(query))
    assert np.all(rotations.angle_between(ours, expected) < 1e-6)


def test_attitudes_with_flipped_signs_go_the_short_way():
    q = rotations.quaternion_from_euler("z", [[0.0], [0.2]]) * [[1], [-1]]
    middle = interpolate_attitudes([0, 10], q, [5])
    np.testing.assert_allclose(rotations.euler_from_quaternion("rpy", middle), [[0, 0, 0.1]], atol=1e-15)


def test_a_zero_quaternion_was_not_measured_and_spoils_its_neighbourhood_only():
    q = np.array([[0, 0, 0, 1.0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]])
    found = interpolate_attitudes(TIMES_NS, q, NOW_NS + np.array([0, 5, 20, 30]))
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [False, True, False, False])


def test_poses_move_straight_and_turn_evenly():
    positions = np.array([[0.0, 0, 0], [10, 20, 30]])
    q = rotations.quaternion_from_euler("z", [[0.0], [1.0]])
    where, attitude = interpolate_poses([NOW_NS, NOW_NS + 100], positions, q, [NOW_NS + 25, NOW_NS + 101])
    np.testing.assert_allclose(where, [[2.5, 5, 7.5], [np.nan] * 3])
    np.testing.assert_allclose(rotations.euler_from_quaternion("rpy", attitude[0]), [0, 0, 0.25], atol=1e-15)
    assert np.isnan(attitude[1]).all()


def test_many_poses_are_the_same_as_one_at_a_time_across_chunks():
    rng = np.random.default_rng(5)
    axis = NOW_NS + np.arange(50) * 1000
    positions, q = rng.normal(size=(50, 3)), rng.normal(size=(50, 4))
    query = NOW_NS + rng.integers(0, 49_000, BATCH_SAMPLES + 10)
    where, attitude = interpolate_poses(axis, positions, q, query)
    for k in (0, BATCH_SAMPLES - 1, BATCH_SAMPLES, BATCH_SAMPLES + 9):
        one_where, one_attitude = interpolate_poses(axis, positions, q, query[k : k + 1])
        np.testing.assert_array_equal(where[k], one_where[0])
        np.testing.assert_allclose(attitude[k], one_attitude[0], atol=1e-15)


def test_positions_and_attitudes_must_be_as_many():
    with pytest.raises(GeometryError, match=r"positions \(4, 3\), quaternions \(3, 4\)"):
        interpolate_poses(TIMES_NS, np.zeros((4, 3)), np.zeros((3, 4)), [NOW_NS])
