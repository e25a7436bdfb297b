"""Whether two maps are alike at all, or only as alike as any two pieces of such ground are.

Two pieces of ground that have nothing to do with each other are often alike by chance, the more so the
smaller they are. How much, follows from how far each is like itself when it is shifted (Bartlett 1946): the
variance of the correlation of two such fields is the sum over all shifts of the product of their
autocorrelations. Heights of hills are alike over the whole map, their slopes are not, so slopes are compared;
with cells that are averaged more and more, as noise hides the small ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.rasters import Heights

from .refinement import Fit
from .spectra import autocorrelate, taper_lags

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
    """Compare slopes of the moved map with the reference's below it, at the scale that tells most."""
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
    used = np.asarray(np.isfinite(a + b).all(axis=-1, keepdims=True))
    if used.sum() < LEAST_SIDE**2:
        return Likeness()
    a, b = (np.where(used, each - each[used[..., 0]].mean(axis=0), 0.0) for each in (a, b))
    size = float(np.sqrt((a**2).sum() * (b**2).sum()))
    if size == 0:
        return Likeness()
    alike = np.multiply(*(autocorrelate(np.moveaxis(each, -1, 0)) for each in (a, b)))
    together = float((alike * taper_lags(alike.shape[1:], used.shape[:2])).sum()) / float(used.sum())
    return Likeness(float((a * b).sum()) / size, float(np.sqrt(max(together, 0.0))) / size)
