"""The arms and cameras of Interact: document 000, Tables 1 to 3."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from transect import robots
from transect.datasets.ameds.robot.arms import attitude_angles, camera_poses, end_poses
from transect.robots.chains import chain_of

ROBOT = robots.load("interact")
ARM = chain_of(ROBOT)
SHOULDER = np.array([0, 0, 0.31])
joints = st.lists(st.floats(-2, 2), min_size=7, max_size=7)


def test_stretched_up_the_arm_is_the_sum_of_its_links():
    T = ARM.forward(np.zeros(7))
    np.testing.assert_allclose(T[:3, 3], [0, 0, 0.31 + 0.40 + 0.39], atol=1e-12)
    np.testing.assert_allclose(T[:3, :3], np.eye(3), atol=1e-12)


def test_stretched_out_the_wrist_is_79_cm_from_the_shoulder():
    # Errata: reach from the shoulder 0.79 m; Table 1 has 820 mm for the whole arm.
    out = ARM.forward([0, np.pi / 2, 0, 0, 0, 0, 0])[:3, 3]
    assert np.linalg.norm(out - SHOULDER) == pytest.approx(0.79)
    assert out[2] == pytest.approx(0.31)


@given(joints)
def test_no_pose_reaches_farther_than_79_cm(q: list[float]):
    assert np.linalg.norm(ARM.forward(q)[:3, 3] - SHOULDER) <= 0.79 + 1e-12


@given(joints)
def test_the_elbow_angle_gives_the_distance_by_the_law_of_cosines(q: list[float]):
    expected = np.sqrt(0.40**2 + 0.39**2 + 2 * 0.40 * 0.39 * np.cos(q[3]))
    assert np.linalg.norm(ARM.forward(q)[:3, 3] - SHOULDER) == pytest.approx(expected, abs=1e-9)


@given(joints)
def test_it_is_turns_about_z_and_y_in_turn(q: list[float]):
    # Another way to write the same arm: axes z, -y, z, y, z, -y, z of the arm stretched up.
    R, p = np.eye(3), np.zeros(3)
    for angle, axis, length in zip(q, "zYzyzYz", (0.31, 0, 0.40, 0, 0.39, 0, 0), strict=True):
        R = R @ Rotation.from_euler(axis.lower(), -angle if axis == "Y" else angle).as_matrix()
        p = p + R @ [0, 0, length]
    T = ARM.forward(q)
    np.testing.assert_allclose(T[:3, 3], p, atol=1e-12)
    np.testing.assert_allclose(T[:3, :3], R, atol=1e-12)


@given(joints)
def test_the_jacobian_is_the_derivative(q: list[float]):
    J, h = ARM.jacobian(q), 1e-6
    for i in range(7):
        step = np.eye(7)[i] * h
        ahead, behind = ARM.forward(np.array(q) + step), ARM.forward(np.array(q) - step)
        np.testing.assert_allclose(J[:3, i], (ahead[:3, 3] - behind[:3, 3]) / (2 * h), atol=1e-8)
        turn = Rotation.from_matrix(ahead[:3, :3] @ behind[:3, :3].T).as_rotvec() / (2 * h)
        np.testing.assert_allclose(J[3:, i], turn, atol=1e-7)


@settings(max_examples=10)
@given(st.lists(st.floats(-0.1, 0.1), min_size=7, max_size=7))
def test_the_inverse_finds_a_pose_again(off: list[float]):
    q = np.array([0.3, -0.8, 0.2, 1.2, -0.4, 0.9, 0.1])
    target = ARM.forward(q)
    np.testing.assert_allclose(ARM.forward(ARM.inverse(target, q + off)), target, atol=1e-7)


def test_limits_are_170_and_120_degrees_in_turn():
    assert np.degrees(ARM.upper) == pytest.approx([170, 120, 170, 120, 170, 120, 170])
    assert ARM.within_limits(np.radians([171, 121, 0, 0, 0, 0, 0])).tolist() == [False, False, *[True] * 5]


def test_with_its_arm_up_the_main_camera_looks_forward_over_the_rover():
    # Table 2 by hand. Base at (-100, 0, -647) mm, upside down in Origin (z down): the end is 1100 mm higher,
    # the camera 186 mm higher still and 28 mm further back.
    T = camera_poses(np.zeros(7), ROBOT, "Main")
    np.testing.assert_allclose(T[:3, 3], [-0.128, 0, -0.647 - 1.1 - 0.186], atol=1e-12)
    # Its x to the right of the rover, its y down, its z forward.
    np.testing.assert_allclose(T[:3, :3], [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-12)


def test_the_aux_arm_starts_at_its_base():
    # Base in Origin: (598, 310, -210) mm, R = Rx(-60) Ry(50) Rz(180); its z axis by hand.
    z = [
        np.sin(np.radians(50)),
        np.sin(np.radians(60)) * np.cos(np.radians(50)),
        np.cos(np.radians(60)) * np.cos(np.radians(50)),
    ]
    T = end_poses(np.zeros(7), ROBOT, "Aux")
    np.testing.assert_allclose(T[:3, 3], np.array([0.598, 0.310, -0.210]) + 1.1 * np.array(z), atol=1e-12)


@given(st.tuples(st.floats(-3, 3), st.floats(-1.5, 1.5), st.floats(-3, 3)))
def test_attitude_angles_are_those_of_equation_3(angles: tuple[float, float, float]):
    x, y, z = (Rotation.from_euler(axis, a).as_matrix() for axis, a in zip("xyz", angles, strict=True))
    np.testing.assert_allclose(attitude_angles(x @ y @ z), angles, atol=1e-9)
    np.testing.assert_allclose(attitude_angles(z @ y @ x, "rpy"), angles, atol=1e-9)
