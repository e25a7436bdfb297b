"""Via points, profiles and guarded moves: hand-worked times and ways, and limits that always hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.datasets.insight.robot.parameters import Parameters
from transect.datasets.insight.robot.trajectory import (
    ACCOMMODATE,
    CONTACT,
    FREE_SPACE,
    Guard,
    JointLimits,
    PathRules,
    algorithm_of,
    cartesian_vias,
    joint_vias,
    line_deviation,
    line_vias,
    move,
    shortest_time,
    through,
    timed_vias,
)
from transect.errors import GeometryError

PRINTED = Parameters.printed()
ONE = JointLimits(np.array([2.0]), np.array([1.0]))  # reaches full speed in 2 s, over 2 rad
ANGLES = st.lists(st.floats(-3.0, 3.0).map(lambda x: round(x, 6)), min_size=4, max_size=4)


def test_the_printed_path_rules_are_those_of_sis_5_1_3_5() -> None:
    assert PathRules.of(PRINTED) == PathRules(True, 0.01, 0.05, 0.085, 5.0)


def test_joint_via_points_are_as_few_as_the_longest_joint_allows() -> None:
    vias = joint_vias([0.0, 0.0], [0.17, -0.04], 0.085)  # two pieces of exactly 0.085 rad
    np.testing.assert_allclose(vias, [[0.0, 0.0], [0.085, -0.02], [0.17, -0.04]], atol=1e-15)
    assert len(joint_vias([0.0], [0.1701], 0.085)) == 4


def test_a_move_to_where_the_arm_is_has_one_piece() -> None:
    assert joint_vias([1.0], [1.0], 0.085).tolist() == [[1.0], [1.0]]


def test_via_points_cannot_be_zero_apart() -> None:
    with pytest.raises(GeometryError, match="positive"):
        joint_vias([0.0], [1.0], 0.0)


def test_timed_via_points_are_five_seconds_apart() -> None:
    times, vias = timed_vias([0.0], [0.3], 12.0, 5.0)
    assert times.tolist() == [0.0, 4.0, 8.0, 12.0]
    np.testing.assert_allclose(vias[:, 0], [0.0, 0.1, 0.2, 0.3])


def test_a_line_of_thirteen_centimetres_has_three_pieces_of_five_or_less() -> None:
    vias = line_vias([1.0, 0.0, 0.0, 0.0], [1.03, 0.04, 0.12, 0.3], 0.05)  # 3-4-12-13
    np.testing.assert_allclose(np.linalg.norm(np.diff(vias[:, :3], axis=0), axis=1), 0.13 / 3)
    np.testing.assert_allclose(vias[:, 3], [0.0, 0.1, 0.2, 0.3])


def polar(q: np.ndarray) -> np.ndarray:
    """A two-joint machine: reach and azimuth; its tool is at (r cos a, r sin a, 0)."""
    r, a = q[:, 0], q[:, 1]
    return np.column_stack([r * np.cos(a), r * np.sin(a), 0 * r, 0 * r])


def polar_inverse(pose: np.ndarray) -> np.ndarray:
    return np.column_stack([np.hypot(pose[:, 0], pose[:, 1]), np.arctan2(pose[:, 1], pose[:, 0])])


def test_a_straight_move_puts_its_via_points_on_the_line_and_stays_near_it() -> None:
    rules = PathRules(True, 0.0005, 0.3, 0.1, 5.0)
    vias = cartesian_vias([1.0, 0.0], [1.0, 1.0, 0.0, 0.0], rules, polar, polar_inverse)
    np.testing.assert_allclose(polar(vias)[:, 0], 1.0)
    assert len(vias) == 17  # near azimuth 0, d²/8 off the line: 2 mm with 8 pieces, 0.488 mm with 16
    assert line_deviation(vias, polar) <= 0.0005


def test_line_deviation_is_the_sagitta_of_an_arc() -> None:
    # Azimuth alone moves the tool on a circle of radius 2: halfway it is 2 (1 - cos(0.2)) off the chord.
    assert line_deviation([[2.0, -0.2], [2.0, 0.2]], polar) == pytest.approx(2 * (1 - math.cos(0.2)))


def test_a_joint_interpolated_move_goes_round_and_is_divided_by_the_tools_way() -> None:
    rules = PathRules(False, 0.01, 0.05, 0.085, 5.0)
    vias = cartesian_vias([1.0, 0.0], [0.0, 1.0, 0.0, 0.0], rules, polar, polar_inverse)
    assert len(vias) - 1 == math.ceil(math.pi / 2 / 0.05)  # a quarter of a circle of radius 1 m
    np.testing.assert_allclose(vias[:, 0], 1.0)


def test_a_line_that_cannot_be_kept_is_an_error() -> None:
    rules = PathRules(True, 0.01, 0.5, 0.1, 5.0)

    def jumping(pose: np.ndarray) -> np.ndarray:
        q = polar_inverse(pose)
        q[pose[:, 1] > 0.5, 1] += 2 * np.pi
        return q

    with pytest.raises(GeometryError, match="straight line"):
        cartesian_vias([1.0, 0.0], [1.0, 1.0, 0.0, 0.0], rules, polar, jumping)


def test_a_line_that_leaves_the_reach_says_where() -> None:
    rules = PathRules(True, 0.01, 0.5, 0.1, 5.0)

    def short(pose: np.ndarray) -> np.ndarray:
        q = polar_inverse(pose)
        return np.where(q[:, :1] > 1.2, np.nan, q)

    with pytest.raises(GeometryError, match="out of reach") as raised:
        cartesian_vias([1.0, 0.0], [1.0, 1.0, 0.0, 0.0], rules, polar, short)
    assert "[1. 1. 0. 0.]" in raised.value.where


def test_the_printed_limits_are_reached_in_one_and_a_half_seconds_by_every_joint() -> None:
    limits = JointLimits.of(PRINTED)  # SIS 5.1.3.3
    np.testing.assert_allclose(limits.velocity / limits.acceleration, 1.5, rtol=1e-4)


def test_times_of_trapezoid_triangle_and_the_case_between() -> None:
    # v = 2, a = 1: 10 rad are 2 + 3 + 2 s (2 + 6 + 2 rad); 1 rad is a triangle of 2 s; 4 rad just reach v.
    np.testing.assert_allclose(shortest_time([10.0, 1.0, 4.0, 0.0], 2.0, 1.0), [7.0, 2.0, 4.0, 0.0])


def test_a_trapezoid_worked_by_hand() -> None:
    t = move([0.0], [10.0], ONE, 1.0)
    assert t.times.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(t.position[:, 0], [0.0, 0.5, 2.0, 4.0, 6.0, 8.0, 9.5, 10.0])
    np.testing.assert_allclose(t.velocity[:, 0], [0, 1, 2, 2, 2, 2, 1, 0])
    np.testing.assert_allclose(t.acceleration[:, 0], [1, 1, 0, 0, 0, -1, -1, 0])


def test_a_triangle_worked_by_hand_goes_backwards_too() -> None:
    t = move([1.0], [0.0], ONE, 0.5)
    np.testing.assert_allclose(t.position[:, 0], [1.0, 0.875, 0.5, 0.125, 0.0])
    np.testing.assert_allclose(t.velocity[:, 0], [0, -0.5, -1.0, -0.5, 0])


def test_the_slower_joint_sets_the_pace_of_both() -> None:
    limits = JointLimits(np.array([2.0, 1.0]), np.array([1.0, 0.5]))  # the second takes 2 + 8 + 2 s
    t = move([0.0, 0.0], [5.0, 10.0], limits, 0.25)
    assert t.times[-1] == pytest.approx(12.0)
    np.testing.assert_allclose(t.position[:, 1], 2 * t.position[:, 0])


def test_the_printed_shoulder_turns_a_tenth_of_a_radian_in_six_and_a_quarter_seconds() -> None:
    # SIS 5.1.3.3: 0.1 / 0.020944 + 0.020944 / 0.013962 = 4.7746 + 1.5001 s; sampled every 0.1 s.
    t = move(np.zeros(4), [0.1, 0.0, 0.0, 0.0], JointLimits.of(PRINTED), 0.1)
    assert t.times[-1] == pytest.approx(6.3)
    assert not t.position[:, 1:].any()


def test_a_move_to_the_same_place_is_one_sample_at_rest() -> None:
    t = move([0.3], [0.3], ONE, 0.1)
    assert (t.times.tolist(), t.position.tolist(), t.velocity.tolist()) == ([0.0], [[0.3]], [[0.0]])


@given(ANGLES, ANGLES)
def test_limits_are_never_exceeded_and_the_goal_is_reached(start: list[float], goal: list[float]) -> None:
    limits = JointLimits.of(PRINTED)
    t = move(start, goal, limits, 0.1)
    assert (np.abs(t.velocity) <= limits.velocity * (1 + 1e-9)).all()
    assert (np.abs(t.acceleration) <= limits.acceleration * (1 + 1e-9)).all()
    assert t.position[-1].tolist() == goal
    assert not t.velocity[-1].any()
    # The way is the area under the velocity: exact by trapezoids but for the four samples at its corners.
    area = np.trapezoid(t.velocity, t.times, axis=0)
    np.testing.assert_allclose(
        area, np.subtract(goal, start), atol=4 * 0.1**2 * limits.acceleration.max() / 4
    )


@given(ANGLES, ANGLES)
def test_there_and_back_are_mirror_images(start: list[float], goal: list[float]) -> None:
    limits = JointLimits.of(PRINTED)
    there, back = move(start, goal, limits, 0.1), move(goal, start, limits, 0.1)
    np.testing.assert_allclose(there.position + back.position - np.add(start, goal), 0.0, atol=1e-12)


@given(st.floats(0.5, 20.0))
def test_a_profile_is_symmetric_about_its_middle(way: float) -> None:
    duration = float(shortest_time(way, 2.0, 1.0))
    t = move([0.0], [way], ONE, duration / 40)
    np.testing.assert_allclose(t.velocity, t.velocity[::-1], atol=1e-9)
    np.testing.assert_allclose(t.position + t.position[::-1], way, atol=1e-9)


def test_a_path_through_via_points_rests_in_each() -> None:
    t = through([[0.0], [1.0], [0.0], [10.0]], ONE, 0.5)  # 2 + 2 + 7 s
    assert t.times[-1] == pytest.approx(11.0)
    np.testing.assert_allclose(t.position[[0, 4, 8, 22], 0], [0.0, 1.0, 0.0, 10.0])
    np.testing.assert_allclose(t.velocity[[0, 4, 8, 22], 0], 0.0)
    assert len(t.times) == len(t.position) == 23


def test_thresholds_are_named_as_the_sis_names_them() -> None:
    assert Guard.of(PRINTED, ACCOMMODATE).threshold.tolist() == [26, 91, 53, 10]  # thresh_a, SIS 5.1.3.8
    assert Guard.of(PRINTED, CONTACT).threshold.tolist() == [35, 120, 65, 10.5]  # thresh_c
    assert Guard.of(PRINTED, FREE_SPACE).threshold.tolist() == [35, 120, 65, 10.5]  # thresh_f


def test_commands_have_the_algorithms_of_sis_5_1_3_6_and_7() -> None:
    assert algorithm_of(PRINTED, 49) is CONTACT
    assert algorithm_of(PRINTED, 22) is ACCOMMODATE
    assert algorithm_of(PRINTED, 11) is FREE_SPACE
    assert algorithm_of(PRINTED, 17, "RA_ACT_ALGO") is CONTACT
    assert algorithm_of(PRINTED, 0) is None  # empty rows are padding


def test_a_guarded_move_ends_at_the_first_torque_above_its_threshold() -> None:
    torque = np.zeros((6, 4))
    torque[3:, 1] = -121.0
    torque[2, 3] = 10.5  # equal is not above
    torque[4:, 3] = 10.6
    guard = Guard.of(PRINTED)
    assert guard.first(torque) == (None, 3, None, 4)
    assert guard.stop(torque) == (3, 2)
    assert guard.stop(np.zeros((6, 4))) is None


def test_a_joint_below_its_detent_speed_may_pull_harder() -> None:
    torque = np.full((2, 4), 0.0)
    torque[:, 0] = 60.0  # above 35, below 35 + 29.125 (thresh_d)
    velocity = np.array([[0.017, 0, 0, 0], [0.019, 0, 0, 0]])  # about speed_detent 0.018 rad/s
    assert Guard.of(PRINTED).first(torque, velocity)[0] == 1
    assert Guard.of(PRINTED).first(torque)[0] == 0
