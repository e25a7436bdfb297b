"""The manoeuvres of Figure 7: the text gives the signs of a left crab turn, the rest is geometry."""

from __future__ import annotations

import numpy as np
import pytest
from tests.datasets.ameds.robot.circle import circle_wheels

from transect import robots
from transect.datasets.ameds.robot.derived_poses import intervals
from transect.datasets.ameds.robot.locomotion import classify_motion, classify_steering
from transect.robots.four_wheel_steering import FourWheelGeometry

G = FourWheelGeometry.of(robots.load("interact"))


@pytest.mark.parametrize(
    ("degrees", "name"),
    [
        ((0, 0, 0, 0), "straight"),
        ((1, -1, 1.5, 0), "straight"),
        ((20, 20, 20, 20), "left crab turn"),  # "all positive when the rover is performing a Left Crab Turn"
        ((-20, -20, -20, -20), "right crab turn"),
        ((20, -20, -15, 15), "left turn"),
        ((-15, 15, 20, -20), "right turn"),
        ((20, 0, 0, 20), "left turn"),
        ((0, 10, 10, 0), "right turn"),
        ((-45, 45, -45, 45), "spot turn"),
        ((45, -45, 45, -45), "mixed"),
        ((20, 20, -20, -20), "mixed"),
        ((np.nan, 0, 0, 0), "unknown"),
    ],
)
def test_steering_angles_name_the_manoeuvre(degrees: tuple[float, ...], name: str):
    assert classify_steering(np.radians(degrees), G) == name


def test_wheels_of_a_left_circle_are_a_left_turn():
    steering, _ = circle_wheels(5.0, 0.1)
    assert classify_steering(steering, G) == "left turn"
    # Mirrored: left and right wheels change places and signs.
    assert classify_steering(-steering[[3, 2, 1, 0]], G) == "right turn"


def test_the_drive_determines_the_direction_of_a_spot_turn():
    # To the left the left wheels (1, 2) roll back.
    spot = np.radians([-45.0, 45, -45, 45])
    assert classify_steering(spot, G, drive=[-0.2, -0.2, 0.2, 0.2]) == "left spot turn"
    assert classify_steering(spot, G, drive=[0.2, 0.2, -0.2, -0.2]) == "right spot turn"
    assert classify_steering(spot, G, drive=np.zeros(4)) == "spot turn"


@pytest.mark.parametrize(
    ("twist", "name"),
    [
        ((0.3, 0, 0), "straight"),
        ((-0.3, 0, 0), "straight"),
        ((0.3, 0, 0.06), "left turn"),
        ((0.3, 0, -0.06), "right turn"),
        ((-0.3, 0, -0.06), "left turn"),  # the same wheels backwards
        ((0.3, 0.1, 0), "left crab turn"),
        ((-0.3, -0.1, 0), "left crab turn"),
        ((0.3, -0.1, 0), "right crab turn"),
        ((0.02, 0, 0.5), "left spot turn"),
        ((0, 0, -0.5), "right spot turn"),
        ((0.001, 0, 0.001), "standing"),
        ((np.nan, 0, 0), "unknown"),
    ],
)
def test_a_twist_names_what_was_performed(twist: tuple[float, ...], name: str):
    assert classify_motion(twist, G) == name


def test_intervals_end_where_the_name_changes_and_at_seams():
    names = np.array(["straight", "straight", "left turn", "left turn", "left turn"])
    found = intervals(np.arange(5) * 10**9, names, seams=(3,))
    assert [(i.name, i.first, i.stop) for i in found] == [
        ("straight", 0, 2),
        ("left turn", 2, 3),
        ("left turn", 3, 5),
    ]
    assert [i.seconds for i in found] == [1, 0, 1]
    assert intervals(np.zeros(0, np.int64), names[:0]) == []
