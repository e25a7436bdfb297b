"""Fourier transforms of real fields, zero-padded so that correlations do not wrap around."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats

Spectrum = NDArray[np.complex128]


def pad_sizes(*sizes: int) -> tuple[int, ...]:
    """Return the next larger sizes for which the transform is fast."""
    from scipy.fft import next_fast_len

    return tuple(int(next_fast_len(size, real=True) or size) for size in sizes)


def transform(field: Floats, shape: Sequence[int]) -> Spectrum:
    """Return the spectrum of a field (..., rows, cols), zero-padded to a shape."""
    from scipy.fft import rfft2

    return np.asarray(rfft2(field, shape), np.complex128)


def transform_back(spectrum: Spectrum | Floats, shape: Sequence[int]) -> Floats:
    """Return the field of a spectrum."""
    from scipy.fft import irfft2

    return np.asarray(irfft2(spectrum, shape), np.float64)


def autocorrelate(field: Floats) -> Floats:
    """Return sums of products of a field (..., rows, cols) with itself, by lag: 0, 1, ..., -2, -1."""
    shape = pad_sizes(*(2 * n - 1 for n in field.shape[-2:]))
    return transform_back(np.abs(transform(field, shape)) ** 2, shape)


def taper_lags(shape: Sequence[int], size: Sequence[int]) -> Floats:
    """Return weights of lags in the order of `autocorrelate`: 1 up to an eighth of the field, 0 from 3/8 on.

    Large lags have few pairs of cells. The flat part leaves small lags unbiased.
    """
    lags = [np.minimum(np.arange(n), n - np.arange(n)) for n in shape]
    ratios = [lag / max(length, 1) for lag, length in zip(lags, size, strict=True)]
    return np.outer(*[np.clip((0.375 - ratio) / 0.25, 0.0, 1.0) for ratio in ratios])
