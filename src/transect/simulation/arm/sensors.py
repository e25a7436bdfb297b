"""What the motor controller of the simulated arm measures: whole counts, and what the counts stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats

from ..randomness import generator
from .model import Sets

POT_NOISE = 0.4
"""LSB."""
POT_BOW = 1.5e-3
"""rad by which a potentiometer is not linear; Table 12 of the SIS shows differences of 1 to 3 mrad."""
CURRENT_NOISE = 0.35
"""LSB; Table 12 shows currents of one LSB while the motors are off."""
TEMPERATURE_NOISE = 0.3
VOLT_STEP = 30.0 / 255.0
"""V, of a converter of 8 bits; the SIS does not say."""
HEATER_OFFSET, HEATER_NOISE, HEATER_STEP = 1.5e-3, 2e-4, 5e-4
"""A; Table 12 shows 0.0015 while no heater is on."""


@dataclass(frozen=True, eq=False)
class Sensors:
    """The converters by RA_JOINT_PARAMS and RA_TAU_PARAMS, and the seed of their noise."""

    sets: Sets
    seed: int

    def _numbers(self, name: str, key: str) -> Floats:
        return np.asarray(self.sets[name][key], dtype=np.float64)

    def _noise(self, purpose: str, shape: tuple[int, ...]) -> Floats:
        return generator(self.seed, "Arm", purpose).standard_normal(shape)

    def encoders(self, q: Floats) -> Floats:
        """Angles (n, 4) by the encoders, which count whole turns of the motors (spec, 4.7)."""
        per, gear, zero = (
            self._numbers("RA_JOINT_PARAMS", k) for k in ("rad_per_enc", "gear_ratio", "enc_offset")
        )
        counts = np.rint(gear * (q / per + zero))
        return per * (counts / gear - zero)

    def pots(self, q: Floats, slipped: Floats) -> Floats:
        """Angles (n, 4) by the potentiometers, whose wipers have slipped by (n, 4) rad (spec, 4.8)."""
        b, m = self._numbers("RA_JOINT_PARAMS", "pot.b"), self._numbers("RA_JOINT_PARAMS", "pot.m")
        bow = POT_BOW * np.sin(2.0 * q + np.array([0.3, 1.4, 2.2, 0.9]))
        counts = np.rint(b + m * (q + bow + slipped) + POT_NOISE * self._noise("pot", q.shape))
        return (counts - b) / m

    def currents(self, ampere: Floats) -> Floats:
        """Motor currents (n, 4), A."""
        m = self._numbers("RA_JOINT_PARAMS", "current.m")
        return m * np.rint(ampere / m + CURRENT_NOISE * self._noise("current", ampere.shape))

    def volts(self, volt: Floats) -> Floats:
        """Motor voltages (n, 4) as they were commanded, V."""
        return VOLT_STEP * np.rint(volt / VOLT_STEP)

    def temperatures(self, celsius: Floats) -> Floats:
        """Temperatures (n, 5) of the four cases and the grapple, degC (spec, 4.8)."""
        b, m = self._numbers("RA_TAU_PARAMS", "temp.b"), self._numbers("RA_TAU_PARAMS", "temp.m")
        counts = np.rint(celsius / m + b + TEMPERATURE_NOISE * self._noise("temperature", celsius.shape))
        return (counts - b) * m

    def references(self, rows: int, drift: Floats) -> Floats:
        """Reference voltages (rows, 2), V, which have drifted by (rows, 2)."""
        b, m = self._numbers("RA_JOINT_PARAMS", "vref.b"), self._numbers("RA_JOINT_PARAMS", "vref.m")
        nominal = self._numbers("RA_FAULT_DETECT", "vref_nominal") + drift
        return (np.rint(nominal / m + b + 0.5 * self._noise("vref", (rows, 2))) - b) * m

    def heater_current(self, ampere: Floats) -> Floats:
        """Sum of the heater currents (n,), A."""
        noisy = ampere + HEATER_OFFSET + HEATER_NOISE * self._noise("heater", ampere.shape)
        return HEATER_STEP * np.rint(noisy / HEATER_STEP)
