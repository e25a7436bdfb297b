"""Errors of a height map against a reference map, after registration.

The estimate is resampled to the centres of the reference's cells (bilinear, no mean of finer cells), so that
differences are heights at equal positions and maps with different cells can be compared.
"""

from __future__ import annotations

import math
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
    """Statistics of height differences, estimate minus reference, in metres."""

    rmse: float  # root mean square
    mae: float  # mean absolute difference
    nmad: float  # normalised median absolute deviation: a robust standard deviation
    p95: float  # 95th percentile of the absolute differences
    bias: float  # mean difference
    count: int  # cells, or points

    @staticmethod
    def of(differences: ArrayLike) -> HeightStatistics:
        """Summarise differences (...); NaN are ignored."""
        values = np.asarray(differences, np.float64)
        dz = values[np.isfinite(values)]
        if not len(dz):
            raise GeometryError(
                "the two have no position in common",
                hint="check frames and reference systems; give the shift",
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
    """Completeness and accuracy at one distance threshold."""

    distance: float  # metres
    completeness: float  # fraction of the truth with the estimate within the distance
    accuracy: float  # fraction of the estimate with the truth within the distance

    @property
    def f_score(self) -> float:
        """Harmonic mean of the two; 0 if both are 0."""
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
MAX_SHIFT_CELLS = 10  # of the reference; offset of a map that is searched, by default
MIN_OVERLAP_RATIO = 0.5  # of the cells that initially overlap the reference: those that still do when aligned
SCORE_CELLS = (1.0, 2.0)  # distance thresholds of the scores, in cells of the reference
NO_SHIFT = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class MapErrors:
    """A map against its reference."""

    # (rows, cols), estimate minus reference in metres at the reference's cells; NaN where either is unknown
    difference: Floats
    statistics: HeightStatistics  # of the differences
    scores: tuple[Score, ...]  # one per distance
    shift: Floats  # (3,), x, y, z in metres that were added to the estimate, including the given shift
    deviations: Floats  # (3,), standard deviations of the estimated shift, m; NaN if there is none
    before: HeightStatistics | None  # without the estimated shift; None if there is none
    coverage: float  # fraction of the reference's cells at which the estimate has a height
    resampling: str = RESAMPLING
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _MapPair:
    """The heights and positions of the reference's cells, and the estimate that can be sampled there."""

    reference: Floats
    x: Floats
    y: Floats
    estimate: HeightRaster
    plane: Plane

    def sample(self, shift: Floats) -> Floats:
        """Return heights of the estimate, shifted by x, y (2,), at the reference's cells."""
        return self.estimate.at(*self.plane(self.x - shift[0], self.y - shift[1]))


def map_errors(
    reference: GridMap,
    estimate: GridMap,
    *,
    register: bool = True,
    shift: ArrayLike = NO_SHIFT,
    reach: float | None = None,
    cells: Sequence[float] = SCORE_CELLS,
    layer: str = ELEVATION,
) -> MapErrors:
    """Compare a height map with a reference.

    Parameters
    ----------
    register : bool
        Remove the shift in x, y, z that fits best (`align_maps`, without rotation and tilt, which remain as
        errors). If it cannot be estimated, only the height is fitted, and a note says why.
    shift : (3,)
        Initial shift (m) of the estimate: a known registration, or the origin of its site frame.
    reach : float, optional
        Search radius (m) of the shift; ten cells of the reference by default.
    cells : sequence of float
        Distances of the scores, in cells of the reference.
    layer : str
        Layer of both maps; a map with only one layer uses that one.

    Raises
    ------
    GeometryError
        If the maps do not overlap.
    UsageError
        If their reference systems cannot be brought together.
    """
    pair, notes = _pair(reference, estimate, layer, placed=bool(np.any(np.asarray(shift) != 0)))
    moved, sigma = floats("shift", shift, (3,)), np.full(3, np.nan)
    before = None
    if register:
        before = HeightStatistics.of(pair.sample(moved[:2]) + moved[2] - pair.reference)
        reach = MAX_SHIFT_CELLS * cell_size(reference) if reach is None else reach
        moved, sigma, more = _find_shift(reference, pair, moved, reach)
        notes += more
    heights = pair.sample(moved[:2]) + moved[2]
    difference = heights - pair.reference
    statistics = HeightStatistics.of(difference)
    scores = _scores(pair, heights, [n * cell_size(reference) for n in cells])
    coverage = statistics.count / max(int(np.isfinite(pair.reference).sum()), 1)
    return MapErrors(difference, statistics, scores, moved, sigma, before, coverage, notes=notes)


def _pair(
    reference: GridMap, estimate: GridMap, layer: str, placed: bool
) -> tuple[_MapPair, tuple[str, ...]]:
    plane, notes = plane_between(reference, estimate, placed=placed)
    values = heights_of(reference, layer).values
    x, y = centres_of(reference, values)
    return _MapPair(values, x, y, heights_of(estimate, layer), plane), notes


def _find_shift(
    reference: GridMap, pair: _MapPair, given: Floats, reach: float
) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Return the shift that fits best, starting from a given one, its standard deviations, and notes."""
    from transect.algorithms.coregistration.alignment import align_maps

    heights = pair.sample(given[:2]) + given[2]
    ground, seen = (
        GridMap({ELEVATION: values}, reference.transform, reference.crs)
        for values in (pair.reference, heights)
    )
    seen = cut_to_known(seen, np.isfinite(heights))
    try:
        found = align_maps(ground, seen, search_radius=reach, turn=0.0, tilt=False, overlap=MIN_OVERLAP_RATIO)
    except GeometryError as refused:
        up = float(robust.median(pair.reference - heights))
        note = f"{refused.what} ({refused.why}): only its height was fitted"
        return given + np.array([0.0, 0.0, up]), np.full(3, np.nan), (note,)
    return given + found.placement.shift, found.sigmas[:3], ()


def _scores(pair: _MapPair, heights: Floats, distances: Sequence[float]) -> tuple[Score, ...]:
    """Return scores on measured cells of the truth, and cells of the estimate that overlap them."""
    in_reference, in_estimate = np.isfinite(pair.reference), np.isfinite(heights)
    points = [np.stack([pair.x, pair.y, z], axis=-1) for z in (pair.reference, heights)]
    direct = np.abs(heights - pair.reference)
    to_estimate = _nearest(points[0], in_reference, points[1][in_estimate], direct, distances)
    to_reference = _nearest(points[1], in_estimate & in_reference, points[0][in_reference], direct, distances)
    return tuple(score_at(distance, to_estimate, to_reference) for distance in distances)


def _nearest(
    points: Floats, queried: Mask, others: Floats, direct: Floats, distances: Sequence[float]
) -> Floats:
    """Return an upper bound (n,) of the distance of cells to other points; inf beyond the largest threshold.

    For most cells, the point above or below is within the smallest threshold; a k-d tree serves the rest.
    """
    from scipy.spatial import KDTree

    bound = np.where(np.isfinite(direct), direct, np.inf)[queried]
    steep = bound > min(distances)
    if steep.any():
        max_distance = 1.001 * max(distances)
        bound[steep] = KDTree(others).query(points[queried][steep], distance_upper_bound=max_distance)[0]
    return bound


@dataclass(frozen=True)
class WallSettings:
    """Detection of walls in an occupancy grid."""

    min_occupied_probability: float = 0.65
    max_free_probability: float = 0.35
    min_scans: int = 2  # that ended in a wall, or passed through free space
    direction_radius_m: float = 0.1  # around a cell, for the direction of its wall; a second wall is farther
    min_elongation: float = 0.4  # of the occupied cells around: 0 for a blob, 1 for a line
    max_angle_rad: float = math.radians(25.0)  # between parallel walls


WALLS = WallSettings()


@dataclass(frozen=True)
class WallCount:
    """Number of wall cells, and of those with a second wall beside them."""

    cells: int  # occupied cells along a wall
    doubled: int  # those with a parallel wall nearby, and free space between them

    @property
    def doubled_ratio(self) -> float:
        """Fraction of the cells that are doubled; 0 without any."""
        return self.doubled / self.cells if self.cells else 0.0


def count_double_walls(grid: GridMap, max_distance: float = 0.3) -> WallCount:
    """Count wall cells with a second wall beside them.

    A free cell, which beams passed through, must be between the two: one of them is an artefact then. No beam
    passes between the two true faces of a thin wall.

    Parameters
    ----------
    grid : GridMap
        With layers `occupancy` and `hits`, as `LaserSlam`'s maps are exported.
    max_distance : float
        m, between two walls.
    """
    cell = grid.resolution[0]
    probability, hits = grid.layers["occupancy"], grid.layers["hits"]
    wall = (probability >= WALLS.min_occupied_probability) & (hits >= WALLS.min_scans)
    free = (probability < WALLS.max_free_probability) & (grid.layers["seen"] >= WALLS.min_scans)
    direction, straight = _directions(wall, round(WALLS.direction_radius_m / cell))
    cells, radius = np.argwhere(wall & straight), round(max_distance / cell)
    doubled = np.zeros(len(cells), bool)
    for side in (-1.0, 1.0):
        doubled |= _has_second(cells, direction, wall & straight, free, side, radius)
    return WallCount(len(cells), int(doubled.sum()))


def _directions(wall: Mask, radius: int) -> tuple[Floats, Mask]:
    """Return the angle of the wall through each cell, from the cells around it, and where there is a wall."""
    from scipy.ndimage import uniform_filter

    rows, columns = np.indices(wall.shape).astype(np.float64)
    size = 2 * radius + 1
    count, *moments = (
        uniform_filter(wall * each, size, mode="constant") * size**2
        for each in (np.ones_like(rows), columns, rows, columns**2, rows**2, columns * rows)
    )
    x, y, xx, yy, xy = (each / np.maximum(count, 1) for each in moments)
    xx, yy, xy = xx - x * x, yy - y * y, xy - x * y
    spread = np.hypot(xx - yy, 2 * xy)
    enough = count > radius
    return 0.5 * np.arctan2(2 * xy, xx - yy), enough & (
        spread >= WALLS.min_elongation * np.maximum(xx + yy, 1e-9)
    )


def _has_second(cells: Ints, direction: Floats, wall: Mask, free: Mask, side: float, radius: int) -> Mask:
    """Return which cells (n, 2) have free space and then a parallel wall on one side."""
    rows, columns = cells.T
    angle = direction[rows, columns]
    passed = np.zeros(len(cells), bool)
    found = np.zeros(len(cells), bool)
    for step in range(1, radius + 1):
        row = np.clip(np.rint(rows + side * step * np.cos(angle)), 0, wall.shape[0] - 1).astype(int)
        column = np.clip(np.rint(columns - side * step * np.sin(angle)), 0, wall.shape[1] - 1).astype(int)
        angle_difference = np.abs((direction[row, column] - angle + np.pi / 2) % np.pi - np.pi / 2)
        found |= passed & wall[row, column] & (angle_difference <= WALLS.max_angle_rad)
        passed |= free[row, column]
    return found
