"""Baselines that checks learn from the first windows of a stream: usual values and the sampling interval."""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry.robust import SIGMA_PER_MAD
from transect.recording import Stream
from transect.types import (
    Image,
    Imu,
    LaserScan,
    NavFix,
    PointCloud,
    Pose,
    RadarRange,
    RadarSpectrum,
    Record,
    WheelState,
)  # fmt: skip


@dataclass(frozen=True)
class BaselineSettings:
    """Numbers of `Baseline` and `SampleInterval`; intervals are the times between consecutive samples."""

    max_windows: int = 20  # Windows from which a baseline is learned; it stays constant afterwards.
    min_windows: int = 3  # Windows after which a baseline is used.
    max_regular_jitter: float = 0.1  # Regular stream: largest jitter, as a ratio of the median interval.
    max_periodic_jitter: float = 0.5  # Periodic stream: largest jitter, as a ratio of the median interval.
    min_intervals: int = 5  # Intervals that determine the sampling interval.
    # An interval that deviates by less, as a ratio of the usual one, contains no lost sample.
    max_single_deviation: float = 0.5
    recent_intervals: int = 200  # Most recent intervals that are kept.
    # Intervals after which the sampling interval is settled; before, each counts as usual.
    settled_intervals: int = 20
    # The same for a slow stream with low jitter, if they also last `settled_low_jitter_s`: the loop of a
    # logger may be regular for a second.
    settled_low_jitter_intervals: int = 10
    settled_low_jitter_s: float = 5.0
    max_low_jitter: float = 0.02  # Low jitter, as a ratio of the interval.
    # A multiple of the interval may deviate by this ratio of the interval: samples are lost.
    max_multiple_deviation: float = 0.1
    single_percentile: float = 10.0  # Percentile of the intervals that is a single one.
    # Minimum ratios of single intervals, and of whole multiples of them, in a stream that loses samples
    # and is not irregular.
    min_single_ratio: float = 1 / 3
    min_multiple_ratio: float = 0.95
    # An interval of this many usual ones is a gap (T02), and not used for the rate.
    gap_intervals: float = 10.0
    max_intervals: int = 400  # Intervals after which the sampling interval stays constant.


SETTINGS = BaselineSettings()


class Baseline:
    """Median of a value over the first windows of a stream; it does not follow a persistent fault."""

    def __init__(
        self, max_windows: int = SETTINGS.max_windows, min_windows: int = SETTINGS.min_windows
    ) -> None:
        self._values: list[float] = []
        self._max_windows, self._min_windows = max_windows, min_windows

    def learn(self, value: float) -> None:
        """Add the value of a window; NaN and values after the first windows are ignored."""
        if len(self._values) < self._max_windows and math.isfinite(value):
            insort(self._values, value)

    @property
    def value(self) -> float:
        """Baseline, NaN while too few windows are known."""
        if len(self._values) < self._min_windows:
            return math.nan
        middle = len(self._values) // 2
        return (self._values[middle] + self._values[~middle]) / 2

    @property
    def spread(self) -> float:
        """Robust standard deviation of the windows' values, NaN while too few are known."""
        if len(self._values) < self._min_windows:
            return math.nan
        return SIGMA_PER_MAD * float(np.median(np.abs(np.asarray(self._values) - self.value)))


SENSOR_TYPES = (Imu, NavFix, LaserScan, PointCloud, Image, RadarSpectrum, RadarRange, WheelState)
"""Types that are sampled periodically; others may be event-driven."""
COMPUTED_TYPES = (Pose, Record)
"""Types without a nominal rate."""


class SampleInterval:
    """Usual time between consecutive samples of a stream."""

    def __init__(self) -> None:
        self._steps: deque[float] = deque(maxlen=SETTINGS.recent_intervals)
        self._first: list[float] = []
        self._known = (math.nan, math.nan)

    def learn(self, steps_s: Floats, is_usual: bool = True) -> None:
        """Add the intervals of a window, s; unusual ones only to the most recent."""
        steps = steps_s[steps_s > 0]
        if not len(steps):
            return
        self._steps.extend(steps[-SETTINGS.recent_intervals :].tolist())
        if len(self._first) < SETTINGS.max_intervals and (
            is_usual or len(self._first) < SETTINGS.settled_intervals
        ):
            self._first += steps[: SETTINGS.max_intervals - len(self._first)].tolist()
            self._known = _middle(self._first)

    @property
    def is_settled(self) -> bool:
        """Whether enough intervals are known to distinguish another rate from chance."""
        is_slow = (
            len(self._first) >= SETTINGS.settled_low_jitter_intervals
            and sum(self._first[: SETTINGS.settled_intervals]) >= SETTINGS.settled_low_jitter_s
        )
        return len(self._first) >= SETTINGS.settled_intervals or (self.has_low_jitter and is_slow)

    @property
    def has_low_jitter(self) -> bool:
        """Whether intervals are so regular that a few of them determine the rate."""
        return (
            self.jitter <= SETTINGS.max_low_jitter
            and self.scatter <= 2 * SETTINGS.max_low_jitter * self.period
        )

    @property
    def step(self) -> float:
        """Median interval, s; NaN while too few are known."""
        return self._known[0] if len(self._first) >= SETTINGS.min_intervals else math.nan

    @property
    def period(self) -> float:
        """Mean interval without those that contain lost samples, s; NaN while too few are known.

        With a coarse clock, or after decimation, intervals alternate between two lengths. The median
        is one of the two, and counting samples by it accumulates an error.
        """
        return float(np.mean(self._single())) if len(self._first) >= SETTINGS.min_intervals else math.nan

    @property
    def scatter(self) -> float:
        """Standard deviation of the intervals of `period`, s, including alternating lengths."""
        return float(np.std(self._single())) if len(self._first) >= SETTINGS.min_intervals else math.nan

    def _single(self) -> Floats:
        """Return the intervals without a lost sample."""
        steps = np.asarray(self._first)
        return steps[np.abs(steps / self._known[0] - 1) < SETTINGS.max_single_deviation]

    @property
    def jitter(self) -> float:
        """Robust standard deviation of the intervals as a ratio of their median."""
        return self._known[1] / self._known[0] if len(self._first) >= SETTINGS.min_intervals else math.nan

    def newest(self, count: int) -> Floats:
        """Return the most recent intervals, at most `count`."""
        return np.array(list(self._steps)[-count:])

    def is_regular(self, stream: Stream) -> bool:
        """Return whether intervals are nearly constant; never for poses and records."""
        return not issubclass(stream.type, COMPUTED_TYPES) and self.jitter <= SETTINGS.max_regular_jitter

    def is_periodic(self, stream: Stream) -> bool:
        """Return whether a stream has a rate: sensors always, others by their jitter."""
        return issubclass(stream.type, SENSOR_TYPES) or self.jitter <= SETTINGS.max_periodic_jitter


def fit_multiples(steps_s: Floats, base: float) -> tuple[Ints, float]:
    """Return the multiples (n,) of a base interval, at least 1, of intervals (n,), and the residual ratio.

    Where samples are lost from a regular stream, intervals are whole multiples of its usual one.
    """
    count = np.maximum(np.rint(steps_s / base), 1).astype(np.int64)
    residuals = steps_s - count * base
    return count, SIGMA_PER_MAD * float(np.median(np.abs(residuals))) / base


def _middle(values: list[float]) -> tuple[float, float]:
    """Return the usual interval and its sigma, s: of single intervals if the others are multiples."""
    array = np.asarray(values)
    low = float(np.percentile(array, SETTINGS.single_percentile))
    single = float(np.median(array[array < (1 + SETTINGS.max_single_deviation) * low]))
    count, residual_ratio = fit_multiples(array, single)
    are_multiples = (
        np.mean(np.abs(array / single - count) <= SETTINGS.max_multiple_deviation)
        >= SETTINGS.min_multiple_ratio
    )
    if are_multiples and np.mean(count == 1) >= SETTINGS.min_single_ratio:
        return single, residual_ratio * single
    middle = float(np.median(array))
    return middle, SIGMA_PER_MAD * float(np.median(np.abs(array - middle)))
