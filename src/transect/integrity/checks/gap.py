"""T02: are samples missing between others."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.engine.nodes import param
from transect.integrity.baselines import EVEN, Pace
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window

NEWEST = 10
"""Steps of which the part that is lost is told; all of the window where it has more."""
LONGER = 1.5
"""Usual steps from which on a step is longer: something is lost in it."""


class Gap(Check, id="T02", group="timing", k_on=1, k_off=1, version=5):
    """The longest step of a window against the usual step: ``ratio = max dt / median dt``.

    Steps shorter than `shortest` are SUSPECT at most: a few lost samples do not make a sensor useless. So is
    a step of at least that length that has not ended when the window does. ``lost = (T / step - n) / (T /
    step)`` is for sensors with few samples in a window: of the newest ten steps, n in T seconds, if some of
    them are usual ones and some are longer. Where steps are alike, ratios are rounded to whole ones: jitter
    does not decide what is lost.

    Motive: Document 002: "possible to have a gap, or a jump, in the SCLK".
    """

    ratio = Limit(3.0, 10.0, "GAP", "", "longest step over the usual step")
    lost = Limit(0.1, 1.0, "GAP", "", "part of the newest samples that are missing")
    shortest: float = param(0.5, ge=0.0, unit="s", doc="shortest gap that is BAD")

    def reset(self) -> None:
        """Nothing is known of the stream's pace yet."""
        self._pace = Pace()
        self._newest: deque[float] = deque(maxlen=NEWEST)

    def look(self, stream: Window[Any]) -> Finding | Unknown:
        """Compare the longest step with the usual one before it."""
        usual = self._pace.step
        self._pace.learn(stream.steps_s)
        steps = _steps_ahead(stream)
        self._newest.extend(steps[np.isfinite(steps)].tolist())
        usual = usual if math.isfinite(usual) else self._pace.step
        if not math.isfinite(usual):
            return Unknown("TOO_FEW", n=len(stream))
        if not self._pace.is_steady(stream.stream):
            return Unknown("IRREGULAR", n=len(stream), evidence={"jitter": self._pace.jitter})
        longest, still = float(np.nanmax(steps, initial=0.0)), stream.silence_s or 0.0
        ratio = self._weigh(longest, usual, longest < self.shortest)
        if still >= self.shortest:
            ratio = max(ratio, self._weigh(still, usual, True))
        statistics = {"ratio": ratio}
        if self._pace.is_even(stream.stream):
            newest = steps if len(steps) > NEWEST else np.array(self._newest)
            statistics["lost"] = _find_lost(newest, usual) if longest > LONGER * usual else 0.0
        return Finding(statistics, len(stream), {"longest_s": max(longest, still), "usual_s": usual})

    def _weigh(self, step: float, usual: float, harmless: bool) -> float:
        """Return a step over the usual one, no more than what is SUSPECT if it is harmless."""
        ratio, limit = step / usual, self.ratio
        ratio = float(np.rint(ratio)) if self._pace.jitter <= EVEN else ratio
        return min(ratio, limit.warn + 0.5 * (limit.fail - limit.warn)) if harmless else ratio


def _steps_ahead(stream: Window[Any]) -> Floats:
    """Return steps (n,) without what only makes up for the step before, if that went back."""
    steps, first = stream.steps_s.copy(), max(stream.start - 1, 0)
    before = stream.track.steps_s[first : stream.stop - 1]
    made_up = np.flatnonzero(before < 0) + len(steps) - len(before)
    steps[made_up] += before[before < 0]
    return steps


def _find_lost(steps_s: Floats, usual: float) -> float:
    """Return which part of the samples is missing between those that came."""
    known = steps_s[np.isfinite(steps_s)]
    if not (known < LONGER * usual).any():  # it came at another rate
        return 0.0
    expected = np.rint(float(np.sum(known)) / usual)
    return max(0.0, float(expected - len(known)) / max(float(expected), 1.0))
