"""Faults of where the arm is: sensors that disagree or stand still, joints that run away or meet a stop."""

from __future__ import annotations

import numpy as np

from ..parameters import Parameters
from .rules import DETECT, Fault, Measure
from .telemetry import Telemetry

PATH, CTRL, JOINT = "RA_PATH_PARAMS", "RA_CTRL_PARAMS", "RA_JOINT_PARAMS"
RUNAWAY_SAMPLES = (DETECT, "runaway_samples")
_ALL_RUNAWAYS = "runaway_samples is said of the joint runaway; the other three have no number of their own"


def _encoder_pot(telemetry: Telemetry, parameters: Parameters) -> Measure:
    apart = np.abs(telemetry["enc"] - telemetry["pot"])
    return Measure(apart, parameters.numbers(DETECT, "enc_pot_delta"))


def _runaway_joint(telemetry: Telemetry, parameters: Parameters) -> Measure:
    limit = (
        parameters.numbers(DETECT, "runaway_joint_delta")
        + parameters.numbers(PATH, "path.joint_delta")
        + parameters.numbers(CTRL, "eps_joint")
    )
    return Measure(np.abs(telemetry["commanded_q"] - telemetry.angle), limit, when=telemetry.moving)


def _runaway_position(telemetry: Telemetry, parameters: Parameters) -> Measure:
    limit = parameters.numbers(DETECT, "runaway_pos_delta") + parameters.numbers(PATH, "path.cart.delta")
    away = np.linalg.norm(telemetry["commanded_pos"] - telemetry["pos"], axis=1, keepdims=True)
    return Measure(away, limit, when=telemetry.moving)


def _runaway_orientation(telemetry: Telemetry, parameters: Parameters) -> Measure:
    turn = telemetry["commanded_th"] - telemetry["th"]
    shortest = np.abs(turn - 2 * np.pi * np.round(turn / (2 * np.pi)))
    return Measure(shortest, parameters.numbers(DETECT, "runaway_ori_delta"), when=telemetry.moving)


def _runaway_time(telemetry: Telemetry, parameters: Parameters) -> Measure:
    limit = parameters.numbers(DETECT, "runaway_time_delta") + parameters.numbers(PATH, "path.time_delta")
    return Measure(telemetry["since_via"], limit, when=telemetry.moving)


def _to_the_stop(telemetry: Telemetry, parameters: Parameters) -> Measure:
    close = _room(telemetry.angle, parameters)
    return Measure(close, parameters.numbers(DETECT, "joint_delta"), "below", when=telemetry["motor_on"] == 1)


def _command_to_the_stop(telemetry: Telemetry, parameters: Parameters) -> Measure:
    close = _room(telemetry["commanded_q"], parameters)
    return Measure(close, parameters.numbers(DETECT, "joint_delta"), "below")


def _room(q: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Way (n, 4) in rad that joint angles have left to the nearer hard stop; negative beyond it."""
    return np.minimum(q - parameters.numbers(JOINT, "q_min"), parameters.numbers(JOINT, "q_max") - q)


def _encoder(telemetry: Telemetry, parameters: Parameters) -> Measure:
    limit = parameters.numbers(DETECT, "enc_delta")
    return Measure(telemetry.change("enc_raw"), limit, "below", when=kept_on(telemetry))


def _pot(telemetry: Telemetry, parameters: Parameters) -> Measure:
    easy = np.abs(telemetry["tau"]) < parameters.numbers(DETECT, "tau")
    limit = parameters.numbers(DETECT, "pot_delta")
    return Measure(telemetry.change("pot_raw"), limit, "below", when=easy & kept_on(telemetry))


def kept_on(telemetry: Telemetry) -> np.ndarray:
    """True (n, 4) where a motor has power and had it on the sample before, so that it should have turned."""
    on = telemetry["motor_on"] == 1
    before = np.concatenate([np.zeros_like(on[:1]), on[:-1]])
    return on & before


FAULTS = (
    Fault(
        "encoder-pot",
        "encoder and potentiometer of a joint disagree by more than enc_pot_delta",
        ((DETECT, "enc_pot_delta"),),
        ("enc", "pot"),
        _encoder_pot,
        unit="rad",
        samples=(DETECT, "enc_pot_samples"),
    ),
    Fault(
        "runaway-joint",
        "a joint is further from its via point than runaway_joint_delta + path.joint_delta + eps_joint",
        ((DETECT, "runaway_joint_delta"), (PATH, "path.joint_delta"), (CTRL, "eps_joint")),
        ("enc", "commanded_q", "motor_on"),
        _runaway_joint,
        unit="rad",
        samples=RUNAWAY_SAMPLES,
        note="the SIS adds 'joint_delta': that of the path is meant, as it is for cart.delta and time_delta",
    ),
    Fault(
        "runaway-position",
        "the tool is further from its via point than runaway_pos_delta + path.cart.delta",
        ((DETECT, "runaway_pos_delta"), (PATH, "path.cart.delta")),
        ("pos", "commanded_pos", "motor_on"),
        _runaway_position,
        unit="m",
        samples=RUNAWAY_SAMPLES,
        parts=("",),
        note=_ALL_RUNAWAYS,
    ),
    Fault(
        "runaway-orientation",
        "the tool is turned from its via point by more than runaway_ori_delta",
        ((DETECT, "runaway_ori_delta"),),
        ("th", "commanded_th", "motor_on"),
        _runaway_orientation,
        unit="rad",
        samples=RUNAWAY_SAMPLES,
        parts=("",),
        note=f"{_ALL_RUNAWAYS}; the shorter way round counts, so that 3.14 rad switches it off",
    ),
    Fault(
        "runaway-time",
        "the via point of a timed joint move lasts longer than runaway_time_delta + path.time_delta",
        ((DETECT, "runaway_time_delta"), (PATH, "path.time_delta")),
        ("since_via", "motor_on"),
        _runaway_time,
        unit="s",
        samples=RUNAWAY_SAMPLES,
        parts=("",),
        note=f"{_ALL_RUNAWAYS}; the commanded time is via_time, when the via point began",
    ),
    Fault(
        "kinematic",
        "a joint moves within joint_delta of a hard stop (q_min, q_max)",
        ((DETECT, "joint_delta"), (JOINT, "q_min"), (JOINT, "q_max")),
        ("enc", "motor_on"),
        _to_the_stop,
        unit="rad",
        samples=(DETECT, "kinematic_samples"),
    ),
    Fault(
        "kinematic-command",
        "a joint is commanded within joint_delta of a hard stop (q_min, q_max)",
        ((DETECT, "joint_delta"), (JOINT, "q_min"), (JOINT, "q_max")),
        ("commanded_q",),
        _command_to_the_stop,
        unit="rad",
        samples=(DETECT, "kinematic_samples"),
    ),
    Fault(
        "encoder",
        "the motor is on and the encoder counter changes by less than enc_delta between samples",
        ((DETECT, "enc_delta"),),
        ("enc_raw", "motor_on"),
        _encoder,
        unit="LSB",
        samples=(DETECT, "encoder_samples"),
    ),
    Fault(
        "pot",
        "the motor is on, the torque below tau, and the pot changes by less than pot_delta between samples",
        ((DETECT, "pot_delta"), (DETECT, "tau")),
        ("pot_raw", "tau", "motor_on"),
        _pot,
        unit="LSB",
        samples=(DETECT, "pot_samples"),
        note="as printed; at vel_max and 10 Hz a healthy joint moves 1 to 5 LSB a sample, so that with "
        "pot_delta 20 every long move at low torque is one",
    ),
)
