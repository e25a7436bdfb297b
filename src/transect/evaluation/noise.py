"""Allan deviation, and the noise of an inertial sensor read from it (IEEE Std 952, annex C)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Ints
from transect.base.cache_folder import load_compiled
from transect.errors import GeometryError

BLOCK_SAMPLES = 8192  # so few that no library starts threads for their sum
MIN_COMPILED_DIFFERENCES = 50_000_000  # from which on the compiled loop is faster, with its 0.5 s to load
INSTABILITY_FACTOR = 0.6642824702679601  # sqrt(2 ln 2 / pi), minimum of the Allan deviation over B


@dataclass(frozen=True)
class AllanDeviation:
    """Overlapping Allan deviation."""

    tau: Floats  # (m,) float64, averaging times in seconds
    # (m, ...) float64, in the unit of the signal; one column per axis where there are several
    deviation: Floats
    # (m, ...) float64, one-sigma confidence, from the number of independent clusters
    low: Floats
    high: Floats


@dataclass(frozen=True)
class NoiseModel:
    """Noise parameters from an Allan deviation; NaN if its curve has no corresponding part."""

    # N, the random walk of the integral: value at 1 s on the line of slope -1/2 (unit / sqrt(Hz))
    white: float
    instability: float  # B, the bias instability: the minimum divided by 0.664 (unit)
    walk: float  # K, the random walk of the rate: value at 3 s on the line of slope +1/2 (unit * sqrt(Hz))
    tau: float  # averaging time of the minimum, s


def allan_deviation(signal: ArrayLike, rate: float, tau: ArrayLike | None = None) -> AllanDeviation:
    """Return the overlapping Allan deviation of a rate signal.

    Parameters
    ----------
    signal : (n,) or (n, k)
        Evenly sampled; its mean is removed first, to reduce rounding errors.
    rate : float
        Samples per second.
    tau : (m,), optional
        Averaging times in seconds, rounded to whole samples; by default 20 per decade.
    """
    values = np.asarray(signal, np.float64)
    n = len(values)
    if n < 3 or not np.isfinite(values).all():
        raise GeometryError("an Allan deviation needs at least 3 samples, all measured", why=f"got {n}")
    sizes = _cluster_sizes(n, rate, tau)
    axes = values.reshape(n, -1)
    found = np.column_stack([_deviations(axis - axis.mean(), sizes, rate) for axis in axes.T])
    deviation = found.reshape(len(sizes), *values.shape[1:])
    spread = 1 / np.sqrt(2 * np.maximum(n / sizes - 1, 1))
    relative = spread.reshape(-1, *[1] * (deviation.ndim - 1))
    return AllanDeviation(sizes / rate, deviation, deviation * (1 - relative), deviation * (1 + relative))


def _cluster_sizes(n: int, rate: float, tau: ArrayLike | None) -> Ints:
    if tau is None:
        decades = np.log10(max(n // 3, 1))
        wanted = np.logspace(0, decades, max(2, round(20 * decades) + 1))
    else:
        wanted = np.asarray(tau, np.float64) * rate
    sizes = np.unique(np.floor(wanted + 1e-9).astype(np.int64))
    sizes = sizes[(sizes >= 1) & (2 * sizes < n)]
    if not len(sizes):
        raise GeometryError("no averaging time fits the signal", why=f"it has {n} samples at {rate:g} Hz")
    return sizes


def _deviations(signal: Floats, sizes: Ints, rate: float) -> Floats:
    """Return the deviations of one axis for all averaging times, from second differences of the phase."""
    phase = np.concatenate([[0.0], np.cumsum(signal)]) / rate
    counts = len(phase) - 2 * sizes
    if counts.sum() >= MIN_COMPILED_DIFFERENCES:
        squares = np.empty(len(sizes))
        load_compiled(__name__, "noise").sums_of_squares(phase, sizes, squares)
    else:
        squares = np.array([_sum_of_squares(phase, int(m)) for m in sizes])
    return np.sqrt(squares / counts / 2) * rate / sizes


def _sum_of_squares(phase: Floats, m: int) -> float:
    """Return the sum for one averaging time, in blocks that stay in the cache."""
    count, total = len(phase) - 2 * m, 0.0
    for at in range(0, count, BLOCK_SAMPLES):
        end = min(at + BLOCK_SAMPLES, count)
        second = phase[at + 2 * m : end + 2 * m] - phase[at + m : end + m]
        second -= phase[at + m : end + m]
        second += phase[at:end]
        total += float(np.dot(second, second))
    return total


def noise_model(allan: AllanDeviation) -> NoiseModel:
    """Read N, B and K of one axis from its Allan deviation.

    Lines of slope -1/2 and +1/2 are fitted where the curve's own slope is within 0.15 of theirs, on the short
    and the long side of its minimum.
    """
    tau, deviation = np.log10(allan.tau), np.log10(allan.deviation)
    if deviation.ndim != 1:
        raise GeometryError(f"expected one axis, got {allan.deviation.shape[1:]}")
    slope = np.gradient(deviation, tau)
    lowest = int(np.argmin(deviation))
    white = _line(tau, deviation, slope, -0.5, np.arange(len(tau)) <= lowest)
    walk = _line(tau, deviation, slope, 0.5, np.arange(len(tau)) >= lowest)
    return NoiseModel(
        white=white,
        instability=float(10 ** deviation[lowest] / INSTABILITY_FACTOR),
        walk=float(walk * np.sqrt(3)) if np.isfinite(walk) else float("nan"),
        tau=float(allan.tau[lowest]),
    )


def _line(tau: Floats, deviation: Floats, slope: Floats, wanted: float, side: NDArray[np.bool_]) -> float:
    """Return the value at 1 s of a line fitted where the curve has a given slope; NaN if nowhere."""
    on_line = side & (np.abs(slope - wanted) < 0.15)
    return float(10 ** np.mean(deviation[on_line] - wanted * tau[on_line])) if on_line.any() else float("nan")
