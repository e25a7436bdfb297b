"""The time offset between two signals of the same motion, by normalised cross-correlation.

The offset is added to the times of b to get those of a: ``t_a = t_b + offset``. The signals may be sampled
unevenly, at different rates and on unrelated clocks. They are any scalar that both sensors observe, e.g. the
magnitude of the angular rate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError
from transect.geometry.array_checks import check_times_ns, floats, same_length
from transect.geometry.interpolation import Limits, interpolate_columns

MAX_GAP_STEPS = 5
"""Gaps longer than this many median steps are not interpolated."""


class TimeOffset(NamedTuple):
    """Result of `time_offset`."""

    offset_ns: int  # added to the times of b; interpolated between samples
    correlation: float  # Pearson correlation at the offset
    # 1 - second best peak / best peak; 0 if the best is at the edge of the search, near 0 for periodic
    # signals
    confidence: float


def time_offset(
    a_ns: ArrayLike,
    a: ArrayLike,
    b_ns: ArrayLike,
    b: ArrayLike,
    max_offset_ns: int | None = None,
    step_ns: int | None = None,
    min_overlap: float = 0.5,
) -> TimeOffset:
    """Estimate by how much the clock of `b` is behind that of `a`.

    Parameters
    ----------
    a_ns, b_ns : (n,), (m,)
        Sorted times.
    a, b : (n,), (m,)
        The signals; NaN samples are left out.
    max_offset_ns : int, optional
        Largest absolute offset searched; None for all offsets at which the signals overlap.
    step_ns : int, optional
        Step of the even grid that both are resampled to; default is the smaller median step of the two.
    min_overlap : float
        Offsets at which less than this fraction of the shorter signal overlaps are left out.

    Raises
    ------
    GeometryError
        If a signal is constant or too short, or if no offset leaves enough overlap.
    """
    signal_a, signal_b = _signal("a", a_ns, a), _signal("b", b_ns, b)
    step = step_ns or min(_median_step(signal_a), _median_step(signal_b))
    if step < 1:
        raise GeometryError(f"expected a grid step of at least 1 ns, got {step}")
    grid_a, grid_b = _resample(signal_a, step), _resample(signal_b, step)
    lags, rho = cross_correlation(grid_a, grid_b, min_overlap)
    offsets = int(signal_a[0][0] - signal_b[0][0]) + lags * step
    if max_offset_ns is not None:
        rho = np.where(np.abs(offsets) <= max_offset_ns, rho, np.nan)
    if not np.isfinite(rho).any():
        raise GeometryError(
            "no offset leaves enough of the two signals in common",
            why=f"they overlap at offsets from {offsets[0]} to {offsets[-1]} ns; allowed: {max_offset_ns} ns",
            hint="allow a larger offset or less overlap",
        )
    best = int(np.nanargmax(rho))
    shift, height = _vertex(rho, best)
    return TimeOffset(int(offsets[best]) + round(shift * step), height, _confidence(rho, best))


def cross_correlation(a: ArrayLike, b: ArrayLike, min_overlap: float = 0.5) -> tuple[Ints, Floats]:
    """Pearson correlation of evenly sampled signals (n,) and (m,) at every lag, over the overlapping samples.

    Returns
    -------
    lags : (n + m - 1,)
        Sample i + lag of `a` corresponds to sample i of `b`.
    rho : (n + m - 1,)
        NaN where the overlap is below `min_overlap` of the largest one, or one signal is constant in it.

    Notes
    -----
    NaN samples are left out (masked correlation: Padfield, IEEE Trans. Image Processing 21(5), 2012).
    """
    x, y = floats("a", a, ("n",)), floats("b", b, ("m",))
    x_known, y_known = np.isfinite(x), np.isfinite(y)
    if not (x_known.any() and y_known.any()):
        raise GeometryError("expected signals with samples in them, got nothing but NaN")
    x = np.where(x_known, x - x[x_known].mean(), 0.0)
    y = np.where(y_known, y - y[y_known].mean(), 0.0)
    pairs = np.round(_correlate(x_known, y_known))
    enough = pairs >= max(2.0, min_overlap * pairs.max())
    n = np.maximum(pairs, 1)
    sum_x, sum_y = _correlate(x, y_known), _correlate(x_known, y)
    var_x = _correlate(x * x, y_known) - sum_x**2 / n
    var_y = _correlate(x_known, y * y) - sum_y**2 / n
    # A smaller variance is rounding error of the Fourier transforms.
    varies = (var_x > 1e-10 * np.sum(x * x)) & (var_y > 1e-10 * np.sum(y * y))
    root = np.sqrt(np.where(enough & varies, var_x * var_y, np.nan))
    rho = (_correlate(x, y) - sum_x * sum_y / n) / root
    return np.arange(1 - len(y), len(x)), np.clip(rho, -1.0, 1.0)


def _signal(name: str, times: ArrayLike, values: ArrayLike) -> tuple[Ints, Floats]:
    """Times and values of the measured samples."""
    axis, x = check_times_ns(f"times of {name}", times), floats(f"signal {name}", values, ("n",))
    same_length(times=axis, signal=x)
    axis, x = axis[np.isfinite(x)], x[np.isfinite(x)]
    if len(x) < 3 or np.ptp(x) == 0:
        raise GeometryError(
            f"signal {name} cannot be correlated",
            why=f"it has {len(x)} measured samples" + (", all equal" if len(x) else ""),
            hint="select a period in which the robot moves",
        )
    return axis, x


def _median_step(signal: tuple[Ints, Floats]) -> int:
    return int(np.median(np.diff(signal[0])))


def _resample(signal: tuple[Ints, Floats], step: int) -> Floats:
    """The signal on an even grid from its first sample, NaN in its gaps."""
    axis, x = signal
    if (axis[-1] - axis[0]) // step > 50_000_000:  # an outlier among the stamps would exhaust the memory
        raise GeometryError(
            f"a signal of {(axis[-1] - axis[0]) / 1e9:.0f} s is too long for steps of {step} ns",
            hint="check for outliers among the time stamps, or give a larger step",
        )
    grid = np.arange(axis[0], axis[-1] + 1, step, dtype=np.int64)
    return interpolate_columns(axis, x, grid, Limits(gap_ns=MAX_GAP_STEPS * max(step, _median_step(signal))))


def _correlate(x: np.ndarray, y: np.ndarray) -> Floats:
    """Sum of x[i + lag] y[i] for all lags from 1 - m to n - 1, by Fourier transform."""
    size = len(x) + len(y) - 1
    fast = 1 << (size - 1).bit_length()
    product = np.fft.rfft(x, fast) * np.conj(np.fft.rfft(y, fast))
    return np.roll(np.fft.irfft(product, fast), len(y) - 1)[:size]


def _vertex(rho: Floats, best: int) -> tuple[float, float]:
    """Shift in [-0.5, 0.5] and height of the parabola through the best sample and its neighbours."""
    if not _bracket(rho, best):
        return 0.0, float(rho[best])
    before, here, after = rho[best - 1 : best + 2]
    curvature = before - 2 * here + after
    shift = float(np.clip(0.5 * (before - after) / curvature, -0.5, 0.5)) if curvature < 0 else 0.0
    return shift, float(min(1.0, here - 0.25 * (before - after) * shift))


def _bracket(rho: Floats, best: int) -> bool:
    return 0 < best < len(rho) - 1 and bool(np.isfinite(rho[best - 1 : best + 2]).all())


def _confidence(rho: Floats, best: int) -> float:
    """Return 1 - second best peak / best peak."""
    if not _bracket(rho, best) or rho[best] <= 0:
        return 0.0
    second = max(_second_peak(rho[best:]), _second_peak(rho[best::-1]))
    return float(1.0 - second / rho[best])


def _second_peak(rho: Floats) -> float:
    """Maximum after the correlation has fallen from its peak at the start and risen again; 0 if it does not.

    A rise of less than 5 % of the best peak is noise.
    """
    risen = rho - np.fmin.accumulate(rho) > 0.05 * rho[0]
    return float(np.max(rho, initial=0.0, where=risen))
