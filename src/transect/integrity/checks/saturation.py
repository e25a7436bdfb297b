"""S02: is a signal at the end of its range."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.engine.nodes import param
from transect.integrity.checks._signals import names_in
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import Imu, WheelState, Wrench


@dataclass(frozen=True)
class SaturationSettings:
    """Numbers that distinguish the end of a range from chance."""

    min_samples: int = 5  # Samples at one and the same extreme that are not chance.
    # Steps of the converter from the usual value to the extreme; at rest extremes repeat, too.
    min_levels: int = 200
    rounding: float = 1e-9  # Smaller differences are rounding.
    max_step_deviation: float = 0.02  # Deviation of a value from a step of the converter, in steps.
    min_values: int = 10  # Different values that determine the step of a converter, ...
    max_values: int = 1000  # ... and those of a signal without steps.
    repeat_percentile: int = 10  # Percentage of the windows that may contain repeats, ...
    max_windows: int = 60  # ... of this number of windows.
    min_distinct_ratio: float = 0.95  # Ratio of different samples in a column that never repeats, ...
    min_windows: int = 3  # ... in this number of windows, ...
    min_still_windows: int = 10  # ... and in this number if all columns are constant now.


class Saturation(Check, id="S02", group="signal", version=4, min_samples=5, k_on=1):
    """Fraction of the samples at the end of the range, in the worst column.

    The range is given by parameters. Otherwise an extreme counts if at least five samples of the window
    share it to the last bit, and one of these holds: no earlier sample exceeded it, and it is many steps
    of the converter from the usual value; samples of the column never repeated before; or it lies between
    two steps of the converter. If all columns are constant, they stand still or are stuck (S01); noisy
    columns that all have the same value, however, have reached the end of a common range, as wheels do.
    (See C08 for pixels, C05 for ranges.)

    Motive: Rosario: "burned images"; gyroscopes and accelerometers clip, too.
    """

    settings = SaturationSettings()

    share = Limit(0.01, 0.1, "SATURATED", "", "fraction of the samples at the end of the range")
    acceleration: float = param(0.0, ge=0.0, unit="m/s2", doc="range of the accelerometers; 0: unknown")
    rate: float = param(0.0, ge=0.0, unit="rad/s", doc="range of the gyroscopes; 0: unknown")

    def reset(self) -> None:
        """Start without known extremes."""
        self._extremes: Floats | None = None
        self._distinct: deque[Floats] = deque(maxlen=self.settings.max_windows)
        self._converters: list[_Converter] = []

    def evaluate(self, stream: Window[Imu | WheelState | Wrench]) -> Finding | Unknown:
        """Count samples at the limits, or at extremes that repeat."""
        names = names_in(stream)
        if not names:
            return Unknown("NO_NUMBERS", n=len(stream))
        values = np.abs(stream.array(*names))
        known = {"acc": self.acceleration, "gyr": self.rate}
        ends = np.array([known.get(name[:3], 0.0) for name in names])
        if len(ends) == values.shape[1] and ends.any():
            shares = np.mean(values >= np.where(ends > 0, ends * (1 - 1e-6), np.inf), axis=0)
        else:
            shares = self._find_saturated(values)
        return Finding({"share": float(np.max(shares))}, len(stream))

    def _find_saturated(self, values: Floats) -> Floats:
        peaks = np.nanmax(values, axis=0, initial=0.0)
        before = self._extremes if self._extremes is not None else np.zeros(len(peaks))
        self._extremes = np.maximum(before, peaks)
        count = (values == peaks).sum(axis=0)
        kinds = [np.unique(column[np.isfinite(column)]) for column in values.T]
        far = np.array([_levels(column, kind) for column, kind in zip(values.T, kinds, strict=True)])
        ends = (peaks >= before) & (far > self.settings.min_levels) | self._never_repeated(peaks, kinds)
        counted = (count >= self.settings.min_samples) & (ends | self._between(peaks, kinds))
        if not counted.any():
            self._distinct.append(np.array([len(kind) for kind in kinds]) / len(values))
        return np.where(counted, count / len(values), 0.0)

    def _between(self, peaks: Floats, kinds: list[Floats]) -> Mask:
        """Return (k,) the columns whose extreme lies between two steps of their converter."""
        self._converters = self._converters or [_Converter(self.settings) for _ in kinds]
        found = [grid.is_between(float(peak)) for grid, peak in zip(self._converters, peaks, strict=True)]
        for grid, kind, between in zip(self._converters, kinds, found, strict=True):
            if not between:
                grid.learn(kind)
        return np.array(found, np.bool_)

    def _never_repeated(self, peaks: Floats, kinds: list[Floats]) -> Mask:
        """Return (k,) the columns whose samples were all different so far; none while all are constant."""
        still = all(len(kind) < 2 for kind in kinds)
        windows = self.settings.min_still_windows if still else self.settings.min_windows
        if len(self._distinct) < windows or (still and not _have_one_end(peaks)):
            return np.zeros(len(kinds), np.bool_)
        # The window in which saturation begins already contains repeats.
        return (
            np.percentile(np.array(self._distinct), self.settings.repeat_percentile, axis=0)
            > self.settings.min_distinct_ratio
        )


def _have_one_end(peaks: Floats) -> bool:
    """Return whether several columns have one and the same extreme (k,), which is not zero."""
    return len(peaks) > 1 and bool(peaks[0] > 0 and (peaks == peaks[0]).all())


class _Converter:
    """Quantisation of a signal: all its values are multiples of one step."""

    def __init__(self, settings: SaturationSettings) -> None:
        self._settings = settings
        self._values, self._step = np.zeros(1), np.inf

    def learn(self, different: Floats) -> None:
        """Add the different values (n,) of a window; once the step is known, only those that fit."""
        if len(self._values) < self._settings.max_values:
            fits = (
                _off_steps(different, self._step) < self._settings.max_step_deviation
                if self._is_known
                else different == different
            )
            self._values = np.union1d(self._values, different[fits])
            gaps = np.diff(self._values)
            self._step = float(np.min(gaps, where=gaps > self._settings.rounding, initial=np.inf))

    def is_between(self, value: float) -> bool:
        """Return whether a value is no multiple of the step."""
        return self._is_known and bool(
            _off_steps(np.array([value]), self._step)[0] > self._settings.max_step_deviation
        )

    @property
    def _is_known(self) -> bool:
        enough = self._settings.min_values <= len(self._values) < self._settings.max_values
        return enough and bool(
            (_off_steps(self._values, self._step) < self._settings.max_step_deviation).all()
        )


def _off_steps(values: Floats, step: float) -> Floats:
    """Return the deviation of values (n,) from multiples of the step, in steps."""
    return np.abs(values / step - np.rint(values / step))


def _levels(values: Floats, different: Floats) -> float:
    """Return the number of converter steps from the median to the last of the sorted values (m,)."""
    if len(different) < 3:
        return 0.0
    return float((different[-1] - np.median(values)) / np.min(np.diff(different)))
