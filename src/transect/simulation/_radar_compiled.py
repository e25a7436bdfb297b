"""Compiled loop of `radar`: the beat tones of all echoes, as a windowed FFT shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

_LOBE = 8
"""Bins on each side within which a tone is felt: beyond, Hann's window leaves less than -60 dB."""


@njit(cache=True, nogil=True)
def lobe(distance: float) -> float:
    """Spectrum of Hann's window at a distance in bins, 1 at its middle: sinc(x) / (1 - x2)."""
    x = abs(distance)
    if x < 1e-6:
        return 1.0
    if abs(x - 1.0) < 1e-6:
        return 0.5
    return np.sin(np.pi * x) / (np.pi * x * (1.0 - x * x))


@njit(cache=True, nogil=True)
def add_tones(spectra: Any, line: Any, place: Any, amplitude: Any, phase: Any) -> None:
    """Add tones to complex spectra (n, bins), in place.

    Tone i adds to spectrum ``line[i]`` around ``place[i]``, in bins counted from 1. The sign that alternates
    from bin to bin, and a phase that depends on the place alone, are left out: neither is seen in powers.
    """
    bins = spectra.shape[1]
    for i in range(len(line)):
        tone = amplitude[i] * complex(np.cos(phase[i]), np.sin(phase[i]))
        middle = int(np.floor(place[i]))
        for k in range(max(middle - _LOBE, 1), min(middle + _LOBE + 1, bins) + 1):
            spectra[line[i], k - 1] += tone * lobe(place[i] - k)
