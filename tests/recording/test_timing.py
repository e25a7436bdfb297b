"""What the stamps of samples and of the log determine of a clock, and what they do not."""

from __future__ import annotations

import numpy as np
import pytest

from transect.base.clocks import NS
from transect.recording import Stream, stream_of_values
from transect.recording.clock_comparison import compare_clocks, comparison_row
from transect.types import Imu


def stream(seconds: float, drift_ppm: float, seed: int, rate: float = 50.0, jump_s: float = 0.0) -> Stream:
    """Return a stream whose messages wait in a queue that fills and drains in 5 s."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    keep = np.exp(-1 / rate / 5.0)
    queue = np.zeros(len(t))
    for k, push in enumerate(rng.normal(0, 4e-3 * np.sqrt(1 - keep**2), len(t))):
        queue[k] = keep * queue[k - 1] + push
    delay = 0.003 + np.abs(queue) + rng.exponential(1e-3, len(t)) + drift_ppm * 1e-6 * t
    delay += jump_s * (t > seconds / 2)
    t_ns = 1_700_000_000 * NS + np.rint(t * NS).astype(np.int64)
    log_ns = t_ns + np.rint(delay * NS).astype(np.int64)
    return stream_of_values("imu", t_ns, {"gyro_z": 0 * t}, type=Imu, log_ns=log_ns)


def test_no_drift_is_claimed_from_18_seconds() -> None:
    found = [compare_clocks(stream(18, 0.0, seed)) for seed in range(40)]
    assert [each.drift_ppm for each in found].count(None) >= 39
    assert all(each.drift_sigma_ppm is not None and each.drift_sigma_ppm > 5 for each in found)
    assert "none above" in comparison_row(found[0])[5]


@pytest.mark.parametrize("drift_ppm", [-200.0, 60.0])
def test_a_drift_of_an_hour_is_found_and_its_standard_error_is_true(drift_ppm: float) -> None:
    found = [compare_clocks(stream(3600, drift_ppm, seed, rate=5.0)) for seed in range(30)]
    pulls = np.array([((e.drift_ppm or 0.0) - drift_ppm) / (e.drift_sigma_ppm or np.nan) for e in found])
    assert np.sqrt(np.mean(pulls**2)) < 2.0  # a factor of two: autocorrelation is estimated from 24 blocks
    assert np.sqrt(np.mean(pulls**2)) > 0.3
    assert f"{drift_ppm:.0f}"[:2] in comparison_row(found[0])[5]
    assert "+-" in comparison_row(found[0])[5]


def test_a_jump_is_no_drift() -> None:
    found = compare_clocks(stream(600, 0.0, 0, jump_s=0.5))
    assert found.drift_ppm is None
    assert found.drift_sigma_ppm is not None
    assert found.drift_sigma_ppm > 100


def test_few_samples_and_equal_stamps_determine_nothing() -> None:
    assert comparison_row(compare_clocks(stream(1, 0.0, 0)))[5] == "-"
    still = stream(100, 0.0, 0)
    same = stream_of_values("imu", still.t_ns, {"gyro_z": 0.0 * still.t_ns}, type=Imu, log_ns=still.t_ns)
    assert comparison_row(compare_clocks(same))[5] == "none"
