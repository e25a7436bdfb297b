"""How good is a point cloud: against a reference cloud, or against a height map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import align, se3
from transect.geometry.array_checks import floats, measured_rows
from transect.geometry.rasters import ELEVATION, cell_size, centres_of, heights_of
from transect.geometry.rotations import rotation_vector_from_matrix
from transect.types import GridMap, PointCloud

from .maps.scores import HeightStatistics, Score, score_at

DISTANCES = (0.05, 0.1, 0.2)
"""Metres at which clouds are scored, by default."""
ITERATIONS = 30
CONVERGED = 1e-6
"""Metres, and radians, of a step of the registration."""
MOST = 20_000
"""Points that are used to register; more do not make it better."""
REACH = 10.0
"""Median spacings of the reference within which points are taken for partners, by default."""


@dataclass(frozen=True)
class Registration:
    """What was applied to an estimate.

    Attributes
    ----------
    matrix : (4, 4) float64
        ``T_reference_estimate``.
    searched : bool
        False where it is only what was given.
    rmse : float
        Metres that are left between partners; NaN where nothing was searched.
    """

    matrix: Floats
    searched: bool = False
    rmse: float = float("nan")

    @property
    def distance(self) -> float:
        """Metres by which the origin is moved."""
        return float(np.linalg.norm(self.matrix[:3, 3]))

    @property
    def angle(self) -> float:
        """Radians by which it is turned."""
        return float(np.linalg.norm(rotation_vector_from_matrix(self.matrix[:3, :3])))


@dataclass(frozen=True)
class CloudErrors:
    """A cloud against a reference cloud.

    Attributes
    ----------
    distance : (n,) float64
        Metres from each measured point of the estimate to the nearest of the reference.
    back : (m,) float64
        The same from the reference's points to the estimate.
    mean, median, p90 : float
        Of `distance`, in metres.
    scores : tuple of Score
        One per distance asked for.
    registration : Registration
    """

    distance: Floats
    back: Floats
    scores: tuple[Score, ...]
    registration: Registration

    @property
    def mean(self) -> float:
        """Metres."""
        return float(self.distance.mean())

    @property
    def median(self) -> float:
        """Metres."""
        return float(np.median(self.distance))

    @property
    def p90(self) -> float:
        """Metres that nine of ten points stay below."""
        return float(np.percentile(self.distance, 90))


@dataclass(frozen=True)
class CloudMapErrors:
    """A cloud against a height map.

    Attributes
    ----------
    difference : (n,) float64
        Height of each point over the map in metres; NaN where one of them is not measured.
    statistics : HeightStatistics
    completeness : tuple of (float, float)
        By distance in metres: part of the map's measured cells with a point that near.
    """

    difference: Floats
    statistics: HeightStatistics
    completeness: tuple[tuple[float, float], ...]


def cloud_errors(
    reference: PointCloud,
    estimate: PointCloud,
    distances: Sequence[float] = DISTANCES,
    *,
    register: bool = True,
    T_reference_estimate: ArrayLike | None = None,
    reach: float | None = None,
) -> CloudErrors:
    """Hold a cloud against a reference.

    Parameters
    ----------
    distances : sequence of float
        Metres at which completeness and accuracy are counted.
    register : bool
        Find the small rigid motion that fits best, from the given one, and take it out.
    T_reference_estimate : (4, 4), optional
        A known registration; by default both are in one frame.
    reach : float, optional
        Metres within which points are taken for partners; ten median spacings of the reference by default.
    """
    from scipy.spatial import KDTree

    truth, points = _measure("reference", reference), _measure("estimate", estimate)
    tree = KDTree(truth)
    start = np.eye(4) if T_reference_estimate is None else floats("T", T_reference_estimate, (4, 4))
    found = Registration(start)
    if register:
        found = _register(truth, tree, points, start, reach or REACH * _spacing(truth, tree))
    moved = se3.apply(found.matrix, points)
    to_truth = np.asarray(tree.query(moved)[0])
    back = np.asarray(KDTree(moved).query(truth)[0])
    scores = tuple(score_at(distance, back, to_truth) for distance in distances)
    return CloudErrors(to_truth, back, scores, found)


def cloud_map_errors(
    reference: GridMap,
    estimate: PointCloud,
    distances: Sequence[float] | None = None,
    *,
    T_reference_estimate: ArrayLike | None = None,
    layer: str = ELEVATION,
) -> CloudMapErrors:
    """Hold a cloud against a height map: heights over it, between cells bilinear.

    Parameters
    ----------
    distances : sequence of float, optional
        Metres at which completeness is counted; one and two cells of the map by default.
    T_reference_estimate : (4, 4), optional
        Takes the points to the map's frame, in which z is up.
    """
    from scipy.spatial import KDTree

    motion = np.eye(4) if T_reference_estimate is None else floats("T", T_reference_estimate, (4, 4))
    points = se3.apply(motion, floats("estimate", estimate.points, ("n", 3)))
    ground = heights_of(reference, layer)
    difference = points[:, 2] - ground.at(points[:, 0], points[:, 1])
    statistics = HeightStatistics.of(difference)
    known = np.isfinite(ground.values)
    x, y = centres_of(reference, ground.values)
    cells = np.column_stack([x[known], y[known], ground.values[known]])
    back = np.asarray(KDTree(points[measured_rows(points)]).query(cells)[0])
    asked = distances or [n * cell_size(reference) for n in (1.0, 2.0)]
    return CloudMapErrors(difference, statistics, tuple((d, float(np.mean(back <= d))) for d in asked))


def _measure(called: str, cloud: PointCloud) -> Floats:
    points = floats(called, cloud.points, ("n", 3))
    points = points[measured_rows(points)]
    if not len(points):
        raise GeometryError(f"the {called} has no measured points")
    return points


def _spacing(points: Floats, tree: Any) -> float:
    """Return the median distance in metres of points to their nearest neighbour."""
    some = points[:: max(len(points) // MOST, 1)]
    return float(np.median(tree.query(some, k=2)[0][:, 1]))


def _register(truth: Floats, tree: Any, points: Floats, start: Floats, reach: float) -> Registration:
    """Bring points to the nearest of the truth until they stay: ICP, point to point (Besl, McKay 1992)."""
    some, motion, rmse = points[:: max(len(points) // MOST, 1)], start, float("nan")
    for _ in range(ITERATIONS):
        moved = se3.apply(motion, some)
        distance, partner = tree.query(moved)
        near = np.asarray(distance) <= reach
        if near.sum() < 3:
            raise GeometryError(
                f"the clouds do not meet: {int(near.sum())} points have a partner within {reach:.3g} m",
                hint="give T_reference_estimate, or a larger reach",
            )
        step = align.umeyama(moved[near], truth[partner[near]])
        motion, rmse = step.matrix @ motion, step.rmse
        if max(abs(se3.log(step.matrix))) < CONVERGED:
            break
    return Registration(motion, True, rmse)
