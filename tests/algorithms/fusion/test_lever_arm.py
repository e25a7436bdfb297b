"""The swing of a lever: what is taken off adds up to the speed with which the lever goes round."""

from __future__ import annotations

import numpy as np
import pytest

from transect.algorithms.fusion.lever_arm import Swing

LEVER = np.array([1.96, -0.2, 1.0])
STEP = 0.007


def followed(rates: np.ndarray, lever: np.ndarray = LEVER) -> np.ndarray:
    swing = Swing()
    return np.array([swing.felt(round(i * STEP * 1e9), rate, lever) for i, rate in enumerate(rates)])


def test_of_a_steady_turn_it_is_the_pull_outwards():
    rates = np.tile([0.0, 0.0, 0.5], (200, 1))
    np.testing.assert_allclose(followed(rates)[-1], [-0.25 * 1.96, 0.25 * 0.2, 0.0], atol=1e-12)


def test_of_a_turn_that_grows_it_is_that_of_a_moment_ago():
    seconds = STEP * np.arange(400)
    rates = seconds[:, None] * np.array([0.02, 0.0, 0.3])
    expected = np.cross([0.02, 0.0, 0.3], LEVER) + np.cross(rates[-1], np.cross(rates[-1], LEVER))
    np.testing.assert_allclose(followed(rates)[-1], expected, atol=1e-6)


def test_over_a_manoeuvre_it_adds_up_to_the_speed_of_the_lever():
    rng = np.random.default_rng(5)
    seconds = STEP * np.arange(600)
    turn = 0.4 * np.clip(seconds - 1.0, 0.0, 1.0)  # begins to turn within a second
    rates = np.column_stack([0 * turn, 0 * turn, turn]) + rng.normal(0, 0.01, (600, 3))
    inward = np.cross(rates, np.cross(rates, LEVER))
    gained = STEP * (followed(rates) - inward).sum(axis=0)
    np.testing.assert_allclose(gained, np.cross([0.0, 0.0, 0.4], LEVER), atol=0.02)


def test_after_a_gap_nothing_is_told_of_the_change():
    swing = Swing()
    for t in range(100):
        swing.felt(round(t * STEP * 1e9), np.zeros(3), LEVER)
    found = swing.felt(10_000_000_000, np.array([0.0, 0.0, 0.1]), LEVER)
    assert found == pytest.approx([-0.01 * 1.96, 0.01 * 0.2, 0.0])


def test_at_the_origin_nothing_is_felt():
    rates = np.random.default_rng(1).normal(size=(150, 3))
    assert not followed(rates, np.zeros(3)).any()
