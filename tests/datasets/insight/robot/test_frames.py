"""The frames of SIS Table 7, and the arm's own as its joints move them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from transect import robots
from transect.datasets.insight.robot.arm import (
    LINKS,
    TABLE_7,
    Arm,
    frames_of_table_7,
    joint_edges,
    local_level_from_gravity,
    mounted_frames,
    moving_frames,
    standing_frames,
    tool_mount,
)
from transect.datasets.insight.robot.kinematics import tool_pose
from transect.datasets.insight.robot.parameters import Parameters
from transect.errors import FrameError, GeometryError
from transect.recording import Parsed, Stream, arrow
from transect.types import JointState

ARM = Arm.of(Parameters.printed())
GRAVITY = np.array([0.046825, -0.051123, 0.997594])  # SIS 5.1.3.22, in Payload
T_NS = np.array([10, 20, 30], dtype=np.int64) * 10**9
Q = np.array([[0.026, -0.389, 1.378, 0.125], [-0.1, -0.32, 1.01, 0.134], [-0.829, -1.64, 0.23, 0.0]])


def whole() -> dict[str, float | tuple[float, float, float]]:
    return {"azimuth": 0.5, "site": (10.0, 5.0, -1.0), "hook": (1.2, 0.4, 0.6), "tether": 0.3, "dampers": 0.7}


# --- Table 7 ---


def test_all_seven_frames_are_there_when_all_is_given() -> None:
    tree = frames_of_table_7(ARM, **whole())  # type: ignore[arg-type]
    assert len(TABLE_7) == 7
    assert set(TABLE_7.values()) <= set(tree.frames)


def test_what_the_sis_does_not_give_is_left_out() -> None:
    tree = frames_of_table_7(ARM)
    assert not {"Site", "SeisHook", "SeisAsm"} & set(tree.frames)
    assert "LocalLevel" in tree
    [edge] = [edge for edge in tree.edges if edge.child == "Payload"]
    assert "north is not known" in edge.source


def test_the_lander_frame_is_the_payload_frame_turned_about_z() -> None:
    # Table 7: origin [-775.084, -283.360, -956.056] mm in Payload, 180 degrees about +Z.
    T = frames_of_table_7(ARM).lookup("Payload", "Lander")
    np.testing.assert_allclose(T[:3, 3], [-0.775084, -0.283360, -0.956056])
    np.testing.assert_allclose(T[:3, :3], np.diag([-1.0, -1.0, 1.0]), atol=1e-12)


def test_gravity_is_straight_down_in_the_local_level_frame() -> None:
    T = frames_of_table_7(ARM).lookup("LocalLevel", "Payload")
    np.testing.assert_allclose(T[:3, :3] @ GRAVITY, [0.0, 0.0, 1.0], atol=1e-6)
    np.testing.assert_array_equal(T[:3, 3], 0.0)  # coincident with Payload
    # The deck is tilted by acos(0.997594) = 3.98 degrees.
    assert np.degrees(np.arccos(T[2, 2])) == pytest.approx(3.975, abs=1e-3)


def test_a_level_lander_that_looks_east_by_hand() -> None:
    T = local_level_from_gravity([0.0, 0.0, 3.711], np.pi / 2)
    np.testing.assert_allclose(
        T[:3, :3] @ [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], atol=1e-12
    )  # x is north, y is east
    np.testing.assert_allclose(T[:3, :3] @ [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], atol=1e-12)


directions = st.tuples(st.floats(-0.9, 0.9), st.floats(-1.0, 1.0), st.floats(0.2, 1.0))


@given(gravity=directions, azimuth=st.floats(-3.0, 3.0))
def test_the_level_frame_is_a_rotation_with_payload_s_x_at_its_azimuth(
    gravity: tuple[float, float, float], azimuth: float
) -> None:
    R = local_level_from_gravity(gravity, azimuth)[:3, :3]
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1.0)
    np.testing.assert_allclose(R @ gravity, [0.0, 0.0, np.linalg.norm(gravity)], atol=1e-12)
    assert np.sin(np.arctan2(R[1, 0], R[0, 0]) - azimuth) == pytest.approx(0.0, abs=1e-9)


def test_many_gravities_are_levelled_at_once() -> None:
    many = local_level_from_gravity(np.stack([GRAVITY, [0.0, 0.1, 1.0]]), [0.1, 0.2])
    assert many.shape == (2, 4, 4)
    np.testing.assert_allclose(many[0], local_level_from_gravity(GRAVITY, 0.1))


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
def test_a_gravity_without_a_level_direction_is_refused(gravity: tuple[float, float, float]) -> None:
    with pytest.raises(GeometryError, match="no level direction"):
        local_level_from_gravity(gravity)


def test_the_site_is_level_and_shifted() -> None:
    tree = frames_of_table_7(ARM, **whole())  # type: ignore[arg-type]
    T = tree.lookup("Site", "Payload")
    np.testing.assert_allclose(T[:3, 3], (10.0, 5.0, -1.0))
    np.testing.assert_allclose(T[:3, :3] @ GRAVITY, [0.0, 0.0, 1.0], atol=1e-6)


def test_seis_has_its_hook_frame_down_and_its_asm_frame_up() -> None:
    # Table 7: the hook's z is co-aligned with that of the IDA, the ASM's points up; both centred at the hook.
    tree = frames_of_table_7(ARM, **whole())  # type: ignore[arg-type]
    hook, asm = tree.lookup("Payload", "SeisHook"), tree.lookup("Payload", "SeisAsm")
    np.testing.assert_allclose([hook[:3, 3], asm[:3, 3]], [(1.2, 0.4, 0.6)] * 2)
    np.testing.assert_allclose([hook[:3, 2], asm[:3, 2]], [(0, 0, 1), (0, 0, -1)], atol=1e-12)
    np.testing.assert_allclose(hook[:3, 0], [np.cos(0.3), np.sin(0.3), 0.0], atol=1e-12)
    np.testing.assert_allclose(asm[:3, 0], [np.cos(1.0), np.sin(1.0), 0.0], atol=1e-12)


def test_half_of_what_a_frame_needs_is_refused() -> None:
    with pytest.raises(GeometryError, match="Site needs an azimuth"):
        frames_of_table_7(ARM, site=(0.0, 0.0, 0.0))
    with pytest.raises(GeometryError, match="SeisAsm needs a hook"):
        frames_of_table_7(ARM, dampers=0.3)


# --- what the parameters fix ---


def test_the_robot_s_file_and_its_parameters_agree_on_every_frame() -> None:
    stated, derived = robots.load("ida").frames, mounted_frames(ARM)
    for edge in derived.edges:
        np.testing.assert_allclose(edge.matrix, stated.lookup(edge.parent, edge.child), atol=1e-5)


def test_a_file_s_own_numbers_move_the_frames() -> None:
    own = {
        "RA_ARM_PARAMS": {"x_rac": (-0.5, -0.055, -0.15, 1.5708), "x_scoop": (0.1, 0.2, 0.3, 0.0)},
        "RA_LANDER_TO_RA": {"frame.x": (0.0, 0.0, 0.1), "frame.q": (1.0, 0.0, 0.0, 0.0)},
        "PAYLOAD_COL_PARAMS": {"wts_t": (-1.0, -0.5, -0.3), "wts_q": (0.0, 0.0, 0.0, 1.0)},
    }
    tree = standing_frames(Arm.of(Parameters.over_printed(own)))
    np.testing.assert_allclose(tree.lookup("Payload", "ArmBase")[:3, 3], (0.0, 0.0, 0.1))
    np.testing.assert_allclose(tree.lookup("Forearm", "IDC")[:3, 3], (-0.5, 0.15, -0.055))
    np.testing.assert_allclose(tree.lookup("Wrist", "Scoop")[:3, 3], (0.1, 0.2, 0.3))
    np.testing.assert_allclose(tree.lookup("Payload", "WtsOnDeck")[:3, 3], (-1.0, -0.5, -0.3))


def test_a_hanging_tool_is_not_fixed_to_the_arm() -> None:
    with pytest.raises(GeometryError, match="not fixed to the arm"):
        tool_mount(Arm.of(Parameters.printed(), fitted=True), "Grapple")


def test_the_fitted_attach_point_says_so_in_its_edge() -> None:
    tree = mounted_frames(Arm.of(Parameters.printed(), fitted=True))
    [edge] = [edge for edge in tree.edges if edge.child == "GrappleAttach"]
    assert "invented" in edge.source
    assert "GrappleAttach" not in mounted_frames(ARM)


# --- moving ---


def test_the_moving_frames_are_the_poses_of_the_chain() -> None:
    tree = moving_frames(ARM, T_NS, Q)
    for i, name in enumerate(LINKS):
        np.testing.assert_allclose(
            tree.lookup("ArmBase", name, T_NS), ARM.chain.poses(Q)[:, i], atol=1e-12, err_msg=name
        )


def test_the_camera_of_the_frames_is_the_camera_of_the_kinematics() -> None:
    T = moving_frames(ARM, T_NS, Q).lookup("Payload", "IDC", T_NS)
    pose = tool_pose(ARM, Q, "IDC")
    np.testing.assert_allclose(T[:, :3, 3], pose[:, :3], atol=1e-12)
    np.testing.assert_allclose(np.arcsin(T[:, 2, 2]), np.arcsin(np.sin(pose[:, 3])), atol=1e-9)


def test_the_blade_of_the_frames_is_the_blade_of_the_kinematics() -> None:
    T = moving_frames(ARM, T_NS, Q).lookup("Payload", "Blade1", T_NS)
    np.testing.assert_allclose(T[:, :3, 3], tool_pose(ARM, Q, "Blade 1")[:, :3], atol=1e-12)


def test_a_row_that_was_not_measured_is_left_out() -> None:
    q = Q.copy()
    q[1] = np.nan
    tree = moving_frames(ARM, T_NS, q)
    between = tree.lookup("ArmBase", "Shoulder", int(T_NS[1]))
    assert np.arctan2(between[1, 0], between[0, 0]) == pytest.approx((0.026 - 0.829) / 2)


def stream_of(q: NDArray[np.float64], opened: list[str]) -> Stream:
    def build() -> Parsed:
        opened.append("read")
        return Parsed(arrow.table(T_NS, {"position": q}, units={"position": "rad"}))

    return Stream("Arm/SciHi/Encoders", JointState, build, clock="sclk", tag="encoder")


def test_a_stream_of_joint_angles_moves_the_arm_and_is_read_when_asked() -> None:
    opened: list[str] = []
    tree = standing_frames(ARM).merge(joint_edges(ARM, stream_of(Q, opened)))
    assert not opened
    np.testing.assert_allclose(
        tree.lookup("Payload", "Wrist", int(T_NS[1])), ARM.chain.forward(Q[1]), atol=1e-12
    )
    assert opened
    assert tree.roots == ("Payload",)
    with pytest.raises(FrameError):
        tree.lookup("Payload", "Wrist", int(T_NS[2]) + 1)


def test_a_stream_of_another_arm_is_refused() -> None:
    tree = joint_edges(ARM, stream_of(Q[:, :3], []))
    with pytest.raises(GeometryError, match="Arm/SciHi/Encoders"):
        tree.lookup("ArmBase", "Wrist", int(T_NS[0]))
