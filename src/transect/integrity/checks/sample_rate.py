"""Checks of the sampling rate and its jitter (T03, T04)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.engine.nodes import param
from transect.geometry.robust import SIGMA_PER_MAD
from transect.integrity.baselines import SETTINGS as BASELINES
from transect.integrity.baselines import SampleInterval, fit_multiples
from transect.integrity.model import NO_DATA, Check, Finding, Limit, Unknown
from transect.integrity.windows import Window


@dataclass(frozen=True)
class RateSettings:
    """Numbers of the rate estimate."""

    # Intervals that determine a rate: those of the window, or the newest if it has fewer.
    min_intervals: int = 20
    min_low_jitter_intervals: int = 5  # The same for a stream with low jitter.
    chance_sigmas: float = 3.75  # Three standard errors of a median, each 1.25 sigma / sqrt(n).
    ambiguous_score: float = 0.2  # Minimum score if median and mean of the intervals give different rates.


class Rate(Check, id="T03", group="timing", version=4, min_samples=0):
    """Relative rate error ``|f - f_nominal| / f_nominal``; f is one over the median or the mean interval.

    The nearer of the two counts. The median of two alternating intervals is one of them by chance, and
    samples that are stamped in batches are closer than their rate (T04); neither affects the mean. Lost
    samples and gaps (T02) do not affect the median. Where the two rates differ, the score is SUSPECT at
    most. Without a nominal rate, that of the stream's first 400 intervals is used if these are regular.

    Motive: SDI states 15, 10 and 12.5 fps, 8 Hz and 1 kHz; Rosario 140 and 142 Hz.
    """

    settings = RateSettings()

    deviation = Limit(0.05, 0.2, "RATE", "", "relative error of the rate")
    rate: float = param(0.0, ge=0.0, unit="Hz", doc="nominal rate; 0: that of the first samples")

    def reset(self) -> None:
        """Start without a known interval."""
        self._interval = SampleInterval()

    def evaluate(self, stream: Window[Any]) -> Finding | Unknown:
        """Compare the rate of the window with the nominal one."""
        usual, own = self._interval.step, stream.steps_s[stream.steps_s > 0]
        off = (
            abs(float(np.median(own)) / usual - 1.0)
            if len(own) and self._interval.is_regular(stream.stream)
            else 0.0
        )
        self._interval.learn(stream.steps_s, is_usual=off <= self.deviation.fail)
        nominal = self.rate or 1 / (usual if math.isfinite(usual) else self._interval.step)
        if not stream.stop:
            return NO_DATA
        min_count = (
            self.settings.min_low_jitter_intervals
            if self._interval.has_low_jitter
            else self.settings.min_intervals
        )
        steps = own if len(own) >= min_count else self._interval.newest(min_count)
        is_known = self.rate > 0 or self._interval.is_settled
        if not (is_known and math.isfinite(nominal)) or len(steps) < min_count / 2:
            return Unknown("TOO_FEW", n=len(stream))
        if not self.rate and not self._interval.is_regular(stream.stream):
            return Unknown("IRREGULAR", n=len(stream), evidence={"jitter": self._interval.jitter})
        all_steps = (
            stream.steps_s[stream.steps_s < BASELINES.gap_intervals / nominal] if steps is own else steps
        )
        middle, mean = float(np.median(steps)), float(np.sum(all_steps)) / max(len(all_steps), 1)
        ratios = np.array([middle * nominal, mean * (self.rate or 1 / self._interval.period)])
        off = float(np.min(np.abs(1 / np.maximum(ratios, 1e-9) - 1)))
        differ = abs(ratios[0] / max(ratios[1], 1e-9) - 1) > self.deviation.fail
        scatter = SIGMA_PER_MAD * float(np.median(np.abs(steps - middle)))
        chance = (
            self.settings.chance_sigmas
            * max(scatter, self._interval.scatter)
            * nominal
            / math.sqrt(len(steps))
        )
        return Finding(
            {"deviation": off if off > chance else min(off, self.deviation.warn)},
            len(steps),
            {"rate_hz": 1 / middle, "nominal_hz": nominal},
            min_score=self.settings.ambiguous_score if differ else 0.0,
        )


@dataclass(frozen=True)
class JitterSettings:
    """Numbers of the jitter estimate."""

    # Intervals that determine jitter: those of the window, or the newest if it has fewer.
    min_intervals: int = 20
    min_low_jitter_intervals: int = 8  # The same for a stream with low jitter.
    # Batches: most intervals are shorter, as a ratio of the usual one, ...
    max_batched_interval: float = 0.4
    max_batched_rate_error: float = 0.3  # ... and the mean interval differs from it by less.
    chance_factor: float = 3.5  # Three standard errors of the jitter, as a multiple of jitter / sqrt(n).
    irregular_score: float = 0.2  # Minimum score of a stream that never was regular.


class Jitter(Check, id="T04", group="timing", version=4):
    """Robust standard deviation of the intervals over their median: ``1.4826 MAD(dt) / median(dt)``.

    Half of the intervals must deviate before it changes. Where samples are lost, intervals are whole
    multiples of the usual one, and the deviation is that from these multiples. The chance deviation of
    the usual jitter is subtracted. Where samples come at their rate but in batches, most intervals are
    equal and far too short; the deviation is then that from the usual interval. A stream that was
    irregular from the start is SUSPECT at most: its sensor may measure when it can, and stamp it
    correctly.

    Motive: Rosario: cameras "synchronized by software", stamps in ms.
    """

    settings = JitterSettings()

    jitter = Limit(0.1, 0.5, "JITTER", "", "standard deviation of the intervals over the usual interval")

    def reset(self) -> None:
        """Start without a known interval."""
        self._interval = SampleInterval()

    def evaluate(self, stream: Window[Any]) -> Finding | Unknown:
        """Measure the deviation of the intervals."""
        self._interval.learn(stream.steps_s)
        min_count = (
            self.settings.min_low_jitter_intervals
            if self._interval.has_low_jitter
            else self.settings.min_intervals
        )
        steps = stream.steps_s[stream.steps_s > 0]
        steps = steps if len(steps) >= min_count else self._interval.newest(min_count)
        if len(steps) < min_count or not math.isfinite(self._interval.step):
            return Unknown("TOO_FEW", n=len(stream))
        if not self._interval.is_periodic(stream.stream):
            return Unknown("IRREGULAR", n=len(stream), evidence={"jitter": self._interval.jitter})
        middle, usual = float(np.median(steps)), self._interval.step
        all_steps = stream.steps_s[np.isfinite(stream.steps_s)] if len(stream) > min_count else steps
        if (
            middle < self.settings.max_batched_interval * usual
            and abs(float(np.mean(all_steps)) / usual - 1) < self.settings.max_batched_rate_error
        ):
            middle = usual
        jitter = SIGMA_PER_MAD * float(np.median(np.abs(steps - middle))) / middle
        _, residual_ratio = fit_multiples(steps, usual)
        jitter = min(jitter, residual_ratio) if residual_ratio <= BASELINES.max_regular_jitter else jitter
        jitter = max(
            0.0, jitter - self.settings.chance_factor * self._interval.jitter / math.sqrt(len(steps))
        )
        floor = 0.0 if self._interval.is_regular(stream.stream) else self.settings.irregular_score
        return Finding({"jitter": jitter}, len(steps), {"step_s": middle}, min_score=floor)
