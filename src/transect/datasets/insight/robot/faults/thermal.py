"""Faults of temperatures: heaters and sensors that do nothing, what overheats, and how it cools down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.base.clocks import NS
from transect.geometry import robust
from transect.geometry.robust import run_lengths

from ..parameters import MissingParameterError, Parameters
from .electrical import GRAPPLE_HEATERS, HEATER_OF_JOINT, grapple_heaters_on
from .rules import DETECT, Measure, fault
from .telemetry import Telemetry

THERMAL, GRAPPLE = "RA_THERMAL", "RA_GRAPPLE_PARAMS"


@fault(
    "heater-sensor",
    "heater_time, temp_delta",
    "tcase_raw heater_on",
    unit="LSB",
    samples="heater_rtd_samples",
)
def heater_sensor(telemetry: Telemetry, parameters: Parameters) -> Measure:
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
def grapple_heater_sensor(telemetry: Telemetry, parameters: Parameters) -> Measure:
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


def _measure_rise(telemetry: Telemetry, reading: Floats, on: Mask, time: Floats, delta: Floats) -> Measure:
    """By how much (n, k) readings rose since the heaters were turned on, tested `time` (k,) s after that."""
    lengths = run_lengths(on, telemetry.breaks)
    start = np.where(on, np.arange(len(on))[:, None] - lengths + 1, 0)
    elapsed_ns = telemetry.t_ns[:, None] - telemetry.t_ns[start]
    rise = reading - np.take_along_axis(reading, start, axis=0)
    return Measure(rise, delta, "below", when=on & (elapsed_ns >= np.rint(time * NS)))


@fault("rotor-overheat", "RA_THERMAL temp_max_rotor", "trotor", unit="degC", section="5.1.3.29")
def rotor_overheat(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """A rotor is warmer than temp_max_rotor."""
    return Measure(telemetry["trotor"], parameters.numbers(THERMAL, "temp_max_rotor"))


@fault("case-overheat", "RA_THERMAL temp_max_case", "tcase", unit="degC", section="5.1.3.29")
def case_overheat(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """A motor case is warmer than temp_max_case."""
    return Measure(telemetry["tcase"], parameters.numbers(THERMAL, "temp_max_case"))


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
def grapple_overheat(telemetry: Telemetry, parameters: Parameters) -> Measure:
    """The grapple is warmer than max_temperature."""
    return Measure(telemetry["tgrapple"], parameters.numbers(GRAPPLE, "max_temperature"))


FAULTS = (heater_sensor, grapple_heater_sensor, rotor_overheat, case_overheat, grapple_overheat)


@dataclass(frozen=True)
class Cooldown:
    """One time that a joint had to cool down."""

    joint: int  # 1 to 4
    # start, stop: samples: overheated, and cool again; `stop` is None if it was not cool to the end
    start: int
    stop: int | None
    # sample on which its motor was turned on again too early; None if it was not, or if it is not known
    resumed: int | None


def cooling(telemetry: Telemetry, parameters: Parameters) -> Mask:
    """Return where (n, 4) a joint must not move: overheated, not yet down to temp_cooldown (SIS 5.1.3.29).

    Rotor and case are each watched where the telemetry has them; the SIS does not say which one is to cool.
    """
    cooled = parameters.numbers(THERMAL, "temp_cooldown")
    state = np.zeros((len(telemetry), 4), dtype=bool)
    for name, overheated in (("trotor", rotor_overheat), ("tcase", case_overheat)):
        if name in telemetry:
            hot = overheated.measure(telemetry, parameters).anomalies()
            state |= _latch(hot, telemetry[name] <= cooled)
    return state


def _latch(set_: Mask, reset: Mask) -> Mask:
    """True (n, k) from a sample that sets up to one that resets."""
    number = np.arange(len(set_))[:, None]
    last = np.maximum.accumulate(np.where(set_ | reset, number, 0), axis=0)
    return np.take_along_axis(set_, last, axis=0)


def cooldowns(telemetry: Telemetry, parameters: Parameters) -> list[Cooldown]:
    """Return every cooling down, by joint and time."""
    state = cooling(telemetry, parameters)
    found: list[Cooldown] = []
    for j in range(4):
        for start, stop in zip(*robust.runs(state[:, j]), strict=True):
            resumed = _find_turn_on(telemetry, j, int(start), int(stop))
            ended = None if stop == len(telemetry) else int(stop)
            found.append(Cooldown(j + 1, int(start), ended, resumed))
    return found


def _find_turn_on(telemetry: Telemetry, j: int, start: int, stop: int) -> int | None:
    """First sample in (start, stop) that has power after one that had none."""
    if "motor_on" not in telemetry:
        return None
    bits = telemetry["motor_on"][start:stop, j]
    again = np.flatnonzero((bits[1:] == 1) & (bits[:-1] == 0))
    return start + 1 + int(again[0]) if again.size else None


def fully_open(tripped: ArrayLike, parameters: Parameters) -> Mask:
    """Return where (n,) the grapple's fingers count as fully open.

    Parameters
    ----------
    tripped : (n,)
        Whether the fingers-open limit switch reads tripped; NaN where it was not read.
    parameters : Parameters
        limit_switch_persistence: as many readings in a row are needed (SIS 5.1.3.30).
    """
    needed = max(parameters.number(GRAPPLE, "limit_switch_persistence"), 1.0)
    return run_lengths(np.asarray(tripped, dtype=np.float64).reshape(-1) == 1) >= needed
