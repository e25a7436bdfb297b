"""Checks of declared uncertainties: invalid ones, and those that a gate never rejects (E02, E04)."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Mask
from transect.geometry.robust import SIGMA_PER_MAD
from transect.integrity.baselines import Baseline
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import EARTH_RADIUS_M, SECOND_DIFFERENCE_SIGMA
from transect.integrity.windows import Window
from transect.types import Imu, NavFix, Odometry, Pose, RigidBodyState, Twist

Declaring = RigidBodyState | NavFix | Pose | Odometry | Twist | Imu


def matrix_columns(window: Window[Any]) -> dict[str, int]:
    """Return the columns of covariances, and the number of rows of the matrices."""
    found: dict[str, int] = {}
    for field in window.stream.table.schema:
        if field.name.endswith("covariance") and pa.types.is_fixed_size_list(field.type):
            size = math.isqrt(field.type.list_size)
            if size * size == field.type.list_size:
                found[field.name] = size
    return found


def sigma_columns(window: Window[Any]) -> list[str]:
    """Return the columns of standard deviations."""
    return [name for name in window.stream.table.column_names if name.startswith("std_")]


@dataclass(frozen=True)
class CovarianceSettings:
    """Numbers of the test of covariance matrices, as correlations."""

    max_asymmetry: float = 1e-3  # Difference of symmetric elements by rounding: logs print a few digits.
    max_negative_eigenvalue: float = 1e-3  # Negative eigenvalue by rounding.


class Covariance(Check, id="E02", group="state", k_on=1, k_off=1, version=3):
    """Fraction of the samples with an invalid covariance.

    A covariance must be finite, symmetric, ``min eig >= -1e-3`` and not zero. Eigenvalues are those of
    the correlations, so that metres and radians have equal weight. Standard deviations must be positive.
    A covariance of zeros from the first sample on, one that begins with -1, or one of unknown type is not
    declared (ROS), but that of a navigation system must be. If even the smallest sigma of a sample is
    larger than `huge` it has no meaning; single numbers of 1e6 are a usual way to declare a component as
    unknown.

    Motive: SDI has a covariance of 144 numbers in each line of Nav.
    """

    settings = CovarianceSettings()

    share = Limit(0.0, 0.01, "COV_INVALID", "", "fraction of the samples with an invalid covariance")
    huge = Limit(200.0, 1000.0, "COV_INVALID", "", "smallest sigma of a sample, in its own unit")

    def reset(self) -> None:
        """Start without declarations."""
        self._declared = set[str]()

    def evaluate(self, stream: Window[Declaring]) -> Finding | Unknown:
        """Judge every covariance and standard deviation of the window."""
        wrong, smallest = np.zeros(len(stream), np.bool_), np.full(len(stream), np.inf)
        is_declared, evidence = False, {"constant": 1.0}
        zero = issubclass(stream.stream.type, RigidBodyState)
        for name, size in matrix_columns(stream).items():
            matrices = stream.array(name).reshape(-1, size, size)
            is_given = ~np.isnan(matrices).all(axis=(1, 2)) & (matrices[:, 0, 0] != -1.0)
            if stream.has(f"{name}_type"):  # 0: of unknown type (ROS)
                is_given &= np.asarray(stream.column(f"{name}_type")) > 0
            if np.any(matrices[is_given]) or zero:
                self._declared.add(name)
            if name not in self._declared or not is_given.any():
                continue
            wrong |= is_given & _is_invalid(matrices, self.settings)
            variances = np.diagonal(matrices, axis1=1, axis2=2)
            smallest[is_given] = np.minimum(smallest[is_given], np.sqrt(_min_positive(variances[is_given])))
            is_declared = True
            evidence["constant"] *= float((matrices[is_given] == matrices[is_given][0]).all())
        for name in sigma_columns(stream):
            sigma = stream.column(name).astype(np.float64)
            is_given = ~np.isnan(sigma)
            if is_given.any():
                wrong |= is_given & ~((sigma > 0) & np.isfinite(sigma))
                smallest[is_given] = np.minimum(smallest[is_given], _min_positive(sigma[is_given, None]))
                is_declared = True
                evidence["constant"] *= float((sigma[is_given] == sigma[is_given][0]).all())
        if not is_declared:
            return Unknown("NOT_DECLARED", "it declares no uncertainty", len(stream))
        known = smallest[np.isfinite(smallest)]
        median = float(np.median(known)) if known.size else np.nan
        return Finding({"share": float(wrong.mean()), "huge": median}, len(stream), evidence)


def _min_positive(values: Floats) -> Floats:
    """Return the smallest positive number of each row; infinite without any."""
    return np.min(np.where(values > 0, values, np.inf), axis=1)


def _is_invalid(matrices: Floats, settings: CovarianceSettings) -> Mask:
    """Return which matrices (n, k, k) are invalid; rows and columns of NaN were not estimated."""
    variances = np.diagonal(matrices, axis1=1, axis2=2)
    absent = np.isnan(variances)
    outside = absent[:, :, None] | absent[:, None, :]
    kept = np.where(outside, 0.0, matrices)
    finite: Mask = np.asarray(np.isfinite(kept).all(axis=(1, 2)))
    kept = np.where(finite[:, None, None], kept, 0.0)
    variances = np.diagonal(kept, axis1=1, axis2=2)
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    correlations = kept / scale[:, :, None] / scale[:, None, :]
    size = np.maximum(np.abs(correlations).max(axis=(1, 2)), 1.0)
    difference = np.abs(correlations - correlations.transpose(0, 2, 1)).max(axis=(1, 2))
    skew = difference > settings.max_asymmetry * size
    lowest = np.asarray(np.linalg.eigvalsh((correlations + correlations.transpose(0, 2, 1)) / 2))[:, 0]
    return (
        ~finite
        | skew
        | (lowest < -settings.max_negative_eigenvalue)
        | (variances < 0).any(axis=1)
        | ~np.any(kept, axis=(1, 2))
    )


DECLARED_COLUMNS = (
    (("std_north", "std_east"), ("lat", "lon")),
    (("std_vx", "std_vy"), ("vx", "vy")),
    (("std_wz",), ("wz",)),
)
"""Columns of standard deviations, and the columns that they describe."""
RATE_COLUMNS = ("gyro_x", "gyro_y", "gyro_z")


@dataclass(frozen=True)
class InertGateSettings:
    """Numbers of the gate, and of the scatter."""

    gate_chi2: float = 9.21  # 99th percentile of chi-squared with two degrees of freedom.
    scatter_span_s: float = 10.0  # Past over which the scatter is measured.


class InertGate(Check, id="E04", group="state", version=2):
    """Growth of the declared sigma over that of the scatter.

    ``(sigma / sigma_0) / max(1, scatter / scatter_0)``.

    A gate compares innovations with S, which no log contains; sigma is its main part. `sigma_0` and
    `scatter_0` are those of the first windows with the same fix type; scatter is that from sample to
    sample. A scatter below sigma alone is no fault, as errors of fixes persist for minutes. A gate of 99
    % accepts up to ``sqrt(9.21) sigma``, for fixes in metres. A receiver without fix types may have lost
    its fix: the check is then SUSPECT at most.

    Motive: A gate that refuses no error below 25 m "reads as healthy".
    """

    settings = InertGateSettings()

    widened = Limit(
        10.0, 50.0, "GATE_INERT", "", "times more growth of the declared sigma than of the scatter"
    )
    step = Limit(25.0, 100.0, "GATE_INERT", "m", "error of a fix that a 99 % gate accepts")

    def reset(self) -> None:
        """Start without baselines."""
        self._sigma: defaultdict[str, Baseline] = defaultdict(Baseline)
        self._scatter: defaultdict[str, Baseline] = defaultdict(Baseline)

    def evaluate(self, stream: Window[NavFix | Imu | Twist | Odometry]) -> Finding | Unknown:
        """Compare declared sigma and scatter with their baselines."""
        declared, scatter = _declared(stream), _scatter(stream.history(self.settings.scatter_span_s))
        if not np.isfinite(declared):
            return Unknown("NOT_DECLARED", "it declares no uncertainty", len(stream))
        fixes = stream.column("fix") if stream.has("fix") else []
        if any(fix == "none" for fix in fixes):
            return Unknown("NO_FIX", n=len(stream))
        kind = str(fixes[-1]) if fixes else ""
        usual, quiet = self._sigma[kind].value, self._scatter[kind].value
        self._sigma[kind].learn(declared)
        self._scatter[kind].learn(scatter)
        is_fix = issubclass(stream.stream.type, NavFix)
        evidence = {"sigma": declared, "scatter": scatter}
        gate_m = float(np.sqrt(self.settings.gate_chi2)) * declared
        statistics = {"step": gate_m} if is_fix else dict[str, float]()
        if usual > 0 and scatter >= 0:
            growth = max(1.0, scatter / quiet) if quiet > 0 else 1.0
            statistics["widened"] = declared / usual / growth
        if not statistics:
            return Unknown("LEARNING", n=len(stream), evidence=evidence)
        floor = 0.2 if is_fix and not kind and statistics.get("step", 0.0) < self.step.fail else 0.0
        return Finding(statistics, len(stream), evidence, min_score=floor)


def _declared(window: Window[Any]) -> float:
    """Return the median of the largest sigma that each sample declares, NaN for none."""
    names = next((sigmas for sigmas, _ in DECLARED_COLUMNS if window.has(*sigmas)), None)
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
    """Return the scatter of samples about their neighbours, in the unit of the declared sigma."""
    known = ((*sigmas, *measured) for sigmas, measured in DECLARED_COLUMNS)
    named = next(
        (each for each in known if past.has(*each)), RATE_COLUMNS if past.has(*RATE_COLUMNS) else None
    )
    names = [name for name in named if not name.startswith("std_")] if named else None
    values: Floats = past.array(*names) if names else np.zeros((0, 1))
    values = values[np.isfinite(values).all(axis=1)]
    if names is None or len(values) < 5:
        return np.nan
    if names[0] == "lat":
        values = values * EARTH_RADIUS_M * np.array([1.0, np.cos(values[0, 0])])
    return SIGMA_PER_MAD * float(np.median(np.abs(np.diff(values, n=2, axis=0)))) / SECOND_DIFFERENCE_SIGMA
