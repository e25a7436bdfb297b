"""Raw counts of the motor controller from angles, currents and temperatures.

Every channel is linear: ``value = slope * (raw - offset)``. The SIS prints the current as ``I_M * I_H -
I_B``, but with an offset of 2048 LSB only ``I_M * (I_H - I_B)`` is a current.

Raw counts are rounded to the whole number that the controller would report, unless ``rounded=False``. They
are float64, so that NaN remains "not measured".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError, ParseError
from transect.geometry.array_checks import floats

from .parameters import Parameters

_JOINT_SET = "RA_JOINT_PARAMS"


def angle_from_encoder(count: ArrayLike, parameters: Parameters) -> Floats:
    """Joint angles (..., 4), rad, from encoder counts (..., 4).

    rad_per_enc * (count / gear_ratio - enc_offset). The SIS gives `enc_offset` in LSB, but its numbers are
    consistent only with counts divided by the gear ratio.
    """
    return _encoder(parameters).value(count)


def encoder_from_angle(angle: ArrayLike, parameters: Parameters, *, rounded: bool = True) -> Floats:
    """Encoder counts (..., 4) at joint angles (..., 4) in rad."""
    return _encoder(parameters).raw(angle, rounded)


def pot_from_angle(angle: ArrayLike, parameters: Parameters, *, rounded: bool = True) -> Floats:
    """Potentiometer readings (..., 4) at joint angles (..., 4) in rad."""
    return _pot(parameters).raw(angle, rounded)


def raw_from_current(current: ArrayLike, parameters: Parameters, *, rounded: bool = True) -> Floats:
    """Readings (..., 4) of motor currents (..., 4) in A."""
    return _current(parameters).raw(current, rounded)


def raw_from_temperature(temperature: ArrayLike, parameters: Parameters, *, rounded: bool = True) -> Floats:
    """Readings (..., 5), or (..., 4) without the grapple, of temperatures in degrees Celsius."""
    return _temperature(temperature, parameters).raw(temperature, rounded)


@dataclass(frozen=True, eq=False)
class _LinearChannels:
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


def _encoder(parameters: Parameters) -> _LinearChannels:
    gear = parameters.numbers(_JOINT_SET, "gear_ratio")
    with np.errstate(divide="ignore"):
        slope = parameters.numbers(_JOINT_SET, "rad_per_enc") / gear
    return _LinearChannels("encoders", slope, parameters.numbers(_JOINT_SET, "enc_offset") * gear)


def _pot(parameters: Parameters) -> _LinearChannels:
    with np.errstate(divide="ignore"):
        slope = 1.0 / parameters.numbers(_JOINT_SET, "pot.m")
    return _LinearChannels("potentiometers", slope, parameters.numbers(_JOINT_SET, "pot.b"))


def _current(parameters: Parameters) -> _LinearChannels:
    return _LinearChannels(
        "currents", parameters.numbers(_JOINT_SET, "current.m"), parameters.numbers(_JOINT_SET, "current.b")
    )


def _temperature(values: ArrayLike, parameters: Parameters) -> _LinearChannels:
    shape = np.shape(values)
    channels = shape[-1] if shape else 0
    if channels not in (4, 5):
        raise GeometryError(
            f"temperatures: expected shape (..., 5), or (..., 4) without the grapple, got {shape}"
        )
    slope, offset = (parameters.numbers("RA_TAU_PARAMS", key)[:channels] for key in ("temp.m", "temp.b"))
    return _LinearChannels("temperatures", slope, offset)
