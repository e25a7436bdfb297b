"""Wheels of Interact: document 000, section 4, with its errata."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from transect import robots
from transect.errors import GeometryError, TransectError
from transect.recording import Robot
from transect.robots import four_wheel_steering as wheels
from transect.robots.four_wheel_steering import FourWheelGeometry

G = FourWheelGeometry.of(robots.load("interact"))
M_PER_MM = 1e-3
angles = st.lists(st.floats(-1.2, 1.2), min_size=4, max_size=4)
turns = st.lists(st.floats(-1e4, 1e4), min_size=4, max_size=4)


def test_no_steering_offset_is_straight_ahead():
    # Errata: dE = 0 gives 90 - 101.25 / 1.125 = 0 degrees.
    assert wheels.steer_angles(np.zeros(4), G) == pytest.approx(np.zeros(4), abs=1e-12)


def test_one_revolution_is_thirty_thousand_ticks():
    assert wheels.drive_angles([30000, -30000, 15000, 0], G) == pytest.approx(
        [2 * np.pi, -2 * np.pi, np.pi, 0]
    )


def test_ten_degrees_of_steering_are_11_25_mm_of_rack_the_other_way_in_front():
    # 1.125 mm/degree and 806.3 ticks/mm: 10 degrees are 9070.875 ticks; p = -1 for wheels 1 and 4.
    ticks = [-9070.875, 9070.875, 9070.875, -9070.875]
    assert np.degrees(wheels.steer_angles(ticks, G)) == pytest.approx([10, 10, 10, 10])
    assert wheels.steer_ticks(np.radians([10.0, 10, 10, 10]), G).tolist() == [
        -9071,
        9071,
        9071,
        -9071,
    ]


def test_at_rest_the_wheels_stand_beside_their_swivels():
    # L = 402, W = 396, H = 135, d = 143 mm: wheel 1 front left, then counter-clockwise (errata).
    at_rest = (
        np.array([[402, 539, -135], [-402, 539, -135], [-402, -539, -135], [402, -539, -135]]) * M_PER_MM
    )
    np.testing.assert_allclose(wheels.positions(np.zeros(4), G), at_rest, atol=1e-12)


def test_each_wheel_swings_with_its_own_angle():
    # phi = 90 degrees: x1 = L - d, y1 = W; x3 = -L + d, y3 = -W. The others stay, though the print has phi_1.
    places = wheels.positions(np.radians([90.0, 0, 90, 0]), G) / M_PER_MM
    np.testing.assert_allclose(places[0], [402 - 143, 396, -135], atol=1e-9)
    np.testing.assert_allclose(places[2], [-402 + 143, -396, -135], atol=1e-9)
    np.testing.assert_allclose(places[1], [-402, 539, -135], atol=1e-9)


def test_axles_point_outwards():
    axles = wheels.rotation_matrices(np.zeros(4), np.zeros(4), G)[:, :, 0]
    np.testing.assert_allclose(axles, [[0, 1, 0], [0, 1, 0], [0, -1, 0], [0, -1, 0]], atol=1e-12)


def test_a_positive_drive_angle_carries_the_top_of_every_wheel_forward():
    top = wheels.rotation_matrices(np.zeros(4), np.full(4, 0.1), G) @ [0, 0, 1]
    np.testing.assert_allclose(top, np.tile([np.sin(0.1), 0, np.cos(0.1)], (4, 1)), atol=1e-12)


@given(angles, turns)
def test_attitudes_are_table_5_in_zxz(steering: list[float], drive: list[float]):
    # R = Rz(gamma) Rx(beta) Rz(alpha), alpha = 0; beta = psi and -psi; gamma = phi + 90 and phi - 90 degrees.
    phi, psi, side = np.array(steering), np.array(drive), np.array([1, 1, -1, -1])
    euler = np.column_stack([phi + side * np.pi / 2, side * psi, np.zeros(4)])
    expected = Rotation.from_euler("ZXZ", euler).as_matrix()
    np.testing.assert_allclose(wheels.rotation_matrices(phi, psi, G), expected, atol=1e-9)


def test_poses_keep_leading_axes_and_are_rigid():
    T = wheels.poses(np.full((3, 2, 4), 0.3), np.full(4, 5.0), G)
    assert T.shape == (3, 2, 4, 4, 4)
    np.testing.assert_allclose(
        T[..., :3, :3] @ T[..., :3, :3].swapaxes(-1, -2), np.tile(np.eye(3), (3, 2, 4, 1, 1)), atol=1e-12
    )
    np.testing.assert_array_equal(T[0, 0, :, :3, 3], wheels.positions(np.full(4, 0.3), G))


@given(turns)
def test_drive_ticks_round_within_half_a_tick(drive: list[float]):
    half = np.pi / 30000
    back = wheels.drive_angles(wheels.drive_ticks(drive, G), G)
    assert np.abs(back - drive).max() <= half * (1 + 1e-6)


@given(angles)
def test_steer_ticks_round_within_half_a_tick(steering: list[float]):
    half = np.radians(0.5 / 806.3 / 1.125)
    back = wheels.steer_angles(wheels.steer_ticks(steering, G), G)
    assert np.abs(back - steering).max() <= half * (1 + 1e-6)


@given(st.lists(st.integers(-100_000, 100_000), min_size=4, max_size=4))
def test_whole_ticks_are_recovered_exactly(ticks: list[int]):
    assert wheels.steer_ticks(wheels.steer_angles(ticks, G), G).tolist() == ticks
    assert wheels.drive_ticks(wheels.drive_angles(ticks, G), G).tolist() == ticks


def test_the_length_of_a_tick_is_found_among_wild_steps():
    rng = np.random.default_rng(1)
    t_ns = np.arange(500) * 20_000_000
    true = 2 * np.pi * 0.21 / 30000
    speed = 0.4 + 0.2 * np.sin(np.arange(500) / 40)
    exact = np.concatenate([[0.0], np.cumsum((speed[1:] + speed[:-1]) / 2 * 0.02)])
    ticks = np.floor(exact[:, None] / true) + np.zeros(4)
    ticks[rng.random(500) < 0.15] += 4000  # a counter that jumps there and back
    found = wheels.tick_length(t_ns, ticks, np.repeat(speed[:, None], 4, axis=1))
    assert found.metres == pytest.approx(true, rel=2e-3)
    assert found.each == pytest.approx(np.full(4, true), rel=2e-3)
    assert found.wheel_radius(G) == pytest.approx(0.21, rel=2e-3)


def test_the_length_of_a_tick_is_unknown_while_standing():
    found = wheels.tick_length(np.arange(5) * 10**7, np.zeros((5, 4)), np.zeros((5, 4)))
    assert (np.isnan(found.metres), found.steps) == (True, 0)


def test_five_wheels_are_refused():
    with pytest.raises(GeometryError, match="drive ticks"):
        wheels.drive_angles(np.zeros(5), G)


def test_a_user_s_copy_changes_the_model(tmp_path: Path):
    text = robots.path_of("interact").read_text()
    copy = tmp_path / "mine.yaml"
    copy.write_text(
        text.replace("half_length: 0.402", "half_length: 0.500").replace("name: interact", "name: mine")
    )
    longer = FourWheelGeometry.of(robots.load(copy))
    assert wheels.positions(np.zeros(4), longer)[:, 0].tolist() == [0.5, -0.5, -0.5, 0.5]


def test_a_missing_constant_is_named():
    with pytest.raises(TransectError, match=r"platform\.wheels") as error:
        FourWheelGeometry.of(Robot("cart"))
    assert "interact.yaml" in error.value.hint
