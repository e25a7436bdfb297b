"""Statistics that a few wild values cannot spoil. NaN is not a value: it is left out everywhere."""

from __future__ import annotations

from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError
from transect.geometry.array_checks import check_times_ns, floats

NORMAL = 1.4826
"""Standard deviation of a normal distribution divided by its median absolute deviation."""


def median(values: ArrayLike, axis: int | None = None) -> Floats:
    """Median over `axis` (all values if None); NaN where nothing was measured.

    `np.median` would first load numpy.ma, which takes as long as a hundred medians of a thousand values.
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
    """Value below which `percent` of the values (...) are, interpolated as `np.percentile` does; NaN of none.

    As `median` it works without numpy.ma.
    """
    ordered = np.sort(_measure(values))
    if not ordered.size:
        return np.nan
    below, share = divmod(percent / 100 * (ordered.size - 1), 1)
    low, high = ordered[int(below)], ordered[min(int(below) + 1, ordered.size - 1)]
    return float(high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share)


def mad(values: ArrayLike, axis: int | None = None) -> Floats:
    """Median absolute deviation from the median over `axis` (all values if None)."""
    x = _rows(values, axis)
    return median(np.abs(x - median(x, axis=-1)[..., None]), axis=-1)


def nmad(values: ArrayLike, axis: int | None = None) -> Floats:
    """`mad` scaled to be the standard deviation where the values are normally distributed."""
    return NORMAL * mad(values, axis)


def trimmed_mean(values: ArrayLike, fraction: float = 0.1) -> float:
    """Mean of the values (...) without the smallest and the largest `fraction`; NaN if there are none."""
    if not 0 <= fraction < 0.5:
        raise GeometryError(f"expected a fraction to trim in [0, 0.5), got {fraction}")
    ordered = np.sort(_measure(values))
    cut = int(fraction * ordered.size)
    return float(np.mean(ordered[cut : ordered.size - cut])) if ordered.size else np.nan


def outlier_mask(values: ArrayLike, threshold: float = 3.5, floor: float = 0.0) -> Mask:
    """True where values (...) are more than `threshold` `nmad` from the median; never for NaN.

    Parameters
    ----------
    floor : float
        Smallest deviation, in the unit of the values, to take for one `nmad`: when over half of the values
        are equal (a coarse sensor at rest), it would be 0 and the next reading an outlier.
    """
    x = floats("values", values, (...,))
    return np.abs(x - median(x)) > threshold * np.maximum(nmad(x), floor)


def huber_weights(residuals: ArrayLike, k: float = 1.345) -> Floats:
    """Weights (...) of residuals (...) in units of their deviation: 1 up to `k`, then k / |r|; 0 for NaN.

    The default keeps 95 % efficiency on normally distributed residuals.
    """
    size = np.abs(floats("residuals", residuals, (...,)))
    return np.where(np.isnan(size), 0.0, k / np.maximum(size, k))


def cauchy_weights(residuals: ArrayLike, c: float = 2.3849) -> Floats:
    """Weights (...) of residuals (...) in units of their deviation: 1 / (1 + (r / c)^2); 0 for NaN.

    The default keeps 95 % efficiency on normally distributed residuals.
    """
    r = floats("residuals", residuals, (...,))
    return np.where(np.isnan(r), 0.0, 1 / (1 + (r / c) ** 2))


def weighted_percentile(values: ArrayLike, weights: ArrayLike, percent: ArrayLike) -> Floats:
    """Smallest of the values (n,) at which `percent` (...) of the weight (n,) is reached; NaN without any."""
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


class Run(NamedTuple):
    """Samples ``start`` to ``stop`` (exclusive)."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        """Number of samples."""
        return self.stop - self.start


class Gap(NamedTuple):
    """The time from sample ``after`` to the next."""

    after: int
    length_ns: int


def runs(mask: ArrayLike) -> tuple[Ints, Ints]:
    """Starts and stops (exclusive), both (k,), of the unbroken stretches of True in a mask (n,)."""
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


def longest_run(mask: ArrayLike) -> Run:
    """Longest unbroken stretch of True in a mask (n,), the first of equals; `Run(0, 0)` if there is none."""
    starts, stops = runs(mask)
    if not starts.size:
        return Run(0, 0)
    best = int(np.argmax(stops - starts))
    return Run(int(starts[best]), int(stops[best]))


def longest_gap(times_ns: ArrayLike) -> Gap:
    """Longest time between two samples on a sorted axis (n,), the first of equals; n must be at least 2."""
    axis = check_times_ns("time axis", times_ns)
    if len(axis) < 2:
        raise GeometryError(f"expected at least 2 samples to find a gap, got {len(axis)}")
    steps = np.diff(axis)
    best = int(np.argmax(steps))
    return Gap(best, int(steps[best]))


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
    """Divide a covariance, or variances, by the square of the trust in a sensor; None stays unknown."""
    return covariance if covariance is None or trust == 1.0 else covariance / trust**2
