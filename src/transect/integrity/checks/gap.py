"""T02: are samples missing between others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from transect.engine.params import param
from transect.integrity.learning import Pace
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window


class Gap(Check, id="T02", group="timing", k_on=1, k_off=1):
    """The longest step of a window against the usual step: ``ratio = max dt / median dt``.

    Steps shorter than `shortest` are SUSPECT at most: a few lost samples do not make a sensor useless.

    Motive: Document 002: "possible to have a gap, or a jump, in the SCLK".
    """

    ratio = Limit(3.0, 10.0, "GAP", "", "longest step over the usual step")
    shortest: float = param(0.5, ge=0.0, unit="s", doc="shortest gap that is BAD")

    def reset(self) -> None:
        """Nothing is known of the stream's pace yet."""
        self._pace = Pace()

    def look(self, stream: Window[Any]) -> Finding | Unknown:
        """Compare the longest step with the usual one before it."""
        steps, usual = stream.steps_s, self._pace.step
        self._pace.learn(steps)
        usual = usual if math.isfinite(usual) else self._pace.step
        if not math.isfinite(usual):
            return Unknown("TOO_FEW", n=len(stream))
        if not self._pace.is_steady(stream.stream):
            return Unknown("IRREGULAR", n=len(stream), evidence={"jitter": self._pace.jitter})
        longest = float(np.nanmax(steps, initial=0.0))
        ratio, limit = longest / usual, self.ratio
        if longest < self.shortest:
            ratio = min(ratio, limit.warn + 0.5 * (limit.fail - limit.warn))
        return Finding({"ratio": ratio}, len(stream), {"longest_s": longest, "usual_s": usual})
