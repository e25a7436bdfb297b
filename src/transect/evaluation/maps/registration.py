"""Where an estimated height map belongs: the shift that fits its heights to the reference's.

First whole cells, by the variance of the difference at every shift (a few Fourier transforms); then parts of
a cell by least squares on the slopes, as Nuth and Kääb (The Cryosphere 5, 2011) do by slope and aspect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import robust

Sampler = Callable[[Floats], Floats]
"""The estimate at the reference's cells (rows, cols), once moved by x, y (2,) in metres."""

ITERATIONS = 12
CONVERGED = 1e-3
"""Cells."""
LEAST_OVERLAP = 0.5
"""Of the largest overlap of all shifts; with less, a flat corner may fit best."""
WILD = 5.0
"""Normalised deviations beyond which a height takes no part in the search for whole cells."""
FLAT = 1e-3
"""Spread of slopes below which a shift along them cannot be seen."""


@dataclass(frozen=True)
class Registration:
    """Metres added to x, y, z of the estimate, and along how many horizontal directions it was determined."""

    shift: Floats
    determined: int


def register(reference: Floats, sample: Sampler, plane_from_cells: Floats, search: int) -> Registration:
    """Find the shift of an estimate.

    Parameters
    ----------
    reference : (rows, cols)
        Heights in metres; NaN where not measured.
    sample : callable
        The estimate at the reference's cells.
    plane_from_cells : (2, 2)
        Metres in x and y of one column and one row.
    search : int
        How many cells it may be off.
    """
    slopes = _slopes(reference, plane_from_cells)
    determined = _determine(slopes)
    flat = np.zeros(2)
    if search and determined.shape[1] == 2:
        flat = -(plane_from_cells @ _whole_cells(reference, sample(flat), search))
    step = np.full(2, np.inf)
    for _ in range(ITERATIONS):
        if not determined.shape[1] or np.linalg.norm(step) < CONVERGED * np.abs(plane_from_cells).max():
            break
        step = determined @ (determined.T @ _step(sample(flat) - reference, slopes))
        flat = flat + step
    height = robust.median(reference - sample(flat))
    return Registration(np.array([*flat, height]), determined.shape[1])


def _whole_cells(reference: Floats, estimate: Floats, search: int) -> Floats:
    """Return the shift (columns, rows) at which the difference varies least: estimate[c + s] fits ref[c]."""
    from scipy.fft import irfft2, next_fast_len, rfft2

    shape = [next_fast_len(n + search, real=True) for n in reference.shape]
    known_r = np.isfinite(reference)
    known_e = np.isfinite(estimate) & ~robust.outlier_mask(estimate - reference, WILD)
    r = np.where(known_r, reference - robust.median(reference), 0.0)
    e = np.where(known_e, estimate - robust.median(estimate), 0.0)

    def correlated(a: Floats, b: Floats) -> Floats:
        full = np.asarray(irfft2(np.conj(np.asarray(rfft2(a, shape))) * rfft2(b, shape), shape))
        return np.roll(full, (search, search), axis=(0, 1))[: 2 * search + 1, : 2 * search + 1]

    m_r, m_e = known_r.astype(np.float64), known_e.astype(np.float64)
    count = np.maximum(np.round(correlated(m_r, m_e)), 1)
    total = correlated(m_r, e) - correlated(r, m_e)
    squares = correlated(m_r, e**2) - 2 * correlated(r, e) + correlated(r**2, m_e)
    variance = squares / count - (total / count) ** 2
    variance[count < LEAST_OVERLAP * count.max()] = np.inf
    row, col = np.unravel_index(int(np.argmin(variance)), variance.shape)
    return np.array([col - search, row - search], np.float64)


def _slopes(heights: Floats, plane_from_cells: Floats) -> Floats:
    """Return (rows, cols, 2) metres per metre along x and y; NaN for a map that is too small to have any."""
    if min(heights.shape) < 2:
        return np.full((*heights.shape, 2), np.nan)
    down, across = np.gradient(heights)
    return np.stack([across, down], axis=-1) @ np.linalg.inv(plane_from_cells)


def _determine(slopes: Floats) -> Floats:
    """Return (2, k) horizontal directions along which the slopes vary: a plane fits itself anywhere."""
    known = slopes[np.isfinite(slopes).all(axis=-1)]
    if len(known) < 3:
        return np.zeros((2, 0))
    spread, directions = np.linalg.eigh(np.cov(known.T))
    return directions[:, spread > FLAT**2]


def _step(residual: Floats, slopes: Floats) -> Floats:
    """Return how much further (2,) the estimate is to be moved, by robust least squares.

    The slopes are the reference's: those of a noisy estimate would pull the answer to nothing.
    """
    known = np.isfinite(residual) & np.isfinite(slopes).all(axis=-1)
    if known.sum() < 3:
        return np.zeros(2)
    dz = residual[known] - robust.median(residual[known])
    weight = np.sqrt(robust.huber_weights(dz / max(float(robust.nmad(dz)), 1e-12)))
    design = np.column_stack([slopes[known], np.ones(len(dz))]) * weight[:, None]
    return np.asarray(np.linalg.lstsq(design, dz * weight, rcond=None)[0][:2], np.float64)
