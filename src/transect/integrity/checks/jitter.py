"""T04: how regular are the steps from sample to sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from transect.geometry.robust import NORMAL
from transect.integrity.baselines import EVEN, Pace, fit_multiples
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window

STEPS, QUIET_STEPS = 20, 8
"""Steps from which jitter is told, and from which that of a quiet stream is: those of the window, or the
newest where it has fewer."""
BATCHED, SAME_RATE = 0.4, 0.3
"""Part of the usual step below which most steps are of a batch, and by which the mean may differ."""
CHANCE = 3.5
"""Times the usual jitter over the root of the steps: what chance adds to it, three deviations."""
AT_MOST_SUSPECT = 0.2
"""Score of a stream whose steps were never even."""


class Jitter(Check, id="T04", group="timing", version=4):
    """``1.4826 MAD(dt) / median(dt)``: the deviation of the steps, as a part of the step.

    Half of the steps must be off before it moves. Where samples are lost, steps are whole multiples of the
    usual one, and the deviation is that from these multiples. What chance may add to the usual jitter is
    taken off. Where samples come at their rate, but in batches, most steps are alike and far too short: then
    the deviation is that from the usual step. A stream whose steps are uneven from the beginning is SUSPECT
    at most: its sensor may measure when it can, and stamp it well.

    Motive: Document 001: cameras "synchronized by software", stamps in ms.
    """

    jitter = Limit(0.1, 0.5, "JITTER", "", "deviation of steps over the usual step")

    def reset(self) -> None:
        """Nothing is known of the stream's pace yet."""
        self._pace = Pace()

    def look(self, stream: Window[Any]) -> Finding | Unknown:
        """Measure the deviation of the steps."""
        self._pace.learn(stream.steps_s)
        least = QUIET_STEPS if self._pace.is_quiet else STEPS
        steps = stream.steps_s[stream.steps_s > 0]
        steps = steps if len(steps) >= least else self._pace.newest(least)
        if len(steps) < least or not math.isfinite(self._pace.step):
            return Unknown("TOO_FEW", n=len(stream))
        if not self._pace.is_steady(stream.stream):
            return Unknown("IRREGULAR", n=len(stream), evidence={"jitter": self._pace.jitter})
        middle, usual = float(np.median(steps)), self._pace.step
        all_steps = stream.steps_s[np.isfinite(stream.steps_s)] if len(stream) > least else steps
        if middle < BATCHED * usual and abs(float(np.mean(all_steps)) / usual - 1) < SAME_RATE:
            middle = usual
        jitter = NORMAL * float(np.median(np.abs(steps - middle))) / middle
        _, off = fit_multiples(steps, usual)
        jitter = min(jitter, off) if off <= EVEN else jitter
        jitter = max(0.0, jitter - CHANCE * self._pace.jitter / math.sqrt(len(steps)))
        floor = 0.0 if self._pace.is_even(stream.stream) else AT_MOST_SUSPECT
        return Finding({"jitter": jitter}, len(steps), {"step_s": middle}, floor=floor)
