"""T03: do samples come as often as they should."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from transect.engine.nodes import param
from transect.geometry.robust import NORMAL
from transect.integrity.baselines import GAP_STEPS, Pace
from transect.integrity.model import NO_DATA, Check, Finding, Limit, Unknown
from transect.integrity.windows import Window

STEPS, QUIET_STEPS = 20, 5
"""Steps from which a rate is told, and that of a quiet stream: those of the window, or the newest where it
has fewer."""
CHANCE = 3.75  # Three standard errors of a median, each 1.25 deviations over the root of the steps.
AT_MOST_SUSPECT = 0.2  # Score where the median and the mean of the steps tell different rates.


class Rate(Check, id="T03", group="timing", version=4, least=0):
    """``|f - f_nominal| / f_nominal``, where f is one over the median step, or over the mean: the nearer one.

    Without a nominal rate those of the stream's first 400 steps are taken, if these were even. The median of
    steps of two lengths by turns is one or the other by chance, and samples that are stamped in batches are
    much closer than their rate (T04): the mean is not moved. Lost samples and gaps (T02) do not move the
    median. Where the two tell different rates it is SUSPECT at most.

    Motive: Document 004 states 15, 10 and 12.5 fps, 8 Hz and 1 kHz; document 001 140 and 142 Hz.
    """

    deviation = Limit(0.05, 0.2, "RATE", "", "part by which the rate is off")
    rate: float = param(0.0, ge=0.0, unit="Hz", doc="nominal rate; 0: as in the beginning")

    def reset(self) -> None:
        """Nothing is known of the stream's pace yet."""
        self._pace = Pace()

    def look(self, stream: Window[Any]) -> Finding | Unknown:
        """Compare the median step with the nominal one."""
        usual, own = self._pace.step, stream.steps_s[stream.steps_s > 0]
        off = (
            abs(float(np.median(own)) / usual - 1.0)
            if len(own) and self._pace.is_even(stream.stream)
            else 0.0
        )
        self._pace.learn(stream.steps_s, is_usual=off <= self.deviation.fail)
        nominal = self.rate or 1 / (usual if math.isfinite(usual) else self._pace.step)
        if not stream.stop:
            return NO_DATA
        least = QUIET_STEPS if self._pace.is_quiet else STEPS
        steps = own if len(own) >= least else self._pace.newest(least)
        is_known = self.rate > 0 or self._pace.is_settled
        if not (is_known and math.isfinite(nominal)) or len(steps) < least / 2:
            return Unknown("TOO_FEW", n=len(stream))
        if not self.rate and not self._pace.is_even(stream.stream):
            return Unknown("IRREGULAR", n=len(stream), evidence={"jitter": self._pace.jitter})
        all_steps = stream.steps_s[stream.steps_s < GAP_STEPS / nominal] if steps is own else steps
        middle, mean = float(np.median(steps)), float(np.sum(all_steps)) / max(len(all_steps), 1)
        ratios = np.array([middle * nominal, mean * (self.rate or 1 / self._pace.period)])
        off = float(np.min(np.abs(1 / np.maximum(ratios, 1e-9) - 1)))
        differ = abs(ratios[0] / max(ratios[1], 1e-9) - 1) > self.deviation.fail
        scatter = NORMAL * float(np.median(np.abs(steps - middle)))
        chance = CHANCE * max(scatter, self._pace.scatter) * nominal / math.sqrt(len(steps))
        return Finding(
            {"deviation": off if off > chance else min(off, self.deviation.warn)},
            len(steps),
            {"rate_hz": 1 / middle, "nominal_hz": nominal},
            floor=AT_MOST_SUSPECT if differ else 0.0,
        )
