"""The simulated arm: shape, loads, motors, sensors and flight software.

Numbers of the SIS are cited. Functions of `robot/` are called only as an independent implementation to
compare the simulator with, which does not call them.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from transect.datasets.insight.robot.arm import DeploymentArm as PrintedArm
from transect.datasets.insight.robot.codes import ToolCode
from transect.datasets.insight.robot.kinematics import tool_pose
from transect.datasets.insight.robot.parameters import Parameters
from transect.datasets.insight.robot.statics import LinkProperties as PrintedLinks
from transect.datasets.insight.robot.statics import deflection, end_effector_forces, moments
from transect.datasets.insight.world.arm.flight import FlightSoftware, SensorModel
from transect.datasets.insight.world.arm.model import (
    ElasticArm,
    ElasticLinks,
    ExternalLoad,
    PayloadSupport,
    PressedDepths,
    SoilPatch,
    find_equilibrium,
    holding_torques,
    solve_contact,
)
from transect.datasets.insight.world.arm.motion import MOTION, MotionLimits, MotorThermalModel, move
from transect.datasets.insight.world.site import parameter_sets

SETS = parameter_sets()
ARM = ElasticArm.of(SETS)
FLIGHT = FlightSoftware.of(SETS)
PRINTED = PrintedArm.of(Parameters.over_printed(SETS))
TOOL_SCOOP, TOOL_GRAPPLE, TOOL_ATTACH = ToolCode.SCOOP, ToolCode.GRAPPLE, ToolCode.GRAPPLE_ATTACH
TWIST_ERROR_M = 1e-5
"""dh.alpha is printed in single precision, 4 urad from the right angle that `robot/` assumes."""

angles = st.tuples(
    st.floats(-3.4, 1.4), st.floats(-2.2, 1.2), st.floats(-0.3, 3.9), st.floats(-0.1, 3.4)
).map(lambda q: np.array([q]))


def free(rows: int = 1, tool: int = TOOL_ATTACH) -> ExternalLoad:
    """No external force, only the weight of the arm."""
    return ExternalLoad(np.zeros((rows, 3)), ARM.tools[tool])


def wrapped(angle: np.ndarray) -> np.ndarray:
    return (angle + np.pi) % (2 * np.pi) - np.pi


# Poses


def test_the_grapple_hangs_where_the_sis_prints_its_via_point() -> None:
    q = np.array([[-0.829, -1.640, 0.230, 0.000]])  # via.q, SIS 5.1.1
    frames = ARM.forward_frames(q)
    grapple = ARM.tools[TOOL_GRAPPLE]
    position, th = ARM.tool_position(frames, grapple)[0], ARM.elevation(frames, q, grapple)[0]
    assert np.abs(position - [0.210, 0.036, -1.580]).max() < 0.001  # via.x
    assert th == pytest.approx(1.501, abs=5e-4)


def test_the_arm_sags_as_much_as_table_12_shows() -> None:
    q = np.array([[-0.1203, -0.503, 1.5311, 0.0]])  # fits x_pot of Table 12
    links = ElasticLinks.of(SETS, 2)
    bent = ARM.tool_position(find_equilibrium(ARM, links, q, free()).frames, ARM.tools[TOOL_GRAPPLE])
    sag = (bent - ARM.tool_position(ARM.forward_frames(q), ARM.tools[TOOL_GRAPPLE]))[0]
    # Printed: x_pot_defl - x_pot etc. The masses that are missing in the SIS are invented: 1.5 mm.
    assert np.abs(sag - [-0.0014, -0.0010, 0.0034]).max() < 0.0015


@given(angles, st.sampled_from(range(10)), st.sampled_from([1, 2, 3, 4, 5]))
def test_flight_software_and_robot_model_agree_on_poses(q: np.ndarray, tool: int, phase: int) -> None:
    rigid, sagging = FLIGHT.poses(q, tool, phase)
    other = tool_pose(PRINTED, q, tool), deflection(PRINTED, q, tool, PrintedLinks.of(PRINTED, phase)).pose
    for ours, expected in zip((rigid, sagging), other, strict=True):
        assert np.abs(ours[:, :3] - expected[:, :3]).max() < TWIST_ERROR_M
        assert np.abs(wrapped(ours[:, 3] - expected[:, 3])).max() < TWIST_ERROR_M


def test_error_of_the_first_order_sag_is_quadratic() -> None:
    q = np.random.default_rng(2).uniform([-3.4, -2.2, -0.3, -0.1], [1.4, 1.2, 3.9, 3.4], (100, 4))
    load = ExternalLoad(np.tile(8.9 * ARM.gravity * ARM.down, (100, 1)), ARM.tools[TOOL_ATTACH])  # seis_mass
    off: list[float] = []
    for scale in (1.0, 0.5):
        general = {**SETS["RA_DEFL_GENERAL"], "compliance_scale": scale}
        sets = {**SETS, "RA_DEFL_GENERAL": general}
        bent = find_equilibrium(ARM, ElasticLinks.of(sets, 3), q, load)
        expected = FlightSoftware.of(sets).poses(q, TOOL_SCOOP, 3)[1][:, :3]
        off.append(float(np.linalg.norm(ARM.tool_position(bent.frames, ARM.tools[TOOL_SCOOP]) - expected)))
    assert off[0] < 100**0.5 * 0.002  # m, rms: SEIS bends the arm by centimetres
    assert off[1] / off[0] == pytest.approx(0.25, abs=0.02)


def test_elastic_twist_about_a_joint_axis_equals_joint_rotation() -> None:
    compliance = np.zeros((5, 6, 6))
    compliance[2, 5, 5] = 2e-3  # rad/(N m) about the axis of the elbow, distal end of the upper arm
    links = ElasticLinks(np.array([0.0, 0.0, 0.0, 0.0, 2.0]), np.zeros((5, 3)), compliance)
    q = np.array([[0.4, -0.6, 1.1, 0.3]])
    bent = find_equilibrium(ARM, links, q, free())
    turned = q.copy()
    turned[0, 2] += bent.deformation[2, 0, 5]
    assert 0.005 < bent.deformation[2, 0, 5] < 0.05
    assert bent.frames.origin[4] == pytest.approx(ARM.forward_frames(turned).origin[4], abs=1e-9)


# Loads


def test_holding_torque_is_weight_times_lever() -> None:
    links = ElasticLinks(np.array([0.0, 0.0, 0.0, 0.0, 3.0]), np.zeros((5, 3)), np.zeros((5, 6, 6)))
    q = np.array([[0.0, 0.0, 0.0, 0.0]])  # stretched out along x
    torque = holding_torques(ARM, links, q, find_equilibrium(ARM, links, q, free()), free())[0]
    weight = 3.0 * 3.711 * ARM.down  # RA_GRAVITY
    # The wrist is 0.857989013 and 1.83465302 m from the axes of joints 3 and 2 (dh.a), which point along -y.
    assert torque[1] == pytest.approx(-weight[2] * (0.976664007 + 0.857989013), abs=1e-3)
    assert torque[2] == pytest.approx(-weight[2] * 0.857989013, abs=1e-3)
    assert torque[3] == pytest.approx(0.0, abs=1e-9)


@given(
    angles,
    st.tuples(st.floats(-30, 30), st.floats(-30, 30), st.floats(-30, 30)),
    st.sampled_from([0, 1, 2]),
)
def test_flight_software_recovers_forces_from_holding_torques(
    q: np.ndarray, force: tuple[float, float, float], tool: int
) -> None:
    assume(abs(np.sin(q[0, 2])) > 0.1)  # a stretched or folded arm does not observe forces along it
    rigid = ElasticLinks.of(SETS, 1).scale_compliance(np.zeros(5))
    load = ExternalLoad(-np.array([force]), ARM.tools[tool])  # reaction to the force of the tool
    torque = holding_torques(ARM, rigid, q, find_equilibrium(ARM, rigid, q, load), load)
    found = FLIGHT.forces(q, torque, np.ones((1, 4)), tool, 1)[0]
    c, s = np.cos(q[0, 0]), np.sin(q[0, 0])
    outwards = c * force[0] + s * force[1]
    if (
        np.isfinite(found).all()
        and np.abs(np.sin(q[0, 2])) > 0.05
        and np.abs(FLIGHT.poses(q, tool, 1)[0]).max() > 0.5
    ):
        assert found[0] == pytest.approx(outwards, abs=0.05)
        assert found[2] == pytest.approx(force[2], abs=0.05)


@given(angles, st.lists(st.booleans(), min_size=4, max_size=4), st.integers(0, 9))
def test_flight_software_and_robot_model_agree_on_forces(q: np.ndarray, power: list[bool], tool: int) -> None:
    tau = np.array([[3.0, -12.0, 5.0, 0.7]])
    on = np.array([power], dtype=np.float64)
    moment = moments(PRINTED, q, tau, PrintedLinks.of(PRINTED, 1))
    other = end_effector_forces(PRINTED, q, moment, tool, on).values
    ours = FLIGHT.forces(q, tau, on, tool, 1)
    assert (np.isnan(ours) == np.isnan(other)).all()
    relative = np.abs(ours - other) / (1.0 + np.abs(other))
    assert np.nan_to_num(relative).max() < 0.02  # levers nearly parallel


def test_one_powered_pitch_joint_does_not_determine_the_force() -> None:
    q, tau = np.array([[0.1, -0.5, 1.2, 0.9]]), np.ones((1, 4))
    assert np.isnan(FLIGHT.forces(q, tau, np.array([[1.0, 1.0, 0.0, 0.0]]), TOOL_SCOOP, 1)).all()


# Contact

SOIL = SoilPatch("here", 0.9, stiffness=900.0, rebound=5400.0)


def test_soil_is_plastic() -> None:
    depths = PressedDepths()
    down_and_up = np.array([-0.01, 0.0, 0.01, 0.02, 0.019, 0.015, 0.0])
    force = depths.press(SOIL, down_and_up, np.zeros(7))
    assert force[:4] == pytest.approx([0.0, 0.0, 9.0, 18.0])  # 900 N/m
    assert force[4] == pytest.approx(18.0 - 5400.0 * 0.001)
    assert force[5:].max() == 0.0  # 18 N / 5400 N/m = 3.3 mm are elastic, the rest plastic
    again = depths.press(SOIL, np.array([0.015, 0.02, 0.025]), np.zeros(3))
    assert again == pytest.approx([0.0, 18.0, 22.5])


def test_contact_of_the_elastic_arm_with_soil_is_an_equilibrium() -> None:
    q = np.linspace([-0.5, -0.25, 1.5, 1.8], [-0.5, -0.1, 1.37, 1.8], 30)
    lowest = float((ARM.tool_position(ARM.forward_frames(q[-1:]), ARM.tools[TOOL_SCOOP]) @ ARM.down)[0])
    soil = SoilPatch("there", lowest - 0.02, 1200.0, 7000.0)
    contact = solve_contact(
        ARM, ElasticLinks.of(SETS, 1), q, ARM.tools[TOOL_SCOOP], soil, PressedDepths(), np.zeros((30, 3))
    )
    assert 5.0 < contact.normal.max() < 24.0
    assert contact.normal == pytest.approx(1200.0 * np.maximum(contact.depth, 0.0), abs=1e-4)
    assert contact.force @ ARM.down == pytest.approx(-contact.normal)


def test_payload_loads_the_arm_until_it_stands() -> None:
    q = np.linspace([-0.25, -0.65, 1.44, 0.1], [-0.25, -0.40, 1.37, 0.1], 40)
    tool, weight = ARM.tools[7], 8.9 * 3.711  # seis_mass, RA_GRAVITY
    level = float((ARM.tool_position(ARM.forward_frames(q[20:21]), tool) @ ARM.down)[0])
    contact = solve_contact(
        ARM,
        ElasticLinks.of(SETS, 3),
        q,
        tool,
        PayloadSupport(level, weight),
        PressedDepths(),
        np.zeros((40, 3)),
    )
    carried = contact.force @ ARM.down
    assert carried[0] == pytest.approx(weight)
    assert carried[-1] == pytest.approx(0.0, abs=1e-9)
    assert (np.diff(carried) < 1e-9).all()


# Moves

LIMITS = MotionLimits.of(SETS)


@given(angles, angles, st.floats(0.3, 1.0))
def test_moves_reach_the_goal_within_velocity_and_acceleration_limits(
    start: np.ndarray, goal: np.ndarray, speed: float
) -> None:
    moved = move(start[0], goal[0], LIMITS, speed)
    if not len(moved):
        assert np.abs(goal - start).max() <= 3 * LIMITS.count.max()
        return
    rows = np.vstack([start, moved.q])
    assert np.abs(moved.q[-1] - goal[0]).max() <= (3 * LIMITS.count).max()
    assert (np.abs(np.diff(rows, axis=0)) <= LIMITS.velocity * speed * 0.1 + 1e-9).all()
    assert (np.abs(np.diff(rows, 2, axis=0)) <= LIMITS.acceleration * 0.01 + 1e-9).all()
    assert (np.diff(rows, axis=0)[~moved.on] == 0.0).all()


def test_powered_motor_turns_its_encoder_by_at_least_enc_delta() -> None:
    moved = move(np.array([-1.0, -1.0, 1.0, 0.5]), np.array([0.5, -0.95, 1.4, 0.6]), LIMITS)
    counts = np.abs(np.diff(moved.q, axis=0)) / LIMITS.count
    cruising = np.abs(moved.velocity[1:]) > 0.99 * MOTION.min_speed_ratio * LIMITS.velocity
    assert cruising.any(axis=0).all()
    assert counts[cruising].min() > 2.0  # enc_delta, SIS 5.1.3.11


# Motors and sensors


def test_rotor_steady_state_of_the_thermal_model() -> None:
    motor = MotorThermalModel.of(SETS, 0)
    rotor, case = motor.rates(-45.3, -55.0, 0.15, 20.0, 0.0)  # steady state
    assert rotor == pytest.approx(0.0, abs=1e-3)
    assert case > 0.0


def test_encoder_count_1000_is_at_the_joint_limits() -> None:
    at_1000 = np.array([[1.4585, -2.3953, -0.4324, -0.1742]])  # q at count 1000
    assert SensorModel(SETS, 0).encoders(at_1000) == pytest.approx(at_1000, abs=5e-5)


def test_readings_are_whole_counts_near_the_true_values() -> None:
    sensors = SensorModel(SETS, 4)
    q = np.random.default_rng(1).uniform([-3.0, -2.0, 0.0, 0.0], [1.0, 1.0, 3.0, 3.0], (500, 4))
    assert np.abs(sensors.encoders(q) - q).max() <= LIMITS.count.max() / 2 + 1e-12
    assert np.abs(sensors.pots(q, np.zeros(q.shape)) - q).max() < 0.005
    ampere = np.full((500, 4), 0.02)
    lsb = 0.00032143  # current.m, SIS 5.1.3.2
    read = sensors.currents(ampere) / lsb
    assert np.abs(read - np.rint(read)).max() < 1e-9
    assert np.abs(read * lsb - ampere).max() < 2.5 * lsb


def test_current_limits_are_those_of_the_system_status() -> None:
    assert 1000 * FLIGHT.current_limits() == pytest.approx([172, 325, 273, 190], abs=0.5)  # SIS 5.1.1
