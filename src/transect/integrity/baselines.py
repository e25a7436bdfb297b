"""What checks learn of a stream from its past: its usual value, and its usual pace."""

from __future__ import annotations

import math
from bisect import insort
from collections import deque

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry.robust import NORMAL
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

WINDOWS = 20
"""Windows from which a usual value is learned; it stays as it is after them."""
LEAST = 3
"""Windows after which it is used."""


class Usual:
    """The median of a value over the first windows of a stream; it does not follow a fault that lasts."""

    def __init__(self, windows: int = WINDOWS, least: int = LEAST) -> None:
        self._values: list[float] = []
        self._windows, self._least = windows, least

    def learn(self, value: float) -> None:
        """Take the value of a window; NaN and values after the first windows are left out."""
        if len(self._values) < self._windows and math.isfinite(value):
            insort(self._values, value)

    @property
    def value(self) -> float:
        """The usual value, NaN while too little is known."""
        if len(self._values) < self._least:
            return math.nan
        middle = len(self._values) // 2
        return (self._values[middle] + self._values[~middle]) / 2

    @property
    def spread(self) -> float:
        """The usual deviation of a window's value from it, NaN while too little is known."""
        if len(self._values) < self._least:
            return math.nan
        return NORMAL * float(np.median(np.abs(np.asarray(self._values) - self.value)))


SENSORS = (Imu, NavFix, LaserScan, PointCloud, Image, RadarSpectrum, RadarRange, WheelState)
"""Types whose samples come at a steady pace; others may come when something happens."""
COMPUTED = (Pose, Record)
"""Types of which nobody promised a pace."""
EVEN = 0.1
"""Deviation of steps, as a part of the median, up to which they are alike."""
IRREGULAR = 0.5
"""Deviation of steps, as a part of the median, from which on they have no pace."""
FEW = 5
"""Steps that tell a pace."""
ALIKE = 0.5
"""Part of the usual step by which another may differ, if no sample is lost in it."""
MEMORY = 200
"""Steps that are remembered."""
SETTLED = 20
"""Steps before which every one is taken for usual."""
SETTLED_QUIET, SETTLED_S = 10, 5.0
"""Steps that tell the pace of a slow stream whose steps hardly differ, and seconds that they last at least:
loops of a logger may be even for a second."""
QUIET = 0.02
"""Deviation of steps, as a part of the step, up to which a stream is quiet."""
WHOLE = 0.1
"""Part of the usual step by which a multiple of it may be off: samples between two others are lost."""
SINGLE_PERCENTILE, MIN_SINGLE_RATIO, MIN_WHOLE_RATIO = 10.0, 1 / 3, 0.95
"""Percentile of the steps that is a single one; least ratios of single steps, and of whole multiples of them,
from which on a stream has lost samples and is not uneven."""
GAP_STEPS = 10.0  # Usual steps from which on one is a gap (T02), which tells nothing of the rate.
LEARNED = 400
"""Steps after which the pace stays as it is."""


class Pace:
    """The step from sample to sample that a stream usually has."""

    def __init__(self) -> None:
        self._steps: deque[float] = deque(maxlen=MEMORY)
        self._first: list[float] = []
        self._known = (math.nan, math.nan)

    def learn(self, steps_s: Floats, is_usual: bool = True) -> None:
        """Take the steps of a window, s; those that are not usual are only the newest."""
        steps = steps_s[steps_s > 0]
        if not len(steps):
            return
        self._steps.extend(steps[-MEMORY:].tolist())
        if len(self._first) < LEARNED and (is_usual or len(self._first) < SETTLED):
            self._first += steps[: LEARNED - len(self._first)].tolist()
            self._known = _middle(self._first)

    @property
    def is_settled(self) -> bool:
        """Whether enough steps are known to tell another pace from chance."""
        is_slow = len(self._first) >= SETTLED_QUIET and sum(self._first[:SETTLED]) >= SETTLED_S
        return len(self._first) >= SETTLED or (self.is_quiet and is_slow)

    @property
    def is_quiet(self) -> bool:
        """Whether steps hardly differ, so that few of them tell the pace."""
        return self.jitter <= QUIET and self.scatter <= 2 * QUIET * self.period

    @property
    def step(self) -> float:
        """Usual seconds between samples, NaN while too few are known."""
        return self._known[0] if len(self._first) >= FEW else math.nan

    @property
    def period(self) -> float:
        """Mean seconds between samples, without those between which some are lost; NaN as `step`.

        Where a clock is coarse, or samples are picked out of quicker ones, steps are a little shorter or
        longer by turns: the median is one of the two, and a count by it goes astray.
        """
        return float(np.mean(self._single())) if len(self._first) >= FEW else math.nan

    @property
    def scatter(self) -> float:
        """Standard deviation of the steps of `period`, s: that of steps of two lengths by turns, too."""
        return float(np.std(self._single())) if len(self._first) >= FEW else math.nan

    def _single(self) -> Floats:
        """Return the steps in which no sample is lost."""
        steps = np.asarray(self._first)
        return steps[np.abs(steps / self._known[0] - 1) < ALIKE]

    @property
    def jitter(self) -> float:
        """Usual deviation of steps as a part of the step."""
        return self._known[1] / self._known[0] if len(self._first) >= FEW else math.nan

    def newest(self, count: int) -> Floats:
        """Return the newest steps, `count` of them at most."""
        return np.array(list(self._steps)[-count:])

    def is_even(self, stream: Stream) -> bool:
        """Tell whether the steps of a stream are alike: poses and records come when they are ready."""
        return not issubclass(stream.type, COMPUTED) and self.jitter <= EVEN

    def is_steady(self, stream: Stream) -> bool:
        """Tell whether samples come at a pace: those of sensors always, others if they have one."""
        return issubclass(stream.type, SENSORS) or self.jitter <= IRREGULAR


def fit_multiples(steps_s: Floats, base: float) -> tuple[Ints, float]:
    """Return how many base steps (n,) each step is, at least 1, and how far they are off as a part of one.

    Where samples are lost from an even stream, steps are whole multiples of its step.
    """
    count = np.maximum(np.rint(steps_s / base), 1).astype(np.int64)
    off = steps_s - count * base
    return count, NORMAL * float(np.median(np.abs(off))) / base


def _middle(values: list[float]) -> tuple[float, float]:
    """Return the usual step and its deviation, s: of single steps, if the others are multiples of these."""
    array = np.asarray(values)
    low = float(np.percentile(array, SINGLE_PERCENTILE))
    single = float(np.median(array[array < (1 + ALIKE) * low]))
    count, off = fit_multiples(array, single)
    whole = np.mean(np.abs(array / single - count) <= WHOLE) >= MIN_WHOLE_RATIO
    if whole and np.mean(count == 1) >= MIN_SINGLE_RATIO:
        return single, off * single
    middle = float(np.median(array))
    return middle, NORMAL * float(np.median(np.abs(array - middle)))
