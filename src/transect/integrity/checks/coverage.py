"""T01: does a sensor start with the others, and go on to the end."""

from __future__ import annotations

import math
from typing import Any

from transect.base.clocks import NS
from transect.integrity.learning import Pace
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window

PATIENCE = 3
"""Usual steps without a sample that are no silence."""


class Coverage(Check, id="T01", group="timing", least=0, k_on=1, k_off=1):
    """Seconds without samples since the session began, or since the last sample.

    ``late = t1 - t_start`` until the first sample; ``silent = t1 - t_last - 3 step`` afterwards, where
    `step` is the usual one. A window without samples is BAD with NO_DATA once the silence is long enough;
    at the end of a recording the reason is EARLY_STOP, at its begin LATE_START.

    Motive: Document 004: lasers and radar "start 14 to 18 seconds later", lasers "stop about 88 seconds
    before".
    """

    late = Limit(1.0, 5.0, "LATE_START", "s", "since the session began, without any sample yet")
    silent = Limit(1.0, 5.0, "NO_DATA", "s", "since the last sample, beyond three usual steps")

    def reset(self) -> None:
        """Nothing is known of the stream's pace yet."""
        self._pace = Pace()

    def look(self, stream: Window[Any]) -> Finding | Unknown:
        """Measure the silence at the end of the window."""
        silence = stream.silence_s
        if silence is None:
            late = (stream.t1_ns - int(stream.track.grid.edges[0])) / NS
            return Finding({"late": late}, 0)
        self._pace.learn(stream.steps_s)
        step = self._pace.step
        if not (math.isfinite(step) and self._pace.is_steady(stream.stream)):
            return Unknown("IRREGULAR" if math.isfinite(step) else "TOO_FEW", n=len(stream))
        silent = max(0.0, silence - PATIENCE * step)
        reason = "EARLY_STOP" if stream.is_over and not len(stream) else ""
        return Finding({"silent": silent}, len(stream), {"step": step}, reason)
