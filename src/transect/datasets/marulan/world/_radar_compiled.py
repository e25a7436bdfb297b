"""Compiled loops of `radar`: spectra of the beat tones of all echoes, and of noise, with Hann's window."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]


@njit(cache=True, nogil=True)
def _lobe(x: float, sine: float) -> float:
    """Spectrum of Hann's window at x bins, 1 at 0: sinc(x) / (1 - x2); `sine` is that of pi x."""
    if abs(x) < 1e-5:
        return 1.0
    if abs(abs(x) - 1.0) < 1e-5:
        return 0.5
    return sine / (np.pi * x * (1.0 - x * x))


@njit(cache=True, nogil=True)
def add_tones(spectra: Any, line: Any, position: Any, amplitude: Any, phase: Any) -> None:
    """Add tones to complex64 spectra (n, bins), in place.

    Tone i adds to spectrum ``line[i]`` around ``position[i]``, in bins counted from 1. The sign that
    alternates from bin to bin, and a phase that depends on the position only, are omitted: neither affects
    the power. Side lobes below `min_amplitude`, in units of the noise, are omitted, too.
    """
    min_amplitude = 0.1
    bins = spectra.shape[1]
    for i in range(len(line)):
        # The side lobes decrease with the third power of the distance.
        width = int((amplitude[i] / min_amplitude) ** (1.0 / 3.0)) + 1
        middle = int(np.floor(position[i]))
        first, last = max(middle - width, 1), min(middle + width + 1, bins)
        sine = np.sin(np.pi * (position[i] - first))
        re, im = amplitude[i] * np.cos(phase[i]), amplitude[i] * np.sin(phase[i])
        for k in range(first, last + 1):
            height = _lobe(position[i] - k, sine)
            spectra[line[i], k - 1] += np.complex64(complex(re * height, im * height))
            sine = -sine


@njit(cache=True, nogil=True)
def powers(spectra: Any, white: Any) -> Any:
    """Return the powers (n, bins) of spectra with noise of mean power 1.

    `white` (n, bins + 2, 2) is normal; Hann's window mixes each bin with its neighbours.
    """
    lines, bins = spectra.shape
    result = np.empty((lines, bins), np.float32)
    scale = np.float32(1.0 / np.sqrt(2.0 * 0.375))
    half, quarter = np.float32(0.5) * scale, np.float32(0.25) * scale
    for i in range(lines):
        for k in range(bins):
            re = half * white[i, k + 1, 0] + quarter * (white[i, k, 0] + white[i, k + 2, 0])
            im = half * white[i, k + 1, 1] + quarter * (white[i, k, 1] + white[i, k + 2, 1])
            re += spectra[i, k].real
            im += spectra[i, k].imag
            result[i, k] = re * re + im * im
    return result
