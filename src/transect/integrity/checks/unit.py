"""S06: can the numbers be in the units that were declared."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.engine.nodes import param
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.recording.plausibility import ACCELERATION, CHECKS, RATE, STANDARD_GRAVITY
from transect.types import Imu

SPAN_S = 30.0
"""Of the past that is judged."""
JUDGED, EVERY = (5,), 10
"""Windows after which units are judged first, and then from one judgement to the next."""
STILL = 0.05
"""rad/s of turning and m/s2 of change over a window that are rest."""
SAME = 0.5
"""Part of the samples that may repeat the one before."""
FREE = 0.3
"""Part of gravity below which it was taken out of the accelerations."""


class UnitSanity(Check, id="S06", group="signal", version=3, least=5):
    """At rest ``||a| - g|``; the 99th percentile of the turn rate; and units that contradict each other.

    The latter are the judgements of `transect info`: gravity that is 1 (in g), rates that gravity
    contradicts (in deg/s), stamps that are too fast or too slow (in ms, us). Accelerations without
    gravity are no fault.

    Motive: Document 000 has rates in deg/s beside rad/s; document 001 prints 8.27 rad/s/sqrt(Hz).
    """

    weight = Limit(0.3, 1.0, "UNIT", "m/s2", "size of the acceleration at rest, less gravity")
    turn = Limit(15.0, 20.0, "UNIT", "rad/s", "99th percentile of the turn rate")
    units = Limit(0.0, 1.0, "UNIT", "", "units that cannot be as declared")
    gravity: float = param(STANDARD_GRAVITY, gt=0.0, unit="m/s2", doc="where the robot is; 3.71 on Mars")

    def reset(self) -> None:
        """No unit is known to be wrong yet."""
        self._windows, self._found = 0, ""

    def look(self, imu: Window[Imu]) -> Finding | Unknown:
        """Measure gravity and rates of the window; now and then judge the units of the last half minute."""
        self._windows += 1
        if self._windows in JUDGED or self._windows % EVERY == 0:
            self._found = _judge_units(imu.history(SPAN_S))
        statistics = {"units": float(bool(self._found))}
        if imu.has(*RATE):
            statistics["turn"] = float(np.percentile(np.linalg.norm(imu.array(*RATE), axis=1), 99))
        if imu.has(*ACCELERATION):
            statistics["weight"] = self._gravity(imu)
        return Finding(statistics, len(imu), note=self._found)

    def _gravity(self, imu: Window[Any]) -> float:
        """Return how far the size of the mean acceleration at rest is from gravity; NaN in motion."""
        half = len(imu) // 2
        forces = imu.array(*ACCELERATION)
        change = np.linalg.norm(forces[:half].mean(axis=0) - forces[half:].mean(axis=0))
        turn = np.linalg.norm(imu.array(*RATE).mean(axis=0)) if imu.has(*RATE) else 0.0
        size = float(np.linalg.norm(forces.mean(axis=0)))
        stuck = np.mean((np.diff(forces, axis=0) == 0).all(axis=1)) > SAME  # that is no rest, see S01
        if stuck or change > STILL or turn > STILL or size < FREE * self.gravity:
            return float("nan")
        return abs(size - self.gravity)


def _judge_units(past: Window[Any]) -> str:
    """Return what cannot be as declared, in words; "" if nothing is found."""
    stream = past.as_stream()
    found = [str(finding) for judge in CHECKS if (finding := judge(stream)) is not None]
    return "; ".join(found)
