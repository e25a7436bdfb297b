"""Faults of position and motion.

Inconsistent or stuck sensors, runaway joints, hard stops, and motions that are impeded, terminate early,
exceed the limits of deflection or accommodation, or are repeated too often.
"""

from __future__ import annotations

import numpy as np

from ..parameters import Parameters
from ..trajectory import CONTACT, FREE_SPACE, Guard
from .rules import DETECT, Measure, fault
from .telemetry import ArmTelemetry

PATH_SET, CTRL_SET, JOINT_SET = "RA_PATH_PARAMS", "RA_CTRL_PARAMS", "RA_JOINT_PARAMS"
_ALL_RUNAWAYS = "runaway_samples is said of the joint runaway; the other three have no number of their own"


@fault("encoder-pot", "enc_pot_delta", "enc pot", unit="rad", samples="enc_pot_samples")
def encoder_pot(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """Encoder and potentiometer of a joint disagree by more than enc_pot_delta."""
    return Measure(np.abs(telemetry["enc"] - telemetry["pot"]), parameters.numbers(DETECT, "enc_pot_delta"))


@fault(
    "runaway-joint",
    "runaway_joint_delta, RA_PATH_PARAMS path.joint_delta, RA_CTRL_PARAMS eps_joint",
    "enc commanded_q motor_on",
    unit="rad",
    samples="runaway_samples",
    note="the SIS adds 'joint_delta': that of the path is meant, as it is for cart.delta and time_delta",
)
def runaway_joint(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """A joint is further from its via point than runaway_joint_delta + path.joint_delta + eps_joint."""
    keys = (DETECT, "runaway_joint_delta"), (PATH_SET, "path.joint_delta"), (CTRL_SET, "eps_joint")
    first, second, third = (parameters.numbers(*key) for key in keys)
    away = np.abs(telemetry["commanded_q"] - telemetry.angle)
    return Measure(away, first + second + third, when=telemetry.moving)


@fault(
    "runaway-position",
    "runaway_pos_delta, RA_PATH_PARAMS path.cart.delta",
    "pos commanded_pos motor_on",
    unit="m",
    samples="runaway_samples",
    parts=("",),
    note=_ALL_RUNAWAYS,
)
def runaway_position(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The tool is further from its via point than runaway_pos_delta + path.cart.delta."""
    limit = parameters.numbers(DETECT, "runaway_pos_delta") + parameters.numbers(PATH_SET, "path.cart.delta")
    away = np.linalg.norm(telemetry["commanded_pos"] - telemetry["pos"], axis=1, keepdims=True)
    return Measure(away, limit, when=telemetry.moving)


@fault(
    "runaway-orientation",
    "runaway_ori_delta",
    "th commanded_th motor_on",
    unit="rad",
    samples="runaway_samples",
    parts=("",),
    note=f"{_ALL_RUNAWAYS}; the shorter way round counts, so that 3.14 rad switches it off",
)
def runaway_orientation(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The tool is turned from its via point by more than runaway_ori_delta."""
    turn = telemetry["commanded_th"] - telemetry["th"]
    shortest = np.abs(turn - 2 * np.pi * np.round(turn / (2 * np.pi)))
    return Measure(shortest, parameters.numbers(DETECT, "runaway_ori_delta"), when=telemetry.moving)


@fault(
    "runaway-time",
    "runaway_time_delta, RA_PATH_PARAMS path.time_delta",
    "since_via motor_on",
    unit="s",
    samples="runaway_samples",
    parts=("",),
    note=f"{_ALL_RUNAWAYS}; the commanded time is via_time, when the via point began",
)
def runaway_time(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The via point of a timed joint move lasts longer than runaway_time_delta + path.time_delta."""
    limit = parameters.numbers(DETECT, "runaway_time_delta") + parameters.numbers(PATH_SET, "path.time_delta")
    return Measure(telemetry["since_via"], limit, when=telemetry.moving)


_STOPS = "joint_delta, RA_JOINT_PARAMS q_min, RA_JOINT_PARAMS q_max"


@fault("kinematic", _STOPS, "enc motor_on", unit="rad", samples="kinematic_samples")
def kinematic(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """A joint moves within joint_delta of a hard stop (q_min, q_max)."""
    limit = parameters.numbers(DETECT, "joint_delta")
    return Measure(
        _stop_distance(telemetry.angle, parameters), limit, "below", when=telemetry["motor_on"] == 1
    )


@fault("kinematic-command", _STOPS, "commanded_q", unit="rad", samples="kinematic_samples")
def kinematic_command(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """A joint is commanded within joint_delta of a hard stop (q_min, q_max)."""
    limit = parameters.numbers(DETECT, "joint_delta")
    return Measure(_stop_distance(telemetry["commanded_q"], parameters), limit, "below")


def _stop_distance(q: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Distance (n, 4) in rad of joint angles from the nearer hard stop; negative beyond it."""
    return np.minimum(q - parameters.numbers(JOINT_SET, "q_min"), parameters.numbers(JOINT_SET, "q_max") - q)


@fault("encoder", "enc_delta", "enc_raw motor_on", unit="LSB", samples="encoder_samples")
def encoder(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The motor is on and the encoder counter changes by less than enc_delta between samples."""
    limit = parameters.numbers(DETECT, "enc_delta")
    return Measure(telemetry.change("enc_raw"), limit, "below", when=telemetry.kept_on)


@fault(
    "pot",
    "pot_delta, tau",
    "pot_raw tau motor_on",
    unit="LSB",
    samples="pot_samples",
    note="as printed; at vel_max and 10 Hz a healthy joint moves 1 to 5 LSB a sample, so that with "
    "pot_delta 20 every long move at low torque is one",
)
def pot(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The motor is on, the torque below tau, and the pot changes by less than pot_delta between samples."""
    easy = np.abs(telemetry["tau"]) < parameters.numbers(DETECT, "tau")
    limit = parameters.numbers(DETECT, "pot_delta")
    return Measure(telemetry.change("pot_raw"), limit, "below", when=easy & telemetry.kept_on)


@fault(
    "pot",
    "pot_delta, tau, RA_JOINT_PARAMS pot.m",
    "pot_raw enc tau motor_on",
    unit="LSB",
    samples="pot_samples",
    note="not the letter of the SIS, which compares neighbouring samples: see `pot`",
)
def pot_stuck(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The torque is below tau and the pot changes by less than pot_delta where the encoder says twice it."""
    easy = np.abs(telemetry["tau"]) < parameters.numbers(DETECT, "tau")
    limit = parameters.numbers(DETECT, "pot_delta")
    expected = telemetry["enc"] * parameters.numbers(JOINT_SET, "pot.m")
    required = np.broadcast_to(2 * limit, expected.shape[1:])
    since = np.column_stack(
        [
            _last_sample_at_distance(expected[:, j], telemetry.kept_on[:, j] & ~telemetry.breaks, required[j])
            for j in range(expected.shape[1])
        ]
    )
    before = np.take_along_axis(telemetry["pot_raw"], np.maximum(since, 0), axis=0)
    changed = np.where(since >= 0, np.abs(telemetry["pot_raw"] - before), np.nan)
    return Measure(changed, limit, "below", when=easy)


def _last_sample_at_distance(values: np.ndarray, follows: np.ndarray, distance: float) -> np.ndarray:
    """Last earlier sample (n,) whose value differs by `distance` or more from each, -1 if none does.

    Only samples since the last one that does not follow its predecessor are considered.
    """
    result = np.full(len(values), -1)
    start = 0
    for k in range(len(values)):
        if not follows[k]:
            start = k
        far = np.flatnonzero(np.abs(values[start : k + 1] - values[k]) >= distance)
        if far.size:
            result[k] = start + far[-1]
            start = int(result[k])
    return result


@fault(
    "impeded-torque",
    "RA_TAU_PARAMS thresh_c, RA_TAU_PARAMS thresh_f, RA_TAU_PARAMS thresh_d, RA_TAU_PARAMS2 speed_detent",
    "tau v algo_code motor_on",
    unit="N m",
    samples="impeded_samples",
    note="the SIS does not define it; it stops the arm above thresh_c and thresh_f (5.1.3.7). Above "
    "thresh_a the arm gives way instead, which dvia_mag_limit bounds",
)
def impeded_torque(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """A torque exceeds the threshold of the control algorithm (+ thresh_d below speed_detent)."""
    v, code = telemetry["v"], telemetry["algo_code"]
    limit = np.full(v.shape, np.nan)
    for algorithm in (CONTACT, FREE_SPACE):
        guard = Guard.of(parameters, algorithm)
        slow = np.where(np.abs(v) < guard.detent_speed, guard.detent, 0.0)
        limit = np.where((code == algorithm.code) & ~np.isnan(v), guard.threshold + slow, limit)
    return Measure(np.abs(telemetry["tau"]), limit, when=telemetry["motor_on"] == 1)


@fault(
    "impeded-current",
    needs="over_current",
    samples="impeded_samples",
    note="the SIS does not define it; a motor that stops on its current impedes the motion",
)
def impeded_current(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The firmware reports an over-current of a motor."""
    return Measure(telemetry["over_current"], np.zeros(()))


@fault(
    "stopped",
    "RA_CTRL_PARAMS eps_joint",
    "enc commanded_q motor_on",
    unit="rad",
    samples="stopped_samples",
    note="the SIS calls it premature motion termination and does not define it",
)
def stopped(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The motor is off and the joint is further than eps_joint from its via point."""
    left = np.abs(telemetry["commanded_q"] - telemetry.angle)
    return Measure(left, parameters.numbers(CTRL_SET, "eps_joint"), when=telemetry["motor_on"] == 0)


@fault("deflection", "deflection_limit", "deflected undeflected", unit="rad", parts=("",))
def deflection(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The joint angles of the deflected and the rigid arm differ by more than deflection_limit (RSS)."""
    bent = np.linalg.norm(telemetry["deflected"] - telemetry["undeflected"], axis=1, keepdims=True)
    return Measure(bent, parameters.numbers(DETECT, "deflection_limit"))


@fault("dvia", "dvia_mag_limit", "dvia", unit="m", parts=("",))
def dvia(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """Delta via is larger than dvia_mag_limit."""
    return Measure(telemetry["dvia"], parameters.numbers(DETECT, "dvia_mag_limit"))


@fault("subtrench", "subtrench_attempts", "attempts", parts=("",))
def subtrench(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The same subtrench is tried more often than subtrench_attempts."""
    return Measure(telemetry["attempts"], parameters.numbers(DETECT, "subtrench_attempts"))


@fault("collision", "collision_mode", "collision", parts=("",))
def collision(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The arm's model has a collision, and collision_mode is not 0."""
    looked_for = np.array(parameters.number(DETECT, "collision_mode") != 0)
    return Measure(telemetry["collision"], np.zeros(()), when=looked_for)


POSITION_FAULTS = (
    encoder_pot,
    *(runaway_joint, runaway_position, runaway_orientation, runaway_time),
    *(kinematic, kinematic_command, encoder, pot),
)
MOTION_FAULTS = (impeded_torque, impeded_current, stopped, deflection, dvia, subtrench, collision)
