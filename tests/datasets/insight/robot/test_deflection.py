"""The sag of the arm: the SIS's own numbers, a beam worked by hand, and plain statics row by row."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.datasets.insight.robot.arm import DeploymentArm
from transect.datasets.insight.robot.kinematics import tool_pose
from transect.datasets.insight.robot.parameters import Parameters
from transect.datasets.insight.robot.statics import (
    LinkProperties,
    deflection,
    target_pose,
)
from transect.geometry import se3

PRINTED = Parameters.printed()
ARM = DeploymentArm.of(PRINTED, fitted=True)
TABLE_12 = (-0.1203, -0.503, 1.5311, 0.0)
"""Joint angles of the row of Table 12, by inverse kinematics of x_pot (spec 4.14)."""
LINKS = ("RA_DEFL_LINK_1", "RA_DEFL_LINK_2", "RA_DEFL_LINK_3_UNSTOWED", "RA_DEFL_LINK_4_STOWED")
"""Those that the SIS prints; the wrist's unstowed set is lost."""
ANGLES = st.tuples(st.floats(-3.5, 1.4), st.floats(-2.3, 1.3), st.floats(-0.4, 4.0), st.floats(-0.1, 3.5))


def test_the_grapple_sags_as_in_table_12():
    # SIS Table 12: x_pot = 1.3585 0.0026 0.5034, x_pot_defl = 1.3571 0.0016 0.5068: -1.4, -1.0, +3.4 mm
    sag = deflection(ARM, TABLE_12, "Grapple")
    np.testing.assert_allclose(sag.displacement, [-1.4e-3, -1.0e-3, 3.4e-3], atol=0.5e-3)
    np.testing.assert_allclose(sag.pose[:3], [1.3571, 0.0016, 0.5068], atol=1e-3)
    # spec 4.14: the model's own result, worked out apart from this code
    np.testing.assert_allclose(sag.displacement, [-1.3e-3, -1.3e-3, 3.3e-3], atol=0.05e-3)


def test_a_hanging_tool_keeps_its_angle():
    # SIS Table 12: th_pot and th_pot_defl are both 1.5014
    assert deflection(ARM, TABLE_12, "Grapple").pose[3] == pytest.approx(1.5014, abs=5e-5)


def test_the_target_of_the_system_status_is_the_deflected_pose():
    # SIS 5.1.1: target.q = 0.026 -0.389 1.378 0.125, target.x = 0.960 0.218 -0.098 0.992; the tool is the IDC
    target = target_pose(ARM, [0.026, -0.389, 1.378, 0.125], "IDC")
    assert target[3] == pytest.approx(0.992, abs=5e-4)
    np.testing.assert_allclose(target[:3], [0.960, 0.218, -0.098], atol=7e-3)  # spec 4.5: 6/2/5 mm are left
    np.testing.assert_allclose(target[:3], [0.9662, 0.2202, -0.0932], atol=1e-4)  # spec 4.5, with sag
    assert tool_pose(ARM, [0.026, -0.389, 1.378, 0.125], "IDC")[3] == pytest.approx(0.9890, abs=5e-5)


@pytest.mark.parametrize("move", ["abs", "rel", "tool", "jnt_abs", "jnt_rel"])
@pytest.mark.parametrize("enabled", [0, 1])
def test_a_target_is_deflected_only_where_that_is_enabled(move, enabled):
    sets = {"RA_DEFL_GENERAL": {f"defl_params.enable_{move}": enabled}}
    arm = DeploymentArm.of(Parameters.over_printed(sets))
    stiff = tool_pose(arm, TABLE_12, "Wrist")
    sagging = deflection(arm, TABLE_12, "Wrist").pose
    np.testing.assert_array_equal(
        target_pose(arm, TABLE_12, "Wrist", move=move), sagging if enabled else stiff
    )
    assert sagging[2] > stiff[2] + 1e-3


def beam(bending: float) -> LinkProperties:
    """Only the upper arm bends (length / EI = `bending`); one kilogram, at the wrist; gravity down."""
    length, give = 0.976664007, np.zeros((6, 6, 6))
    give[2, 1, 1] = bending * length**2 / 3
    give[2, 1, 5] = give[2, 5, 1] = bending * length / 2
    give[2, 5, 5] = bending
    mass = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    nothing: Any = np.zeros(3)
    return LinkProperties(mass, np.zeros((6, 3)), give, np.array([0.0, 0.0, 3.711]), 0.0, nothing, ())


def test_a_level_cantilever_sags_as_the_textbook_says():
    # P at b = a2 beyond the end of a beam of length L: end sinks by P (L^3/3 + b L^2/2) / EI and turns by
    # P (L^2/2 + b L) / EI; the wrist, on the straight forearm, sinks by the one plus b times the other.
    bending, length, beyond = 1e-4, 0.976664007, 0.857989013
    ei, load = length / bending, 3.711
    sinks = load * (length**3 / 3 + beyond * length**2 / 2) / ei
    turns = load * (length**2 / 2 + beyond * length) / ei
    result = deflection(ARM, [0.3, 0.0, 0.0, 0.0], "Wrist", beam(bending))
    np.testing.assert_allclose(result.displacement, [0.0, 0.0, sinks + beyond * turns], rtol=1e-9, atol=1e-12)
    assert result.pose[3] - tool_pose(ARM, [0.3, 0.0, 0.0, 0.0], "Wrist")[3] == pytest.approx(turns)


def matrix(link: str, key: str) -> np.ndarray:
    if link == "RA_DEFL_LINK_0":  # lost but for its rotation by a moment, SIS 5.1.3.21
        return 8.85e-8 * np.eye(3) if key == "wCm" else np.zeros((3, 3))
    return PRINTED.numbers(link, key)


def masses(q: tuple[float, ...], payload: float) -> list[tuple[np.ndarray, float, int]]:
    """Where each mass is, how much, on which link; centres are in frame i - 1 turned by the joint."""
    poses, found = ARM.chain.poses(q), []
    for i, link in enumerate(LINKS):
        c, s = np.cos(q[i]), np.sin(q[i])
        turn = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        centre = np.array([*(PRINTED.number(link, f"cm_{x}") for x in "xyz"), 1.0])
        found.append(((poses[i] @ turn @ centre)[:3], PRINTED.number(link, "mass"), i + 1))
    attach = (poses[4] @ [*ARM.tool("Grapple-Attach").offset[:3], 1.0])[:3]
    return [*found, (attach, payload, 5)]


def plain_statics(q: tuple[float, ...], payload: float) -> tuple[np.ndarray, np.ndarray]:
    """Displacement and rotation (5, 3) of each link frame in ArmBase: loads one by one, no vectors."""
    gravity = np.array([0.046825, -0.051123, 0.997594])
    gravity *= 3.711 / np.linalg.norm(gravity)
    v, w = np.zeros((5, 3)), np.zeros((5, 3))
    for i, link in enumerate(("RA_DEFL_LINK_0", *LINKS)):
        rotation, origin = ARM.chain.poses(q)[i, :3, :3], ARM.chain.poses(q)[i, :3, 3]
        for place, mass, owner in masses(q, payload):
            if owner >= i:
                force = rotation.T @ gravity * mass
                moment = rotation.T @ np.cross(place - origin, gravity * mass)
                v[i] += 1.092301 * rotation @ (matrix(link, "vCf") @ force + matrix(link, "vCm") @ moment)
                w[i] += 1.092301 * rotation @ (matrix(link, "wCf") @ force + matrix(link, "wCm") @ moment)
    return v, w


@given(
    q=ANGLES, carried=st.sampled_from([("OK-To-Open", 0.0), ("SEIS-Grappled", 8.9), ("HP3-Grappled", 2.7)])
)
def test_the_sag_is_that_of_plain_statics(q, carried):
    v, w = plain_statics(q, carried[1])
    origins = ARM.chain.poses(q)[:, :3, 3]
    expected = sum(v[i] + np.cross(w[i], origins[4] - origins[i]) for i in range(5))
    result = deflection(ARM, q, "Wrist", LinkProperties.of(ARM, carried[0]))
    np.testing.assert_allclose(result.displacement, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.rotation, w.sum(axis=0), rtol=0, atol=1e-12)


@given(q=ANGLES)
def test_first_order_is_enough(q):
    # the same small motions of the frames, composed as finite transforms from the base to the wrist
    v, w = plain_statics(q, 0.0)
    poses, bent = ARM.chain.poses(q), np.eye(4)
    for i in range(5):
        step, back = np.linalg.inv(poses[max(i - 1, 0)]) @ poses[i], poses[i, :3, :3].T
        bent = bent @ step @ se3.exp(np.concatenate([back @ v[i], back @ w[i]]))
    ours = deflection(ARM, q, "Wrist").pose[:3]
    np.testing.assert_allclose(ours, bent[:3, 3], rtol=0, atol=5e-5)


def test_a_payload_adds_in_proportion_to_its_mass():
    empty, seis = LinkProperties.of(ARM), LinkProperties.of(ARM, "SEIS-Grappled")
    none, once, twice = (
        deflection(ARM, TABLE_12, "Grapple", links).displacement
        for links in (empty, seis, replace(seis, payload=2 * 8.9))
    )
    np.testing.assert_allclose(twice - none, 2 * (once - none), rtol=1e-9)
    assert once[2] > 2 * none[2]
    assert deflection(ARM, TABLE_12, "Grapple").substitutes == empty.substitutes


def test_the_wrist_does_not_bend_the_camera_which_sits_on_the_forearm():
    links = LinkProperties.of(ARM)
    soft = links.compliance.copy()
    soft[4] *= 1e3
    softer = replace(links, compliance=soft)
    q = [0.026, -0.389, 1.378, 0.125]
    np.testing.assert_array_equal(
        deflection(ARM, q, "IDC", links).pose, deflection(ARM, q, "IDC", softer).pose
    )
    assert (deflection(ARM, q, "Blade 1", softer).pose != deflection(ARM, q, "Blade 1", links).pose).any()


def test_angles_of_any_shape_give_poses_of_that_shape():
    q = np.broadcast_to(TABLE_12, (2, 3, 4))
    result = deflection(ARM, q, "Blade 1")
    assert result.pose.shape == (2, 3, 4)
    np.testing.assert_allclose(result.pose[1, 2], deflection(ARM, TABLE_12, "Blade 1").pose, atol=1e-15)
