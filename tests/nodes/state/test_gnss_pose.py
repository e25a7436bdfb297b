"""Satellite fixes as places."""

from __future__ import annotations

import numpy as np
import pytest

from transect.geometry import rotations, se3
from transect.nodes.state.fusion.events import std_of
from transect.nodes.state.gnss_pose import GnssPose
from transect.recording import FrameTree
from transect.types import NavFix

HOME = np.radians([37.0, 15.0])
NORTH = 6.38e6
"""Metres per radian of latitude, nearly."""


def test_the_first_fix_is_the_origin_and_north_is_y():
    node = GnssPose(body="base_link")
    node(NavFix(*HOME, 100.0))
    place = node(NavFix(HOME[0] + 10 / NORTH, HOME[1], 101.0, t_ns=1)).antenna.position
    np.testing.assert_allclose(place, [0.0, 10.0, 1.0], atol=0.1)


def test_the_lever_arm_is_taken_off_along_the_attitude():
    """An antenna 2 m ahead of a body that looks east is 2 m east of it."""
    frames = FrameTree()
    frames.add_static("base_link", "gps", se3.from_quaternion([0, 0, 0, 1], [2.0, 0.0, 0.0]))
    node = GnssPose()
    node.ctx.frames = frames
    attitude = np.array([0.0, 0.0, np.pi / 2])
    told = node(NavFix(*HOME, 100.0, attitude=attitude, frame="gps"))
    np.testing.assert_allclose(told.pose.position, [-2.0, 0.0, 0.0], atol=1e-6)
    axes = rotations.matrix_from_quaternion(told.pose.orientation)
    np.testing.assert_allclose(axes, np.eye(3), atol=1e-9)


def test_a_fix_tells_its_own_deviation_or_gets_that_of_its_type():
    own = NavFix(*HOME, 0.0, std=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(std_of(own), [2.0, 1.0, 3.0])
    assert std_of(NavFix(*HOME, 0.0, fix="rtk fixed"))[0] < std_of(NavFix(*HOME, 0.0, fix="3d"))[0]


@pytest.mark.parametrize("fix", [NavFix(np.nan, np.nan, np.nan), NavFix(*HOME, 0.0, fix="none")])
def test_no_fix_is_no_place(fix: NavFix):
    assert GnssPose()(fix) is None
