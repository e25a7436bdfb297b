"""How good is a height map: against a reference map, once it is put where it fits best.

Everything is judged on the reference's cells: the estimate is resampled to their centres (bilinear, no mean
of finer cells), so differences are heights at equal places and maps of unequal cells can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.algorithms.coregistration.alignment import align_maps
from transect.base.arrays import Floats, Mask
from transect.errors import GeometryError
from transect.geometry import robust
from transect.geometry.array_checks import floats
from transect.geometry.map_planes import Plane, plane_between
from transect.geometry.rasters import ELEVATION, Heights, cell_size, centres_of, cut_to_known, heights_of
from transect.types import GridMap

from .scores import HeightStatistics, Score, score_at

RESAMPLING = "bilinear"
REACH = 10
"""Cells of the reference that a map may be off, by default."""
LEAST_OVERLAP = 0.5
"""Of the cells that lie on the reference at first: those that still must where the map fits."""
CELLS = (1.0, 2.0)
"""Distances of the scores, in cells of the reference."""
NO_SHIFT = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class MapErrors:
    """A map against its reference.

    Attributes
    ----------
    difference : (rows, cols) float64
        Estimate minus reference in metres at the reference's cells; NaN where one of them is not known.
    statistics : HeightStatistics
        Of the differences.
    scores : tuple of Score
        One per distance.
    shift : (3,) float64
        Metres in x, y, z that were added to the estimate, the given ones among them.
    deviations : (3,) float64
        Standard deviations of the shift that was found, in metres; NaN where none was.
    before : HeightStatistics or None
        Without the shift that was found; None where nothing was searched.
    coverage : float
        Part of the reference's cells at which the estimate has a height.
    resampling : str
    notes : tuple of str
        What a person should know.
    """

    difference: Floats
    statistics: HeightStatistics
    scores: tuple[Score, ...]
    shift: Floats
    deviations: Floats
    before: HeightStatistics | None
    coverage: float
    resampling: str = RESAMPLING
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Pair:
    """The reference's heights, where they are, and the estimate that can be sampled there."""

    reference: Floats
    x: Floats
    y: Floats
    estimate: Heights
    plane: Plane

    def sample(self, shift: Floats) -> Floats:
        """Heights of the estimate, moved by x, y (2,), at the reference's cells."""
        return self.estimate.at(*self.plane(self.x - shift[0], self.y - shift[1]))


def map_errors(
    reference: GridMap,
    estimate: GridMap,
    *,
    register: bool = True,
    shift: ArrayLike = NO_SHIFT,
    reach: float | None = None,
    cells: Sequence[float] = CELLS,
    layer: str = ELEVATION,
) -> MapErrors:
    """Hold a height map against a reference.

    Parameters
    ----------
    register : bool
        Find the shift in x, y, z that fits best (`align_maps`, without turn and tilt: those are errors that
        stay to be seen), and take it out. Where it is refused only the height is fitted, and a note says why.
    shift : (3,)
        Metres added to the estimate first: a known registration, or where its site frame's origin is.
    reach : float, optional
        Metres that the estimate may then be off; ten cells of the reference by default.
    cells : sequence of float
        Distances of the scores, in cells of the reference.
    layer : str
        Of both maps; where a map has only one layer it is that one.

    Raises
    ------
    GeometryError
        If the maps have no place in common.
    UsageError
        If their reference systems cannot be brought together.
    """
    pair, notes = _pair(reference, estimate, layer, placed=bool(np.any(np.asarray(shift) != 0)))
    moved, sigma = floats("shift", shift, (3,)), np.full(3, np.nan)
    before = None
    if register:
        before = HeightStatistics.of(pair.sample(moved[:2]) + moved[2] - pair.reference)
        reach = REACH * cell_size(reference) if reach is None else reach
        moved, sigma, said = _find_shift(reference, pair, moved, reach)
        notes += said
    heights = pair.sample(moved[:2]) + moved[2]
    difference = heights - pair.reference
    statistics = HeightStatistics.of(difference)
    scores = _scores(pair, heights, [n * cell_size(reference) for n in cells])
    coverage = statistics.count / max(int(np.isfinite(pair.reference).sum()), 1)
    return MapErrors(difference, statistics, scores, moved, sigma, before, coverage, notes=notes)


def _pair(reference: GridMap, estimate: GridMap, layer: str, placed: bool) -> tuple[_Pair, tuple[str, ...]]:
    plane, notes = plane_between(reference, estimate, placed=placed)
    values = heights_of(reference, layer).values
    x, y = centres_of(reference, values)
    return _Pair(values, x, y, heights_of(estimate, layer), plane), notes


def _find_shift(
    reference: GridMap, pair: _Pair, given: Floats, reach: float
) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Return the shift that fits best, from a given one, its deviations, and what a person should know."""
    heights = pair.sample(given[:2]) + given[2]
    ground, seen = (
        GridMap({ELEVATION: values}, reference.transform, reference.crs)
        for values in (pair.reference, heights)
    )
    seen = cut_to_known(seen, np.isfinite(heights))
    try:
        found = align_maps(ground, seen, reach=reach, turn=0.0, tilt=False, overlap=LEAST_OVERLAP)
    except GeometryError as refused:
        up = float(robust.median(pair.reference - heights))
        said = f"{refused.what} ({refused.why}): only its height was fitted"
        return given + np.array([0.0, 0.0, up]), np.full(3, np.nan), (said,)
    return given + found.placement.shift, found.sigmas[:3], ()


def _scores(pair: _Pair, heights: Floats, distances: Sequence[float]) -> tuple[Score, ...]:
    """Return scores on the cells: the truth's that are measured, and the estimate's on the truth's ground."""
    truth, ours = np.isfinite(pair.reference), np.isfinite(heights)
    points = [np.stack([pair.x, pair.y, z], axis=-1) for z in (pair.reference, heights)]
    direct = np.abs(heights - pair.reference)
    to_estimate = _nearest(points[0], truth, points[1][ours], direct, distances)
    to_reference = _nearest(points[1], ours & truth, points[0][truth], direct, distances)
    return tuple(score_at(distance, to_estimate, to_reference) for distance in distances)


def _nearest(
    points: Floats, asked: Mask, others: Floats, direct: Floats, distances: Sequence[float]
) -> Floats:
    """Return at most how far (n,) the asked cells are from other points; inf beyond the largest distance.

    For most the point above or below is nearer than the smallest distance; a tree is asked for the rest.
    """
    from scipy.spatial import KDTree

    bound = np.where(np.isfinite(direct), direct, np.inf)[asked]
    steep = bound > min(distances)
    if steep.any():
        reach = 1.001 * max(distances)
        bound[steep] = KDTree(others).query(points[asked][steep], distance_upper_bound=reach)[0]
    return bound
