"""Faults of the electronics: references, converters, motor currents, heater currents, the 30 V supply."""

from __future__ import annotations

import numpy as np

from transect.geometry.robust import run_lengths

from ..parameters import Parameters
from .rules import DETECT, Measure, fault
from .telemetry import Telemetry

JOINT, GRAPPLE = "RA_JOINT_PARAMS", "RA_GRAPPLE_PARAMS"
HEATER_OF_JOINT = (0, 0, 0, 1)
"""Element of htr_crnt and heater_time: one for the heaters of joints 1 to 3, one for that of joint 4."""
GRAPPLE_HEATERS = ("grapple heater 1", "grapple heater 2")
OFF = 255
"""A start_count or nonstart_count of FF switches the monitoring of a motor's current off."""
_NOT_DEFINED = "the SIS names the fault and its parameters, not its test"
_SUM = "the current is the sum of all heaters, as measured"


@fault(
    "vref", "vref_nominal, vref_delta", "vref", unit="V", samples="vref_samples", parts=("vref 1", "vref 2")
)
def vref(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """A reference voltage differs from vref_nominal by more than vref_delta."""
    away = np.abs(telemetry["vref"] - parameters.numbers(DETECT, "vref_nominal"))
    return Measure(away, parameters.numbers(DETECT, "vref_delta"))


@fault(
    "calibration",
    needs="calib_ok",
    samples="ace_cal_samples",
    parts=("",),
    note=f"{_NOT_DEFINED}; ra_status.ace.calib_OK is taken",
)
def calibration(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """The controller reports that its A/D converter is not calibrated."""
    return Measure(telemetry["calib_ok"], np.ones(()), "below")


def motor_current(telemetry: Telemetry, parameters: Parameters) -> np.ndarray:
    """Motor currents (n, 4) in LSB, without sign."""
    return np.abs(telemetry["cur_raw"] - parameters.numbers(JOINT, "current.b"))


@fault(
    "motor",
    "current_epsilon, RA_JOINT_PARAMS current.b",
    "cur_raw motor_on",
    unit="LSB",
    samples="motor_samples",
    note=_NOT_DEFINED,
)
def motor(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """The motor is on and its current is zero, less than current_epsilon."""
    limit = parameters.numbers(DETECT, "current_epsilon")
    return Measure(motor_current(telemetry, parameters), limit, "below", when=telemetry["motor_on"] == 1)


@fault(
    "stalled",
    "current_epsilon, enc_delta, RA_JOINT_PARAMS current.b",
    "enc_raw cur_raw motor_on",
    unit="LSB",
    samples="stalled_samples",
    note=f"{_NOT_DEFINED}; standing still is meant as for the encoder fault",
)
def stalled(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """The motor is on and draws current_epsilon or more, and its encoder changes by less than enc_delta."""
    driven = motor_current(telemetry, parameters) >= parameters.numbers(DETECT, "current_epsilon")
    limit = parameters.numbers(DETECT, "enc_delta")
    return Measure(telemetry.change("enc_raw"), limit, "below", when=driven & telemetry.kept_on)


@fault(
    "over-current",
    "RA_JOINT_PARAMS start_count, RA_TAU_PARAMS2 current_limit, RA_TAU_PARAMS2 tau_detent, "
    "RA_TAU_PARAMS2 speed_detent",
    "cur curr_limit motor_on",
    unit="A",
    samples="RA_JOINT_PARAMS nonstart_count",
    section="5.1.3.2",
    note="found by the firmware, at its own rate; 255 (FF) samples switch it off",
)
def over_current(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """The current exceeds its limit, after the first start_count samples with power."""
    start = parameters.numbers(JOINT, "start_count")
    watched = (start < OFF) & (parameters.numbers(JOINT, "nonstart_count") < OFF)
    since_on = run_lengths(telemetry["motor_on"] == 1, telemetry.breaks)
    return Measure(np.abs(telemetry["cur"]), telemetry["curr_limit"], when=watched & (since_on > start))


def heater_current(telemetry: Telemetry, parameters: Parameters) -> np.ndarray:
    """Sum (n, 1) of the heater currents in LSB."""
    return telemetry["htr_raw"] - parameters.numbers(DETECT, "htr_crnt_offset")


@fault(
    "heater-current",
    "htr_crnt, htr_crnt_offset",
    "htr_raw heater_on",
    unit="LSB",
    samples="heater_rtd_samples",
    note=_SUM,
)
def joint_heater(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """The heater is on and the heater current is less than htr_crnt."""
    limit = parameters.numbers(DETECT, "htr_crnt")[list(HEATER_OF_JOINT)]
    return Measure(heater_current(telemetry, parameters), limit, "below", when=telemetry["heater_on"] == 1)


@fault(
    "heater-current-grapple",
    "htr_crnt, htr_crnt_offset, RA_GRAPPLE_PARAMS grapple_heater",
    "htr_raw grapple_heater_on",
    unit="LSB",
    samples="heater_rtd_samples",
    parts=GRAPPLE_HEATERS,
    note=_SUM,
)
def grapple_heater(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """The grapple is heated and the heater current is less than htr_crnt."""
    limit = parameters.numbers(DETECT, "htr_crnt")[2:4]
    when = grapple_heaters_on(telemetry, parameters)
    return Measure(heater_current(telemetry, parameters), limit, "below", when=when)


def grapple_heaters_on(telemetry: Telemetry, parameters: Parameters) -> np.ndarray:
    """Whether each of the two grapple heaters is on, (n, 2): grapple_heater says which are used."""
    chosen = int(parameters.number(GRAPPLE, "grapple_heater"))
    return (telemetry["grapple_heater_on"] == 1) & np.array([chosen & 1, chosen & 2], dtype=bool)


@fault(
    "power-30v",
    "current_epsilon, htr_crnt, htr_crnt_offset, RA_JOINT_PARAMS current.b",
    "cur_raw motor_on heater_on",
    unit="of the least current",
    samples="power_30v_samples",
    parts=("",),
    note=f"{_NOT_DEFINED}; without htr_raw only samples without heaters are judged",
)
def power_30v(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """Motors or heaters are on and none of them draws current (current_epsilon, htr_crnt).

    The measure is the largest share of its least current that anything drew which was on.
    """
    on, heated = telemetry["motor_on"] == 1, telemetry["heater_on"] == 1
    motors = motor_current(telemetry, parameters) / parameters.numbers(DETECT, "current_epsilon")
    least = np.where(heated, parameters.numbers(DETECT, "htr_crnt")[list(HEATER_OF_JOINT)], np.inf)
    heaters = np.full((len(telemetry), 1), np.nan)
    if "htr_raw" in telemetry:
        heaters = heater_current(telemetry, parameters) / least.min(axis=1, keepdims=True)
    shares = [np.where(on, motors, 0.0), np.where(heated.any(axis=1, keepdims=True), heaters, 0.0)]
    largest = np.hstack(shares).max(axis=1, keepdims=True)
    return Measure(largest, np.ones(()), "below", when=(on | heated).any(axis=1, keepdims=True))


@fault(
    "bus-30v",
    needs="bus30v_err",
    samples="power_30v_samples",
    parts=("",),
    note=f"{_NOT_DEFINED}; ra_status.ace.bus30v_err is taken",
)
def bus_30v(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """The controller reports an error of its 30 V bus."""
    return Measure(telemetry["bus30v_err"], np.zeros(()))


FAULTS = (
    *(vref, calibration, motor, stalled, over_current),
    *(joint_heater, grapple_heater, power_30v, bus_30v),
)
