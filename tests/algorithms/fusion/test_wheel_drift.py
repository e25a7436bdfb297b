"""Adaptive noise of wheels: drift over seconds, speed noise, starts and jumps."""

from __future__ import annotations

import numpy as np
import pytest

from transect.algorithms.fusion.error_state import STATE_SIZE, FilterState, ProcessNoise
from transect.algorithms.fusion.events import OdometryStep
from transect.algorithms.fusion.wheel_drift import WheelDriftModel
from transect.algorithms.fusion.wheel_starts import StartSlipEstimator, WheelSpeedNoise, WheelStartDetector
from transect.algorithms.smoothing.odometry_paths import PlanarPath
from transect.algorithms.smoothing.wheel_factors import WheelNoise

NS = 1_000_000_000
NOISE = ProcessNoise()


@pytest.mark.parametrize("factor", [0.02, 0.3, 4.0])
def test_the_factor_on_the_noise_of_wheels_is_estimated(factor: float) -> None:
    """Residuals of predictions are drawn with earlier uncertainty plus wheel noise times a factor."""
    rng, found = np.random.default_rng(1), []
    for _ in range(8):
        model = WheelDriftModel(NOISE, adapts=True)
        for _ in range(40):
            A, B = np.diag(rng.uniform(0.001, 0.01, 2)), np.diag(rng.uniform(0.05, 0.5, 2))
            model.update(rng.multivariate_normal([0, 0], A + factor * B), A, B)
        assert model.noise.skid_noise == pytest.approx(NOISE.skid_noise * np.sqrt(model.factor))
        found.append(model.factor)
    assert np.mean(found) == pytest.approx(factor, rel=0.35)
    assert model.noise.terrain_noise == NOISE.terrain_noise  # not a property of wheels


def test_the_prior_remains_if_other_errors_dominate() -> None:
    model, rng = WheelDriftModel(NOISE, adapts=True), np.random.default_rng(2)
    before = model.factor
    for _ in range(40):
        model.update(2.0 * rng.normal(size=2), 4.0 * np.eye(2), 0.01 * np.eye(2))
    assert model.factor == pytest.approx(before, rel=0.2)
    assert WheelDriftModel(NOISE, adapts=False).factor == 1.0


def straight_steps(distances: np.ndarray) -> list[OdometryStep]:
    """Return steps of a tenth of a second each with distances (n,) in m."""
    steps: list[OdometryStep] = []
    for i, distance in enumerate(distances):
        T = np.eye(4)
        T[0, 3] = distance
        steps.append(OdometryStep("wheels", i * NS // 10, (i + 1) * NS // 10, T, planar=True))
    return steps


def detect(speeds: list[float]) -> list[tuple[bool, float]]:
    """Return whether wheels start, and the jump of their speed, at every tenth of a second."""
    detector, found = WheelStartDetector(), list[tuple[bool, float]]()
    for step in straight_steps(np.array(speeds) / 10):
        detector.add(step)
        found.append((detector.starts, round(detector.jump, 6)))
    return found


def test_wheels_start_after_a_second_at_rest_or_in_reverse_and_jump_otherwise() -> None:
    found = detect([1.0] * 5 + [0.0] * 12 + [0.4] * 5)
    assert [i for i, (starts, _) in enumerate(found) if starts] == [17]
    assert not any(starts for starts, _ in detect([1.0] * 5 + [0.0] * 3 + [0.9] * 5))  # too short to reverse
    assert [i for i, (starts, _) in enumerate(detect([0.8, 0.8, -0.6, -0.6])) if starts] == [2]
    assert detect([0.4, 0.4, 1.2, 1.2])[2] == (False, 0.8)
    assert not any(starts or jump for starts, jump in detect([0.1 * i for i in range(12)])[1:])


def state_at(x: float, t: float) -> FilterState:
    covariance = 1e-4 * np.eye(STATE_SIZE)
    return FilterState(round(t * NS), np.array([x, 0.0, 0.0]), np.eye(3), np.zeros(3), covariance)


@pytest.mark.parametrize(("measured", "sigma"), [(-0.6, 0.45), (0.6, 1.84)])
def test_wheels_that_measure_a_reversal_are_trusted_and_others_are_not(measured: float, sigma: float) -> None:
    """The body reverses by 0.6 m."""
    estimator = StartSlipEstimator(1.0)
    assert estimator.sigma(0) == pytest.approx(1.0)
    estimator.start(state_at(0.0, 1.0))
    estimator.add(measured, rests=False)
    estimator.compare(state_at(-0.6, 3.0))
    assert estimator.sigma(3 * NS) == pytest.approx(sigma, abs=0.03)
    assert estimator.sigma(300 * NS) == pytest.approx(1.0, abs=0.01)  # another manoeuvre


def test_driving_forwards_is_not_informative_about_reversals() -> None:
    estimator = StartSlipEstimator(1.0)
    estimator.start(state_at(0.0, 1.0))
    estimator.add(0.6, rests=False)
    estimator.compare(state_at(0.6, 3.0))
    assert estimator.sigma(3 * NS) == pytest.approx(1.0)


@pytest.mark.parametrize("sigma", [0.001, 0.012])
def test_speed_noise_is_measured_while_the_speed_changes(sigma: float) -> None:
    t = np.arange(400) / 10
    distances = 0.1 * (1 + 0.5 * np.sin(t)) + sigma * np.random.default_rng(3).normal(size=400)
    noise, found = WheelSpeedNoise(), []
    for step in straight_steps(distances):
        noise.add(step)
        found.append(noise.density)
    assert np.sqrt(np.mean(found[50:]) / 10) == pytest.approx(sigma, rel=0.2)


def test_a_smoother_uses_speed_noise_and_creep_as_lower_bounds_of_wheel_noise() -> None:
    """The learned factor on the other noise of wheels is nearly 0 here."""
    rng, noise = np.random.default_rng(4), WheelNoise().scale_by(0.01)
    edges = np.array([10, 11]) * NS

    def along(speed: float, sigma: float) -> float:
        path = PlanarPath.from_steps(straight_steps(speed / 10 + sigma * rng.normal(size=200)))
        return float(noise.sigmas(path.between(edges[:1], edges[1:]))[0, 3])

    assert along(1.0, 0.0) < 1e-3
    assert along(1.0, 0.012) == pytest.approx(0.012 * np.sqrt(10), rel=0.3)
    assert along(0.0, 0.0) == pytest.approx(WheelNoise.creep_speed)
