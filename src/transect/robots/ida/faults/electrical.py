"""Faults of the electronics: references, converters, motor currents, heater currents, the 30 V supply."""

from __future__ import annotations

import numpy as np

from ..parameters import Parameters
from .position import kept_on
from .rules import DETECT, Fault, Measure, run_lengths
from .telemetry import Telemetry

JOINT, TAU2, GRAPPLE = "RA_JOINT_PARAMS", "RA_TAU_PARAMS2", "RA_GRAPPLE_PARAMS"
HEATER_OF_JOINT = (0, 0, 0, 1)
"""Element of htr_crnt and heater_time: one for the heaters of joints 1 to 3, one for that of joint 4."""
GRAPPLE_HEATERS = ("grapple heater 1", "grapple heater 2")
OFF = 255
"""A start_count or nonstart_count of FF switches the monitoring of a motor's current off."""
_NOT_DEFINED = "the SIS names the fault and its parameters, not its test"


def _vref(telemetry: Telemetry, parameters: Parameters) -> Measure:
    away = np.abs(telemetry["vref"] - parameters.numbers(DETECT, "vref_nominal"))
    return Measure(away, parameters.numbers(DETECT, "vref_delta"))


def _calibration(telemetry: Telemetry, parameters: Parameters) -> Measure:
    return Measure(telemetry["calib_ok"], np.ones(()), "below")


def motor_current(telemetry: Telemetry, parameters: Parameters) -> np.ndarray:
    """Motor currents (n, 4) in LSB, without sign."""
    return np.abs(telemetry["cur_raw"] - parameters.numbers(JOINT, "current.b"))


def _motor(telemetry: Telemetry, parameters: Parameters) -> Measure:
    limit = parameters.numbers(DETECT, "current_epsilon")
    return Measure(motor_current(telemetry, parameters), limit, "below", when=telemetry["motor_on"] == 1)


def _measure_stall(telemetry: Telemetry, parameters: Parameters) -> Measure:
    driven = motor_current(telemetry, parameters) >= parameters.numbers(DETECT, "current_epsilon")
    limit = parameters.numbers(DETECT, "enc_delta")
    return Measure(telemetry.change("enc_raw"), limit, "below", when=driven & kept_on(telemetry))


def _over_current(telemetry: Telemetry, parameters: Parameters) -> Measure:
    start = parameters.numbers(JOINT, "start_count")
    watched = (start < OFF) & (parameters.numbers(JOINT, "nonstart_count") < OFF)
    since_on = run_lengths(telemetry["motor_on"] == 1, telemetry.breaks)
    return Measure(np.abs(telemetry["cur"]), telemetry["curr_limit"], when=watched & (since_on > start))


def heater_current(telemetry: Telemetry, parameters: Parameters) -> np.ndarray:
    """Sum (n, 1) of the heater currents in LSB."""
    return telemetry["htr_raw"] - parameters.numbers(DETECT, "htr_crnt_offset")


def _heater_current(telemetry: Telemetry, parameters: Parameters) -> Measure:
    limit = parameters.numbers(DETECT, "htr_crnt")[list(HEATER_OF_JOINT)]
    return Measure(heater_current(telemetry, parameters), limit, "below", when=telemetry["heater_on"] == 1)


def _grapple_heater_current(telemetry: Telemetry, parameters: Parameters) -> Measure:
    limit = parameters.numbers(DETECT, "htr_crnt")[2:4]
    when = grapple_heaters_on(telemetry, parameters)
    return Measure(heater_current(telemetry, parameters), limit, "below", when=when)


def grapple_heaters_on(telemetry: Telemetry, parameters: Parameters) -> np.ndarray:
    """Whether each of the two grapple heaters is on, (n, 2): grapple_heater says which are used."""
    chosen = int(parameters.number(GRAPPLE, "grapple_heater"))
    return (telemetry["grapple_heater_on"] == 1) & np.array([chosen & 1, chosen & 2], dtype=bool)


def _power_30v(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """Largest share of its least current that anything drew which was on; below 1 nothing draws."""
    on, heated = telemetry["motor_on"] == 1, telemetry["heater_on"] == 1
    motors = motor_current(telemetry, parameters) / parameters.numbers(DETECT, "current_epsilon")
    least = np.where(heated, parameters.numbers(DETECT, "htr_crnt")[list(HEATER_OF_JOINT)], np.inf)
    heaters = np.full((len(telemetry), 1), np.nan)
    if "htr_raw" in telemetry:
        heaters = heater_current(telemetry, parameters) / least.min(axis=1, keepdims=True)
    shares = [np.where(on, motors, 0.0), np.where(heated.any(axis=1, keepdims=True), heaters, 0.0)]
    largest = np.hstack(shares).max(axis=1, keepdims=True)
    return Measure(largest, np.ones(()), "below", when=(on | heated).any(axis=1, keepdims=True))


def _bus_30v(telemetry: Telemetry, parameters: Parameters) -> Measure:
    return Measure(telemetry["bus30v_err"], np.zeros(()))


FAULTS = (
    Fault(
        "vref",
        "a reference voltage differs from vref_nominal by more than vref_delta",
        ((DETECT, "vref_nominal"), (DETECT, "vref_delta")),
        ("vref",),
        _vref,
        unit="V",
        samples=(DETECT, "vref_samples"),
        parts=("vref 1", "vref 2"),
    ),
    Fault(
        "calibration",
        "the controller reports that its A/D converter is not calibrated",
        (),
        ("calib_ok",),
        _calibration,
        samples=(DETECT, "ace_cal_samples"),
        parts=("",),
        note=f"{_NOT_DEFINED}; ra_status.ace.calib_OK is taken",
    ),
    Fault(
        "motor",
        "the motor is on and its current is zero, less than current_epsilon",
        ((DETECT, "current_epsilon"), (JOINT, "current.b")),
        ("cur_raw", "motor_on"),
        _motor,
        unit="LSB",
        samples=(DETECT, "motor_samples"),
        note=_NOT_DEFINED,
    ),
    Fault(
        "stalled",
        "the motor is on and draws current_epsilon or more, and its encoder changes by less than enc_delta",
        ((DETECT, "current_epsilon"), (DETECT, "enc_delta"), (JOINT, "current.b")),
        ("enc_raw", "cur_raw", "motor_on"),
        _measure_stall,
        unit="LSB",
        samples=(DETECT, "stalled_samples"),
        note=f"{_NOT_DEFINED}; standing still is meant as for the encoder fault",
    ),
    Fault(
        "over-current",
        "the current exceeds its limit, after the first start_count samples with power",
        ((JOINT, "start_count"), (TAU2, "current_limit"), (TAU2, "tau_detent"), (TAU2, "speed_detent")),
        ("cur", "curr_limit", "motor_on"),
        _over_current,
        unit="A",
        samples=(JOINT, "nonstart_count"),
        section="5.1.3.2",
        note="found by the firmware, at its own rate; 255 (FF) samples switch it off",
    ),
    Fault(
        "heater-current",
        "the heater is on and the heater current is less than htr_crnt",
        ((DETECT, "htr_crnt"), (DETECT, "htr_crnt_offset")),
        ("htr_raw", "heater_on"),
        _heater_current,
        unit="LSB",
        samples=(DETECT, "heater_rtd_samples"),
        note="the current is the sum of all heaters, as measured",
    ),
    Fault(
        "heater-current-grapple",
        "the grapple is heated and the heater current is less than htr_crnt",
        ((DETECT, "htr_crnt"), (DETECT, "htr_crnt_offset"), (GRAPPLE, "grapple_heater")),
        ("htr_raw", "grapple_heater_on"),
        _grapple_heater_current,
        unit="LSB",
        samples=(DETECT, "heater_rtd_samples"),
        parts=GRAPPLE_HEATERS,
        note="the current is the sum of all heaters, as measured",
    ),
    Fault(
        "power-30v",
        "motors or heaters are on and none of them draws current (current_epsilon, htr_crnt)",
        (
            (DETECT, "current_epsilon"),
            (DETECT, "htr_crnt"),
            (DETECT, "htr_crnt_offset"),
            (JOINT, "current.b"),
        ),
        ("cur_raw", "motor_on", "heater_on"),
        _power_30v,
        unit="of the least current",
        samples=(DETECT, "power_30v_samples"),
        parts=("",),
        note=f"{_NOT_DEFINED}; without htr_raw only samples without heaters are judged",
    ),
    Fault(
        "bus-30v",
        "the controller reports an error of its 30 V bus",
        (),
        ("bus30v_err",),
        _bus_30v,
        samples=(DETECT, "power_30v_samples"),
        parts=("",),
        note=f"{_NOT_DEFINED}; ra_status.ace.bus30v_err is taken",
    ),
)
