"""T05: do stamps go forward."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window

NEWEST, FEWEST = 200, 20
"""Stamps of which a part is told: at most and at least, so that one that is repeated is SUSPECT at most."""


class Order(Check, id="T05", group="timing", version=2, k_on=1, k_off=1):
    """How many stamps are earlier than the one before, and which part of the newest 200 equals it.

    A window in which none is repeated is fine, whatever the newest 200 have.

    Motive: Document 004: "All files start with a time stamp"; one sample per line, in order.
    """

    backwards = Limit(0.0, 1.0, "BACKWARD", "", "stamps that are earlier than the one before")
    repeated = Limit(0.001, 0.01, "DUPLICATE", "", "part of the stamps that equal the one before")

    def reset(self) -> None:
        """No stamps are known yet."""
        self._counts: deque[tuple[int, int]] = deque()

    def look(self, stream: Window[Any]) -> Finding | Unknown:
        """Count steps that are negative, and of the newest ones those that are zero."""
        steps = stream.steps_s
        known = int(np.isfinite(steps).sum())
        if not known:
            return Unknown("TOO_FEW", n=len(stream))
        back = steps[steps < 0]
        self._counts.append((known, int((steps == 0).sum())))
        while sum(n for n, _ in self._counts) - self._counts[0][0] >= NEWEST:
            self._counts.popleft()
        newest, repeats = (sum(each) for each in zip(*self._counts, strict=True))
        statistics = {"backwards": float(len(back))}
        if newest >= FEWEST:
            statistics["repeated"] = repeats / newest if self._counts[-1][1] else 0.0
        evidence = {"furthest_s": float(-back.min(initial=0.0)), "repeats": float(repeats)}
        return Finding(statistics, known, evidence)
