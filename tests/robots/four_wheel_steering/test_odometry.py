"""Four-wheel-steer odometry, on motions in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.datasets.ameds.robot.circle import circle_wheels

from transect import robots
from transect.errors import GeometryError
from transect.geometry import se3
from transect.geometry.planar import integrate
from transect.robots.four_wheel_steering import FourWheelGeometry, body_motion

G = FourWheelGeometry.of(robots.load("interact"))


@given(st.floats(1.5, 100), st.floats(-0.5, 0.5))
def test_wheels_on_one_circle_give_its_twist(radius: float, omega: float):
    steering, speeds = circle_wheels(radius, omega)
    found = body_motion(speeds, steering, G)
    assert found.motion == pytest.approx([omega * radius, 0, omega], abs=1e-9)
    assert np.abs([found.along, found.across]).max() < 1e-9


def test_a_crab_goes_sideways_without_turning():
    found = body_motion(np.full(4, 0.5), np.full(4, np.radians(30)), G)
    assert found.motion == pytest.approx([0.5 * np.cos(np.pi / 6), 0.25, 0], abs=1e-12)


def test_wheels_that_only_swivel_leave_the_platform_where_it_is():
    # Steered by 0.1 rad, a wheel 143 mm outside its axis rolls 14.3 mm: back on the left, ahead on the right.
    found = body_motion([-0.0143, -0.0143, 0.0143, 0.0143], np.zeros(4), G, steered=np.full(4, 0.1))
    assert found.motion == pytest.approx(np.zeros(3), abs=1e-12)


def test_a_wheel_that_was_not_measured_is_left_out():
    steering, speeds = circle_wheels(5.0, 0.1)
    speeds[2] = np.nan
    found = body_motion(speeds, steering, G)
    assert found.motion == pytest.approx([0.5, 0, 0.1])
    assert np.isnan(found.along[2])
    assert not np.isnan(found.along[:2]).any()


def test_a_spinning_wheel_without_weight_does_not_matter():
    speeds = np.array([0.3, 0.3, 2.0, 0.3])
    assert body_motion(speeds, np.zeros(4), G, weights=[1, 1, 0, 1]).motion == pytest.approx([0.3, 0, 0])
    with_it = body_motion(speeds, np.zeros(4), G)
    assert with_it.along[2] == pytest.approx(np.abs(with_it.along).max() * -1)


def test_one_wheel_does_not_determine_the_motion():
    assert np.isnan(body_motion([0.3, np.nan, np.nan, np.nan], np.zeros(4), G).motion).all()


def test_no_trust_in_rolling_without_sliding_is_refused():
    with pytest.raises(GeometryError, match="across_weight"):
        body_motion(np.zeros(4), np.zeros(4), G, across_weight=0.0)


def test_a_quarter_of_a_circle_ends_beside_its_centre():
    # Radius 4 to the left: from (0, 0) facing x to (4, 4) facing y, for any number of steps.
    for steps in (1, 3, 50):
        motions = np.tile([np.pi / 2 * 4 / steps, 0, np.pi / 2 / steps], (steps, 1))
        assert integrate(motions)[-1] == pytest.approx([4, 4, np.pi / 2])


def test_a_straight_line_starts_where_it_is_told():
    assert integrate([[2.0, 0, 0]], start=(1, 1, np.pi / 2))[-1] == pytest.approx([1, 3, np.pi / 2])


@given(st.lists(st.tuples(*[st.floats(-1, 1)] * 3), min_size=1, max_size=8))
def test_it_is_the_product_of_exponentials(motions: list[tuple[float, float, float]]):
    T = np.eye(4)
    for dx, dy, turn in motions:
        T = T @ se3.exp([dx, dy, 0, 0, 0, turn])
    x, y, heading = integrate(motions)[-1]
    np.testing.assert_allclose(T[:2, 3], [x, y], atol=1e-9)
    np.testing.assert_allclose(T[:2, 0], [np.cos(heading), np.sin(heading)], atol=1e-9)
