"""E04: is what a sensor declares so uncertain that a gate never refuses it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.robust import NORMAL
from transect.integrity.baselines import Usual
from transect.integrity.checks._declared import matrix_columns
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import Imu, NavFix, Odometry, Twist

CHI2 = 9.21
"""99th percentile of chi-squared with two degrees of freedom: a usual gate of positions."""
EARTH = 6_371_000.0
PAST_S = 10.0
"""Over which the scatter is measured."""
SIX = float(np.sqrt(6.0))
"""Deviation of ``x0 - 2 x1 + x2`` over that of x."""
DECLARED = (
    (("std_north", "std_east"), ("lat", "lon")),
    (("std_vx", "std_vy"), ("vx", "vy")),
    (("std_wz",), ("wz",)),
)
"""Columns of deviations, and of what they are declared of."""
RATES = ("gyro_x", "gyro_y", "gyro_z")


class InertGate(Check, id="E04", group="state", version=2):
    """``(sigma / sigma_0) / max(1, scatter / scatter_0)``: what is declared grew, and scatter did not.

    A gate compares innovations with S, and no log has S; sigma is what it is made of. `sigma_0` and
    `scatter_0` are those of the first windows with the same type of fix. Scatter is that from sample to
    sample. That it is smaller than sigma means nothing alone: errors of fixes last for minutes. What a gate
    of 99 % still lets pass is ``sqrt(9.21) sigma``, for fixes in metres. A receiver that does not tell its
    type of fix may have lost it: then the check is SUSPECT at most.

    Motive: A gate that refuses no error below 25 m "reads as healthy".
    """

    widened = Limit(10.0, 50.0, "GATE_INERT", "", "growth of the declared deviation over that of the scatter")
    step = Limit(25.0, 100.0, "GATE_INERT", "m", "largest error of a fix that a gate of 99 % lets pass")

    def reset(self) -> None:
        """Nothing is usual yet."""
        self._sigma: defaultdict[str, Usual] = defaultdict(Usual)
        self._scatter: defaultdict[str, Usual] = defaultdict(Usual)

    def look(self, stream: Window[NavFix | Imu | Twist | Odometry]) -> Finding | Unknown:
        """Compare what is declared, and what scatters, with what did at first."""
        declared, scatter = _declared(stream), _scatter(stream.history(PAST_S))
        if not np.isfinite(declared):
            return Unknown("NOT_DECLARED", "it does not say how uncertain it is", len(stream))
        fixes = stream.column("fix") if stream.has("fix") else []
        if any(fix == "none" for fix in fixes):
            return Unknown("NO_FIX", n=len(stream))
        kind = str(fixes[-1]) if fixes else ""
        usual, quiet = self._sigma[kind].value, self._scatter[kind].value
        self._sigma[kind].learn(declared)
        self._scatter[kind].learn(scatter)
        is_fix = issubclass(stream.stream.type, NavFix)
        evidence = {"sigma": declared, "scatter": scatter}
        statistics = {"step": float(np.sqrt(CHI2)) * declared} if is_fix else dict[str, float]()
        if usual > 0 and scatter >= 0:
            grew = max(1.0, scatter / quiet) if quiet > 0 else 1.0
            statistics["widened"] = declared / usual / grew
        if not statistics:
            return Unknown("LEARNING", n=len(stream), evidence=evidence)
        floor = 0.2 if is_fix and not kind and statistics.get("step", 0.0) < self.step.fail else 0.0
        return Finding(statistics, len(stream), evidence, floor=floor)


def _declared(window: Window[Any]) -> float:
    """Return the median of the largest deviation that samples declare of what is measured, NaN for none."""
    names = next((deviations for deviations, _ in DECLARED if window.has(*deviations)), None)
    if names:
        sigma = window.array(*names)
    else:
        rates = [n for n in matrix_columns(window) if n.startswith(("angular_velocity", "gyro"))]
        if not rates:
            return np.nan
        variances = window.array(rates[0])[:, :: matrix_columns(window)[rates[0]] + 1]
        sigma = np.sqrt(np.where(variances > 0, variances, np.nan))
    largest = sigma[np.isfinite(sigma).all(axis=1)].max(axis=1, initial=-np.inf)
    return float(np.median(largest)) if largest.size and largest.min() > 0 else np.nan


def _scatter(past: Window[Any]) -> float:
    """Return how much samples scatter about those before and after, in the unit of what is declared."""
    known = ((*deviations, *measured) for deviations, measured in DECLARED)
    named = next((each for each in known if past.has(*each)), RATES if past.has(*RATES) else None)
    names = [name for name in named if not name.startswith("std_")] if named else None
    values: Floats = past.array(*names) if names else np.zeros((0, 1))
    values = values[np.isfinite(values).all(axis=1)]
    if names is None or len(values) < 5:
        return np.nan
    if names[0] == "lat":
        values = values * EARTH * np.array([1.0, np.cos(values[0, 0])])
    return NORMAL * float(np.median(np.abs(np.diff(values, n=2, axis=0)))) / SIX
