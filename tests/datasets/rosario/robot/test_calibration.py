"""Eqs. 1 and 2 of Rosario, and the rotation of the ground truth (4.7)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.datasets.rosario.robot.published_calibration import (
    odometry_from_imu,
    straight_segments,
    truth_rotation,
)

from transect.datasets.rosario.robot.geometry import (
    mean_direction,
    odometry_from_camera,
    rotation_between,
)
from transect.errors import GeometryError
from transect.geometry import rotations

DIRECTION = hnp.arrays(np.float64, (3,), elements=st.floats(-1, 1))


def test_a_camera_that_looks_down_moves_up_in_its_image() -> None:
    # Pitched down by 30 degrees the way ahead is (0, -sin 30, cos 30) in x right, y down, z forward.
    way = np.array([0.0, -0.5, math.sqrt(0.75)])
    R = odometry_from_camera(np.linspace(0.1, 8, 20)[:, None] * way)
    np.testing.assert_allclose(R @ way, [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(R @ [0, 0, 1], [math.sqrt(0.75), 0, -0.5], atol=1e-12)  # ahead and down
    np.testing.assert_allclose(R @ [1, 0, 0], [0, -1, 0], atol=1e-12)  # its right is the robot's right


def test_near_positions_count_as_much_as_far_ones() -> None:
    # Directions (0, 0, 1) at 1 cm and (1, 0, 0) at 10 m: half-way between them, not nearly the second.
    mean = mean_direction([[0.0, 0.0, 0.01], [10.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(mean, [math.sqrt(0.5), 0, math.sqrt(0.5)])


@pytest.mark.parametrize("positions", [np.zeros((3, 3)), [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]])
def test_a_camera_that_goes_nowhere_has_no_direction(positions: object) -> None:
    with pytest.raises(GeometryError, match="no direction"):
        odometry_from_camera(positions)  # type: ignore[arg-type]


@given(DIRECTION, DIRECTION)
def test_the_smallest_rotation_takes_one_direction_to_the_other(a: np.ndarray, b: np.ndarray) -> None:
    assume(np.linalg.norm(a) > 0.01 and np.linalg.norm(b) > 0.01)
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    assume(a @ b > -0.999)
    R = rotation_between(a, b)
    np.testing.assert_allclose(R @ a, b, atol=1e-9)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    # A rotation's trace is 1 + 2 cos(angle); no rotation from a to b turns by less than what is between them.
    assert np.trace(R) == pytest.approx(1 + 2 * (a @ b), abs=1e-9)


def test_opposite_directions_are_refused() -> None:
    with pytest.raises(GeometryError, match="opposite"):
        rotation_between([0.0, 0.0, -2.0])


def test_the_imu_is_found_by_way_of_the_camera() -> None:
    # Level camera 2 m ahead, 1 m up, in whose axes the imu lies 0.1 right, 0.2 below, 0.3 ahead.
    T_camera_imu = np.eye(4)
    T_camera_imu[:3, 3] = (0.1, 0.2, 0.3)
    level = odometry_from_camera([[0.0, 0.0, 1.0]])
    T = odometry_from_imu(level, (2.0, 0.05, 1.0), T_camera_imu)
    np.testing.assert_allclose(T[:3, 3], (2.3, -0.05, 0.8), atol=1e-12)
    np.testing.assert_allclose(T[:3, :3], [[0, 0, 1], [-1, 0, 0], [0, -1, 0]], atol=1e-12)


def bowed(count: int = 25) -> np.ndarray:
    """Nine metres straight ahead with bows of a few centimetres to the side and upwards."""
    s = np.linspace(0, 9, count)
    return np.column_stack([s, 0.1 * np.sin(s / 3), 0.05 * np.cos(s)])


@given(hnp.arrays(np.float64, (4,), elements=st.floats(-1, 1)))
def test_horn_finds_the_rotation_of_a_nearly_straight_segment(q: np.ndarray) -> None:
    assume(np.linalg.norm(q) > 0.1)
    R = rotations.matrix_from_quaternion(q)
    fit = truth_rotation(bowed(), bowed() @ R + (3.0, 4.0, 5.0))
    np.testing.assert_allclose(fit.rotation, R, atol=1e-7)
    assert fit.rmse < 1e-9


def test_a_segment_that_is_a_line_fixes_its_heading_only() -> None:
    line = bowed() * (1, 0, 0)
    rtk = line @ rotations.matrix_from_euler("z", [0.5])  # turned by -0.5: R^T on the right
    with pytest.raises(GeometryError, match="not determined"):
        truth_rotation(line, rtk)
    turn = rotations.euler_from_matrix("rpy", truth_rotation(line, rtk, level=True).rotation)
    np.testing.assert_allclose(turn, [0, 0, 0.5], atol=1e-12)


def test_the_straight_pieces_of_a_track_with_one_bend_are_found() -> None:
    # 20 m ahead, a left bend of 90 degrees with a radius of 5 m (7.85 m), 20 m on; a sample every 0.1 m
    s = np.arange(0, 20, 0.1)
    bend = np.arange(0, 7.85, 0.1) / 5
    track = np.concatenate(
        [
            np.column_stack([s, 0 * s]),
            np.column_stack([20 + 5 * np.sin(bend), 5 - 5 * np.cos(bend)]),
            np.column_stack([np.full(len(s), 25.0), 5 + s]),
        ]
    )
    pieces = straight_segments(track)
    # Ten-metre pieces begin at 0, 10, 20 (bent), 30, 40 m; the third has 8 m of bend in it.
    np.testing.assert_allclose(pieces[:, 0] / 10, [0, 10, 30, 40], atol=0.2)
    for first, stop in pieces:
        assert np.linalg.norm(track[stop - 1] - track[first]) <= 10
