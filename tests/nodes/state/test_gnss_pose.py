"""Satellite fixes as positions."""

from __future__ import annotations

import numpy as np
import pytest

from transect.algorithms.fusion.gnss_sigma import sigma_of_fix
from transect.geometry import rotations, se3
from transect.nodes.state.gnss_pose import GnssPose
from transect.recording import FrameTree
from transect.types import NavFix

HOME = np.radians([37.0, 15.0])
METRES_PER_RADIAN = 6.38e6
"""Metres per radian of latitude, nearly."""


def test_the_first_fix_is_the_origin_and_north_is_y():
    node = GnssPose(body="base_link")
    node(NavFix(*HOME, 100.0))
    place = node(NavFix(HOME[0] + 10 / METRES_PER_RADIAN, HOME[1], 101.0, t_ns=1)).antenna.position
    np.testing.assert_allclose(place, [0.0, 10.0, 1.0], atol=0.1)


def test_the_lever_arm_is_subtracted_in_the_direction_of_the_attitude():
    """An antenna 2 m ahead of a body with heading east is 2 m east of it."""
    frames = FrameTree()
    frames.add_static("base_link", "gps", se3.from_quaternion([0, 0, 0, 1], [2.0, 0.0, 0.0]))
    node = GnssPose()
    node.ctx.frames = frames
    attitude = np.array([0.0, 0.0, np.pi / 2])
    told = node(NavFix(*HOME, 100.0, attitude=attitude, frame="gps"))
    np.testing.assert_allclose(told.pose.position, [-2.0, 0.0, 0.0], atol=1e-6)
    axes = rotations.matrix_from_quaternion(told.pose.orientation)
    np.testing.assert_allclose(axes, np.eye(3), atol=1e-9)


NO = np.nan
ASSUMED = "fix: no standard deviation is stated"


@pytest.mark.parametrize(
    ("north_east_down", "east_north_up", "note"),
    [
        ((1.0, 2.0, 3.0), (2.0, 1.0, 3.0), ""),
        ((1.0, 0.0, 3.0), (1.0, 1.0, 3.0), "fix: the standard deviation east is zero or NaN"),
        ((1.0, 2.0, NO), (2.0, 1.0, 4.0), "fix: the standard deviation up is zero or NaN"),
        ((0.0, 0.0, 0.0), (2.5, 2.5, 5.0), ASSUMED),
        ((NO, NO, 7.0), (2.5, 2.5, 7.0), ASSUMED),
    ],
)
def test_missing_standard_deviations_of_a_fix_are_assumed_and_reported(
    north_east_down: tuple[float, ...], east_north_up: tuple[float, ...], note: str
):
    found = sigma_of_fix(NavFix(*HOME, 0.0, std=np.array(north_east_down)))
    np.testing.assert_allclose(found.std, east_north_up)
    assert found.note.startswith(note)
    assert bool(found.note) == bool(note)


def test_a_fix_without_standard_deviation_gets_that_of_its_type_and_hdop_or_the_given_one():
    rtk, single = (NavFix(*HOME, 0.0, fix=name, hdop=1.5) for name in ("rtk fixed", "3d"))
    np.testing.assert_allclose(sigma_of_fix(rtk).std, [0.03, 0.03, 0.06])
    np.testing.assert_allclose(sigma_of_fix(single).std, [3.75, 3.75, 7.5])
    assert "of type 3d: 2.5 m horizontally and 5 m vertically, times the HDOP" in sigma_of_fix(single).note
    np.testing.assert_allclose(sigma_of_fix(single, 0.4).std, [0.4, 0.4, 0.8])
    np.testing.assert_allclose(sigma_of_fix(NavFix(*HOME, 0.0, hdop=99.9)).std, [2.5, 2.5, 5.0])


@pytest.mark.parametrize("fix", [NavFix(np.nan, np.nan, np.nan), NavFix(*HOME, 0.0, fix="none")])
def test_no_fix_gives_no_position(fix: NavFix):
    assert GnssPose()(fix) is None
