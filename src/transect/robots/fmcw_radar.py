"""Ranges from the spectra of the Argo's FMCW radar (SDI, sections 3.2.3 and 3.2.4).

The beat frequency of a target is proportional to its range, so a peak of the spectrum is a range. The bins
are 0.28 m wide; the vertex of the parabola through a peak and its two neighbours is much more accurate. The
report does not state whether the parabola is fitted to amplitudes or decibels: both are implemented.
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
"""Scale of reflectivities: dB are ``20 log10`` of amplitudes."""

_CHUNK_SPECTRA = 1024
"""Spectra that are processed together: some megabytes, which fit into the processor cache."""


@dataclass(frozen=True)
class Radar:
    """Conversion of frequencies to ranges (eq. 1)."""

    # sample_frequency, hertz_per_metre: Hz, Hz/m
    sample_frequency: float
    hertz_per_metre: float
    range_offset: float  # m
    bins: int  # of the FFT; truncated lines have fewer

    @classmethod
    def of(cls, robot: Robot) -> Radar:
        """Return the radar of a robot's constants."""
        radar = robot.constants["radar"]
        return cls(
            sample_frequency=float(radar["sample_frequency"]),
            hertz_per_metre=float(radar["hertz_per_metre"]),
            range_offset=float(radar["range_offset"]),
            bins=int(radar["bins"]),
        )

    @property
    def bin_width(self) -> float:
        """Width of a bin, m."""
        return self.sample_frequency / (2 * self.bins) / self.hertz_per_metre

    def range_from_bin(self, number: ArrayLike) -> Floats:
        """Range in m of fractional bins (...), counted from 1."""
        return np.asarray(number, dtype=np.float64) * self.bin_width + self.range_offset

    def bin_from_range(self, distance: ArrayLike) -> Floats:
        """Fractional bins (...), counted from 1, of ranges in m."""
        return (np.asarray(distance, dtype=np.float64) - self.range_offset) / self.bin_width


@dataclass(frozen=True, eq=False)
class Peaks:
    """The strongest peaks of n spectra, k each, strongest first."""

    # (n, k), position of the vertex in bins counted from 1; NaN if a spectrum has fewer peaks
    bin: Floats
    reflectivity: Floats  # (n, k), height of the vertex, in the scale of the spectra
    interpolated: Mask  # (n, k) bool, false without a parabola: at the first and the last bin


def find_peaks(
    spectra: ArrayLike,
    *,
    count: int = 1,
    bins: tuple[int, int] | None = None,
    scale: Scale = "dB",
    fit: Scale = "dB",
) -> Peaks:
    """Find the strongest peaks of spectra, interpolated by a parabola through three bins.

    Parameters
    ----------
    spectra : (n, m) array
        Reflectivity by bin; a peak is a bin above its neighbours, or the first of equal ones.
    count : int
        Number of peaks of each spectrum.
    bins : (int, int), optional
        First and last bin of a peak, counted from 1; default all. The neighbours of a peak may be outside.
    scale : {"amplitude", "dB"}
        Scale of the spectra.
    fit : {"amplitude", "dB"}
        Scale of the fit. With a Hann window the main lobe of a tone is nearly a parabola in dB.
    """
    values = np.asarray(spectra, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < 2 or count < 1:
        raise GeometryError("expected (n, m) spectra of some bins", why=f"got {values.shape}, {count} peaks")
    first, last = bins or (1, values.shape[1])
    gate = slice(max(first, 1) - 1, max(last, 0))
    parts = [
        _strongest(values[i : i + _CHUNK_SPECTRA], gate, count) for i in range(0, len(values), _CHUNK_SPECTRA)
    ]
    where = np.concatenate(parts) if parts else np.zeros((0, count), np.int64)
    return _vertices(values, where, scale, fit)


def _strongest(values: Floats, gate: slice, count: int) -> Ints:
    """Return the indices (n, count) of the highest peaks, highest first; -1 for missing ones."""
    inside = values[:, gate]
    result = np.full((len(values), count), -1)
    if not inside.size:
        return result
    # The highest bin is usually a peak, except at the ends of the gate and among equal bins.
    uncertain = np.ones(len(values), dtype=bool)
    if count == 1:
        highest = inside.argmax(axis=1) + gate.start
        uncertain = ~_is_peak(values, highest)
        result[:, 0] = highest
    result[uncertain] = _highest_peaks(values[uncertain], gate, count)
    return result


def _is_peak(values: Floats, where: Ints) -> Mask:
    """Whether one bin (n,) of each line is above both its neighbours; false at the ends."""
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
    """Mask of the peaks of lines (n, m): the first of equal bins, none at NaN."""
    step = np.sign(np.diff(values, axis=1))
    tied = (step == 0).any(axis=1)
    step[tied] = _fill_zero_steps(step[tied])
    peak = np.zeros(values.shape, dtype=bool)
    peak[:, 1:-1] = (step[:, :-1] > 0) & (step[:, 1:] < 0)
    peak[:, 0], peak[:, -1] = step[:, 0] < 0, step[:, -1] > 0
    return peak


def _fill_zero_steps(step: Floats) -> Floats:
    """Replace zero steps (n, m) by the next nonzero one, or -1 at the end of a line.

    A constant line has no peak and is unchanged.
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
    # a neighbour without amplitude is minus infinity in dB
    inside &= np.isfinite(offset) & np.isfinite(height)
    alone = np.take_along_axis(values, np.maximum(where, 0), axis=1)
    number = np.where(where >= 0, where + 1.0, np.nan)
    return Peaks(
        bin=np.where(inside, number + offset, number),
        reflectivity=np.where(inside, _rescale(height, fit, scale), np.where(where >= 0, alone, np.nan)),
        interpolated=inside,
    )


def _vertex(three: Floats) -> tuple[Floats, Floats]:
    """Return offset (...) from the middle and height of the vertex through (..., 3) values."""
    a, b, c = np.moveaxis(three, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        offset = np.clip((a - c) / (a - 2 * b + c) / 2, -0.5, 0.5)
        return offset, b - (a - c) * offset / 4


def _rescale(values: Floats, before: Scale, after: Scale) -> Floats:
    if before == after:
        return values
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return 20 * np.log10(values) if after == "dB" else 10 ** (values / 20)
