"""Courses through legs, and bodies on the ground."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.errors import UsageError
from transect.geometry import rotations
from transect.simulation import driving
from transect.simulation.driving import Chassis, Leg, course, crab, drive, spot_turn, stop, straight, turn

SQUARE = np.array([[0.4, 0.5], [-0.4, 0.5], [-0.4, -0.5], [0.4, -0.5]])
ROVER = Chassis(SQUARE, height=0.3)
SPEEDS = st.floats(0.2, 1.4).flatmap(lambda v: st.sampled_from([v, -v]))
LEGS = st.lists(
    st.one_of(
        st.builds(straight, st.floats(1.0, 5.0), SPEEDS),
        st.builds(turn, st.floats(-np.pi, np.pi).filter(lambda a: abs(a) > 0.2), st.floats(1.5, 5), SPEEDS),
        st.builds(crab, st.floats(1.0, 5.0), st.floats(-0.5, 0.5), SPEEDS),
        st.builds(spot_turn, st.floats(0.3, 2.0), st.floats(0.1, 0.5)),
        st.builds(stop, st.floats(0.0, 3.0)),
    ),
    min_size=1,
    max_size=5,
)


def hills(xy: np.ndarray) -> np.ndarray:
    """Waves of 3 and 4 m, 8 cm high, on a slope."""
    x, y = xy[..., 0], xy[..., 1]
    return 0.1 * x + 0.05 * y + 0.04 * np.sin(2 * np.pi * x / 3) * np.cos(2 * np.pi * y / 4)


def to_the_end(legs: list[Leg]) -> driving.Course:
    """Long enough for all legs and the stops between them."""
    return course(legs, sum(leg.seconds for leg in legs) + 4 * len(legs) + 2)


@given(LEGS)
def test_a_course_goes_as_far_and_turns_as_much_as_its_legs_say(legs: list[Leg]) -> None:
    way = to_the_end(legs)
    metres = np.abs(way.speed).sum() / driving.RATE_HZ
    assert metres == pytest.approx(sum(leg.length for leg in legs), abs=1e-6)
    turned = sum(leg.speed * leg.curvature * leg.seconds + leg.spin * leg.seconds for leg in legs)
    assert way.pose[-1, 2] == pytest.approx(turned, abs=1e-4)
    assert abs(way.speed[0]) < 1e-12
    assert abs(way.speed[-1]) < 1e-12


@given(LEGS)
def test_accelerations_of_a_course_are_finite_and_continuous(legs: list[Leg]) -> None:
    way = to_the_end(legs)
    acceleration = np.diff(way.twist, axis=0) * driving.RATE_HZ
    # A smooth step of height 1 over 1 s rises by at most 15/8; forwards to backwards is 2.8 m/s.
    assert np.abs(acceleration[:, 0]).max() < 1.4 * 15 / 8 * 1.3
    assert np.abs(np.diff(acceleration, axis=0)).max() < 0.15


def test_a_vehicle_stands_where_it_reverses_and_spins_only_while_it_stands() -> None:
    way = to_the_end([straight(2, 0.5), straight(2, -0.5), spot_turn(1.0, 0.2), straight(1, 0.5)])
    assert way.speed.max() == pytest.approx(0.5)
    assert way.speed.min() == pytest.approx(-0.5)
    assert not np.any((np.abs(way.spin) > 1e-9) & (np.abs(way.speed) > 1e-9))
    assert not np.any((way.spinning > 1e-9) & (np.abs(way.speed) > 1e-9))
    assert np.all(way.spinning[np.abs(way.spin) > 1e-9] > 1 - 1e-9)


def test_a_turn_by_180_degrees_ends_on_the_next_row() -> None:
    way = to_the_end([straight(5, 0.8), turn(np.pi, 3.0, 0.8), straight(5, 0.8)])
    assert way.pose[-1, 2] == pytest.approx(np.pi, abs=1e-5)
    assert way.pose[-1, :2] == pytest.approx([0.0, 6.0], abs=0.05)


def test_waypoints_are_reached_with_rounded_corners() -> None:
    points = [[1, 2], [11, 2], [11, 12], [0, 20]]
    start = (1, 2, driving.heading(points))
    legs = driving.along(points, radius=2.0, speed=0.5)
    way = course(legs, sum(leg.seconds for leg in legs) + 2, start=start)
    assert way.pose[-1, :2] == pytest.approx([0, 20], abs=0.05)
    corner = np.hypot(*(way.pose[:, :2] - [11, 2]).T).min()
    assert corner == pytest.approx((np.sqrt(2) - 1) * 2.0, abs=0.02)


def test_corners_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="between waypoints 1 and 2"):
        driving.along([[0, 0], [10, 0], [10, 1], [0, 1]], radius=2.0, speed=0.5)


@given(LEGS, st.integers(0, 5))
def test_place_attitude_and_rates_of_a_motion_agree(legs: list[Leg], seed: int) -> None:
    motion = drive(to_the_end(legs), ROVER, hills, slide=0.2, seed=seed)
    h = 1 / driving.RATE_HZ
    inside = slice(2, -2)

    def slope(values: np.ndarray) -> np.ndarray:
        """Central differences of fourth order."""
        return (8 * (values[3:-1] - values[1:-3]) - (values[4:] - values[:-4])) / (12 * h)

    assert np.abs(slope(motion.position) - motion.velocity[inside]).max() < 1e-5
    assert np.abs(slope(motion.velocity) - motion.acceleration[inside]).max() < 2e-3
    turned = rotations.multiply(rotations.conjugate(motion.quaternion[:-1]), motion.quaternion[1:])
    mean_rate = rotations.rotation_vector_from_quaternion(turned) / h
    middle = (motion.angular_velocity[1:] + motion.angular_velocity[:-1]) / 2
    assert np.abs(mean_rate - middle).max() < 1e-3


def test_on_a_plane_the_body_stands_as_the_plane_does() -> None:
    rover = Chassis(SQUARE, height=0.3, shaking=0.0)
    motion = drive(to_the_end([straight(3, 0.5)]), rover, lambda xy: 0.2 * xy[..., 0] + 0.1 * xy[..., 1])
    up = rotations.rotate(motion.quaternion, [0, 0, 1])
    normal = np.array([-0.2, -0.1, 1]) / np.linalg.norm([-0.2, -0.1, 1])
    assert np.abs(up - normal).max() < 1e-12
    below = motion.position - 0.3 * normal
    # While it speeds up, the suspension comes 40 ms late on both sides: less than 0.2 mm.
    assert np.abs(below[:, 2] - (0.2 * below[:, 0] + 0.1 * below[:, 1])).max() < 2e-4
    assert below[-1, :2] == pytest.approx([3, 0], abs=1e-6)


def test_a_body_that_slides_heads_uphill_and_stays_on_its_course() -> None:
    way = to_the_end([straight(3, 0.5)])
    rover = Chassis(SQUARE, height=0.0, shaking=0.0)
    motion = drive(way, rover, lambda xy: 0.2 * xy[..., 1], slide=0.5)
    assert np.abs(motion.position[:, :2] - way.pose[:, :2]).max() < 1e-9
    ahead = rotations.rotate(motion.quaternion, [1, 0, 0])
    assert np.arctan2(ahead[-1, 1], ahead[-1, 0]) == pytest.approx(0.1, abs=5e-3)


def test_shaking_grows_with_speed_and_stops_with_it() -> None:
    def height(speed: float, seed: int = 3) -> np.ndarray:
        rover = Chassis(SQUARE, height=0.0, shaking=0.002)
        way = course([straight(40 * speed, speed)], 45)
        return drive(way, rover, lambda xy: np.zeros(xy.shape[:-1]), seed=seed).position[:, 2]

    moving = slice(2 * driving.RATE_HZ, 38 * driving.RATE_HZ)
    assert height(1.0)[moving].std() == pytest.approx(0.002, rel=0.2)
    assert np.allclose(height(0.5)[moving] * 2, height(1.0)[moving])
    assert np.abs(height(1.0)[-2 * driving.RATE_HZ :]).max() == 0
    assert not np.allclose(height(1.0), height(1.0, seed=4))


def test_truth_is_every_second_sample() -> None:
    motion = drive(course([straight(1, 0.5)], 3), ROVER, hills)
    kept = driving.truth(motion, 100)
    assert np.diff(kept.t_ns).tolist() == [10_000_000] * 300
    assert np.array_equal(kept.position, motion.at(kept.t_ns).position)
