"""Robust statistics, insensitive to outliers. NaN values are left out everywhere."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError
from transect.geometry.array_checks import floats

SIGMA_PER_MAD = 1.4826
"""Standard deviation of a normal distribution divided by its median absolute deviation."""


def median(values: ArrayLike, axis: int | None = None) -> Floats:
    """Median over `axis` (all values if None); NaN where nothing was measured.

    `np.median` imports numpy.ma, which takes as long as a hundred medians of a thousand values.
    """
    x = _rows(values, axis)
    if not x.shape[-1]:
        return np.full(x.shape[:-1], np.nan)
    ordered = np.sort(x, axis=-1)  # NaN last
    if x.ndim == 1:
        known = max(x.size - np.count_nonzero(np.isnan(x)), 1)
        return (ordered[(known - 1) // 2] + ordered[known // 2]) / 2
    count = np.count_nonzero(~np.isnan(x), axis=-1, keepdims=True)
    middle = np.concatenate([np.maximum(count - 1, 0) // 2, np.minimum(count // 2, x.shape[-1] - 1)], axis=-1)
    return np.mean(np.take_along_axis(ordered, middle, axis=-1), axis=-1)


def percentile(values: ArrayLike, percent: float) -> float:
    """Percentile of the values (...), interpolated as `np.percentile` does, without numpy.ma; NaN of none."""
    ordered = np.sort(_measure(values))
    if not ordered.size:
        return np.nan
    below, fraction = divmod(percent / 100 * (ordered.size - 1), 1)
    low, high = ordered[int(below)], ordered[min(int(below) + 1, ordered.size - 1)]
    # The two forms of numpy's interpolation, so that both give the same bits.
    return float(high - (high - low) * (1 - fraction) if fraction >= 0.5 else low + (high - low) * fraction)


def mad(values: ArrayLike, axis: int | None = None) -> Floats:
    """Median absolute deviation from the median over `axis` (all values if None)."""
    x = _rows(values, axis)
    return median(np.abs(x - median(x, axis=-1)[..., None]), axis=-1)


def nmad(values: ArrayLike, axis: int | None = None) -> Floats:
    """Normalised MAD: `mad` scaled to the standard deviation of normally distributed values."""
    return SIGMA_PER_MAD * mad(values, axis)


def huber_weights(residuals: ArrayLike, k: float = 1.345) -> Floats:
    """Weights (...) of normalised residuals (...): 1 up to `k`, then k / |r|; 0 for NaN.

    The default has 95 % efficiency for normally distributed residuals.
    """
    size = np.abs(floats("residuals", residuals, (...,)))
    return np.where(np.isnan(size), 0.0, k / np.maximum(size, k))


def cauchy_weights(residuals: ArrayLike, c: float = 2.3849) -> Floats:
    """Weights (...) of normalised residuals (...): 1 / (1 + (r / c)^2); 0 for NaN.

    The default has 95 % efficiency for normally distributed residuals.
    """
    r = floats("residuals", residuals, (...,))
    return np.where(np.isnan(r), 0.0, 1 / (1 + (r / c) ** 2))


def weighted_percentile(values: ArrayLike, weights: ArrayLike, percent: ArrayLike) -> Floats:
    """Weighted percentiles (...) of the values (n,), without interpolation; NaN if all weights are zero."""
    x, w = floats("values", values, ("n",)), floats("weights", weights, ("n",))
    q = floats("percent", percent, (...,))
    if x.shape != w.shape or np.any(w < 0):
        raise GeometryError(
            f"weights: expected one weight >= 0 for each of {x.size} values, got shape {w.shape}",
            why=f"{np.count_nonzero(w < 0)} weights are negative",
        )
    used = ~np.isnan(x) & (w > 0)
    if not used.any():
        return np.full(q.shape, np.nan)
    return np.asarray(np.percentile(x[used], q, weights=w[used], method="inverted_cdf"))


def runs(mask: ArrayLike) -> tuple[Ints, Ints]:
    """Starts and stops (exclusive), both (k,), of the runs of True in a mask (n,)."""
    flags = np.asarray(mask, dtype=np.bool_)
    if flags.ndim != 1:
        raise GeometryError(f"mask: expected shape (n,), got {flags.shape}")
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)


def run_lengths(mask: ArrayLike, breaks: ArrayLike = False) -> Ints:
    """Number of consecutive True samples up to and including each sample, 0 where the mask is False.

    Parameters
    ----------
    mask : (n,) or (n, k) bool
        Columns are independent.
    breaks : (n,) bool, optional
        Samples that do not continue the run of the sample before.
    """
    flags = np.asarray(mask, dtype=np.bool_)
    number = np.arange(1, len(flags) + 1).reshape(-1, *[1] * (flags.ndim - 1))
    starts = np.broadcast_to(np.asarray(breaks), (len(flags),)).reshape(number.shape)
    before = np.where(flags, np.where(starts, number - 1, 0), number)
    return number - np.maximum.accumulate(before, axis=0)


def _rows(values: ArrayLike, axis: int | None) -> Floats:
    """Values with the axis to reduce moved to the end."""
    x = floats("values", values, (...,))
    return x.reshape(-1) if axis is None else np.moveaxis(x, axis, -1)


def _measure(values: ArrayLike) -> Floats:
    x = floats("values", values, (...,))
    return x[~np.isnan(x)]


@overload
def inflate(covariance: Floats, trust: float) -> Floats: ...
@overload
def inflate(covariance: None, trust: float) -> None: ...
def inflate(covariance: Floats | None, trust: float) -> Floats | None:
    """Divide a covariance, or variances, by the square of the trust (0 to 1] in a sensor; None stays None."""
    return covariance if covariance is None or trust == 1.0 else covariance / trust**2
