"""Ackermann odometry against circles that are known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect import robots
from transect.datasets.rosario.robot.geometry import WeederGeometry, path_headings
from transect.errors import GeometryError
from transect.geometry import planar
from transect.robots.ackermann import motion

WEEDER = WeederGeometry.of(robots.load("weeder"))
MIN_TURN_RADIUS_M = 1.6 / math.tan(math.radians(19))
"""Metres of the tightest circle of the rear axle: the wheelbase over tan(19 deg) (4.6)."""


def path_of(t_ns: np.ndarray, speed: object, turn_rate: object, start: object = (0, 0, 0)) -> np.ndarray:
    """Return the path that a speed and a turn rate make."""
    rates = np.column_stack([speed, np.zeros(len(t_ns)), turn_rate])
    return planar.integrate(planar.motions_from_rates(t_ns, rates), start)[: len(t_ns)]


def circle(v: float, w: float, t_ns: np.ndarray) -> np.ndarray:
    """Closed form of driving at v with the turn rate w from the origin."""
    t = (t_ns - t_ns[0]) * 1e-9
    if w == 0:
        return np.column_stack([v * t, 0 * t, 0 * t])
    return np.column_stack([v / w * np.sin(w * t), v / w * (1 - np.cos(w * t)), w * t])


def test_the_speed_is_the_mean_of_both_wheels_and_turns_with_the_tangent() -> None:
    # tan(19 deg) = 0.344328, / 1.6 m = 0.215205 rad/s at 1 m/s
    v, w = motion([0.9, 1.1], math.radians(19), WEEDER, "paper")
    assert v == pytest.approx(1.0)
    assert w == pytest.approx(0.215205, abs=1e-6)


def test_the_papers_steering_has_its_limit() -> None:
    _, w = motion(np.ones((2, 2)), np.radians([25.0, -25.0]), WEEDER, "paper")
    assert w == pytest.approx([0.215205, -0.215205], abs=1e-6)


def test_the_scripts_make_nineteen_degrees_of_the_steppers_twenty() -> None:
    # data/README.md: omega = v / 1.6 * tan(0.95 * steer), steer = -radians(0.20 * angle)
    _, w = motion([1.0, 1.0], WEEDER.steering(100.0), WEEDER, "scripts")
    assert w == pytest.approx(-0.215205, abs=1e-6)


def test_backwards_the_same_steering_turns_the_other_way() -> None:
    v, w = motion([-0.5, -0.5], 0.2, WEEDER, "paper")
    assert v == -0.5
    assert w == pytest.approx(-0.5 * math.tan(0.2) / 1.6)


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(GeometryError, match="paper, scripts"):
        motion([1.0, 1.0], 0.0, WEEDER, "book")  # type: ignore[arg-type]


def test_thirty_turns_of_a_wheel_are_thirty_circumferences() -> None:
    t_ns = np.array([0, 30_000_000_000])
    v, w = motion(np.full((2, 2), 60 * WEEDER.rim_speed), np.zeros(2), WEEDER, "paper")
    assert path_of(t_ns, v, w)[-1] == pytest.approx([30 * math.pi * 0.57, 0, 0])


def test_a_quarter_of_the_tightest_circle_ends_beside_its_centre() -> None:
    seconds = MIN_TURN_RADIUS_M * math.pi / 2  # at 1 m/s
    t_ns = np.array([0, round(seconds * 1e9)])
    v, w = motion(np.ones((2, 2)), np.full(2, math.radians(19)), WEEDER, "paper")
    assert path_of(t_ns, v, w)[-1] == pytest.approx(
        [MIN_TURN_RADIUS_M, MIN_TURN_RADIUS_M, math.pi / 2], abs=1e-6
    )


@given(
    st.floats(-2, 2),
    st.one_of(st.just(0.0), st.floats(-1, 1)),
    st.lists(st.integers(1, 10**9), min_size=1, max_size=20),
)
def test_arcs_are_exact_however_they_are_sampled(v: float, w: float, steps: list[int]) -> None:
    t_ns = 1_514_301_955_465_000_000 + np.concatenate([[0], np.cumsum(steps)])
    count = len(t_ns)
    path = path_of(t_ns, np.full(count, v), np.full(count, w))
    if abs(w) < 1e-6:  # the closed form itself loses its digits there
        w = 0.0
    np.testing.assert_allclose(path, circle(v, w, t_ns), atol=5e-4 if w == 0 else 1e-9)


@given(st.lists(st.tuples(st.floats(-2, 2), st.floats(-0.3, 0.3)), min_size=2, max_size=20))
def test_backing_up_the_same_way_leads_to_the_start(rows: list[tuple[float, float]]) -> None:
    speed, steering = np.array(rows).T
    v, w = motion(speed[:, None] * np.ones(2), steering, WEEDER, "scripts")
    there_and_back = np.concatenate([v, -v[::-1]]), np.concatenate([w, -w[::-1]])
    t_ns = 10**8 * np.arange(2 * len(rows))
    np.testing.assert_allclose(path_of(t_ns, *there_and_back)[-1], 0, atol=1e-12)


@pytest.mark.parametrize("count", [0, 1])
def test_no_time_is_no_way(count: int) -> None:
    assert path_of(np.zeros(count, np.int64), np.ones(count), np.ones(count)).shape == (count, 3)


def test_the_headings_of_a_circle_are_its_tangents() -> None:
    t_ns = 10**7 * np.arange(3000)
    path = circle(1.0, 0.3, t_ns)
    # A chord of 10 ms points 5 ms ahead: 0.0015 rad.
    np.testing.assert_allclose(path_headings(path[:, :2]), path[:, 2], atol=0.003)


def test_the_heading_stays_when_the_robot_stands_or_changes_gear() -> None:
    # forwards to a left bend of 0.2 rad, a stop, and back the same way
    there = circle(1.0, 0.1, 10**8 * np.arange(21))
    positions = np.concatenate([there, np.repeat(there[-1:], 5, axis=0), there[::-1]])[:, :2]
    expected = np.concatenate([there[:, 2], np.full(5, 0.2), there[::-1, 2]])
    np.testing.assert_allclose(path_headings(positions), expected, atol=0.011)  # one step turns 0.01


def test_an_odometry_that_begins_backwards_still_begins_with_heading_zero() -> None:
    positions = np.column_stack([-0.1 * np.arange(10), np.zeros(10)])
    np.testing.assert_allclose(path_headings(positions), 0, atol=1e-12)


def test_a_robot_that_never_moves_keeps_its_heading() -> None:
    assert path_headings(np.zeros((4, 2))).tolist() == [0, 0, 0, 0]
