"""Phases of a rock picking, from heights that tell them."""

from __future__ import annotations

import numpy as np
import pytest

from transect.datasets.ameds.robot.arms import PickingThresholds, classify_phases, find_arm_motion
from transect.errors import GeometryError

#          rest       down                  rock            up                    container    away       rest
HEIGHTS = [0.5, 0.5, 0.3, 0.1, -0.1, -0.2, -0.2, -0.19, 0.0, 0.3, 0.6, 0.4, 0.25, 0.25, 0.4, 0.5, 0.5, 0.5]
NAMES = [
    *["still"] * 1,
    *["approach"] * 4,
    *["grasp"] * 3,
    *["lift"] * 3,
    *["place"] * 3,
    *["return"] * 2,
    *["still"] * 2,
]


def moves_of(heights: list[float]) -> np.ndarray:
    t_ns = np.arange(len(heights)) * 10**9
    return find_arm_motion(t_ns, np.array(heights)[:, None])


def test_down_to_the_rock_up_and_down_to_the_container():
    assert classify_phases(HEIGHTS, moves_of(HEIGHTS)).tolist() == NAMES


def test_the_phases_come_in_their_order():
    order = ["still", "approach", "grasp", "lift", "place", "return"]
    found = classify_phases(HEIGHTS, moves_of(HEIGHTS))
    firsts = [found.tolist().index(name) for name in order]
    assert firsts == sorted(firsts)


def test_a_rest_above_the_container_is_part_of_placing():
    heights = [0.5, 0.0, 0.0, 0.5, 0.3, 0.3, 0.3, 0.3, 0.6]
    assert classify_phases(heights, moves_of(heights)).tolist()[4:8] == ["place"] * 4


def test_an_arm_that_stays_at_the_rock_never_lifts():
    heights = [0.5, 0.3, 0.0, 0.0, 0.0]
    assert classify_phases(heights, moves_of(heights)).tolist() == ["approach"] * 2 + ["grasp"] * 3


def test_an_arm_that_stays_up_has_lifted_and_not_placed():
    heights = [0.5, 0.0, 0.0, 0.5, 0.49, 0.49, 0.49]
    assert classify_phases(heights, moves_of(heights)).tolist()[3:] == ["lift", "lift", "still", "still"]


def test_small_differences_in_height_do_not_count():
    heights = [0.5, 0.3, 0.0, 0.3, 0.5, 0.49, 0.5, 0.51]
    assert (
        "place"
        not in classify_phases(heights, moves_of(heights), PickingThresholds(height_band_m=0.03)).tolist()
    )
    assert (
        "place"
        in classify_phases(heights, moves_of(heights), PickingThresholds(height_band_m=0.005)).tolist()
    )


def test_moving_is_judged_by_the_fastest_joint_in_rad_per_second():
    q = np.zeros((4, 7))
    q[2:, 5] = 0.2
    assert find_arm_motion(np.array([0, 1, 2, 3]) * 10**9, q, 0.1).tolist() == [False, True, True, False]
    # The same step in ten seconds is slow.
    assert not find_arm_motion(np.array([0, 10, 20, 30]) * 10**9, q, 0.1).any()
    assert find_arm_motion([0], q[:1]).tolist() == [False]


def test_an_unmeasured_height_is_refused():
    with pytest.raises(GeometryError, match="finite"):
        classify_phases([0.0, np.nan], [True, True])
