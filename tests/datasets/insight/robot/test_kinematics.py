"""Where the arm's tools are, by the SIS's own poses, by hand, and by products of matrices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from transect import robots
from transect.datasets.insight.robot.arm import TOOLS, DeploymentArm
from transect.datasets.insight.robot.kinematics import (
    inverse,
    joint_poses,
    levers,
    solve,
    tool_pose,
)
from transect.datasets.insight.robot.parameters import MissingParameterError, Parameters
from transect.errors import GeometryError, TransectError

Floats = NDArray[np.float64]

LOST = {  # made up: the SIS lost these
    "x_scoop": (0.03, 0.01, 0.16, 0.3),
    "x_grapple_attach": (0.02, -0.0383, 0.005, 0.0),
    "dist_grapple": (0.0, 0.0, 0.299),
    "dist_seis": (0.0, 0.0, 0.45, 0.0),
    "dist_wts": (0.0, 0.0, 0.4),
    "dist_hp3": (0.0, 0.0, 0.5),
}
ARM = DeploymentArm.of(Parameters.over_printed({"RA_ARM_PARAMS": LOST}))
LOWER, UPPER = np.array([-3.5314, -2.3953, -0.4324, -0.1742]), np.array([1.4585, 1.307, 4.0478, 3.5887])
KINDS = ["Scoop", "IDC", "Grapple"]
A1_M, A2_M, A3_M, D1_M, D2_M = 0.029609, 0.976664007, 0.857989013, -0.056456, -0.140837997  # SIS 5.1.3.1

ANGLES = st.tuples(*(st.floats(low, high) for low, high in zip(LOWER, UPPER, strict=True)))


def by_matrices(q: tuple[float, ...], offset: tuple[float, ...]) -> Floats:
    """Pose of a tool by A_i = Rz(q) Tz(d) Tx(a) Rx(alpha), one elementary matrix after the other."""
    T = np.eye(4)
    for angle, a, d, alpha in zip(
        q, (A1_M, A2_M, A3_M, 0), (D1_M, D2_M, 0, 0), (np.pi / 2, 0, 0, np.pi / 2), strict=True
    ):
        c, s, ca, sa = np.cos(angle), np.sin(angle), np.cos(alpha), np.sin(alpha)
        Rz = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        Rx = np.array([[1, 0, 0, 0], [0, ca, -sa, 0], [0, sa, ca, 0], [0, 0, 0, 1]])
        shift = np.eye(4)
        shift[[0, 2], 3] = a, d
        T = T @ Rz @ shift @ Rx
    point = T @ [*offset[:3], 1.0]
    axis = T[:3, :3] @ [np.sin(offset[3]), 0.0, np.cos(offset[3])]
    return np.array([*point[:3], np.arcsin(np.clip(axis[2], -1.0, 1.0))])


# --- the numbers of the SIS ---


def test_the_target_of_the_system_status_is_where_the_camera_is() -> None:
    # SIS 5.1.1 target.q; ida.md 4.5: [0.9663 0.2210 -0.0955 th 0.9890] without deflection.
    pose = tool_pose(ARM, [0.026, -0.389, 1.378, 0.125], "IDC")
    np.testing.assert_allclose(pose, [0.9663, 0.2210, -0.0955, 0.9890], atol=6e-5)
    # target.x is printed with its deflection and of another x_rac: 6, 2 and 5 mm, 3 mrad away.
    assert (np.abs(pose - [0.960, 0.218, -0.098, 0.992]) < [0.007, 0.004, 0.003, 0.0035]).all()


def test_the_camera_does_not_move_with_the_wrist() -> None:
    still = tool_pose(ARM, [0.026, -0.389, 1.378, 0.0], "IDC")
    np.testing.assert_array_equal(tool_pose(ARM, [0.026, -0.389, 1.378, 2.0], "IDC"), still)
    np.testing.assert_array_equal(tool_pose(ARM, [0.026, -0.389, 1.378, np.nan], "IDC"), still)


@pytest.mark.parametrize("tool", ["Grapple", "SEIS", "WTS", "HP3"])
def test_the_angle_of_a_hanging_tool_is_the_tilt_of_the_lander(tool: str) -> None:
    # Table 12: th_enc 1.5014; asin(0.997594) = 1.50141 at any posture
    q = np.random.default_rng(0).uniform(LOWER, UPPER, (20, 4))
    np.testing.assert_allclose(tool_pose(ARM, q, tool)[:, 3], 1.5014, atol=5e-5)


@pytest.mark.parametrize(("tx", "tz", "distance"), [(0.0, 0.005, 0.299), (-0.02, 0.0, 0.279)])
def test_the_via_point_of_the_system_status_is_where_the_grapple_is(
    tx: float, tz: float, distance: float
) -> None:
    # SIS 5.1.1 via.q and via.x; ida.md 4.4 gives the family of grapples that fits them.
    own = {"x_grapple_attach": (tx, -0.0383, tz, 0.0), "dist_grapple": (0.0, 0.0, distance)}
    arm = DeploymentArm.of(Parameters.over_printed({"RA_ARM_PARAMS": own}))
    pose = tool_pose(arm, [-0.829, -1.640, 0.230, 0.0], "Grapple")
    np.testing.assert_allclose(pose, [0.210, 0.036, -1.580, 1.501], atol=1e-3)


def test_the_potentiometers_of_table_12_by_inverse_kinematics() -> None:
    # ida.md 4.14: x_pot of Table 12 with the attach family at tx = 0 is q = (-0.1203, -0.503, 1.5311, 0).
    arm = DeploymentArm.of(Parameters.printed(), fitted=True)
    q = inverse(arm, [1.3585, 0.0026, 0.5034, 1.5014], "Grapple")
    np.testing.assert_allclose(q, [-0.1203, -0.503, 1.5311, 0.0], atol=2e-4)


def test_the_rows_of_table_12_are_not_of_one_moment() -> None:
    # ida.md 4.6: the printed encoders reach 0.48 m out at -163 degrees; x_enc is 1.3633 m ahead.
    q = [-2.84, -1.9231, 2.3173, -0.0007]
    assert A1_M + levers(ARM, q, "Wrist")[0][0] == pytest.approx(0.48, abs=0.006)
    assert tool_pose(ARM, q, "Grapple")[0] < 1.3633 - 1.5


# --- by hand ---


def test_the_straight_arm_reaches_the_sum_of_its_links() -> None:
    pose = tool_pose(ARM, [0.0, 0.0, 0.0, 0.0], "Wrist")
    np.testing.assert_allclose(pose, [A1_M + A2_M + A3_M, -D2_M, D1_M, -np.pi / 2], atol=1e-12)


def test_a_negative_elevation_lifts_the_arm() -> None:
    pose = tool_pose(ARM, [0.0, -np.pi / 2, 0.0, 0.0], "Wrist")
    np.testing.assert_allclose(pose, [A1_M, -D2_M, D1_M - A2_M - A3_M, -np.pi], atol=1e-12)  # z points down


def test_a_blade_that_points_down_hangs_below_the_wrist() -> None:
    # Arm level, wrist turned by 180 degrees: its z axis, along which the blade is, points down.
    # SIS 5.1.3.1: x_blade_1 = [-0.015010 0 0.105240 0].
    pose = tool_pose(ARM, [0.0, 0.0, 0.0, np.pi], "Blade 1")
    np.testing.assert_allclose(
        pose, [A1_M + A2_M + A3_M + 0.01501, -D2_M, D1_M + 0.105240002, np.pi / 2], atol=1e-9
    )


def test_a_grapple_hangs_below_its_attach_point_along_gravity() -> None:
    q = [0.3, -0.5, 1.2, 0.4]
    below = tool_pose(ARM, q, "Grapple")[:3] - tool_pose(ARM, q, "Grapple-Attach")[:3]
    np.testing.assert_allclose(below, 0.299 * np.array([0.046825, -0.051123, 0.997594]), atol=1e-6)


# --- forward and inverse ---


@given(q=ANGLES)
def test_rigid_tools_are_where_the_matrices_put_them(q: tuple[float, ...]) -> None:
    for tool, offset in (("Scoop", LOST["x_scoop"]), ("Wrist", (0.0, 0.0, 0.0, 0.0))):
        pose, expected = tool_pose(ARM, q, tool), by_matrices(q, offset)
        np.testing.assert_allclose(pose[:3], expected[:3], atol=1e-12)
        assert np.sin(pose[3]) == pytest.approx(np.sin(expected[3]), abs=1e-12)


@given(q=ANGLES)
def test_the_camera_is_where_the_matrices_put_it_with_the_wrist_at_zero(q: tuple[float, ...]) -> None:
    x_rac = (-0.560000002, -0.055, -0.150000006, 1.570799947)
    pose, expected = tool_pose(ARM, q, "IDC"), by_matrices((*q[:3], 0.0), x_rac)
    np.testing.assert_allclose(pose[:3], expected[:3], atol=1e-12)
    assert np.sin(pose[3]) == pytest.approx(np.sin(expected[3]), abs=1e-12)


@pytest.mark.parametrize("tool", KINDS)
@given(q=ANGLES)
def test_one_branch_of_the_inverse_is_the_angles_that_made_the_pose(tool: str, q: tuple[float, ...]) -> None:
    pose = tool_pose(ARM, q, tool)
    branches = [
        solve(ARM, pose, tool, elbow, shoulder=shoulder, wrist=q[3])
        for elbow, shoulder in itertools.product(("up", "down"), ("front", "back"))
    ]
    nearest = min(np.nan_to_num(np.abs(branch.q - q), nan=9.0).max() for branch in branches)
    assert nearest < 1e-5  # where the arm is stretched or above its shoulder, roots of rounding


@pytest.mark.parametrize("tool", KINDS)
@pytest.mark.parametrize("elbow", ["up", "down"])
@pytest.mark.parametrize("shoulder", ["front", "back"])
def test_what_the_inverse_finds_takes_the_tool_there(tool: str, elbow: str, shoulder: str) -> None:
    q = np.random.default_rng(3).uniform(LOWER, UPPER, (2000, 4))
    poses = tool_pose(ARM, q, tool)
    found = inverse(ARM, poses, tool, elbow, shoulder=shoulder)  # type: ignore[arg-type]
    good = np.isfinite(found).all(axis=-1)
    assert good.sum() > 20
    assert ARM.chain.within_limits(found[good], -1e-8).all()
    reached = tool_pose(ARM, found[good], tool)
    np.testing.assert_allclose(reached[:, :3], poses[good, :3], atol=1e-7)
    if tool == "Scoop":
        np.testing.assert_allclose(np.sin(reached[:, 3] - poses[good, 3]), 0.0, atol=1e-7)


def test_the_elbow_is_up_or_down() -> None:
    pose = tool_pose(ARM, [0.0, -0.6, 0.9, 0.5], "Wrist")
    up, down = (solve(ARM, pose, "Wrist", elbow).q for elbow in ("up", "down"))
    np.testing.assert_allclose(up, [0.0, -0.6, 0.9, 0.5], atol=1e-12)
    elbow_up, elbow_down = (joint_poses(ARM, q)[2, 2, 3] for q in (up, down))
    assert elbow_up < elbow_down  # z points down


def test_out_of_reach_and_out_of_limits_are_reported_separately() -> None:
    behind = tool_pose(ARM, [1.7, -0.6, 0.9, 0.5], "Wrist")  # joint 1 ends at 1.4585
    poses = [[5.0, 0.0, 0.0, 0.0], behind, [0.05, 0.0, 0.0, 0.0], [np.nan, 0.0, 0.0, 0.0]]
    solution = solve(ARM, poses, "Wrist")
    assert solution.in_reach.tolist() == [False, True, False, False]
    assert solution.in_limits[1].tolist() == [False, True, True, True]
    np.testing.assert_allclose(solution.q[1] % (2 * np.pi), np.array([1.7, -0.6, 0.9, 0.5]) % (2 * np.pi))
    assert solution.feasible.tolist() == [False] * 4
    assert np.isnan(inverse(ARM, poses, "Wrist")).all()


def test_the_free_wrist_is_the_caller_s() -> None:
    pose = tool_pose(ARM, [-0.3, -0.5, 1.5, 0.0], "Grapple")
    np.testing.assert_allclose(inverse(ARM, pose, "Grapple"), [-0.3, -0.5, 1.5, 0.0], atol=1e-9)
    turned = inverse(ARM, pose, "Grapple", wrist=[0.0, 1.0, 2.0])
    assert turned.shape == (3, 4)
    assert turned[:, 3].tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_allclose(tool_pose(ARM, turned, "Grapple"), [pose] * 3, atol=1e-9)


def test_levers_are_those_of_appendix_d() -> None:
    # ida.md 4.13: S3 = tx s123 - tz c123, S2 = S3 + a2 s12, S1 = S2 + a1 s1; C likewise, for the scoop.
    q = np.array([0.4, -0.5, 1.1, 0.7])
    (tx, _, tz, _), (s1, s12, s123) = LOST["x_scoop"], np.sin(np.cumsum(q[1:]))
    c1, c12, c123 = np.cos(np.cumsum(q[1:]))
    S3, C3 = tx * s123 - tz * c123, tx * c123 + tz * s123
    out, down = levers(ARM, q, "Scoop")
    np.testing.assert_allclose(down, [S3 + A3_M * s12 + A2_M * s1, S3 + A3_M * s12, S3], atol=1e-12)
    np.testing.assert_allclose(out, [C3 + A3_M * c12 + A2_M * c1, C3 + A3_M * c12, C3], atol=1e-12)


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (0,)])
def test_many_samples_have_their_axes_in_front(leading: tuple[int, ...]) -> None:
    q = np.full((*leading, 4), 0.3)
    for tool in KINDS:
        assert tool_pose(ARM, q, tool).shape == (*leading, 4)
        assert inverse(ARM, tool_pose(ARM, q, tool), tool).shape == (*leading, 4)
    assert levers(ARM, q, "Scoop")[0].shape == (*leading, 3)
    assert joint_poses(ARM, q).shape == (*leading, 5, 4, 4)


def test_a_branch_that_is_not_known_is_refused() -> None:
    with pytest.raises(GeometryError, match="'up' or 'down'"):
        inverse(ARM, [1.0, 0.0, 0.0, 0.0], "Wrist", "left")  # type: ignore[arg-type]


# --- tools and parameters ---


def test_tools_have_the_codes_and_kinds_of_the_robot_s_file() -> None:
    constants = robots.load("ida").constants
    assert list(TOOLS) == constants["tools"]  # Table 14
    for code, name in enumerate(constants["tools"]):
        tool = ARM.tool(code)
        assert (tool.name, tool.code) == (name, code)
        assert (tool.kind == "hanging") == (name in constants["hanging_tools"])
    assert ARM.tool("IDC").kind == "camera"


@pytest.mark.parametrize(
    ("name", "code"), [("RA_GRAPPLE", 5), ("blade_1", 0), ("rac", 3), ("grapple attach", 6)]
)
def test_other_spellings_of_a_tool_are_understood(name: str, code: int) -> None:
    assert ARM.tool(name).code == code


@pytest.mark.parametrize(("name", "hint"), [("scop", "'Scoop'"), (10, "0 to 9"), (-1, "0 to 9")])
def test_a_tool_that_is_not_there_is_refused(name: str | int, hint: str) -> None:
    with pytest.raises(TransectError, match=hint):
        ARM.tool(name)


def test_payloads_have_the_masses_of_the_deflection_model() -> None:
    # SIS 5.1.3.23
    assert [ARM.tool(name).mass for name in ("SEIS", "WTS", "HP3")] == [8.9, 7.3, 2.7]
    assert ARM.tool("Grapple").mass is None


def test_a_tool_whose_place_is_lost_names_the_parameter() -> None:
    printed = DeploymentArm.of(Parameters.printed())
    for tool, parameter in (
        ("Scoop", "x_scoop"),
        ("Grapple", "x_grapple_attach"),
        ("SEIS", "x_grapple_attach"),
    ):
        assert not printed.has_tool(tool)
        with pytest.raises(MissingParameterError, match=f"lacks {parameter}.*\n.*\n.*Parameter Set"):
            tool_pose(printed, np.zeros(4), tool)
    with pytest.raises(MissingParameterError, match="dist_seis"):
        DeploymentArm.of(Parameters.printed(), fitted=True).tool("SEIS")
    assert printed.has_tool("IDC")
    assert printed.has_tool("Wrist")


def test_a_fitted_grapple_says_that_it_is_invented() -> None:
    fitted = DeploymentArm.of(Parameters.printed(), fitted=True)
    assert fitted.tool("Grapple").invented
    assert not fitted.tool("Blade 1").invented
    assert not ARM.tool("Grapple").invented


def test_joints_have_the_limits_of_the_sis() -> None:
    assert ARM.chain.lower.tolist() == LOWER.tolist()
    assert ARM.chain.upper.tolist() == UPPER.tolist()


def test_a_base_that_is_turned_turns_gravity() -> None:
    # frame.q has its scalar first: a quarter turn about z. Gravity along Payload's x is along -y of the base.
    half = np.sqrt(0.5)
    turned = {
        "RA_LANDER_TO_RA": {"frame.x": (0.0, 0.0, 0.0), "frame.q": (half, 0.0, 0.0, half)},
        "RA_GRAVITY": {"gravity_params.grav_vect": (2.0, 0.0, 0.0)},
    }
    arm = DeploymentArm.of(Parameters.over_printed(turned))
    np.testing.assert_allclose(arm.down, [0.0, -1.0, 0.0], atol=1e-12)


def test_parameters_of_another_kind_of_arm_are_refused() -> None:
    bad = {"RA_ARM_PARAMS": {"dh.alpha": (1.0, 0.0, 0.0, 1.5708)}}
    with pytest.raises(GeometryError, match="three parallel pitch joints"):
        DeploymentArm.of(Parameters.over_printed(bad))
    weightless = {"RA_GRAVITY": {"gravity_params.grav_vect": (0.0, 0.0, 0.0)}}
    with pytest.raises(GeometryError, match="no direction"):
        assert DeploymentArm.of(Parameters.over_printed(weightless)).down is None
