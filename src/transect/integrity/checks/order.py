"""T05: do stamps go forward."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window


class Order(Check, id="T05", group="timing", k_on=1, k_off=1):
    """How many stamps are earlier than the one before, and which part of them equals it.

    Motive: Document 004: "All files start with a time stamp"; one sample per line, in order.
    """

    backwards = Limit(0.0, 1.0, "BACKWARD", "", "stamps that are earlier than the one before")
    repeated = Limit(0.001, 0.01, "DUPLICATE", "", "part of the stamps that equal the one before")

    def look(self, stream: Window[Any]) -> Finding | Unknown:
        """Count steps that are negative or zero."""
        steps = stream.steps_s
        known = int(np.isfinite(steps).sum())
        if not known:
            return Unknown("TOO_FEW", n=len(stream))
        back = steps[steps < 0]
        repeated = int((steps == 0).sum())
        evidence = {"furthest_s": float(-back.min(initial=0.0)), "repeats": float(repeated)}
        return Finding({"backwards": float(len(back)), "repeated": repeated / known}, known, evidence)
