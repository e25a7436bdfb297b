"""Between the whole numbers that the motor controller reports and angles, currents, temperatures, volts.

Every channel is a straight line: ``value = slope * (raw - offset)``. The SIS prints the current as
``I_M * I_H - I_B``, but with an offset of 2048 LSB only ``I_M * (I_H - I_B)`` is a current (errata 4.9).

A raw number is rounded to the whole number that the controller would report, unless ``rounded=False``; both
are float64, so that NaN stays "not measured".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError, ParseError
from transect.geometry.array_checks import floats

from .parameters import Parameters

JOINTS = "RA_JOINT_PARAMS"


def angle_from_encoder(count: ArrayLike, parameters: Parameters) -> Floats:
    """Joint angles (..., 4), rad, from encoder counts (..., 4).

    rad_per_enc * (count / gear_ratio - enc_offset). The SIS calls `enc_offset` LSBs; only counts
    divided by the gear ratio fit its numbers (errata 4.7).
    """
    return _encoder(parameters).value(count)


def encoder_from_angle(angle: ArrayLike, parameters: Parameters, *, rounded: bool = True) -> Floats:
    """Encoder counts (..., 4) at joint angles (..., 4) in rad."""
    return _encoder(parameters).raw(angle, rounded)


def encoder_resolution(parameters: Parameters) -> Floats:
    """By how much (4,) a joint turns in one encoder count, rad."""
    return np.abs(_encoder(parameters).slope)


def angle_from_pot(raw: ArrayLike, parameters: Parameters) -> Floats:
    """Joint angles (..., 4) in rad from potentiometer readings (..., 4): (raw - b) / m."""
    return _pot(parameters).value(raw)


def pot_from_angle(angle: ArrayLike, parameters: Parameters, *, rounded: bool = True) -> Floats:
    """Potentiometer readings (..., 4) at joint angles (..., 4) in rad."""
    return _pot(parameters).raw(angle, rounded)


def pot_resolution(parameters: Parameters) -> Floats:
    """By how much (4,) a joint turns in one step of its potentiometer's reading, rad."""
    return np.abs(_pot(parameters).slope)


def current_from_raw(raw: ArrayLike, parameters: Parameters) -> Floats:
    """Motor currents (..., 4) in A from readings (..., 4): m (raw - b)."""
    return _current(parameters).value(raw)


def raw_from_current(current: ArrayLike, parameters: Parameters, *, rounded: bool = True) -> Floats:
    """Readings (..., 4) of motor currents (..., 4) in A."""
    return _current(parameters).raw(current, rounded)


def temperature_from_raw(raw: ArrayLike, parameters: Parameters) -> Floats:
    """Temperatures (..., 5) in degrees Celsius: the motor cases of joints 1 to 4, then the grapple.

    Readings (..., 4) without the grapple will do too.
    """
    return _temperature(raw, parameters).value(raw)


def raw_from_temperature(temperature: ArrayLike, parameters: Parameters, *, rounded: bool = True) -> Floats:
    """Readings (..., 5), or (..., 4) without the grapple, of temperatures in degrees Celsius."""
    return _temperature(temperature, parameters).raw(temperature, rounded)


def vref_from_raw(raw: ArrayLike, parameters: Parameters) -> Floats:
    """Reference voltages (..., 2) in V from readings (..., 2)."""
    return _vref(parameters).value(raw)


def raw_from_vref(voltage: ArrayLike, parameters: Parameters, *, rounded: bool = True) -> Floats:
    """Readings (..., 2) of reference voltages (..., 2) in V."""
    return _vref(parameters).raw(voltage, rounded)


@dataclass(frozen=True, eq=False)
class _Line:
    """``value = slope * (raw - offset)`` for each of k channels, (k,)."""

    name: str
    slope: Floats
    offset: Floats

    def __post_init__(self) -> None:
        bad = np.flatnonzero(~(np.isfinite(self.slope) & (self.slope != 0.0) & np.isfinite(self.offset)))
        if bad.size:
            raise ParseError(
                f"channel {bad[0] + 1} of the {self.name} cannot be converted",
                why=f"slope {self.slope[bad[0]]:g}, offset {self.offset[bad[0]]:g}",
                hint=f"correct the parameters of the {self.name} (RA_JOINT_PARAMS, RA_TAU_PARAMS)",
            )

    def value(self, raw: ArrayLike) -> Floats:
        return self.slope * (floats(self.name, raw, (..., len(self.slope))) - self.offset)

    def raw(self, value: ArrayLike, rounded: bool) -> Floats:
        raw = floats(self.name, value, (..., len(self.slope))) / self.slope + self.offset
        return np.round(raw) if rounded else raw


def _encoder(parameters: Parameters) -> _Line:
    gear = parameters.numbers(JOINTS, "gear_ratio")
    with np.errstate(divide="ignore"):
        slope = parameters.numbers(JOINTS, "rad_per_enc") / gear
    return _Line("encoders", slope, parameters.numbers(JOINTS, "enc_offset") * gear)


def _pot(parameters: Parameters) -> _Line:
    with np.errstate(divide="ignore"):
        slope = 1.0 / parameters.numbers(JOINTS, "pot.m")
    return _Line("potentiometers", slope, parameters.numbers(JOINTS, "pot.b"))


def _current(parameters: Parameters) -> _Line:
    return _Line("currents", parameters.numbers(JOINTS, "current.m"), parameters.numbers(JOINTS, "current.b"))


def _vref(parameters: Parameters) -> _Line:
    return _Line(
        "reference voltages", parameters.numbers(JOINTS, "vref.m"), parameters.numbers(JOINTS, "vref.b")
    )


def _temperature(values: ArrayLike, parameters: Parameters) -> _Line:
    shape = np.shape(values)
    channels = shape[-1] if shape else 0
    if channels not in (4, 5):
        raise GeometryError(
            f"temperatures: expected shape (..., 5), or (..., 4) without the grapple, got {shape}"
        )
    slope, offset = (parameters.numbers("RA_TAU_PARAMS", key)[:channels] for key in ("temp.m", "temp.b"))
    return _Line("temperatures", slope, offset)
