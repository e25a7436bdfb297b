"""S05: is an inertial sensor at rest as quiet, and its bias as constant, as it was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats
from transect.engine.params import param
from transect.integrity.learning import Usual
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import Imu

GYRO, ACC = ("gyro_x", "gyro_y", "gyro_z"), ("acc_x", "acc_y", "acc_z")
STILL_TURN, STILL_FORCE = 0.02, 0.1
"""rad/s and m/s2: change of a window's mean from the one before that is no motion."""


class Noise(Check, id="S05", group="signal", least=20):
    """At rest: ``sigma / sigma_0`` over the worst axis, and ``|mean - b_0| / sigma_b``.

    `sigma` is that of steps from sample to sample over the square root of two, so slow motion does not
    count. `sigma_0` is ``N sqrt(f)`` where the densities N of the data sheet are given, else what the
    first windows at rest had; `b_0` and `sigma_b` are median and deviation of those windows' means. Of
    accelerometers the bias is that of the size of gravity, since the robot may stand askew. At rest means
    that no peer moves, and that the means are those of the window before.

    Motive: Document 001, Table 2: Allan parameters of its inertial sensor.
    """

    ratio = Limit(1.5, 3.0, "NOISE", "", "noise over the usual noise")
    bias = Limit(3.0, 10.0, "BIAS", "", "change of the mean in its usual deviations")
    gyro_density: float = param(0.0, ge=0.0, unit="rad/s/sqrt(Hz)", doc="of the data sheet; 0: learned")
    acc_density: float = param(0.0, ge=0.0, unit="m/s2/sqrt(Hz)", doc="of the data sheet; 0: learned")

    def reset(self) -> None:
        """Nothing is known of the sensor yet."""
        self._noise = [Usual(least=10) for _ in range(6)]
        self._bias = [Usual(least=10) for _ in range(4)]
        self._before: Floats | None = None

    def look(self, imu: Window[Imu], peers: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Compare noise and means of a window at rest with those of the first ones."""
        if not imu.has(*GYRO, *ACC):
            return Unknown("NO_NUMBERS", n=len(imu))
        values = imu.array(*GYRO, *ACC)
        mean, before = np.mean(values, axis=0), self._before
        self._before = mean
        if before is None or is_moving(peers) or not _is_still(mean, before):
            return Unknown("MOVING", n=len(imu))
        sigma = np.std(np.diff(values, axis=0), axis=0) / np.sqrt(2)
        level = np.append(mean[:3], np.linalg.norm(mean[3:]))
        usual = np.array([each.value for each in self._noise])
        middle, spread = (np.array([getattr(b, what) for b in self._bias]) for what in ("value", "spread"))
        for known, value in zip((*self._noise, *self._bias), (*sigma, *level), strict=True):
            known.learn(float(value))
        step = float(np.nanmedian(imu.steps_s))
        given = np.repeat([self.gyro_density, self.acc_density], 3) / np.sqrt(step)
        reference = np.where(given > 0, given, usual)
        if not np.isfinite(middle).all() or not (reference > 0).any():
            return Unknown("LEARNING", n=len(imu))
        ratio = float(np.nanmax(np.where(reference > 0, sigma / reference, np.nan)))
        floor = np.append(usual[:3], np.max(usual[3:])) / np.sqrt(len(imu))
        moved = np.abs(level - middle) / np.maximum(spread, floor)
        return Finding({"ratio": ratio, "bias": float(np.max(moved))}, len(imu))


def _is_still(mean: Floats, before: Floats) -> bool:
    change = np.abs(mean - before)
    turns = np.linalg.norm(mean[:3]) > 5 * STILL_TURN
    return bool((change[:3] < STILL_TURN).all() and (change[3:] < STILL_FORCE).all() and not turns)
