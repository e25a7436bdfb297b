import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from transect.errors import GeometryError
from transect.geometry import robust

numbers = st.floats(-1e6, 1e6)
tables = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=numbers | st.just(np.nan)
)
series = hnp.arrays(np.float64, st.integers(1, 30), elements=numbers)


def with_nan(values):
    return np.insert(values, [0, len(values) // 2, len(values)], np.nan)


# Spread


@given(tables, st.sampled_from([0, 1, None]))
def test_median_and_mad_are_those_of_the_measured_values(table, axis):
    slices = [table.ravel()] if axis is None else (table.T if axis == 0 else table)
    measured = [row[~np.isnan(row)] for row in slices]
    medians = [np.median(row) if row.size else np.nan for row in measured]
    deviations = [stats.median_abs_deviation(row) if row.size else np.nan for row in measured]
    np.testing.assert_allclose(np.atleast_1d(robust.median(table, axis)), medians)
    np.testing.assert_allclose(np.atleast_1d(robust.mad(table, axis)), deviations, atol=1e-9)


@given(st.lists(st.floats(-1e6, 1e6) | st.just(np.nan), max_size=12), st.floats(0, 100))
def test_a_percentile_is_that_of_the_measured_values(values, percent):
    measured = [value for value in values if not np.isnan(value)]
    expected = np.percentile(measured, percent) if measured else np.nan
    assert robust.percentile(values, percent) == pytest.approx(expected, nan_ok=True)


def test_the_median_of_nothing_is_nan():
    assert np.isnan(robust.median([]))
    assert np.isnan(robust.mad([np.nan, np.nan]))
    np.testing.assert_array_equal(robust.median(np.zeros((2, 0)), axis=1), [np.nan, np.nan])


def test_nmad_is_the_deviation_of_normal_values_also_with_outliers():
    values = np.random.default_rng(1).normal(scale=3.0, size=20_000)
    assert robust.nmad(values) == pytest.approx(3.0, rel=0.03)
    values[:1000] = 1e6
    assert robust.nmad(values) == pytest.approx(3.0, rel=0.1)


@given(series, st.floats(-1e3, 1e3), st.floats(0.1, 10))
def test_moving_all_values_moves_the_median_and_scaling_scales_the_mad(values, shift, scale):
    assert robust.median(values * scale + shift) == pytest.approx(
        robust.median(values) * scale + shift, abs=1e-6
    )
    assert robust.mad(values * scale + shift) == pytest.approx(robust.mad(values) * scale, abs=1e-6)


def test_huber_and_cauchy_weights_by_hand():
    np.testing.assert_allclose(robust.huber_weights([0, 1, -2, 4, np.nan], k=2), [1, 1, 1, 0.5, 0])
    np.testing.assert_allclose(robust.cauchy_weights([0, 2, -2, np.nan], c=2), [1, 0.5, 0.5, 0])


@given(series)
def test_weights_are_between_0_and_1_and_fall_with_the_residual(residuals):
    residuals = np.sort(np.abs(residuals))
    for weigh in (robust.huber_weights, robust.cauchy_weights):
        weights = weigh(residuals)
        assert np.all((weights > 0) & (weights <= 1))
        assert np.all(np.diff(weights) <= 0)
        np.testing.assert_array_equal(weigh(-residuals), weights)


# Percentiles


@given(series, st.integers(1, 4), st.floats(0, 100))
def test_a_weight_of_k_is_k_equal_samples(values, k, percent):
    weights = np.where(np.arange(len(values)) % 2, k, 1)
    expected = np.percentile(np.repeat(values, weights), percent, method="inverted_cdf")
    assert robust.weighted_percentile(values, weights, percent) == pytest.approx(expected)


def test_nan_and_weightless_values_do_not_count():
    found = robust.weighted_percentile([np.nan, 1, 2, 3, 99], [5, 1, 1, 1, 0], [0, 50, 100])
    np.testing.assert_array_equal(found, [1, 2, 3])
    assert np.isnan(robust.weighted_percentile([np.nan], [1], 50))


def test_weights_must_be_as_many_as_values_and_not_negative():
    with pytest.raises(GeometryError, match="each of 2 values"):
        robust.weighted_percentile([1, 2], [1], 50)
    with pytest.raises(GeometryError, match="1 weights are negative"):
        robust.weighted_percentile([1, 2], [1, -1], 50)


# Runs


def test_runs_by_hand():
    starts, stops = robust.runs([True, True, False, True, False, False, True])
    assert starts.tolist() == [0, 3, 6]
    assert stops.tolist() == [2, 4, 7]


@given(hnp.arrays(np.bool_, st.integers(0, 30)))
def test_runs_hold_exactly_the_true_samples(mask):
    starts, stops = robust.runs(mask)
    rebuilt = np.zeros(len(mask), dtype=bool)
    for start, stop in zip(starts, stops, strict=True):
        rebuilt[start:stop] = True
    np.testing.assert_array_equal(rebuilt, mask)


def test_a_mask_has_one_axis():
    with pytest.raises(GeometryError, match=r"mask: expected shape \(n,\), got \(2, 2\)"):
        robust.runs(np.ones((2, 2)))
