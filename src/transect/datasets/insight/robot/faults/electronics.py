"""Faults of the electronics: references, converters, motor currents, heater currents, the 30 V supply."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.base.clocks import NS
from transect.geometry import robust
from transect.geometry.robust import run_lengths

from ..parameters import MissingParameterError, Parameters
from .rules import DETECT, Measure, fault
from .telemetry import ArmTelemetry

JOINT_SET, GRAPPLE_SET, THERMAL_SET = "RA_JOINT_PARAMS", "RA_GRAPPLE_PARAMS", "RA_THERMAL"
HEATER_OF_JOINT = (0, 0, 0, 1)
"""Element of htr_crnt and heater_time: the first for joints 1 to 3, the second for joint 4."""
GRAPPLE_HEATERS = ("grapple heater 1", "grapple heater 2")
MONITORING_OFF = 255
"""start_count or nonstart_count (FF) that disables the monitoring of a motor current."""
_NOT_DEFINED = "the SIS names the fault and its parameters, not its test"
_SUM = "the current is the sum of all heaters, as measured"


@fault(
    "vref", "vref_nominal, vref_delta", "vref", unit="V", samples="vref_samples", parts=("vref 1", "vref 2")
)
def vref(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
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
def calibration(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The controller reports that its A/D converter is not calibrated."""
    return Measure(telemetry["calib_ok"], np.ones(()), "below")


def motor_current(telemetry: ArmTelemetry, parameters: Parameters) -> np.ndarray:
    """Motor currents (n, 4) in LSB, without sign."""
    return np.abs(telemetry["cur_raw"] - parameters.numbers(JOINT_SET, "current.b"))


@fault(
    "motor",
    "current_epsilon, RA_JOINT_PARAMS current.b",
    "cur_raw motor_on",
    unit="LSB",
    samples="motor_samples",
    note=_NOT_DEFINED,
)
def motor(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
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
def stalled(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
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
def over_current(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The current exceeds its limit, after the first start_count samples with power."""
    start = parameters.numbers(JOINT_SET, "start_count")
    watched = (start < MONITORING_OFF) & (parameters.numbers(JOINT_SET, "nonstart_count") < MONITORING_OFF)
    since_on = run_lengths(telemetry["motor_on"] == 1, telemetry.breaks)
    return Measure(np.abs(telemetry["cur"]), telemetry["curr_limit"], when=watched & (since_on > start))


def heater_current(telemetry: ArmTelemetry, parameters: Parameters) -> np.ndarray:
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
def joint_heater(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
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
def grapple_heater(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The grapple is heated and the heater current is less than htr_crnt."""
    limit = parameters.numbers(DETECT, "htr_crnt")[2:4]
    when = grapple_heaters_on(telemetry, parameters)
    return Measure(heater_current(telemetry, parameters), limit, "below", when=when)


def grapple_heaters_on(telemetry: ArmTelemetry, parameters: Parameters) -> np.ndarray:
    """Whether each of the two grapple heaters is on, (n, 2); grapple_heater selects the used ones."""
    chosen = int(parameters.number(GRAPPLE_SET, "grapple_heater"))
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
def power_30v(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """Motors or heaters are on and none of them draws current (current_epsilon, htr_crnt).

    The measure is the largest ratio of a powered motor's or heater's current to its minimum current.
    """
    on, heated = telemetry["motor_on"] == 1, telemetry["heater_on"] == 1
    motors = motor_current(telemetry, parameters) / parameters.numbers(DETECT, "current_epsilon")
    minimum = np.where(heated, parameters.numbers(DETECT, "htr_crnt")[list(HEATER_OF_JOINT)], np.inf)
    heaters = np.full((len(telemetry), 1), np.nan)
    if "htr_raw" in telemetry:
        heaters = heater_current(telemetry, parameters) / minimum.min(axis=1, keepdims=True)
    ratios = [np.where(on, motors, 0.0), np.where(heated.any(axis=1, keepdims=True), heaters, 0.0)]
    largest = np.hstack(ratios).max(axis=1, keepdims=True)
    return Measure(largest, np.ones(()), "below", when=(on | heated).any(axis=1, keepdims=True))


@fault(
    "bus-30v",
    needs="bus30v_err",
    samples="power_30v_samples",
    parts=("",),
    note=f"{_NOT_DEFINED}; ra_status.ace.bus30v_err is taken",
)
def bus_30v(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The controller reports an error of its 30 V bus."""
    return Measure(telemetry["bus30v_err"], np.zeros(()))


ELECTRICAL_FAULTS = (
    *(vref, calibration, motor, stalled, over_current),
    *(joint_heater, grapple_heater, power_30v, bus_30v),
)


@fault(
    "heater-sensor",
    "heater_time, temp_delta",
    "tcase_raw heater_on",
    unit="LSB",
    samples="heater_rtd_samples",
)
def heater_sensor(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The heater is on for heater_time and the temperature has not risen by temp_delta."""
    time = parameters.numbers(DETECT, "heater_time")[list(HEATER_OF_JOINT)]
    delta = parameters.numbers(DETECT, "temp_delta")[:4]
    return _measure_rise(telemetry, telemetry["tcase_raw"], telemetry["heater_on"] == 1, time, delta)


@fault(
    "heater-sensor-grapple",
    "heater_time, temp_delta, RA_GRAPPLE_PARAMS grapple_heater",
    "tgrapple_raw grapple_heater_on",
    unit="LSB",
    samples="heater_rtd_samples",
    parts=GRAPPLE_HEATERS,
    note="by the fifth number of temp_delta, of which the SIS prints four",
)
def grapple_heater_sensor(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The grapple is heated for heater_time and its temperature has not risen by temp_delta."""
    delta = parameters.numbers(DETECT, "temp_delta")
    if len(delta) < 5:
        raise MissingParameterError(
            f"{DETECT} temp_delta has {len(delta)} numbers, the fifth is the grapple's",
            hint="put five numbers under temp_delta in a parameter file beside the data (SIS 5.1.3.11)",
        )
    reading = np.repeat(telemetry["tgrapple_raw"], 2, axis=1)
    time = parameters.numbers(DETECT, "heater_time")[2:4]
    return _measure_rise(telemetry, reading, grapple_heaters_on(telemetry, parameters), time, delta[4:])


def _measure_rise(telemetry: ArmTelemetry, reading: Floats, on: Mask, time: Floats, delta: Floats) -> Measure:
    """Rise (n, k) of readings since the heaters were turned on, tested from `time` (k,) s after that."""
    lengths = run_lengths(on, telemetry.breaks)
    start = np.where(on, np.arange(len(on))[:, None] - lengths + 1, 0)
    elapsed_ns = telemetry.t_ns[:, None] - telemetry.t_ns[start]
    rise = reading - np.take_along_axis(reading, start, axis=0)
    return Measure(rise, delta, "below", when=on & (elapsed_ns >= np.rint(time * NS)))


@fault("rotor-overheat", "RA_THERMAL temp_max_rotor", "trotor", unit="degC", section="5.1.3.29")
def rotor_overheat(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """A rotor is warmer than temp_max_rotor."""
    return Measure(telemetry["trotor"], parameters.numbers(THERMAL_SET, "temp_max_rotor"))


@fault("case-overheat", "RA_THERMAL temp_max_case", "tcase", unit="degC", section="5.1.3.29")
def case_overheat(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """A motor case is warmer than temp_max_case."""
    return Measure(telemetry["tcase"], parameters.numbers(THERMAL_SET, "temp_max_case"))


@fault(
    "grapple-overheat",
    "RA_GRAPPLE_PARAMS max_temperature",
    "tgrapple",
    unit="degC",
    samples="RA_GRAPPLE_PARAMS overheat_persistence",
    rule="required",
    parts=("",),
    section="5.1.3.30",
)
def grapple_overheat(telemetry: ArmTelemetry, parameters: Parameters) -> Measure:
    """The grapple is warmer than max_temperature."""
    return Measure(telemetry["tgrapple"], parameters.numbers(GRAPPLE_SET, "max_temperature"))


THERMAL_FAULTS = (heater_sensor, grapple_heater_sensor, rotor_overheat, case_overheat, grapple_overheat)


@dataclass(frozen=True)
class Cooldown:
    """One cool-down of a joint."""

    joint: int  # 1 to 4
    # start, stop: samples of overheating and of its end; `stop` is None if it did not cool down
    start: int
    stop: int | None
    # sample on which its motor was powered too early; None if it was not, or if unknown
    resumed: int | None


def must_cool_down(telemetry: ArmTelemetry, parameters: Parameters) -> Mask:
    """Whether (n, 4) a joint must not move: overheated, and not yet below temp_cooldown (SIS 5.1.3.29).

    Rotor and case are both tested where the telemetry has them; the SIS does not specify which one must cool
    down.
    """
    limit = parameters.numbers(THERMAL_SET, "temp_cooldown")
    state = np.zeros((len(telemetry), 4), dtype=bool)
    for name, overheated in (("trotor", rotor_overheat), ("tcase", case_overheat)):
        if name in telemetry:
            hot = overheated.measure(telemetry, parameters).anomalies()
            state |= _latch(hot, telemetry[name] <= limit)
    return state


def _latch(set_: Mask, reset: Mask) -> Mask:
    """True (n, k) from a sample that sets until a sample that resets."""
    number = np.arange(len(set_))[:, None]
    last = np.maximum.accumulate(np.where(set_ | reset, number, 0), axis=0)
    return np.take_along_axis(set_, last, axis=0)


def find_cooldowns(telemetry: ArmTelemetry, parameters: Parameters) -> list[Cooldown]:
    """Return the cool-downs by joint and time."""
    state = must_cool_down(telemetry, parameters)
    found: list[Cooldown] = []
    for j in range(4):
        for start, stop in zip(*robust.runs(state[:, j]), strict=True):
            resumed = _find_turn_on(telemetry, j, int(start), int(stop))
            ended = None if stop == len(telemetry) else int(stop)
            found.append(Cooldown(j + 1, int(start), ended, resumed))
    return found


def _find_turn_on(telemetry: ArmTelemetry, j: int, start: int, stop: int) -> int | None:
    """First sample in (start, stop) with power after one without."""
    if "motor_on" not in telemetry:
        return None
    bits = telemetry["motor_on"][start:stop, j]
    again = np.flatnonzero((bits[1:] == 1) & (bits[:-1] == 0))
    return start + 1 + int(again[0]) if again.size else None


def is_fully_open(tripped: ArrayLike, parameters: Parameters) -> Mask:
    """Whether (n,) the fingers of the grapple count as fully open.

    Parameters
    ----------
    tripped : (n,)
        Whether the fingers-open limit switch is tripped; NaN if not read.
    parameters : Parameters
        limit_switch_persistence is the number of consecutive readings (SIS 5.1.3.30).
    """
    needed = max(parameters.number(GRAPPLE_SET, "limit_switch_persistence"), 1.0)
    return run_lengths(np.asarray(tripped, dtype=np.float64).reshape(-1) == 1) >= needed
