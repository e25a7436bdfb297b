"""Inverse velocity kinematics of Interact's wheels, by hand and against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect import robots
from transect.robots.four_wheel_steering import (
    FourWheelGeometry,
    contact_velocities,
    positions,
    wheel_velocities,
)

G = FourWheelGeometry.of(robots.load("interact"))
small = st.floats(-1, 1)
four = st.lists(small, min_size=4, max_size=4)


def test_straight_ahead_every_wheel_rolls_as_the_platform_moves():
    found = wheel_velocities([0.3, 0, 0], np.zeros(4), G)
    assert found.rolling == pytest.approx(np.full(4, 0.3))
    assert found.lateral == pytest.approx(np.zeros(4))


def test_turning_on_the_spot_with_straight_wheels():
    # By hand: wheel 1 is at (0.402, 0.539); 1 rad/s moves it by (-0.539, 0.402) m/s.
    found = wheel_velocities([0, 0, 1.0], np.zeros(4), G)
    assert found.rolling == pytest.approx([-0.539, -0.539, 0.539, 0.539])
    assert found.lateral == pytest.approx([0.402, -0.402, -0.402, 0.402])


def test_a_spot_turn_with_the_wheels_along_their_circle():
    # Axles through the middle: every wheel is at hypot(402, 396) + 143 = 564.287 + 143 = 707.287 mm.
    lean = np.arctan2(0.402, 0.396)
    found = wheel_velocities([0, 0, 2.0], [-lean, lean, -lean, lean], G)
    assert found.rolling == pytest.approx(2 * 0.707287 * np.array([-1, -1, 1, 1]), abs=1e-6)
    assert found.lateral == pytest.approx(np.zeros(4), abs=1e-12)


def test_steering_while_standing_rolls_the_wheels():
    # A wheel 143 mm outside its axis: turned left, the left ones roll back and the right ones forward.
    found = wheel_velocities([0, 0, 0], np.zeros(4), G, steering_rate=np.full(4, 1.0))
    assert found.rolling == pytest.approx([-0.143, -0.143, 0.143, 0.143])
    assert found.lateral == pytest.approx(np.zeros(4), abs=1e-12)


@given(st.tuples(small, small, small), four, four)
def test_it_is_the_derivative_of_where_the_wheels_are(
    twist: tuple[float, ...], phi: list[float], rate: list[float]
):
    vx, vy, wz = twist
    h = 1e-6

    def places(t: float) -> np.ndarray:
        turn = np.array([[np.cos(wz * t), -np.sin(wz * t)], [np.sin(wz * t), np.cos(wz * t)]])
        local = positions(np.array(phi) + np.array(rate) * t, G)[:, :2]
        return local @ turn.T + np.array([vx, vy]) * t

    expected = (places(h) - places(-h)) / (2 * h)
    np.testing.assert_allclose(contact_velocities(twist, phi, G, rate), expected, atol=1e-8)


def test_many_samples_at_once_are_each_of_them():
    rng = np.random.default_rng(2)
    twists, phi, rate = rng.normal(size=(5, 3)), rng.normal(size=(5, 4)), rng.normal(size=(5, 4))
    together = wheel_velocities(twists, phi, G, rate)
    for i in range(5):
        alone = wheel_velocities(twists[i], phi[i], G, rate[i])
        assert together.rolling[i] == pytest.approx(alone.rolling)
        assert together.lateral[i] == pytest.approx(alone.lateral)
