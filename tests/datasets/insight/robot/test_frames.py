"""The static frames of the parameters, and the moving frames of the joints."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from transect import robots
from transect.datasets.insight.robot.arm import (
    LINKS,
    DeploymentArm,
    joint_edges,
    mounted_frames,
    static_frames,
    tool_mount,
)
from transect.datasets.insight.robot.kinematics import tool_pose
from transect.datasets.insight.robot.parameters import Parameters
from transect.errors import FrameError, GeometryError
from transect.recording import FrameTree, Parsed, Stream, arrow
from transect.types import JointState

ARM = DeploymentArm.of(Parameters.printed())
T_NS = np.array([10, 20, 30], dtype=np.int64) * 10**9
Q = np.array([[0.026, -0.389, 1.378, 0.125], [-0.1, -0.32, 1.01, 0.134], [-0.829, -1.64, 0.23, 0.0]])


def test_the_lander_frame_is_the_payload_frame_turned_about_z() -> None:
    # Table 7: origin [-775.084, -283.360, -956.056] mm in Payload, 180 degrees about +Z.
    T = static_frames(ARM).lookup("Payload", "Lander")
    np.testing.assert_allclose(T[:3, 3], [-0.775084, -0.283360, -0.956056])
    np.testing.assert_allclose(T[:3, :3], np.diag([-1.0, -1.0, 1.0]), atol=1e-12)


# --- static frames ---


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
    tree = static_frames(DeploymentArm.of(Parameters.over_printed(own)))
    np.testing.assert_allclose(tree.lookup("Payload", "ArmBase")[:3, 3], (0.0, 0.0, 0.1))
    np.testing.assert_allclose(tree.lookup("Forearm", "IDC")[:3, 3], (-0.5, 0.15, -0.055))
    np.testing.assert_allclose(tree.lookup("Wrist", "Scoop")[:3, 3], (0.1, 0.2, 0.3))
    np.testing.assert_allclose(tree.lookup("Payload", "WtsOnDeck")[:3, 3], (-1.0, -0.5, -0.3))


def test_a_hanging_tool_is_not_fixed_to_the_arm() -> None:
    with pytest.raises(GeometryError, match="not fixed to the arm"):
        tool_mount(DeploymentArm.of(Parameters.printed(), fitted=True), "Grapple")


def test_the_fitted_attach_point_says_so_in_its_edge() -> None:
    tree = mounted_frames(DeploymentArm.of(Parameters.printed(), fitted=True))
    [edge] = [edge for edge in tree.edges if edge.child == "GrappleAttach"]
    assert "invented" in edge.source
    assert "GrappleAttach" not in mounted_frames(ARM)


# --- moving frames ---


def stream_of(q: NDArray[np.float64], opened: list[str]) -> Stream:
    def build() -> Parsed:
        opened.append("read")
        return Parsed(arrow.table(T_NS, {"position": q}, units={"position": "rad"}))

    return Stream("Arm/SciHi/Encoders", JointState, build, clock="sclk", tag="encoder")


def moving_frames(q: NDArray[np.float64]) -> FrameTree:
    return static_frames(ARM).merge(joint_edges(ARM, stream_of(q, [])))


def test_the_moving_frames_are_the_poses_of_the_chain() -> None:
    tree = moving_frames(Q)
    for i, name in enumerate(LINKS):
        np.testing.assert_allclose(
            tree.lookup("ArmBase", name, T_NS), ARM.chain.poses(Q)[:, i], atol=1e-12, err_msg=name
        )


def test_the_camera_of_the_frames_is_the_camera_of_the_kinematics() -> None:
    T = moving_frames(Q).lookup("Payload", "IDC", T_NS)
    pose = tool_pose(ARM, Q, "IDC")
    np.testing.assert_allclose(T[:, :3, 3], pose[:, :3], atol=1e-12)
    np.testing.assert_allclose(np.arcsin(T[:, 2, 2]), np.arcsin(np.sin(pose[:, 3])), atol=1e-9)


def test_the_blade_of_the_frames_is_the_blade_of_the_kinematics() -> None:
    T = moving_frames(Q).lookup("Payload", "Blade1", T_NS)
    np.testing.assert_allclose(T[:, :3, 3], tool_pose(ARM, Q, "Blade 1")[:, :3], atol=1e-12)


def test_a_row_that_was_not_measured_is_left_out() -> None:
    q = Q.copy()
    q[1] = np.nan
    tree = moving_frames(q)
    between = tree.lookup("ArmBase", "Shoulder", int(T_NS[1]))
    assert np.arctan2(between[1, 0], between[0, 0]) == pytest.approx((0.026 - 0.829) / 2)


def test_a_stream_of_joint_angles_moves_the_arm_and_is_read_when_asked() -> None:
    opened: list[str] = []
    tree = static_frames(ARM).merge(joint_edges(ARM, stream_of(Q, opened)))
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
