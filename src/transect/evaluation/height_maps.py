"""How good is a height map: against a reference map, once it is put where it fits best.

Everything is judged on the reference's cells: the estimate is resampled to their centres (bilinear, no mean
of finer cells), so differences are heights at equal places and maps of unequal cells can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError
from transect.geometry import robust
from transect.geometry.array_checks import floats
from transect.geometry.map_planes import Plane, plane_between
from transect.geometry.rasters import ELEVATION, HeightRaster, cell_size, centres_of, cut_to_known, heights_of
from transect.types import GridMap


@dataclass(frozen=True)
class HeightStatistics:
    """Of height differences, estimate minus reference, in metres.

    Attributes
    ----------
    rmse, mae : float
        Root mean square and mean absolute difference.
    nmad : float
        Normalised median absolute deviation: the standard deviation of the good part.
    p95 : float
        Nineteen of twenty absolute differences are not larger.
    bias : float
        Mean difference.
    count : int
        Cells, or points.
    """

    rmse: float
    mae: float
    nmad: float
    p95: float
    bias: float
    count: int

    @staticmethod
    def of(differences: ArrayLike) -> HeightStatistics:
        """Summarise differences (...); NaN are left out."""
        values = np.asarray(differences, np.float64)
        dz = values[np.isfinite(values)]
        if not len(dz):
            raise GeometryError(
                "the two have no place in common", hint="check frames and reference systems; give the shift"
            )
        size = np.abs(dz)
        return HeightStatistics(
            rmse=float(np.sqrt(np.mean(dz**2))),
            mae=float(size.mean()),
            nmad=float(robust.nmad(dz)),
            p95=float(np.percentile(size, 95)),
            bias=float(dz.mean()),
            count=len(dz),
        )

    def to_dict(self) -> dict[str, float | int]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Score:
    """How much of the truth is there, and how much of the estimate is right, at one distance.

    Attributes
    ----------
    distance : float
        Metres.
    completeness : float
        Part of the truth that has the estimate within the distance.
    accuracy : float
        Part of the estimate that has the truth within the distance.
    """

    distance: float
    completeness: float
    accuracy: float

    @property
    def f_score(self) -> float:
        """Harmonic mean of the two; 0 where nothing meets."""
        total = self.completeness + self.accuracy
        return 2 * self.completeness * self.accuracy / total if total else 0.0


def score_at(distance: float, to_estimate: Floats, to_reference: Floats) -> Score:
    """Return the score at one distance.

    Parameters
    ----------
    to_estimate : (n,)
        Metres from each point of the truth to the estimate; inf where there is none.
    to_reference : (m,)
        Metres from each point of the estimate to the truth.
    """
    if not distance > 0:
        raise GeometryError(f"expected a distance greater than 0, got {distance:g}")
    return Score(distance, float(np.mean(to_estimate <= distance)), float(np.mean(to_reference <= distance)))


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
    estimate: HeightRaster
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
    """Return the shift that fits best, from a given one, its standard deviations, and notes."""
    from transect.algorithms.coregistration.alignment import align_maps

    heights = pair.sample(given[:2]) + given[2]
    ground, seen = (
        GridMap({ELEVATION: values}, reference.transform, reference.crs)
        for values in (pair.reference, heights)
    )
    seen = cut_to_known(seen, np.isfinite(heights))
    try:
        found = align_maps(ground, seen, search_radius=reach, turn=0.0, tilt=False, overlap=LEAST_OVERLAP)
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


OCCUPIED, FREE = 0.65, 0.35
"""Probabilities from which on a cell is a wall, and below which it is free."""
SEEN = 2
"""Scans that must have ended in a wall, or gone through what is free."""
AROUND = 0.1
"""Metres around a cell from which the direction of its wall is told: a second wall is further away."""
ALONG = 0.4
"""How much longer than wide what is around must be, for it to be a wall: 0 a blob, 1 a line."""
PARALLEL = np.radians(25.0)


@dataclass(frozen=True)
class Walls:
    """How many cells are walls, and how many of these have a second wall beside them.

    Attributes
    ----------
    cells : int
        Occupied cells that lie along a wall.
    doubled : int
        Those with a parallel wall within reach, and free space between them.
    """

    cells: int
    doubled: int

    @property
    def share(self) -> float:
        """Part of the cells that are doubled; 0 without any."""
        return self.doubled / self.cells if self.cells else 0.0


def count_double_walls(grid: GridMap, reach: float = 0.3) -> Walls:
    """Count wall cells with a second wall beside them.

    Between the two must be a cell that beams went through: then one of them is where there was nothing, or
    nobody looked along it. Between the two faces of a thin wall, which are both true, no beam goes.

    Parameters
    ----------
    grid : GridMap
        With layers `occupancy` and `hits`, as `LaserSlam`'s maps are exported.
    reach : float
        Metres between two walls.
    """
    cell = grid.resolution[0]
    chance, hits = grid.layers["occupancy"], grid.layers["hits"]
    wall = (chance >= OCCUPIED) & (hits >= SEEN)
    free = (chance < FREE) & (grid.layers["seen"] >= SEEN)
    direction, straight = _directions(wall, round(AROUND / cell))
    places = np.argwhere(wall & straight)
    doubled = np.zeros(len(places), bool)
    for side in (-1.0, 1.0):
        doubled |= _has_second(places, direction, wall & straight, free, side, round(reach / cell))
    return Walls(len(places), int(doubled.sum()))


def _directions(wall: Mask, reach: int) -> tuple[Floats, Mask]:
    """Return the angle of the wall through each cell, by the cells around it, and where there is one."""
    from scipy.ndimage import uniform_filter

    rows, columns = np.indices(wall.shape).astype(np.float64)
    size = 2 * reach + 1
    count, *moments = (
        uniform_filter(wall * each, size, mode="constant") * size**2
        for each in (np.ones_like(rows), columns, rows, columns**2, rows**2, columns * rows)
    )
    x, y, xx, yy, xy = (each / np.maximum(count, 1) for each in moments)
    xx, yy, xy = xx - x * x, yy - y * y, xy - x * y
    spread = np.hypot(xx - yy, 2 * xy)
    enough = count > reach
    return 0.5 * np.arctan2(2 * xy, xx - yy), enough & (spread >= ALONG * np.maximum(xx + yy, 1e-9))


def _has_second(places: Ints, direction: Floats, wall: Mask, free: Mask, side: float, reach: int) -> Mask:
    """Tell which cells meet free space and then a parallel wall on one side."""
    rows, columns = places.T
    angle = direction[rows, columns]
    passed = np.zeros(len(places), bool)
    found = np.zeros(len(places), bool)
    for step in range(1, reach + 1):
        row = np.clip(np.rint(rows + side * step * np.cos(angle)), 0, wall.shape[0] - 1).astype(int)
        column = np.clip(np.rint(columns - side * step * np.sin(angle)), 0, wall.shape[1] - 1).astype(int)
        turned = np.abs((direction[row, column] - angle + np.pi / 2) % np.pi - np.pi / 2)
        found |= passed & wall[row, column] & (turned <= PARALLEL)
        passed |= free[row, column]
    return found
