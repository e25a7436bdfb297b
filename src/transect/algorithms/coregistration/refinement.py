"""Refinement of a placement by least squares on heights, its covariance, and a test against chance matches.

A cell of the moved map, transformed to the reference, has a residual: its height minus the reference's there.
The estimate is the motion at which residuals are uncorrelated with the slopes of the *moved* map. The noise
of those slopes is independent of the reference, which is interpolated and so smoother between its cells than
at them; with its own slopes a noisy map would be biased towards half cells.

The covariance is the sandwich covariance of this estimating equation: the slopes of both maps give the
derivative of the residuals by the motion, the autocovariance of the residuals their contribution. Errors of
maps are correlated over metres, so treating cells as independent would underestimate it.

Two unrelated pieces of ground often correlate by chance, the more so the smaller they are. The variance of
the correlation of two such fields is the sum over all shifts of the product of their autocorrelations
(Bartlett 1946). Heights of hills are correlated over the whole map, their slopes are not, so slopes are
compared, at several resolutions, as noise dominates the finest one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.geometry import robust
from transect.geometry.rasters import Heights

from .placement import Placement
from .spectra import autocorrelate, taper_lags, transform, transform_back

ITERATIONS = 20
CONVERGED = 2e-3
"""Cells, at the edge of the map."""
LEAST_CELLS = 30
TUKEY = 4.685
"""Deviations beyond which a residual does not count: keeps 95 % efficiency."""
LARGEST_STEP = 2.0
"""Cells that a step may move the edge of the map."""
SAMPLING = 0.005
"""Cells, a deviation: how a map's cells were averaged is not known, nor the same in both."""
SHARPER = 1e-4
"""Of the largest deviation: less cannot be told from nothing."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A placement and what was left of the heights.

    Attributes
    ----------
    placement : Placement
    residual : (rows, cols) float64
        Height of the moved map less the reference's, metres; NaN where one is not known.
    weight : (rows, cols) float64
        1 for cells that count in full, 0 for outliers and unknown ones.
    bread : (k, k) float64
        How residuals, weighted by the moved map's slopes, change with the motion.
    gradient : (rows, cols, k) float64
        Of the residuals by the motion, by the moved map's slopes.
    cell : float
        Edge of the moved map's cells in metres.
    free : (7,) bool
        Which of shift, turn and scale were found; k of them.
    converged : bool
    """

    placement: Placement
    residual: Floats
    weight: Floats
    bread: Floats
    gradient: Floats
    cell: float
    free: Mask
    converged: bool

    @property
    def deviation(self) -> float:
        """Of the residuals that count, in metres."""
        used = self.weight > 0
        total = max(float(self.weight[used].sum()), 1.0)
        return float(np.sqrt((self.weight * np.nan_to_num(self.residual) ** 2)[used].sum() / total))

    @property
    def count(self) -> int:
        """Cells at which both maps are known."""
        return int(np.isfinite(self.residual).sum())


@dataclass(frozen=True, eq=False)
class _Template:
    """The moved map: offsets of its cells from the middle (rows, cols, 3) and its slopes."""

    offsets: Floats
    slopes: Floats
    cell: float
    radius: float


@dataclass(frozen=True, eq=False)
class _Under:
    """The reference: splines of its heights (rows, cols), 0 or NaN with its slopes (rows, cols, 3).

    Heights between cells are cubic: linear ones move what is small by a hundredth of a cell.
    """

    spline: Floats
    slopes: Floats
    cells_from_plane: Floats


def refine(
    reference: Heights,
    moved: Heights,
    begin: Placement,
    *,
    scale: bool = False,
    tilt: bool = True,
    turn: bool = True,
) -> Fit:
    """Lay a map on a reference from a placement nearby.

    Parameters
    ----------
    reference, moved : Heights
        In metres of one plane, of about the same cells.
    begin : Placement
        Off by a few cells at most.
    scale : bool
        Whether lengths of the moved map may be wrong by a factor.
    tilt : bool
        Whether it may lean.
    turn : bool
        Whether it may be turned about the vertical.
    """
    template = _template(moved, begin)
    under = _prepare(reference)
    free = np.array([True, True, True, tilt, tilt, turn, scale])
    placement, converged = begin, False
    for _ in range(ITERATIONS):
        step, size = _solve(_linearise(under, template, placement, free), template, free)
        placement = placement.step(step)
        if size < CONVERGED * template.cell:
            converged = True
            break
    residual, weight, g_moved, g_reference = _linearise(under, template, placement, free)
    # By how much a weighted residual changes with the residual: less than its weight, as that falls too.
    change = np.sqrt(weight) * (5 * np.sqrt(weight) - 4)
    bread = np.einsum("ij,ijp,ijq->pq", change, np.nan_to_num(g_moved), np.nan_to_num(g_reference))
    return Fit(placement, residual, weight, bread, g_moved, template.cell, free, converged)


def _template(moved: Heights, begin: Placement) -> _Template:
    x, y = moved.centres
    offsets = np.stack([x, y, moved.values], axis=-1) - begin.middle
    known = np.isfinite(moved.values)
    radius = float(np.sqrt(np.mean(np.sum(offsets[known][:, :2] ** 2, axis=1)))) if known.any() else 1.0
    return _Template(offsets, moved.close_holes().measure_slopes(), moved.cell, max(radius, moved.cell))


def _linearise(
    under: _Under, template: _Template, placement: Placement, free: Mask
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return residuals and weights (rows, cols), and gradients (rows, cols, k) by either map's slopes."""
    arms = placement.turn(template.offsets)
    places = placement.middle + placement.shift + arms
    below = _sample(under, places[..., :2])
    residual = places[..., 2] - below[..., 0]
    ups = np.dstack([-template.slopes, np.ones(residual.shape)]) @ placement.rotation.T
    g_moved = _gradient(ups / ups[..., 2:], arms)[..., free]
    g_reference = _gradient(np.dstack([-below[..., 1:], np.ones(residual.shape)]), arms)[..., free]
    known = np.isfinite(residual) & np.isfinite(g_moved).all(axis=-1) & np.isfinite(g_reference).all(axis=-1)
    return residual, _weigh(residual, known), g_moved, g_reference


def _prepare(reference: Heights) -> _Under:
    from scipy.ndimage import distance_transform_edt, spline_filter

    known = np.isfinite(reference.values)
    nearest = distance_transform_edt(~known, return_distances=False, return_indices=True)
    spline = np.asarray(spline_filter(reference.values[tuple(np.asarray(nearest))], order=3, mode="mirror"))
    slopes = np.dstack([np.where(known, 0.0, np.nan), reference.close_holes().measure_slopes()])
    return _Under(spline, slopes, reference.cells_from_plane)


def _sample(under: _Under, places: Floats) -> Floats:
    """Return heights and slopes (..., 3) at places (..., 2); NaN outside and beside unknown cells."""
    from scipy.ndimage import map_coordinates

    rows, cols = under.spline.shape
    cells = places @ under.cells_from_plane[:, :2].T + under.cells_from_plane[:, 2]
    inside = np.all((cells >= 0) & (cells <= (cols - 1, rows - 1)), axis=-1)
    beside = ~inside[..., None]
    at = np.where(beside, 0.0, cells)
    j, i = (np.minimum(at[..., k].astype(np.int64), n - 2) for k, n in ((0, cols), (1, rows)))
    u, v = (at[..., 0] - j)[..., None], (at[..., 1] - i)[..., None]
    top = (1 - u) * under.slopes[i, j] + u * under.slopes[i, j + 1]
    bottom = (1 - u) * under.slopes[i + 1, j] + u * under.slopes[i + 1, j + 1]
    found = np.where(beside, np.nan, (1 - v) * top + v * bottom)
    found[..., 0] += map_coordinates(
        under.spline, [at[..., 1], at[..., 0]], order=3, mode="mirror", prefilter=False
    )
    return found


def _gradient(ups: Floats, arms: Floats) -> Floats:
    """Return (..., 7): how a height over a surface changes with shift, turn and scale.

    `ups` (..., 3) are normals of length 1 along z, `arms` (..., 3) the way from the middle.
    """
    return np.concatenate([ups, np.cross(arms, ups), np.sum(ups * arms, axis=-1, keepdims=True)], axis=-1)


def _weigh(residual: Floats, known: Mask) -> Floats:
    """Return Tukey's weights (rows, cols) about the median; 0 where something is not known."""
    if known.sum() < LEAST_CELLS:
        return np.zeros(residual.shape)
    middle = float(robust.median(residual[known]))
    spread = max(float(robust.nmad(residual[known])), 1e-9)
    share = np.where(known, (residual - middle) / (TUKEY * spread), 2.0)
    return np.where(np.abs(share) < 1, (1 - share**2) ** 2, 0.0)


def _solve(
    lines: tuple[Floats, Floats, Floats, Floats], template: _Template, free: Mask
) -> tuple[Floats, float]:
    """Return a step (7,), and how far it moves the edge of the map in metres."""
    residual, weight, g_moved, g_reference = lines
    used = weight > 0
    lengths = np.array([1, 1, 1, *[template.radius] * 4])[free]
    if used.sum() < LEAST_CELLS:
        return np.zeros(7), np.inf
    a, b, w = g_moved[used] / lengths, g_reference[used] / lengths, weight[used]
    # Between the two maps' slopes: noise in the moved one's alone would make the steps too short.
    normal = np.einsum("n,np,nq->pq", w, a, (a + b) / 2)
    small = -np.linalg.lstsq(normal, np.einsum("n,np,n->p", w, a, residual[used]), rcond=1e-9)[0]
    size = float(np.abs(small).max())
    small *= min(1.0, LARGEST_STEP * template.cell / max(size, 1e-12))
    step = np.zeros(7)
    step[free] = small / lengths
    return step, size


def measure_covariance(fit: Fit) -> Floats:
    """Return the covariance of a fit: (6, 6), m and rad of the middle, or (7, 7) with its scale.

    It is 0 where nothing was to be found, and infinite where nothing holds the map.
    """
    known = np.flatnonzero(fit.free)
    whole = np.zeros((7, 7))
    whole[np.ix_(known, known)] = _measure_free(fit)
    return whole if fit.free[6] else whole[:6, :6]


def _measure_free(fit: Fit) -> Floats:
    """Return the covariance (k, k) of what was free."""
    used = fit.weight > 0
    forms = np.where(used[..., None], fit.weight[..., None] * np.nan_to_num(fit.gradient), 0.0)
    filling = _correlate_residuals(fit, forms)
    lengths = np.sqrt(np.maximum(np.diag(fit.bread), 1e-300))
    scaled = (fit.bread + fit.bread.T) / 2 / np.outer(lengths, lengths)
    if not (np.diag(fit.bread) > 0).all() or np.linalg.eigvalsh(scaled)[0] < SHARPER:
        return np.diag(np.full(len(fit.bread), np.inf))
    inverse = np.linalg.inv(fit.bread)
    found = inverse @ filling @ inverse.T
    found[:2, :2] += np.eye(2) * (SAMPLING * fit.cell) ** 2
    return (found + found.T) / 2


def _correlate_residuals(fit: Fit, forms: Floats) -> Floats:
    """Return (k, k): the covariance of the sum of `forms` (rows, cols, k) times residuals.

    By the residuals' autocovariance, tapered so that it stays one; sums over all pairs of cells are made by
    Fourier transforms.
    """
    rows, cols = fit.residual.shape
    alike = measure_autocovariance(fit)
    spectrum = np.maximum(np.real(transform(alike, alike.shape)), 0.0)
    layers = np.moveaxis(forms, -1, 0)
    spread = transform_back(transform(layers, alike.shape) * spectrum, alike.shape)[:, :rows, :cols]
    filling = np.einsum("pij,qij->pq", spread, layers)
    return (filling + filling.T) / 2


def measure_autocovariance(fit: Fit) -> Floats:
    """Return the autocovariance, m^2, of residuals that count, by lag as `autocorrelate` orders them."""
    used = (fit.weight > 0).astype(np.float64)
    middle = float((fit.weight * np.nan_to_num(fit.residual)).sum() / max(fit.weight.sum(), 1e-12))
    off = np.where(used > 0, np.nan_to_num(fit.residual) - middle, 0.0)
    power, pairs = autocorrelate(off), np.round(autocorrelate(used))
    alike = np.where(pairs > 0, power / np.maximum(pairs, 1), 0.0)
    return alike * taper_lags(alike.shape, fit.residual.shape)


def count_independent(fit: Fit) -> float:
    """Return how many residuals that know nothing of each other would tell as much as all of them do."""
    alike = measure_autocovariance(fit)
    together = max(float(alike.sum()) / max(float(alike[0, 0]), 1e-300), 1.0)
    return max(float((fit.weight > 0).sum()) / together, 1.0)


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
