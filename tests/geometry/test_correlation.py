import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.errors import GeometryError
from transect.geometry.correlation import cross_correlation, time_offset

NOW_NS = 1_656_000_000_000_000_000
NS_PER_MS = 1_000_000


def turning(seconds):
    """A rover's yaw rate: some unrelated frequencies, in rad/s."""
    parts = [(1.0, 0.05, 0), (0.7, 0.13, 1), (0.5, 0.31, 2), (0.4, 0.7, 3), (0.3, 1.1, 4)]
    return sum(size * np.sin(2 * np.pi * hertz * seconds + phase) for size, hertz, phase in parts)


def logged(rate, seconds=60.0, seed=0, noise=0.02, jitter=0.2, start=0.0):
    """Uneven stamps in ns and the signal at them."""
    rng = np.random.default_rng(seed)
    t = start + np.arange(int(seconds * rate)) / rate
    t = np.sort(t + jitter / rate * rng.uniform(-1, 1, len(t)))
    return np.round(t * 1e9).astype(np.int64), turning(t) + noise * rng.normal(size=len(t))


# The offset


@given(offset=st.integers(-900 * NS_PER_MS, 900 * NS_PER_MS))
def test_an_offset_is_found_to_a_fraction_of_a_sample(offset):
    gyro_ns, gyro = logged(100, seed=1)
    odometry_ns, odometry = logged(20, seed=2)
    found = time_offset(
        NOW_NS + gyro_ns, gyro, NOW_NS + odometry_ns - offset, odometry, max_offset_ns=1000 * NS_PER_MS
    )
    assert found.offset_ns == pytest.approx(offset, abs=3 * NS_PER_MS)  # samples are 10 and 50 ms apart
    assert found.correlation > 0.99
    assert found.confidence > 0.5


def test_the_offset_is_to_be_added_to_the_times_of_b():
    a_ns, a = logged(100, seed=1)
    b_ns, b = logged(100, seed=2)
    found = time_offset(a_ns, a, b_ns - 250 * NS_PER_MS, b, max_offset_ns=1000 * NS_PER_MS)
    assert found.offset_ns == pytest.approx(250 * NS_PER_MS, abs=2 * NS_PER_MS)
    swapped = time_offset(b_ns - 250 * NS_PER_MS, b, a_ns, a, max_offset_ns=1000 * NS_PER_MS)
    assert swapped.offset_ns == pytest.approx(-250 * NS_PER_MS, abs=2 * NS_PER_MS)


def test_clocks_that_have_nothing_in_common_are_matched():
    utc_ns, a = logged(50, seed=1)
    device_ns, b = logged(50, seed=2, seconds=40, start=10)
    found = time_offset(NOW_NS + utc_ns, a, device_ns, b)
    assert found.offset_ns == pytest.approx(NOW_NS, abs=5 * NS_PER_MS)


def test_nan_samples_and_gaps_do_no_harm():
    a_ns, a = logged(100, seed=1)
    b_ns, b = logged(100, seed=2)
    a[1000:1010] = np.nan
    keep = np.ones(len(b), dtype=bool)
    keep[3000:4200] = False
    found = time_offset(a_ns, a, b_ns[keep] - 70 * NS_PER_MS, b[keep], max_offset_ns=500 * NS_PER_MS)
    assert found.offset_ns == pytest.approx(70 * NS_PER_MS, abs=2 * NS_PER_MS)
    assert found.correlation > 0.99


def test_scale_and_bias_do_not_matter():
    a_ns, a = logged(100, seed=1)
    b_ns, b = logged(100, seed=2)
    plain = time_offset(a_ns, a, b_ns, b, max_offset_ns=500 * NS_PER_MS)
    scaled = time_offset(a_ns, 57.3 * a + 1000, b_ns, b, max_offset_ns=500 * NS_PER_MS)
    assert scaled.offset_ns == pytest.approx(plain.offset_ns, abs=1000)
    assert scaled.correlation == pytest.approx(plain.correlation, abs=1e-6)


def test_a_periodic_signal_gives_no_confidence():
    t = np.arange(0, 60, 0.01)
    stamps = np.round(t * 1e9).astype(np.int64)
    wave = np.sin(2 * np.pi * t)
    assert time_offset(stamps, wave, stamps, wave, max_offset_ns=5000 * NS_PER_MS).confidence < 0.05


def test_a_peak_at_the_edge_of_the_search_gives_no_confidence():
    a_ns, a = logged(100, seed=1)
    b_ns, b = logged(100, seed=2)
    assert time_offset(a_ns, a, b_ns - 300 * NS_PER_MS, b, max_offset_ns=100 * NS_PER_MS).confidence == 0


def test_unrelated_signals_correlate_badly():
    rng = np.random.default_rng(3)
    stamps = np.arange(3000) * 10 * NS_PER_MS
    found = time_offset(stamps, rng.normal(size=3000), stamps, rng.normal(size=3000))
    assert found.correlation < 0.2
    assert found.confidence < 0.3


def test_signals_that_cannot_be_correlated_are_refused():
    a_ns, a = logged(100, seconds=1)
    with pytest.raises(GeometryError, match="signal b cannot be correlated"):
        time_offset(a_ns, a, a_ns, np.ones(len(a)))
    with pytest.raises(GeometryError, match="signal a cannot be correlated"):
        time_offset(a_ns[:2], a[:2], a_ns, a)
    with pytest.raises(GeometryError, match="no offset leaves enough"):
        time_offset(NOW_NS + a_ns, a, a_ns, a, max_offset_ns=NS_PER_MS)
    with pytest.raises(GeometryError, match=r"times \(100,\), signal \(99,\)"):
        time_offset(a_ns, a[1:], a_ns, a)


def test_a_wild_stamp_is_refused_before_memory_is_taken():
    a_ns, a = logged(100, seconds=1)
    wild = a_ns.copy()
    wild[-1] = NOW_NS
    with pytest.raises(GeometryError, match="outliers among the time stamps"):
        time_offset(a_ns, a, wild, a)


def test_equal_stamps_all_along_leave_no_grid():
    a_ns, a = logged(100, seconds=1)
    with pytest.raises(GeometryError, match="at least 1 ns, got 0"):
        time_offset(a_ns, a, np.full(len(a), NOW_NS), a)


# The two searches


def test_every_lag_is_the_pearson_correlation_of_what_overlaps():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=30) + 100, rng.normal(size=20) - 5
    a[[3, 17]], b[8] = np.nan, np.nan
    lags, rho = cross_correlation(a, b, min_overlap=0.3)
    assert lags.tolist() == list(range(-19, 30))
    padded = np.full(30 + 2 * 20, np.nan)
    padded[20:50] = a
    for lag, value in zip(lags, rho, strict=True):
        piece = padded[20 + lag : 40 + lag]
        common = np.isfinite(piece) & np.isfinite(b)
        if np.isfinite(value):
            assert value == pytest.approx(np.corrcoef(piece[common], b[common])[0, 1], abs=1e-9)
        else:
            assert common.sum() < 0.3 * 19


def test_a_signal_of_nothing_but_nan_is_refused():
    with pytest.raises(GeometryError, match="nothing but NaN"):
        cross_correlation([np.nan] * 3, [1, 2, 3])
