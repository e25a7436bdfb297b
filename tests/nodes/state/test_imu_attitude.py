"""Attitude by gravity and gyroscope, on an analytic motion."""

from __future__ import annotations

import numpy as np
import pytest

from transect.geometry import rotations
from transect.nodes.state.imu_attitude import Complementary, GravityFilter, ImuAttitude
from transect.types import Imu

NS = 1_000_000_000
GRAVITY_M_S2 = 9.80665


def rolling(seconds: float, rate: float, bias: np.ndarray, seed: int = 0) -> list[Imu]:
    """Return samples at 100 Hz of an IMU that rolls at a constant rate from level."""
    rng = np.random.default_rng(seed)
    times = np.arange(0.0, seconds, 0.01)
    return [
        Imu(
            np.array([0.0, GRAVITY_M_S2 * np.sin(rate * t), GRAVITY_M_S2 * np.cos(rate * t)])
            + 0.02 * rng.standard_normal(3),
            np.array([rate, 0.0, 0.0]) + bias + 0.001 * rng.standard_normal(3),
            t_ns=round(t * NS),
        )
        for t in times
    ]


def tilt(node: ImuAttitude, samples: list[Imu]) -> tuple[float, np.ndarray]:
    """Return the roll at the end and its covariance."""
    told = [node(sample) for sample in samples][-1]
    return float(rotations.euler_from_quaternion("rpy", told.state.orientation)[0]), told.covariance


@pytest.mark.parametrize("kind", [Complementary, GravityFilter])
def test_a_slow_roll_is_followed(kind: type[ImuAttitude]):
    roll, _ = tilt(kind(), rolling(5.0, 0.1, np.zeros(3)))
    assert roll == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("kind", [Complementary, GravityFilter])
def test_the_bias_is_estimated_at_rest(kind: type[ImuAttitude]):
    node = kind()
    bias = np.array([0.004, -0.003, 0.002])
    tilt(node, rolling(20.0, 0.0, bias))
    np.testing.assert_allclose(node.bias, bias, atol=3e-4)


def test_the_heading_becomes_uncertain_while_roll_and_pitch_do_not():
    node = GravityFilter(rest_rate=1e-6)
    told = [node(sample) for sample in rolling(10.0, 0.0, np.zeros(3))]
    first, last = told[0].covariance, told[-1].covariance
    assert last[2, 2] > 100 * last[0, 0]
    assert last[0, 0] < first[0, 0]


def test_samples_with_nan_are_skipped():
    assert GravityFilter()(Imu(np.full(3, np.nan), np.zeros(3))) is None
