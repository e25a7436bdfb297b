"""Slip of each wheel."""

from __future__ import annotations

import numpy as np
import pytest
from tests.datasets.ameds.robot.circle import circle_wheels

from transect import robots
from transect.robots.four_wheel_steering import FourWheelGeometry, WheelVelocities, wheel_velocities
from transect.robots.slip import slip, wheel_tracks

G = FourWheelGeometry.of(robots.load("interact"))


def ratio(rim: float, ground: float) -> float:
    zeros = np.zeros(4)
    return slip(np.full(4, rim), WheelVelocities(np.full(4, ground), zeros)).ratio[0]


@pytest.mark.parametrize(
    ("rim", "ground", "expected"),
    [
        (0.4, 0.2, 0.5),  # half of what it rolls is lost
        (0.3, 0.3, 0.0),
        (0.3, 0.0, 1.0),  # it spins
        (0.0, 0.3, -1.0),  # it is dragged
        (-0.4, -0.2, 0.5),  # backwards it loses as much
        (0.0, -0.3, -1.0),
        (-0.003, 0.3, -1.01),  # dragged, with the noise of a standing rim
        (0.2, -0.2, 2.0),
    ],
)
def test_the_slip_ratio(rim: float, ground: float, expected: float):
    assert ratio(rim, ground) == pytest.approx(expected)


def test_a_standing_wheel_has_no_slip_and_no_angle():
    found = slip(np.full(4, 0.01), WheelVelocities(np.full(4, -0.01), np.zeros(4)))
    assert np.isnan(found.ratio).all()
    assert np.isnan(found.angle).all()


def test_the_angle_is_to_the_left_of_the_way_it_rolls_either_way():
    ground = WheelVelocities(np.array([0.3, -0.3, 0.0, 0.3]), np.array([0.3, 0.3, -0.3, 0.0]))
    found = slip(np.zeros(4), ground)
    assert np.degrees(found.angle) == pytest.approx([45, 45, -90, 0])


def test_a_crabbing_platform_with_straight_wheels_slides():
    ground = wheel_velocities([0.3, 0.3, 0], np.zeros(4), G)
    assert np.degrees(slip(np.full(4, 0.3), ground).angle) == pytest.approx(np.full(4, 45))


def test_without_slip_both_tracks_of_a_wheel_are_its_circle():
    radius, omega, n = 5.0, 0.1, 400
    steering, speeds = circle_wheels(radius, omega)
    twist = np.tile([radius * omega, 0, omega], (n, 1))
    tracks = wheel_tracks(np.full(n - 1, 0.02), twist, np.tile(speeds, (n, 1)), np.tile(steering, (n, 1)), G)
    circle = np.linalg.norm(tracks.inverse - [0, radius], axis=-1)
    np.testing.assert_allclose(circle, np.tile(speeds / omega, (n, 1)), atol=1e-9)
    np.testing.assert_allclose(tracks.odometry, tracks.inverse, atol=1e-5)


def test_a_wheel_that_rolls_twice_as_far_runs_ahead():
    n = 101
    rim = np.tile([0.2, 0.2, 0.4, 0.2], (n, 1))
    tracks = wheel_tracks(np.full(n - 1, 0.1), np.tile([0.2, 0, 0], (n, 1)), rim, np.zeros((n, 4)), G)
    ahead = (tracks.odometry - tracks.inverse)[-1]
    np.testing.assert_allclose(ahead, [[0, 0], [0, 0], [2.0, 0], [0, 0]], atol=1e-9)
