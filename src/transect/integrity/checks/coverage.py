"""T01: does a sensor start with the others, and go on to the end."""

from __future__ import annotations

import math
from typing import Any

from transect.base.clocks import NS
from transect.integrity.baselines import Pace
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window

AT_MOST_SUSPECT = 0.2
"""Score of the window in which a late sensor begins: it is there now."""
PATIENCE = 3
"""Usual steps without a sample that are no silence."""


class Coverage(Check, id="T01", group="timing", least=0, k_on=1, k_off=1, version=2):
    """Seconds without samples since the session began, or since the last sample.

    ``late = t1 - t_start`` until the first sample, and ``t_first - t_start`` in the window in which it comes;
    ``silent = t1 - t_last`` afterwards, if it is more than three usual steps. A window without samples is
    BAD with NO_DATA once the silence is long enough; at the end of a recording the reason is EARLY_STOP, at
    its begin LATE_START.

    Motive: Document 004: lasers and radar "start 14 to 18 seconds later", lasers "stop about 88 seconds
    before".
    """

    late = Limit(1.0, 5.0, "LATE_START", "s", "since the session began, and no sample yet")
    silent = Limit(1.0, 5.0, "NO_DATA", "s", "since the last sample")

    def reset(self) -> None:
        """Nothing is known of the stream's pace yet."""
        self._pace = Pace()

    def look(self, stream: Window[Any]) -> Finding | Unknown:
        """Measure the silence at the end of the window."""
        silence, begin = stream.silence_s, int(stream.track.grid.edges[0])
        if silence is None:
            return Finding({"late": (stream.t1_ns - begin) / NS}, 0)
        self._pace.learn(stream.steps_s)
        if not stream.start and len(stream) and (late := (int(stream.t_ns[0]) - begin) / NS) > self.late.warn:
            return Finding({"late": late}, len(stream), floor=AT_MOST_SUSPECT)
        step = self._pace.step
        if not (math.isfinite(step) and self._pace.is_steady(stream.stream)):
            return Unknown("IRREGULAR" if math.isfinite(step) else "TOO_FEW", n=len(stream))
        silent = silence if silence > PATIENCE * step else 0.0
        reason = "EARLY_STOP" if stream.is_over and not len(stream) else ""
        return Finding({"silent": silent}, len(stream), {"step": step}, reason)
