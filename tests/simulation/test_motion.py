"""Motions: the rates of long ones are made in pieces, and nobody sees the seams."""

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

from transect.simulation import driving, motion
from transect.simulation.driving import Chassis, course, drive, straight, turn


def test_derivatives_in_pieces_are_those_of_one_spline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(motion, "SAMPLES_PER_BATCH", 300)
    step, walk = 0.005, np.random.default_rng(1).normal(size=(1000, 2))
    values = 0.01 * np.cumsum(np.cumsum(walk, axis=0), axis=0) * step
    elapsed = np.arange(len(values)) * step
    whole = make_interp_spline(elapsed, values, k=5)
    for order, found in enumerate(motion.derivatives(values, step), start=1):
        np.testing.assert_allclose(found, whole(elapsed, order), rtol=0, atol=1e-9 * np.abs(found).max())


def test_derivatives_of_a_polynomial_of_degree_five_are_exact() -> None:
    t = np.linspace(0.0, 2.0, 401)
    first, second = motion.derivatives(t**5 - 3 * t**2, t[1])
    np.testing.assert_allclose(first, 5 * t**4 - 6 * t, atol=1e-8)
    np.testing.assert_allclose(second, 20 * t**3 - 6, atol=1e-5)


def test_a_drive_in_pieces_is_the_whole_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    def drives() -> motion.Motion:
        way = course([straight(6.0, 1.0), turn(1.0, 3.0, 1.0)], 12.0)
        rover = Chassis(np.array([[0.4, 0.5], [-0.4, 0.5], [-0.4, -0.5], [0.4, -0.5]]), height=0.3)
        return drive(way, rover, lambda xy: 0.05 * np.sin(xy[..., 0]) * np.cos(xy[..., 1]))

    whole = drives()
    monkeypatch.setattr(motion, "SAMPLES_PER_BATCH", 500)
    monkeypatch.setattr(driving, "SAMPLES_PER_BATCH", 500)
    pieces = drives()
    np.testing.assert_allclose(pieces.position, whole.position, rtol=0, atol=1e-12)
    np.testing.assert_allclose(pieces.acceleration, whole.acceleration, rtol=0, atol=1e-8)
    np.testing.assert_allclose(pieces.angular_velocity, whole.angular_velocity, rtol=0, atol=1e-9)
