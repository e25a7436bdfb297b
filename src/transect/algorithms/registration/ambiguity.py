"""Whether a registration could as well lie elsewhere: it is begun again from places around it.

Ground that looks alike everywhere holds a cloud wherever ICP begins: it converges, overlaps, and every motion
is held, while the clouds are half a metre apart. But from a few voxels beside it another place is found that
fits better, or as well; around the right place all others fit far worse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import se3

from .icp import CalmSteps, fit_planes, iterate, keep_nearest, pick, sample_surface

AWAY = 3.0
"""Voxels, beside the found place, from which it is begun again in six directions."""
POINTS = 2000, 15000
"""Of source and sink that take part."""
LEAST_POINTS = 2000
"""Of each cloud; single corners are too few to tell one place from another so."""
BOX, TRIM = 7, 0.85
"""Points of the sink that share a normal, and the share of the pairs that count: see `IcpMatcher`."""
STEPS, ENOUGH, CALM = 20, (0.002, 0.02), 3
"""Most steps; mean steps and turns (m, rad) that end it, and how many of them make a mean."""


class Rival(NamedTuple):
    """The best other place: its RMS distance over that of the found one, and how far away it is, m."""

    ratio: float
    distance: float


def find_rival(source: Floats, sink: Floats, found: Floats, voxel: float) -> Rival | None:
    """Return the place that rivals ``T_sink_source`` (4, 4) most; None if there is none, or too few points.

    Parameters
    ----------
    source, sink : (n, 3), (m, 3) array
    voxel : float
        Metres that count as another place.
    """
    from scipy.spatial import KDTree

    if min(len(source), len(sink)) < LEAST_POINTS:
        return None
    rng = np.random.default_rng(0)
    some = pick(source, POINTS[0], rng)
    others, normals = sample_surface(pick(sink, POINTS[1], rng), BOX, 1.0, rng)
    tree, fit = KDTree(others), fit_planes(others, normals)

    def misfit(place: Floats) -> float:
        distance = np.asarray(tree.query(se3.apply(place, some))[0])
        return float(np.sqrt(np.mean(distance[distance <= np.quantile(distance, TRIM)] ** 2)))

    rivals: list[Rival] = []
    here = misfit(found)
    for axis in (*np.eye(3), *-np.eye(3)):
        begin = found.copy()
        begin[:3, 3] += AWAY * voxel * axis
        end = CalmSteps(*ENOUGH, CALM)
        place = iterate(some, others, begin, keep_nearest(TRIM), fit, end, STEPS).matrix
        apart = _distance(some, place, found)
        if apart > voxel:
            rivals.append(Rival(misfit(place) / here if here > 0 else np.inf, apart))
    return min(rivals, default=None)


def _distance(points: Floats, a: Floats, b: Floats) -> float:
    """Return how far apart (m) two places put the middle of points."""
    middle = points.mean(axis=0)
    return float(np.linalg.norm(se3.apply(a, middle) - se3.apply(b, middle)))
