"""Registration from coarse to fine, at scales that the clouds themselves tell.

Two levels. Coarse: few points, partners up to three voxels away, a wide basin. Fine: many points, and
partners up to three times the median distance between the clouds: what is farther is not the same surface, or
was seen from one side only, and would pull (Chetverikov's trimmed ICP, with a median for the share).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import se3, surfaces

from ._small_gicp import Aligned, Limits, Method, Prepared, align, prepare

COARSE_REACH = 3.0
"""Voxels to the farthest partner at the coarse level."""
TRIM = 3.0
"""Medians of the distance between the clouds to the farthest partner at the fine level."""
ROUNDS = 4
"""Of trimming, at most: the median shrinks as the clouds come together."""
SETTLED = 0.95
"""It has stopped shrinking where it is still this share of the one before."""


@dataclass(frozen=True)
class Scales:
    """How clouds are thinned.

    Attributes
    ----------
    coarse, fine : float
        Edges of voxels in metres.
    neighbours : int
        Points that a normal is made from. With ten of a spinning lidar all may be of one ring.
    """

    coarse: float
    fine: float
    neighbours: int = 20


@dataclass(frozen=True)
class Refined:
    """A registration at its end and at the coarse level, the clouds at both, and the scales."""

    aligned: Aligned
    begun: Aligned
    source: Prepared
    sink: Prepared
    coarse_source: Prepared
    coarse_sink: Prepared
    scales: Scales


def scales_of(sink: Floats, coarse_points: int, fine_points: int) -> Scales:
    """Return voxels by which so many points are left of the sink (n, 3), a quarter at most when coarse."""
    few = min(coarse_points, len(sink) // 4)
    return Scales(surfaces.voxel_for(sink, few), surfaces.voxel_for(sink, fine_points))


def refine(
    source: Floats, sink: Floats, guess: Floats, method: Method, scales: Scales, iterations: int
) -> Refined:
    """Align two clouds (n, 3) and (m, 3) from the guess ``T_sink_source`` (4, 4) on."""
    coarse = _level(source, sink, scales.coarse, scales.neighbours)
    limits = Limits(distance=COARSE_REACH * scales.coarse, iterations=iterations)
    begun = align(coarse[1], coarse[0], guess, method, limits)
    fine = _level(source, sink, scales.fine, scales.neighbours)
    return Refined(_trimmed(*fine, begun, method, limits), begun, *fine, *coarse, scales)


def _level(source: Floats, sink: Floats, voxel: float, neighbours: int) -> tuple[Prepared, Prepared]:
    return prepare(source, voxel, neighbours), prepare(sink, voxel, neighbours)


def _trimmed(source: Prepared, sink: Prepared, begun: Aligned, method: Method, limits: Limits) -> Aligned:
    """Align with ever nearer partners, each time from the one before on; iterations are summed."""
    from scipy.spatial import KDTree

    tree, points, steps = KDTree(sink.points), source.points, begun.iterations
    found = begun
    for _ in range(ROUNDS):
        moved = se3.apply(found.T_target_source, points)
        nearest = TRIM * float(np.median(np.asarray(tree.query(moved)[0])))
        if found is not begun and nearest > SETTLED * limits.distance:
            break
        limits = replace(limits, distance=min(max(nearest, 1e-6), limits.distance))
        found = align(sink, source, found.T_target_source, method, limits)
        steps += found.iterations
    return replace(found, iterations=steps)
