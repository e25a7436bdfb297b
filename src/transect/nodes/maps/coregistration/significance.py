"""Whether two maps are alike at all, or only as alike as any two pieces of such ground are.

Two pieces of ground that have nothing to do with each other are often alike by chance, the more so the smaller
they are. How much, follows from how far each is like itself when it is shifted (Bartlett 1946): the variance of
the correlation of two such fields is the sum over all shifts of the product of their autocorrelations. Heights
of hills are alike over the whole map, their slopes are not, so slopes are compared; with cells that are
averaged more and more, as noise hides the small ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.rasters import Heights

from .refinement import Fit, taper_lags

SURE = 3.0
"""Deviations beyond what the best of all places that were tried has by chance."""
FACTORS = (1, 2, 4, 8)
LEAST_SIDE = 8
"""Cells along a side of a map whose slopes are compared."""


@dataclass(frozen=True)
class Likeness:
    """How alike two maps are.

    Attributes
    ----------
    correlation : float
        Of their slopes at the cells that count.
    chance : float
        Deviation of the correlation of two such maps that have nothing to do with each other.
    """

    correlation: float = 0.0
    chance: float = 1.0

    @property
    def deviations(self) -> float:
        """How far the correlation (by Fisher's transform) is from 0, in deviations."""
        return float(np.arctanh(np.clip(self.correlation, -1 + 1e-12, 1 - 1e-12))) / self.chance

    def limit(self, places: float) -> float:
        """Return the correlation that the best of so many independent places hardly has by chance."""
        return float(np.tanh(self.chance * (SURE + np.sqrt(2 * np.log(max(places, 1.0))))))


def compare_slopes(fit: Fit, moved: Heights) -> Likeness:
    """Compare slopes of the moved map with those of the reference below it, where they are alike most surely."""
    # A cell without a slope has a residual but no weight; it still tells the slopes beside it.
    outlier = np.where((fit.weight == 0) & np.isfinite(fit.gradient).all(axis=-1), np.nan, 0.0)
    ours = Heights(moved.values + 0 * fit.residual + outlier, moved.cells_from_plane).close_holes()
    theirs = Heights(moved.values - fit.residual + outlier, moved.cells_from_plane).close_holes()
    found = [
        _compare(ours.reduce(factor).measure_slopes(), theirs.reduce(factor).measure_slopes())
        for factor in FACTORS
        if min(moved.values.shape) // factor >= LEAST_SIDE
    ]
    return max(found, key=lambda each: each.deviations, default=Likeness())


def _compare(a: Floats, b: Floats) -> Likeness:
    """Return how alike two fields of slopes (rows, cols, 2) are."""
    used = np.isfinite(a).all(axis=-1) & np.isfinite(b).all(axis=-1)
    if used.sum() < LEAST_SIDE**2:
        return Likeness()
    a, b = (np.where(used[..., None], each - each[used].mean(axis=0), 0.0) for each in (a, b))
    size = float(np.sqrt((a**2).sum() * (b**2).sum()))
    if size == 0:
        return Likeness()
    alike = np.multiply(*(_autocorrelate(each) for each in (a, b))).sum() / used.sum()
    return Likeness(float((a * b).sum()) / size, float(np.sqrt(max(alike, 0.0))) / size)


def _autocorrelate(field: Floats) -> Floats:
    """Return the sums of products (2, rows, cols) of each component (rows, cols, 2) with itself, by shift."""
    from scipy.fft import irfft2, next_fast_len, rfft2

    shape = [next_fast_len(2 * n - 1, real=True) for n in field.shape[:2]]
    parts = np.moveaxis(field, -1, 0)
    alike = np.asarray(irfft2(np.abs(np.asarray(rfft2(parts, shape))) ** 2, shape))
    return alike * taper_lags(shape, field.shape[:2])
