"""How good is a height map: against a reference map, once it is put where it fits best.

Everything is judged on the reference's cells: the estimate is resampled to their centres (bilinear, no mean
of finer cells), so differences are heights at equal places and maps of unequal cells can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.geometry._arrays import floats
from transect.geometry.map_planes import Plane, plane_between
from transect.geometry.rasters import ELEVATION, Heights, cell_size, centres_of, heights_of
from transect.types import GridMap

from .registration import register
from .scores import HeightStatistics, Score, score_at

RESAMPLING = "bilinear"
SEARCH = 10
"""Cells of the reference that a map may be off, by default."""
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
    search: int = SEARCH,
    cells: Sequence[float] = CELLS,
    layer: str = ELEVATION,
) -> MapErrors:
    """Hold a height map against a reference.

    Parameters
    ----------
    register : bool
        Find the shift in x, y, z that fits best, and take it out.
    shift : (3,)
        Metres added to the estimate first: a known registration, or where its site frame's origin is.
    search : int
        How many cells of the reference the estimate may be off.
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
    moved = floats("shift", shift, (3,))
    before = None
    if register:
        before = HeightStatistics.of(pair.sample(moved[:2]) + moved[2] - pair.reference)
        moved, said = _find(pair, moved, _steps(reference), search)
        notes += said
    heights = pair.sample(moved[:2]) + moved[2]
    difference = heights - pair.reference
    statistics = HeightStatistics.of(difference)
    scores = _scores(pair, heights, [n * cell_size(reference) for n in cells])
    coverage = statistics.count / max(int(np.isfinite(pair.reference).sum()), 1)
    return MapErrors(difference, statistics, scores, moved, before, coverage, notes=notes)


def _pair(reference: GridMap, estimate: GridMap, layer: str, placed: bool) -> tuple[_Pair, tuple[str, ...]]:
    plane, notes = plane_between(reference, estimate, placed=placed)
    values = heights_of(reference, layer).values
    x, y = centres_of(reference, values)
    return _Pair(values, x, y, heights_of(estimate, layer), plane), notes


def _steps(grid: GridMap) -> Floats:
    """Return metres in x and y (2, 2) of one column and one row."""
    a, b, _, d, e, _ = grid.transform
    return np.array([[a, b], [d, e]])


def _find(pair: _Pair, shift: Floats, steps: Floats, search: int) -> tuple[Floats, tuple[str, ...]]:
    """Return the shift that fits best, from a given one, and what could not be found."""
    reach = min(search, *(n // 2 for n in pair.reference.shape))
    found = register(pair.reference, lambda flat: pair.sample(shift[:2] + flat), steps, reach)
    total = np.array([*(shift[:2] + found.shift[:2]), found.shift[2]])
    if found.determined == 2:
        return total, ()
    flat = "is flat" if not found.determined else "slopes one way only"
    return total, (f"the reference {flat}: a shift along it cannot be seen and was left as it is",)


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
