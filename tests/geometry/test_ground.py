"""Which coordinates of a path go right and up on a map."""

from __future__ import annotations

import numpy as np
import pytest

from transect.base.arrays import Floats
from transect.geometry import rotations
from transect.geometry.ground import MapView, forward_axis, ground_axes, map_view

CAMERA, LEVEL = (0, 2), (0, 1)
ALONG = np.linspace(0.0, 1.0, 80)
OPTICAL = rotations.quaternion_from_matrix(np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]]))
"""Takes a camera's axes (x right, y down, z forward) to x forward, y left, z up."""


def drive(rise: float, turn: float) -> tuple[Floats, Floats]:
    """Positions, z up, and attitudes with x forward, of a path of 100 m with a given rise and turn."""
    heading, pitch = turn * ALONG, np.full(80, -np.arctan(rise))
    attitudes = rotations.quaternion_from_euler("xyz", np.column_stack([0 * ALONG, pitch, heading]))
    step = rotations.rotate(attitudes, np.array([100 / 79, 0.0, 0.0]))
    return np.cumsum(step, axis=0), attitudes


def of_camera(path: Floats, attitudes: Floats) -> tuple[Floats, Floats]:
    """The same drive in the axes of the camera's first pose, as KITTI writes poses."""
    start = rotations.multiply(attitudes[0], OPTICAL)
    turned = rotations.multiply(rotations.conjugate(start), rotations.multiply(attitudes, OPTICAL))
    return rotations.rotate(rotations.conjugate(start), path - path[0]), turned


@pytest.mark.parametrize("rise", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("turn", [0.0, 0.01, 1.5, 9.0])
def test_a_drive_is_seen_from_above_however_straight_and_steep_it_is(rise: float, turn: float):
    path, attitudes = drive(rise, turn)
    assert ground_axes(path, attitudes) == LEVEL
    assert ground_axes(path) == LEVEL
    camera = of_camera(path, attitudes)
    assert ground_axes(*camera) == CAMERA
    assert (
        ground_axes(camera[0]) == CAMERA or turn == 9.0
    )  # circles that climb: nothing but attitudes can tell
    assert forward_axis(*camera) == 2


def test_a_car_that_drives_along_y_is_seen_from_above_and_its_axis_is_told():
    path, attitudes = drive(0.05, 0.3)
    left = rotations.multiply(
        attitudes, rotations.quaternion_from_euler("xyz", np.array([0.0, 0.0, -np.pi / 2]))
    )
    assert forward_axis(path, left) == 1
    assert ground_axes(path[:, [1, 0, 2]] * (-1, 1, 1), left) == LEVEL


def test_a_drone_that_flies_all_ways_is_seen_along_z():
    swing = np.column_stack([np.sin(9 * ALONG), np.cos(7 * ALONG), 0.6 * np.sin(5 * ALONG)])
    body = rotations.quaternion_from_euler("xyz", np.column_stack([ALONG * 0, ALONG * 0 - 1.5, 3 * ALONG]))
    assert ground_axes(swing, body) == ground_axes(swing) == LEVEL


def test_axes_have_the_names_of_what_they_are():
    path, attitudes = drive(0.0, 0.5)
    assert map_view(*of_camera(path, attitudes)).names == ("x, right", "z, forward")
    assert map_view(path, attitudes).names == ("x", "y")
    west = map_view(path, attitudes, "NWU")
    assert (west.names, west.project(np.array([[1.0, 2.0, 3.0]])).tolist()) == (
        ("east", "north"),
        [[-2.0, 1.0]],
    )
    assert map_view(np.full((3, 3), np.nan)) == MapView()
