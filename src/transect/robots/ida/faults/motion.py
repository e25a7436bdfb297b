"""Faults of a motion: impeded, ended before its time, bent too far, given way too far, tried too often."""

from __future__ import annotations

import numpy as np

from ..parameters import Parameters
from ..trajectory import CONTACT, FREE_SPACE, Guard
from .rules import DETECT, Fault, Measure
from .telemetry import Telemetry

CTRL, TAU, TAU2 = "RA_CTRL_PARAMS", "RA_TAU_PARAMS", "RA_TAU_PARAMS2"


def _impeded_torque(telemetry: Telemetry, parameters: Parameters) -> Measure:
    v, code = telemetry["v"], telemetry["algo_code"]
    guards = {algorithm.code: Guard.of(parameters, algorithm) for algorithm in (CONTACT, FREE_SPACE)}
    limit = np.full(v.shape, np.nan)
    for number, guard in guards.items():
        slow = np.where(np.abs(v) < guard.detent_speed, guard.detent, 0.0)
        limit = np.where((code == number) & ~np.isnan(v), guard.threshold + slow, limit)
    return Measure(np.abs(telemetry["tau"]), limit, when=telemetry["motor_on"] == 1)


def _impeded_current(telemetry: Telemetry, parameters: Parameters) -> Measure:
    return Measure(telemetry["over_current"], np.zeros(()))


def _measure_stop(telemetry: Telemetry, parameters: Parameters) -> Measure:
    left = np.abs(telemetry["commanded_q"] - telemetry.angle)
    return Measure(left, parameters.numbers(CTRL, "eps_joint"), when=telemetry["motor_on"] == 0)


def _deflection(telemetry: Telemetry, parameters: Parameters) -> Measure:
    bent = np.linalg.norm(telemetry["deflected"] - telemetry["undeflected"], axis=1, keepdims=True)
    return Measure(bent, parameters.numbers(DETECT, "deflection_limit"))


def _dvia(telemetry: Telemetry, parameters: Parameters) -> Measure:
    return Measure(telemetry["dvia"], parameters.numbers(DETECT, "dvia_mag_limit"))


def _subtrench(telemetry: Telemetry, parameters: Parameters) -> Measure:
    return Measure(telemetry["attempts"], parameters.numbers(DETECT, "subtrench_attempts"))


def _collision(telemetry: Telemetry, parameters: Parameters) -> Measure:
    looked_for = np.array(parameters.number(DETECT, "collision_mode") != 0)
    return Measure(telemetry["collision"], np.zeros(()), when=looked_for)


FAULTS = (
    Fault(
        "impeded-torque",
        "a torque exceeds the threshold of the control algorithm (+ thresh_d below speed_detent)",
        ((TAU, "thresh_c"), (TAU, "thresh_f"), (TAU, "thresh_d"), (TAU2, "speed_detent")),
        ("tau", "v", "algo_code", "motor_on"),
        _impeded_torque,
        unit="N m",
        samples=(DETECT, "impeded_samples"),
        note="the SIS does not define it; it stops the arm above thresh_c and thresh_f (5.1.3.7). Above "
        "thresh_a the arm gives way instead, which dvia_mag_limit bounds",
    ),
    Fault(
        "impeded-current",
        "the firmware reports an over-current of a motor",
        (),
        ("over_current",),
        _impeded_current,
        samples=(DETECT, "impeded_samples"),
        note="the SIS does not define it; a motor that stops on its current impedes the motion",
    ),
    Fault(
        "stopped",
        "the motor is off and the joint is further than eps_joint from its via point",
        ((CTRL, "eps_joint"),),
        ("enc", "commanded_q", "motor_on"),
        _measure_stop,
        unit="rad",
        samples=(DETECT, "stopped_samples"),
        note="the SIS calls it premature motion termination and does not define it",
    ),
    Fault(
        "deflection",
        "the joint angles of the deflected and the rigid arm differ by more than deflection_limit (RSS)",
        ((DETECT, "deflection_limit"),),
        ("deflected", "undeflected"),
        _deflection,
        unit="rad",
        parts=("",),
    ),
    Fault(
        "dvia",
        "delta via is larger than dvia_mag_limit",
        ((DETECT, "dvia_mag_limit"),),
        ("dvia",),
        _dvia,
        unit="m",
        parts=("",),
    ),
    Fault(
        "subtrench",
        "the same subtrench is tried more often than subtrench_attempts",
        ((DETECT, "subtrench_attempts"),),
        ("attempts",),
        _subtrench,
        parts=("",),
    ),
    Fault(
        "collision",
        "the arm's model has a collision, and collision_mode is not 0",
        ((DETECT, "collision_mode"),),
        ("collision",),
        _collision,
        parts=("",),
    ),
)
