"""Refinement of a placement by least squares on heights, its covariance, and a test against chance matches.

A cell of the moved map, transformed to the reference, has a residual: its height minus the reference's there.
The estimate is the motion for which residuals are uncorrelated with the slopes of the *moved* map, because
the noise of these slopes is independent of the reference. Interpolation smooths the reference between its
cells, so with the slopes of the reference the estimate of a noisy map would be biased by half a cell.

The covariance is the sandwich covariance of this estimating equation: the slopes of both maps give the
derivative of the residuals by the motion, the autocovariance of the residuals their contribution. Errors of
maps are correlated over metres, so treating cells as independent would underestimate it.

Two unrelated pieces of terrain often correlate by chance, small ones more than large ones. The variance of
the correlation of two such fields is the sum over all shifts of the product of their autocorrelations
(Bartlett 1946). Heights of hills are correlated over the whole map, their slopes are not, so slopes are
compared, at several resolutions, as noise dominates the finest one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.geometry import robust
from transect.geometry.rasters import HeightRaster

from .placement import MapPlacement
from .spectra import autocorrelate, taper_lags, transform, transform_back

MIN_CELLS = 30
"""Smallest number of cells at which both maps are known."""
MIN_SPREAD_M = 1e-9
"""Lower limit of the spread of residuals, which is zero for two identical maps."""


@dataclass(frozen=True)
class RefinementSettings:
    """Limits of the refinement of a placement; lengths in cells are measured at the edge of the map."""

    # Residuals larger than this multiple of their NMAD have no weight (Tukey's biweight, 95 % efficiency).
    tukey_sigmas: float = 4.685
    max_iterations: int = 20
    tolerance_cells: float = 2e-3  # a smaller step ends the iteration
    max_step_cells: float = 2.0
    sampling_sigma_cells: float = 0.005  # of cell positions: cells of both maps average different points
    min_eigenvalue: float = (
        1e-4  # of the normalised information matrix; below it the motion is not observable
    )


DEFAULT_SETTINGS = RefinementSettings()


@dataclass(frozen=True, eq=False)
class PlacementFit:
    """A placement with its residuals, and the derivatives for its covariance."""

    placement: MapPlacement
    residual: Floats  # (rows, cols) m: height of the moved map minus the reference's; NaN if unknown
    weight: Floats  # (rows, cols): 0 for outliers and unknown cells, at most 1
    bread: Floats  # (k, k): derivative of the estimating equation by the motion
    gradient: Floats  # (rows, cols, k): of the residuals by the motion, from the moved map's slopes
    cell: float  # edge of the moved map's cells in metres
    free: Mask  # (7,): whether each of shift, rotation and scale was estimated; k are True
    converged: bool

    @property
    def residual_rms(self) -> float:
        """Weighted root mean square of the residuals, m."""
        used = self.weight > 0
        total = max(float(self.weight[used].sum()), 1.0)
        return float(np.sqrt((self.weight * np.nan_to_num(self.residual) ** 2)[used].sum() / total))

    @property
    def count(self) -> int:
        """Cells at which both maps are known."""
        return int(np.isfinite(self.residual).sum())


@dataclass(frozen=True, eq=False)
class _Template:
    """The moved map: offsets of its cells from the centre (rows, cols, 3), and its slopes."""

    offsets: Floats
    slopes: Floats
    cell: float
    radius: float


@dataclass(frozen=True, eq=False)
class _Reference:
    """The reference. Its heights are interpolated by cubic splines: linear ones are biased by 0.01 cells."""

    spline: Floats  # (rows, cols)
    slopes: Floats  # (rows, cols, 3): 0, or NaN where unknown, then the slopes along both axes
    cells_from_plane: Floats


def refine_placement(
    reference: HeightRaster,
    moved: HeightRaster,
    initial: MapPlacement,
    *,
    scale: bool = False,
    tilt: bool = True,
    turn: bool = True,
    settings: RefinementSettings = DEFAULT_SETTINGS,
) -> PlacementFit:
    """Refine the placement of a map in a reference by iteratively reweighted least squares.

    Parameters
    ----------
    reference, moved : HeightRaster
        In metres of one plane, with cells of about the same size.
    initial : MapPlacement
        Within a few cells of the result.
    scale, tilt, turn : bool
        Whether the scale, the tilt and the rotation about the vertical are estimated.
    """
    template = _template(moved, initial)
    prepared = _prepare(reference)
    free = np.array([True, True, True, tilt, tilt, turn, scale])
    placement, converged = initial, False
    for _ in range(settings.max_iterations):
        linearised = _linearise(prepared, template, placement, free, settings)
        step, size = _solve(linearised, template, free, settings)
        placement = placement.step(step)
        if size < settings.tolerance_cells * template.cell:
            converged = True
            break
    residual, weight, g_moved, g_reference = _linearise(prepared, template, placement, free, settings)
    # Derivative of the weighted residual by the residual; it is less than the weight.
    change = np.sqrt(weight) * (5 * np.sqrt(weight) - 4)
    bread = np.einsum("ij,ijp,ijq->pq", change, np.nan_to_num(g_moved), np.nan_to_num(g_reference))
    return PlacementFit(placement, residual, weight, bread, g_moved, template.cell, free, converged)


def _template(moved: HeightRaster, initial: MapPlacement) -> _Template:
    x, y = moved.centres
    offsets = np.stack([x, y, moved.values], axis=-1) - initial.middle
    known = np.isfinite(moved.values)
    radius = float(np.sqrt(np.mean(np.sum(offsets[known][:, :2] ** 2, axis=1)))) if known.any() else 1.0
    return _Template(offsets, moved.close_holes().measure_slopes(), moved.cell, max(radius, moved.cell))


def _linearise(
    prepared: _Reference,
    template: _Template,
    placement: MapPlacement,
    free: Mask,
    settings: RefinementSettings,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return residuals and weights (rows, cols), and gradients (rows, cols, k) by either map's slopes."""
    offsets = placement.rotate_and_scale(template.offsets)
    positions = placement.middle + placement.shift + offsets
    samples = _sample(prepared, positions[..., :2])
    residual = positions[..., 2] - samples[..., 0]
    normals = np.dstack([-template.slopes, np.ones(residual.shape)]) @ placement.rotation.T
    g_moved = _gradient(normals / normals[..., 2:], offsets)[..., free]
    g_reference = _gradient(np.dstack([-samples[..., 1:], np.ones(residual.shape)]), offsets)[..., free]
    known = np.isfinite(residual) & np.isfinite(g_moved).all(axis=-1) & np.isfinite(g_reference).all(axis=-1)
    return residual, _weigh(residual, known, settings.tukey_sigmas), g_moved, g_reference


def _prepare(reference: HeightRaster) -> _Reference:
    from scipy.ndimage import distance_transform_edt, spline_filter

    known = np.isfinite(reference.values)
    nearest = distance_transform_edt(~known, return_distances=False, return_indices=True)
    spline = np.asarray(spline_filter(reference.values[tuple(np.asarray(nearest))], order=3, mode="mirror"))
    slopes = np.dstack([np.where(known, 0.0, np.nan), reference.close_holes().measure_slopes()])
    return _Reference(spline, slopes, reference.cells_from_plane)


def _sample(prepared: _Reference, positions: Floats) -> Floats:
    """Return heights and slopes (..., 3) at positions (..., 2); NaN outside, and next to unknown cells."""
    from scipy.ndimage import map_coordinates

    rows, cols = prepared.spline.shape
    cells = positions @ prepared.cells_from_plane[:, :2].T + prepared.cells_from_plane[:, 2]
    inside = np.all((cells >= 0) & (cells <= (cols - 1, rows - 1)), axis=-1)
    outside = ~inside[..., None]
    cells_inside = np.where(outside, 0.0, cells)
    j, i = (np.minimum(cells_inside[..., k].astype(np.int64), n - 2) for k, n in ((0, cols), (1, rows)))
    u, v = (cells_inside[..., 0] - j)[..., None], (cells_inside[..., 1] - i)[..., None]
    top = (1 - u) * prepared.slopes[i, j] + u * prepared.slopes[i, j + 1]
    bottom = (1 - u) * prepared.slopes[i + 1, j] + u * prepared.slopes[i + 1, j + 1]
    samples = np.where(outside, np.nan, (1 - v) * top + v * bottom)
    samples[..., 0] += map_coordinates(
        prepared.spline, [cells_inside[..., 1], cells_inside[..., 0]], order=3, mode="mirror", prefilter=False
    )
    return samples


def _gradient(normals: Floats, offsets: Floats) -> Floats:
    """Return the derivatives (..., 7) of a height over a surface by shift, rotation and scale.

    `normals` (..., 3) are scaled to z = 1, `offsets` (..., 3) are from the centre of rotation.
    """
    return np.concatenate(
        [normals, np.cross(offsets, normals), np.sum(normals * offsets, axis=-1, keepdims=True)], axis=-1
    )


def _weigh(residual: Floats, known: Mask, tukey_sigmas: float) -> Floats:
    """Return Tukey's biweight (rows, cols) about the median; 0 where a residual is unknown."""
    if known.sum() < MIN_CELLS:
        return np.zeros(residual.shape)
    middle = float(robust.median(residual[known]))
    spread = max(float(robust.nmad(residual[known])), MIN_SPREAD_M)
    ratio = np.where(known, (residual - middle) / (tukey_sigmas * spread), 2.0)
    return np.where(np.abs(ratio) < 1, (1 - ratio**2) ** 2, 0.0)


def _solve(
    linearised: tuple[Floats, Floats, Floats, Floats],
    template: _Template,
    free: Mask,
    settings: RefinementSettings,
) -> tuple[Floats, float]:
    """Return a step (7,), and the distance in metres by which it moves the edge of the map."""
    residual, weight, g_moved, g_reference = linearised
    used = weight > 0
    lengths = np.array([1, 1, 1, *[template.radius] * 4])[free]
    if used.sum() < MIN_CELLS:
        return np.zeros(7), np.inf
    a, b, w = g_moved[used] / lengths, g_reference[used] / lengths, weight[used]
    # The mean of both maps' slopes: with the noise of the moved map's alone the steps would be too short.
    normal = np.einsum("n,np,nq->pq", w, a, (a + b) / 2)
    scaled_step = -np.linalg.lstsq(normal, np.einsum("n,np,n->p", w, a, residual[used]), rcond=1e-9)[0]
    size = float(np.abs(scaled_step).max())
    scaled_step *= min(1.0, settings.max_step_cells * template.cell / max(size, 1e-12))
    step = np.zeros(7)
    step[free] = scaled_step / lengths
    return step, size


def estimate_covariance(fit: PlacementFit, settings: RefinementSettings = DEFAULT_SETTINGS) -> Floats:
    """Return the covariance of a fit: (6, 6), m and rad at the centre, or (7, 7) with its scale.

    It is 0 for parameters that were not estimated, and infinite if the terrain does not constrain the motion.
    """
    estimated = np.flatnonzero(fit.free)
    covariance = np.zeros((7, 7))
    covariance[np.ix_(estimated, estimated)] = _covariance_of_free(fit, settings)
    return covariance if fit.free[6] else covariance[:6, :6]


def _covariance_of_free(fit: PlacementFit, settings: RefinementSettings) -> Floats:
    """Return the covariance (k, k) of the estimated parameters."""
    used = fit.weight > 0
    weighted_gradients = np.where(used[..., None], fit.weight[..., None] * np.nan_to_num(fit.gradient), 0.0)
    # Sandwich covariance: inverse bread, meat, inverse bread
    meat = _correlate_residuals(fit, weighted_gradients)
    lengths = np.sqrt(np.maximum(np.diag(fit.bread), 1e-300))
    scaled = (fit.bread + fit.bread.T) / 2 / np.outer(lengths, lengths)
    if not (np.diag(fit.bread) > 0).all() or np.linalg.eigvalsh(scaled)[0] < settings.min_eigenvalue:
        return np.diag(np.full(len(fit.bread), np.inf))
    inverse = np.linalg.inv(fit.bread)
    covariance = inverse @ meat @ inverse.T
    covariance[:2, :2] += np.eye(2) * (settings.sampling_sigma_cells * fit.cell) ** 2
    return (covariance + covariance.T) / 2


def _correlate_residuals(fit: PlacementFit, weighted_gradients: Floats) -> Floats:
    """Return the covariance (k, k) of the sum of `weighted_gradients` (rows, cols, k) times residuals.

    It follows from the autocovariance of the residuals; sums over all pairs of cells are computed by Fourier
    transforms.
    """
    rows, cols = fit.residual.shape
    covariance = estimate_autocovariance(fit)
    # An autocovariance estimated from pairs need not be positive semidefinite.
    spectrum = np.maximum(np.real(transform(covariance, covariance.shape)), 0.0)
    layers = np.moveaxis(weighted_gradients, -1, 0)
    correlated = transform_back(transform(layers, covariance.shape) * spectrum, covariance.shape)[
        :, :rows, :cols
    ]
    meat = np.einsum("pij,qij->pq", correlated, layers)
    return (meat + meat.T) / 2


def estimate_autocovariance(fit: PlacementFit) -> Floats:
    """Return the autocovariance, m^2, of the residuals without outliers, by lag as in `autocorrelate`."""
    used = (fit.weight > 0).astype(np.float64)
    mean = float((fit.weight * np.nan_to_num(fit.residual)).sum() / max(fit.weight.sum(), 1e-12))
    centred = np.where(used > 0, np.nan_to_num(fit.residual) - mean, 0.0)
    power, pairs = autocorrelate(centred), np.round(autocorrelate(used))
    covariance = np.where(pairs > 0, power / np.maximum(pairs, 1), 0.0)
    return covariance * taper_lags(covariance.shape, fit.residual.shape)


def count_independent(fit: PlacementFit) -> float:
    """Return the effective number of independent residuals."""
    covariance = estimate_autocovariance(fit)
    correlated = max(float(covariance.sum()) / max(float(covariance[0, 0]), 1e-300), 1.0)
    return max(float((fit.weight > 0).sum()) / correlated, 1.0)


@dataclass(frozen=True)
class SlopeSettings:
    """Settings of the comparison of slopes."""

    margin_sigmas: float = 3.0  # above the expected largest correlation by chance
    factors: tuple[int, ...] = (1, 2, 4, 8)  # reductions of the resolution at which slopes are compared
    min_cells_per_side: int = 8  # of the smallest maps whose slopes are compared


SLOPES = SlopeSettings()


@dataclass(frozen=True)
class SlopeCorrelation:
    """Correlation of the slopes of two maps, and its standard deviation for unrelated maps."""

    correlation: float = 0.0
    chance_sigma: float = 1.0

    @property
    def significance(self) -> float:
        """Fisher's transform of the correlation in standard deviations."""
        return float(np.arctanh(np.clip(self.correlation, -1 + 1e-12, 1 - 1e-12))) / self.chance_sigma

    def chance_limit(self, count: float) -> float:
        """Return a limit that the largest correlation of `count` unrelated placements rarely exceeds."""
        largest = SLOPES.margin_sigmas + np.sqrt(2 * np.log(max(count, 1.0)))
        return float(np.tanh(self.chance_sigma * largest))


def correlate_slopes(fit: PlacementFit, moved: HeightRaster) -> SlopeCorrelation:
    """Correlate slopes of both maps at the resolution with the largest significance."""
    # A cell without a slope has a residual but no weight; the slopes of its neighbours need its height.
    outlier = np.where((fit.weight == 0) & np.isfinite(fit.gradient).all(axis=-1), np.nan, 0.0)
    moved_heights = HeightRaster(
        moved.values + 0 * fit.residual + outlier, moved.cells_from_plane
    ).close_holes()
    reference_heights = HeightRaster(
        moved.values - fit.residual + outlier, moved.cells_from_plane
    ).close_holes()
    correlations = [
        _compare(
            moved_heights.reduce(factor).measure_slopes(), reference_heights.reduce(factor).measure_slopes()
        )
        for factor in SLOPES.factors
        if min(moved.values.shape) // factor >= SLOPES.min_cells_per_side
    ]
    return max(correlations, key=lambda each: each.significance, default=SlopeCorrelation())


def _compare(a: Floats, b: Floats) -> SlopeCorrelation:
    """Correlate two fields of slopes (rows, cols, 2)."""
    used = np.asarray(np.isfinite(a + b).all(axis=-1, keepdims=True))
    if used.sum() < SLOPES.min_cells_per_side**2:
        return SlopeCorrelation()
    a, b = (np.where(used, each - each[used[..., 0]].mean(axis=0), 0.0) for each in (a, b))
    norm = float(np.sqrt((a**2).sum() * (b**2).sum()))
    if norm == 0:
        return SlopeCorrelation()
    product = np.multiply(*(autocorrelate(np.moveaxis(each, -1, 0)) for each in (a, b)))
    variance_sum = float((product * taper_lags(product.shape[1:], used.shape[:2])).sum()) / float(used.sum())
    return SlopeCorrelation(float((a * b).sum()) / norm, float(np.sqrt(max(variance_sum, 0.0))) / norm)
