"""S02: does a signal stay at the end of its range."""

from __future__ import annotations

from collections import deque

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.engine.nodes import param
from transect.integrity.checks._signals import names_in
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import Imu, WheelState, Wrench

LEAST = 5
"""Samples at one and the same extreme that are no chance."""
LEVELS = 200
"""Steps of the converter between a signal's usual value and its extreme: at rest the extremes repeat, too."""
SMALLEST, ON_STEP = 1e-9, 0.02
"""Differences that are rounding, and part of a step by which values may be off from it."""
FEW_VALUES, MANY_VALUES = 10, 1000
"""Different values that tell the step of a converter, and of a signal that has none."""
SELDOM, REMEMBERED = 10, 60
"""Percent of the windows that may have samples that repeat, and windows that tell so."""
DISTINCT, LEARNED, NOISY = 0.95, 3, 10
"""Part of the samples of a column that are different if they never repeat, windows that tell so, and those
that tell that it has noise, however it moves."""


class Saturation(Check, id="S02", group="signal", version=4, least=LEAST, k_on=1):
    """Part of the samples at the end of the range, over the worst column.

    The range is given by parameters. Where it is not, an extreme counts that at least five samples of the
    window share to the last bit, and either that nothing before exceeded and that is far from the usual
    value in steps of the converter, or in a column whose samples never repeated before, or that is between
    two steps of the converter where no sample was before. Where all columns stay at one value each, they
    stand still or are stuck (S01); but noisy ones that are all at the same one have the end of their range in
    common, as wheels have. (For pixels see C08, for ranges C05.)

    Motive: Document 001: "burned images"; gyroscopes and accelerometers clip, too.
    """

    share = Limit(0.01, 0.1, "SATURATED", "", "part of the samples at the end of the range")
    acceleration: float = param(
        0.0, ge=0.0, unit="m/s2", doc="end of the accelerometers' range; 0: not known"
    )
    rate: float = param(0.0, ge=0.0, unit="rad/s", doc="end of the gyroscopes' range; 0: not known")

    def reset(self) -> None:
        """No extremes are known yet."""
        self._extremes: Floats | None = None
        self._distinct: deque[Floats] = deque(maxlen=REMEMBERED)
        self._grids: list[_Converter] = []

    def look(self, stream: Window[Imu | WheelState | Wrench]) -> Finding | Unknown:
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
            shares = self._learned(values)
        return Finding({"share": float(np.max(shares))}, len(stream))

    def _learned(self, values: Floats) -> Floats:
        peaks = np.nanmax(values, axis=0, initial=0.0)
        before = self._extremes if self._extremes is not None else np.zeros(len(peaks))
        self._extremes = np.maximum(before, peaks)
        count = (values == peaks).sum(axis=0)
        kinds = [np.unique(column[np.isfinite(column)]) for column in values.T]
        far = np.array([_levels(column, kind) for column, kind in zip(values.T, kinds, strict=True)])
        ends = (peaks >= before) & (far > LEVELS) | self._never_repeated(peaks, kinds)
        counted = (count >= LEAST) & (ends | self._between(peaks, kinds))
        if not counted.any():
            self._distinct.append(np.array([len(kind) for kind in kinds]) / len(values))
        return np.where(counted, count / len(values), 0.0)

    def _between(self, peaks: Floats, kinds: list[Floats]) -> Mask:
        """Return (k,) the columns whose extreme is between two steps of their converter."""
        self._grids = self._grids or [_Converter() for _ in kinds]
        found = [grid.is_between(float(peak)) for grid, peak in zip(self._grids, peaks, strict=True)]
        for grid, kind, between in zip(self._grids, kinds, found, strict=True):
            if not between:
                grid.learn(kind)
        return np.array(found, np.bool_)

    def _never_repeated(self, peaks: Floats, kinds: list[Floats]) -> Mask:
        """Return (k,) the columns whose samples were all different so far; none while all stand still."""
        still = all(len(kind) < 2 for kind in kinds)
        windows = NOISY if still else LEARNED
        if len(self._distinct) < windows or (still and not _have_one_end(peaks)):
            return np.zeros(len(kinds), np.bool_)
        # The window in which a full scale begins has some samples at it, and was not yet known to.
        return np.percentile(np.array(self._distinct), SELDOM, axis=0) > DISTINCT


def _have_one_end(peaks: Floats) -> bool:
    """Tell whether several columns have one and the same extreme (k,), which is not zero."""
    return len(peaks) > 1 and bool(peaks[0] > 0 and (peaks == peaks[0]).all())


class _Converter:
    """The steps in which a signal comes, where it comes in steps: all its values are multiples of one."""

    def __init__(self) -> None:
        self._values, self._step = np.zeros(1), np.inf

    def learn(self, different: Floats) -> None:
        """Take the different values (n,) of a window; once the steps are known, those that are some."""
        if len(self._values) < MANY_VALUES:
            fits = _off_steps(different, self._step) < ON_STEP if self._is_known else different == different
            self._values = np.union1d(self._values, different[fits])
            gaps = np.diff(self._values)
            self._step = float(np.min(gaps, where=gaps > SMALLEST, initial=np.inf))

    def is_between(self, value: float) -> bool:
        """Tell whether a value is none of the steps."""
        return self._is_known and bool(_off_steps(np.array([value]), self._step)[0] > ON_STEP)

    @property
    def _is_known(self) -> bool:
        enough = FEW_VALUES <= len(self._values) < MANY_VALUES
        return enough and bool((_off_steps(self._values, self._step) < ON_STEP).all())


def _off_steps(values: Floats, step: float) -> Floats:
    """Return by which part of a step values (n,) are off from whole ones."""
    return np.abs(values / step - np.rint(values / step))


def _levels(values: Floats, different: Floats) -> float:
    """Return how many steps of the converter lie between the median and the extreme of a signal.

    Parameters
    ----------
    values : (n,)
    different : (m,)
        Its different values, sorted.
    """
    if len(different) < 3:
        return 0.0
    return float((different[-1] - np.median(values)) / np.min(np.diff(different)))
