"""Checks of missing samples: late starts, silences and gaps (T01, T02)."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine.nodes import param
from transect.integrity.baselines import SETTINGS as BASELINES
from transect.integrity.baselines import SampleInterval
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window


@dataclass(frozen=True)
class StreamCoverageSettings:
    """Numbers of the silence at the begin and end of a window."""

    late_start_score: float = 0.2  # Score of the window in which a late sensor starts: it is there now.
    min_silent_intervals: int = 3  # Usual intervals without a sample that are a silence.


class StreamCoverage(Check, id="T01", group="timing", min_samples=0, k_on=1, k_off=1, version=2):
    """Seconds without samples since the session began, or since the last sample.

    ``late = t1 - t_start`` until the first sample, and ``t_first - t_start`` in the window in which it
    comes; ``silent = t1 - t_last`` afterwards, if it is more than three usual intervals. A window without
    samples is BAD with NO_DATA once the silence is long enough; at the end of a recording the reason is
    EARLY_STOP, at its begin LATE_START.

    Motive: SDI: lasers and radar "start 14 to 18 seconds later", lasers "stop about 88 seconds before".
    """

    settings = StreamCoverageSettings()

    late = Limit(1.0, 5.0, "LATE_START", "s", "since the session began, without a sample")
    silent = Limit(1.0, 5.0, "NO_DATA", "s", "since the last sample")

    def reset(self) -> None:
        """Start without a known interval."""
        self._interval = SampleInterval()

    def evaluate(self, stream: Window[Any]) -> Finding | Unknown:
        """Measure the silence at the end of the window."""
        silence, begin = stream.silence_s, int(stream.windowed.grid.edges[0])
        if silence is None:
            return Finding({"late": (stream.t1_ns - begin) / NS}, 0)
        self._interval.learn(stream.steps_s)
        if not stream.start and len(stream) and (late := (int(stream.t_ns[0]) - begin) / NS) > self.late.warn:
            return Finding({"late": late}, len(stream), min_score=self.settings.late_start_score)
        step = self._interval.step
        if not (math.isfinite(step) and self._interval.is_periodic(stream.stream)):
            return Unknown("IRREGULAR" if math.isfinite(step) else "TOO_FEW", n=len(stream))
        silent = silence if silence > self.settings.min_silent_intervals * step else 0.0
        reason = "EARLY_STOP" if stream.is_over and not len(stream) else ""
        return Finding({"silent": silent}, len(stream), {"step": step}, reason)


@dataclass(frozen=True)
class SampleGapSettings:
    """Numbers of the search for lost samples."""

    recent_intervals: int = 10  # Intervals in which losses are counted; all of the window if it has more.
    min_lossy_intervals: float = 1.5  # Usual intervals from which on an interval contains a lost sample.


class SampleGap(Check, id="T02", group="timing", k_on=1, k_off=1, version=5):
    """Longest interval of a window over the usual one: ``ratio = max dt / median dt``.

    Gaps shorter than `shortest` are SUSPECT at most: a few lost samples do not make a sensor useless. So
    is a longer one that has not ended when the window does. ``lost = (T / step - n) / (T / step)`` is for
    sensors with few samples in a window: over the newest ten intervals, n in T seconds, if some of them
    are usual and some are longer. For regular streams ratios are rounded to whole numbers, so that jitter
    does not decide what is lost.

    Motive: InSight SIS: "possible to have a gap, or a jump, in the SCLK".
    """

    settings = SampleGapSettings()

    ratio = Limit(3.0, 10.0, "GAP", "", "times the usual interval without a sample")
    lost = Limit(0.1, 1.0, "GAP", "", "fraction of the newest samples that are missing")
    shortest: float = param(0.5, ge=0.0, unit="s", doc="shortest gap that may be BAD")

    def reset(self) -> None:
        """Start without a known interval."""
        self._interval = SampleInterval()
        self._newest: deque[float] = deque(maxlen=self.settings.recent_intervals)

    def evaluate(self, stream: Window[Any]) -> Finding | Unknown:
        """Compare the longest interval with the usual one."""
        usual = self._interval.step
        self._interval.learn(stream.steps_s)
        steps = _find_intervals(stream)
        self._newest.extend(steps[np.isfinite(steps)].tolist())
        usual = usual if math.isfinite(usual) else self._interval.step
        if not math.isfinite(usual):
            return Unknown("TOO_FEW", n=len(stream))
        if not self._interval.is_periodic(stream.stream):
            return Unknown("IRREGULAR", n=len(stream), evidence={"jitter": self._interval.jitter})
        longest, silent = float(np.nanmax(steps, initial=0.0)), stream.silence_s or 0.0
        ratio = self._limit_ratio(longest, usual, longest < self.shortest)
        if silent >= self.shortest:
            ratio = max(ratio, self._limit_ratio(silent, usual, True))
        statistics = {"ratio": ratio}
        if self._interval.is_regular(stream.stream):
            newest = steps if len(steps) > self.settings.recent_intervals else np.array(self._newest)
            statistics["lost"] = (
                _find_lost(newest, usual, self.settings)
                if longest > self.settings.min_lossy_intervals * usual
                else 0.0
            )
        return Finding(statistics, len(stream), {"longest_s": max(longest, silent), "usual_s": usual})

    def _limit_ratio(self, step: float, usual: float, is_harmless: bool) -> float:
        """Return an interval over the usual one; a harmless one is limited to SUSPECT."""
        ratio, limit = step / usual, self.ratio
        ratio = float(np.rint(ratio)) if self._interval.jitter <= BASELINES.max_regular_jitter else ratio
        return min(ratio, limit.warn + 0.5 * (limit.fail - limit.warn)) if is_harmless else ratio


def _find_intervals(stream: Window[Any]) -> Floats:
    """Return intervals (n,) in which a step back and the step that makes up for it cancel."""
    steps, first = stream.steps_s.copy(), max(stream.start - 1, 0)
    before = stream.windowed.steps_s[first : stream.stop - 1]
    restored = np.flatnonzero(before < 0) + len(steps) - len(before)
    steps[restored] += before[before < 0]
    return steps


def _find_lost(steps_s: Floats, usual: float, settings: SampleGapSettings) -> float:
    """Return the fraction of samples that is missing between those that came."""
    known = steps_s[np.isfinite(steps_s)]
    if not (known < settings.min_lossy_intervals * usual).any():  # it came at another rate
        return 0.0
    expected = np.rint(float(np.sum(known)) / usual)
    return max(0.0, float(expected - len(known)) / max(float(expected), 1.0))
