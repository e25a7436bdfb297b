"""Acceleration at a lever arm: its integral is the speed of the lever arm's end."""

from __future__ import annotations

import numpy as np
import pytest

from transect.algorithms.fusion.lever_arm import LeverArmAcceleration

LEVER_ARM = np.array([1.96, -0.2, 1.0])
PERIOD_S = 0.007


def accelerations(rates: np.ndarray, lever_arm: np.ndarray = LEVER_ARM) -> np.ndarray:
    model = LeverArmAcceleration()
    return np.array([model.add(round(i * PERIOD_S * 1e9), rate, lever_arm) for i, rate in enumerate(rates)])


def test_a_steady_turn_has_centripetal_acceleration_only():
    rates = np.tile([0.0, 0.0, 0.5], (200, 1))
    np.testing.assert_allclose(accelerations(rates)[-1], [-0.25 * 1.96, 0.25 * 0.2, 0.0], atol=1e-12)


def test_constant_angular_acceleration_is_estimated():
    seconds = PERIOD_S * np.arange(400)
    rates = seconds[:, None] * np.array([0.02, 0.0, 0.3])
    expected = np.cross([0.02, 0.0, 0.3], LEVER_ARM) + np.cross(rates[-1], np.cross(rates[-1], LEVER_ARM))
    np.testing.assert_allclose(accelerations(rates)[-1], expected, atol=1e-6)


def test_over_a_manoeuvre_the_euler_part_integrates_to_the_speed_of_the_lever_arm():
    rng = np.random.default_rng(5)
    seconds = PERIOD_S * np.arange(600)
    turn = 0.4 * np.clip(seconds - 1.0, 0.0, 1.0)  # starts to turn within a second
    rates = np.column_stack([0 * turn, 0 * turn, turn]) + rng.normal(0, 0.01, (600, 3))
    centripetal = np.cross(rates, np.cross(rates, LEVER_ARM))
    speed = PERIOD_S * (accelerations(rates) - centripetal).sum(axis=0)
    np.testing.assert_allclose(speed, np.cross([0.0, 0.0, 0.4], LEVER_ARM), atol=0.02)


def test_after_a_gap_no_angular_acceleration_is_assumed():
    model = LeverArmAcceleration()
    for t in range(100):
        model.add(round(t * PERIOD_S * 1e9), np.zeros(3), LEVER_ARM)
    found = model.add(10_000_000_000, np.array([0.0, 0.0, 0.1]), LEVER_ARM)
    assert found == pytest.approx([-0.01 * 1.96, 0.01 * 0.2, 0.0])


def test_at_the_origin_there_is_no_acceleration():
    rates = np.random.default_rng(1).normal(size=(150, 3))
    assert not accelerations(rates, np.zeros(3)).any()
