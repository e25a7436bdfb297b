"""The weeding robot's numbers and the tf tree of Table 1 (Rosario)."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from transect import robots
from transect.datasets.rosario.robot.geometry import WeederGeometry
from transect.errors import TransectError
from transect.recording import Robot


@pytest.fixture(scope="module")
def robot() -> Robot:
    return robots.load("weeder")


def test_its_numbers_are_those_of_section_4_6(robot: Robot) -> None:
    geometry = WeederGeometry.of(robot)
    assert (geometry.wheelbase, geometry.wheel_diameter) == (1.6, 0.57)
    assert math.degrees(geometry.steering_limit) == pytest.approx(19)
    assert geometry.rim_speed * 60 == pytest.approx(1.790707813)  # pi * 0.57 m at one turn a second


def test_a_hundred_units_of_the_stepper_are_twenty_degrees_to_the_right(robot: Robot) -> None:
    # data/README.md: "steering 100 = 20 deg to the right"
    assert np.degrees(WeederGeometry.of(robot).steering([100.0, -50.0, 0.0])) == pytest.approx([-20, 10, 0])


def test_the_raw_log_is_straight_at_its_own_zero(robot: Robot) -> None:
    geometry = WeederGeometry.of(robot)
    assert geometry.steering(-5.67, zero_raw=geometry.steering_zero_raw) == pytest.approx(0)


def test_a_copy_of_the_yaml_changes_the_model(tmp_path: Path) -> None:
    text = robots.path_of("weeder").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("wheelbase: 1.6", "wheelbase: 2.0"))
    assert WeederGeometry.of(robots.load(tmp_path / "mine.yaml")).wheelbase == 2.0


def test_a_robot_without_these_numbers_gets_an_error_that_lists_them(robot: Robot) -> None:
    with pytest.raises(TransectError, match="no wheelbase"):
        WeederGeometry.of(Robot("mine", frames=robot.frames))


def test_the_antenna_hangs_on_the_rear_axle_by_way_of_base_link(robot: Robot) -> None:
    # Table 1: rear_wheel_odometry <- base_link is the identity, base_link <- gps is (1.8, -0.030, 1.593)
    T = robot.frames.lookup("rear_wheel_odometry", "gps")
    np.testing.assert_allclose(T, [[1, 0, 0, 1.8], [0, 1, 0, -0.03], [0, 0, 1, 1.593], [0, 0, 0, 1]])


def test_the_left_camera_looks_along_the_imus_z_axis_with_its_x_along_y(robot: Robot) -> None:
    # Table 1, q = (0.058, 0.019, 0.703, 0.708), |q|^2 = 0.999198; by hand
    # R's first column: (1 - 2(y2 + z2)/n, 2(xy + zw)/n, 2(xz - yw)/n) = (0.01007, 0.99845, 0.05469)
    # and its third: (2(xz + yw)/n, 2(yz - xw)/n, 1 - 2(x2 + y2)/n) = (0.10854, -0.05546, 0.99254)
    R = robot.frames.lookup("imu", "left_camera")[:3, :3]
    np.testing.assert_allclose(R[:, 0], (0.01007, 0.99845, 0.05469), atol=2e-5)
    np.testing.assert_allclose(R[:, 2], (0.10854, -0.05546, 0.99254), atol=2e-5)


def test_the_right_camera_is_a_baseline_to_the_right_of_the_left_one(robot: Robot) -> None:
    # The difference of Table 1's translations, (0.001, 0.119, 0.007), on the left camera's x axis (above):
    # 0.00001 + 0.11882 + 0.00038 = 0.11921 m; 3.2 has a baseline of 12 cm.
    xyz = robot.frames.lookup("left_camera", "right_camera")[:3, 3]
    assert xyz[0] == pytest.approx(0.11921, abs=2e-5)
    assert np.linalg.norm(xyz) == pytest.approx(math.sqrt(0.001**2 + 0.119**2 + 0.007**2))


def test_nothing_is_said_of_where_the_imu_is(robot: Robot) -> None:
    # Table 1: "changes for each sequence and therefore is not listed here"
    assert robot.frames.parent_of("imu") is None
