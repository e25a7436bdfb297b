"""Ranges from the spectra of the Argo's FMCW radar (document 004, sections 3.2.3 and 3.2.4).

A target makes a beat tone whose frequency grows with its range, so a peak of the spectrum is a range. The
bins are 0.28 m apart; the vertex of the parabola through a peak and its two neighbours lies much closer.
The report does not say whether it laid the parabola through amplitudes or through decibels: both are here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError
from transect.recording import Robot

Scale = Literal["amplitude", "dB"]
"""Of reflectivities: dB are ``20 log10`` of amplitudes."""

_ROWS = 1024
"""Spectra searched together: some megabytes, which stay in the processor's cache."""


@dataclass(frozen=True)
class Radar:
    """How frequencies become ranges (eq. 1)."""

    # sample_frequency, hertz_per_metre: hz, Hz/m
    sample_frequency: float
    hertz_per_metre: float
    range_offset: float  # m
    bins: int  # of the FFT; a line that was cut short has fewer (errata)

    @classmethod
    def of(cls, robot: Robot) -> Radar:
        """Return the radar that a robot's constants describe."""
        radar = robot.constants["radar"]
        return cls(
            sample_frequency=float(radar["sample_frequency"]),
            hertz_per_metre=float(radar["hertz_per_metre"]),
            range_offset=float(radar["range_offset"]),
            bins=int(radar["bins"]),
        )

    @property
    def bin_width(self) -> float:
        """Metres from one bin to the next."""
        return self.sample_frequency / (2 * self.bins) / self.hertz_per_metre

    def range_from_bin(self, number: ArrayLike) -> Floats:
        """Range in m of bins (...), counted from 1; they may lie between two."""
        return np.asarray(number, dtype=np.float64) * self.bin_width + self.range_offset

    def bin_from_range(self, distance: ArrayLike) -> Floats:
        """Bins (...), counted from 1 and between two, of ranges in m."""
        return (np.asarray(distance, dtype=np.float64) - self.range_offset) / self.bin_width


@dataclass(frozen=True, eq=False)
class Peaks:
    """The strongest peaks of n spectra, k each, strongest first."""

    # (n, k), where the vertex lies, in bins counted from 1; NaN where a spectrum has fewer peaks
    bin: Floats
    reflectivity: Floats  # (n, k), height of the vertex, in the scale of the spectra
    interpolated: Mask  # (n, k) bool, False where there is no parabola: at the first and the last bin


def find_peaks(
    spectra: ArrayLike,
    *,
    count: int = 1,
    bins: tuple[int, int] | None = None,
    scale: Scale = "dB",
    fit: Scale = "dB",
) -> Peaks:
    """Find the strongest peaks of spectra, between the bins by a parabola through three of them.

    Parameters
    ----------
    spectra : (n, m) array
        Reflectivity by bin; a peak is a bin above its neighbours, of equal ones the first.
    count : int
        How many peaks of each spectrum.
    bins : (int, int), optional
        First and last bin, counted from 1, that can be a peak; default all. The neighbours of a peak may
        lie outside.
    scale : {"amplitude", "dB"}
        What the spectra are given in.
    fit : {"amplitude", "dB"}
        What the parabola is laid through. With a Hann window a tone's main lobe is nearly a parabola in dB.
    """
    values = np.asarray(spectra, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < 2 or count < 1:
        raise GeometryError("expected (n, m) spectra of some bins", why=f"got {values.shape}, {count} peaks")
    first, last = bins or (1, values.shape[1])
    gate = slice(max(first, 1) - 1, max(last, 0))
    parts = [_strongest(values[i : i + _ROWS], gate, count) for i in range(0, len(values), _ROWS)]
    where = np.concatenate(parts) if parts else np.zeros((0, count), np.int64)
    return _vertices(values, where, scale, fit)


def _strongest(values: Floats, gate: slice, count: int) -> Ints:
    """Return the indices (n, count) of the highest peaks, highest first; -1 where there are no more."""
    inside = values[:, gate]
    result = np.full((len(values), count), -1)
    if not inside.size:
        return result
    # The highest bin is nearly always a peak, and found fast; not so at the gate's ends and among equals.
    doubtful = np.ones(len(values), dtype=bool)
    if count == 1:
        highest = inside.argmax(axis=1) + gate.start
        doubtful = ~_stands_out(values, highest)
        result[:, 0] = highest
    result[doubtful] = _highest_peaks(values[doubtful], gate, count)
    return result


def _stands_out(values: Floats, where: Ints) -> Mask:
    """Return whether one bin (n,) of each line is above both its neighbours; the end ones are not."""
    row = np.arange(len(values))
    here = values[row, where]
    before, after = values[row, where - 1], values[row, np.minimum(where + 1, values.shape[1] - 1)]
    return (where > 0) & (here > before) & (here > after)


def _highest_peaks(values: Floats, gate: slice, count: int) -> Ints:
    peaks = _peak_mask(values)[:, gate]
    heights = np.where(peaks, values[:, gate], -np.inf)
    row = np.arange(len(values))
    result = np.full((len(values), count), -1)
    for k in range(min(count, heights.shape[1])):
        best = heights.argmax(axis=1)
        result[:, k] = np.where(heights[row, best] > -np.inf, best + gate.start, -1)
        heights[row, best] = -np.inf
    return result


def _peak_mask(values: Floats) -> Mask:
    """Return where lines (n, m) rise and then fall; of equal bins the first, and none at NaN."""
    step = np.sign(np.diff(values, axis=1))
    tied = (step == 0).any(axis=1)
    step[tied] = _next_steps(step[tied])
    peak = np.zeros(values.shape, dtype=bool)
    peak[:, 1:-1] = (step[:, :-1] > 0) & (step[:, 1:] < 0)
    peak[:, 0], peak[:, -1] = step[:, 0] < 0, step[:, -1] > 0
    return peak


def _next_steps(step: Floats) -> Floats:
    """Return steps (n, m) in which a 0 is the next one that is not; after a line's end it falls.

    A line that is level throughout has no peak, and stays as it is.
    """
    last = step.shape[1] - 1
    at = np.where(step != 0, np.arange(last + 1), last)
    filled = np.take_along_axis(step, np.minimum.accumulate(at[:, ::-1], axis=1)[:, ::-1], axis=1)
    return np.where((filled == 0) & (step != 0).any(axis=1, keepdims=True), -1.0, filled)


def _vertices(values: Floats, where: Ints, scale: Scale, fit: Scale) -> Peaks:
    """Return the vertices of the parabolas at peaks (n, k) of spectra (n, m)."""
    inside = (where > 0) & (where < values.shape[1] - 1)
    around = np.where(inside, where, 1)[..., None] + np.arange(-1, 2)
    around = np.minimum(around, values.shape[1] - 1)
    three = np.take_along_axis(values[:, None, :], around, axis=2)
    offset, height = _vertex(_rescale(three, scale, fit))
    # A neighbour without any amplitude is minus infinity in dB: no parabola goes through it.
    inside &= np.isfinite(offset) & np.isfinite(height)
    alone = np.take_along_axis(values, np.maximum(where, 0), axis=1)
    number = np.where(where >= 0, where + 1.0, np.nan)
    return Peaks(
        bin=np.where(inside, number + offset, number),
        reflectivity=np.where(inside, _rescale(height, fit, scale), np.where(where >= 0, alone, np.nan)),
        interpolated=inside,
    )


def _vertex(three: Floats) -> tuple[Floats, Floats]:
    """Return how far (...) from the middle one, and how high, the parabola through (..., 3) values peaks."""
    a, b, c = np.moveaxis(three, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        offset = np.clip((a - c) / (a - 2 * b + c) / 2, -0.5, 0.5)
        return offset, b - (a - c) * offset / 4


def _rescale(values: Floats, before: Scale, after: Scale) -> Floats:
    if before == after:
        return values
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return 20 * np.log10(values) if after == "dB" else 10 ** (values / 20)
