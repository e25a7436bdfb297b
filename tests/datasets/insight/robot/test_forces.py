"""Forces at the tool, from joint moments made by virtual work on a forward kinematics of the test's own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.datasets.insight.robot.arm import DeploymentArm
from transect.datasets.insight.robot.parameters import Parameters
from transect.datasets.insight.robot.statics import (
    INVALID_FORCE,
    LinkProperties,
    end_effector_forces,
    gravity_moments,
    moments,
)

PRINTED = Parameters.printed()
ARM = DeploymentArm.of(PRINTED, fitted=True)
BLADE_TOOL = (-0.01501, 0.0, 0.105240002)
"""SIS 5.1.3.1, x_blade_1."""
BENT = np.array([0.4, -0.6, 1.3, 0.5])
A, D, ALPHA = (0.029609, 0.976664007, 0.857989013, 0.0), (-0.056456, -0.140837997, 0.0, 0.0), (1, 0, 0, 1)
"""SIS 5.1.3.1: dh.a, dh.d and dh.alpha, these in right angles."""
ANGLES = st.tuples(st.floats(-3.5, 1.4), st.floats(-1.4, 1.3), st.floats(0.2, 2.5), st.floats(0.1, 2.5))
FORCES = st.tuples(*[st.floats(-50.0, 50.0)] * 3)


def turned(q: float) -> np.ndarray:
    c, s = np.cos(q), np.sin(q)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def link(i: int) -> np.ndarray:
    """Tz(d) Tx(a) Rx(alpha)."""
    c, s = (0.0, 1.0) if ALPHA[i] else (1.0, 0.0)
    return np.array([[1, 0, 0, A[i]], [0, c, -s, 0], [0, s, c, D[i]], [0, 0, 0, 1]])


def place(q: np.ndarray, point: tuple[float, ...]) -> np.ndarray:
    """A point of the wrist frame in ArmBase."""
    T = np.eye(4)
    for i in range(4):
        T = T @ turned(q[i]) @ link(i)
    return (T @ [*point, 1.0])[:3]


def virtual_work(q: np.ndarray, point: tuple[float, ...], force: np.ndarray) -> np.ndarray:
    """What each joint must do for a force: F . dp/dq, by central differences."""
    step = 1e-6 * np.eye(4)
    return np.array([force @ (place(q + h, point) - place(q - h, point)) / 2e-6 for h in step])


def cylindrical(q: np.ndarray, radial: float, transverse: float, vertical: float) -> np.ndarray:
    c, s = np.cos(q[0]), np.sin(q[0])
    return np.array([c * radial - s * transverse, s * radial + c * transverse, vertical])


@given(angles=ANGLES, force=FORCES)
def test_forces_are_recovered_from_the_moments_of_virtual_work(angles, force):
    q = np.array(angles)
    moment = virtual_work(q, BLADE_TOOL, cylindrical(q, *force))
    found = end_effector_forces(ARM, q, moment, "Blade 1", sign="geometric")
    np.testing.assert_allclose(found.values, force, rtol=0, atol=1e-4)
    assert found.at_tool


@pytest.mark.parametrize("off", [1, 2, 3])
def test_two_of_the_three_pitch_joints_are_enough(off):
    moment = virtual_work(BENT, BLADE_TOOL, cylindrical(BENT, 12.0, -3.0, 7.0))
    moment[off] = 1e6  # the torque of a motor without power is ignored
    power = np.ones(4)
    power[off] = 0.0
    found = end_effector_forces(ARM, BENT, moment, "Blade 1", power, sign="geometric")
    np.testing.assert_allclose(found.values, [12.0, -3.0, 7.0], atol=1e-4)


def test_the_printed_sign_differs_by_the_lever_of_the_radial_force():
    moment = virtual_work(BENT, BLADE_TOOL, cylindrical(BENT, 12.0, -3.0, 7.0))
    c = np.cos(np.cumsum(BENT[1:]))
    reach = A[0] + A[1] * c[0] + A[2] * c[1] + BLADE_TOOL[0] * c[2] + BLADE_TOOL[2] * np.sin(BENT[1:].sum())
    found = end_effector_forces(ARM, BENT, moment, "Blade 1", sign="sis").values
    np.testing.assert_allclose(found[[0, 2]], [12.0, 7.0], atol=1e-4)
    assert found[1] == pytest.approx(-3.0 + 2 * 12.0 * D[1] / reach, abs=1e-4)


def test_a_force_straight_down_worked_by_hand():
    # level arm, wrist bent so that the tool hangs straight down from it (phi = pi): the blade is 0.01501 m
    # further out than the wrist, so 10 N down load joint 4 with 0.1501 N m, joint 3 with 8.7300, joint 2
    # with 18.4966 N m, and joint 1 with nothing
    q = np.array([0.0, 0.0, 0.0, np.pi])
    found = end_effector_forces(ARM, q, [0.0, 18.4966, 8.7300, 0.1501], "Blade 1", sign="geometric")
    np.testing.assert_allclose(found.values, [0.0, 0.0, 10.0], atol=2e-3)


@pytest.mark.parametrize("power", [(1, 1, 0, 0), (1, 0, 0, 1), (1, 0, 0, 0), (0, 0, 0, 0)])
def test_fewer_than_two_pitch_joints_give_no_forces(power):
    none = end_effector_forces(ARM, BENT, np.ones(4), "Blade 1", power)
    assert np.isnan(none.values).all()
    archived = end_effector_forces(ARM, BENT, np.ones(4), "Blade 1", power, invalid=INVALID_FORCE)
    np.testing.assert_array_equal(archived.values, -99999.0)


def test_a_straight_arm_is_singular():
    # joints 2 and 3 alone, arm straight out and the wrist frame's origin the tool: both levers point one way
    q, power = [0.0, -0.3, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]
    assert np.isnan(end_effector_forces(ARM, q, np.ones(4), "Wrist", power).values).all()


def test_each_row_is_judged_alone():
    q, moment = np.tile(BENT, (3, 1)), np.ones((3, 4))
    moment[1, 2] = np.nan
    power = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 0]])
    found = end_effector_forces(ARM, q, moment, "Blade 1", power).values
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [False, True, True])


@pytest.mark.parametrize(("tool", "rigid"), [("Grapple", False), ("IDC", False), ("Grapple-Attach", True)])
def test_a_tool_that_is_not_rigid_on_the_wrist_is_flagged(tool, rigid):
    assert end_effector_forces(ARM, BENT, np.ones(4), tool).at_tool is rigid


def test_a_hanging_tool_pulls_at_its_attach_point():
    attach = tuple(ARM.tool("Grapple-Attach").offset[:3])
    moment = virtual_work(BENT, attach, cylindrical(BENT, 1.0, 2.0, 30.0))
    found = end_effector_forces(ARM, BENT, moment, "Grapple", sign="geometric")
    np.testing.assert_allclose(found.values, [1.0, 2.0, 30.0], atol=1e-4)


def test_joint_4_says_nothing_about_a_force_on_the_camera():
    moment = virtual_work(
        np.array([*BENT[:3], 0.0]), (-0.56, -0.055, -0.15), cylindrical(BENT, 5.0, 1.0, -4.0)
    )
    moment[3] = 99.0
    found = end_effector_forces(ARM, BENT, moment, "IDC", sign="geometric")
    np.testing.assert_allclose(found.values, [5.0, 1.0, -4.0], atol=1e-3)


LINKS = ("RA_DEFL_LINK_1", "RA_DEFL_LINK_2", "RA_DEFL_LINK_3_UNSTOWED", "RA_DEFL_LINK_4_STOWED")


def weights(q: np.ndarray) -> np.ndarray:
    """Moments of the links' weights by virtual work; centres of mass after the turn, before d, a, alpha."""
    gravity = 3.711 * np.array([0.046825, -0.051123, 0.997594])  # SIS 5.1.3.19
    total = np.zeros(4)
    for i, name in enumerate(LINKS):
        centre = tuple(PRINTED.number(name, f"cm_{x}") for x in "xyz")
        step = 1e-6 * np.eye(4)
        way = [(proximal(q + h, centre, i) - proximal(q - h, centre, i)) / 2e-6 for h in step]
        total += PRINTED.number(name, "mass") * np.array(way) @ gravity
    return total


def proximal(q: np.ndarray, centre: tuple[float, ...], i: int) -> np.ndarray:
    T = np.eye(4)
    for k in range(i):
        T = T @ turned(q[k]) @ link(k)
    return (T @ turned(q[i]) @ [*centre, 1.0])[:3]


@given(angles=ANGLES)
def test_the_moments_of_gravity_are_those_of_virtual_work(angles):
    q = np.array(angles)
    np.testing.assert_allclose(gravity_moments(ARM, q), weights(q), rtol=0, atol=1e-5)


def test_motors_that_hold_the_arm_up_leave_no_force():
    tau = -weights(BENT)
    found = end_effector_forces(ARM, BENT, moments(ARM, BENT, tau), "Blade 1", sign="geometric")
    np.testing.assert_allclose(found.values, 0.0, atol=1e-3)


def test_a_payload_is_a_force_of_the_tool_unless_it_counts_as_weight():
    links = LinkProperties.of(ARM, "HP3-Grappled")
    attach = tuple(ARM.tool("Grapple-Attach").offset[:3])
    tau = -weights(BENT) - virtual_work(BENT, attach, 2.7 * 3.711 * ARM.down)  # SIS 5.1.3.20
    lifted = moments(ARM, BENT, tau, links)
    found = end_effector_forces(ARM, BENT, lifted, "Grapple", sign="geometric").values
    assert found[2] == pytest.approx(-2.7 * 3.711 * 0.997594, abs=1e-3)
    balanced = moments(ARM, BENT, tau, links, with_payload=True)
    np.testing.assert_allclose(balanced, 0.0, atol=1e-5)
