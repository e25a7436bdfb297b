"""Registration from coarse to fine, at scales that the clouds themselves tell, and how far to believe it.

Two levels. Coarse: few points, partners up to three voxels away, a wide basin. Fine: many points, and
partners up to three times the median distance between the clouds: what is farther is not the same surface, or
was seen from one side only, and would pull (Chetverikov's trimmed ICP, with a median for the share).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.geometry import rotations, se3, surfaces

from .ambiguity import Rival
from .gicp import Aligned, Limits, Method, Prepared, align, prepare

PARTNERS = 0.5
"""Coarse voxels to a point's partner, at most; at a wrong place on flat ground most have one within 1."""
SAMPLING = 1.5
"""Medians of the spacing to a point's partner, if that is more: a surface sampled anew has other points."""
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
class Levels:
    """A cloud at both scales."""

    coarse: Prepared
    fine: Prepared


@dataclass(frozen=True)
class Refined:
    """A registration at its end and at the coarse level, the clouds, and their scales."""

    aligned: Aligned
    begun: Aligned
    source: Levels
    sink: Levels
    scales: Scales


def scales_of(
    sink: Floats, coarse_points: int, fine_points: int, coarse: float = 0.0, fine: float = 0.0
) -> Scales:
    """Return voxels by which so many points are left of the sink (n, 3), a quarter at most when coarse.

    Edges that are given, in metres, are taken instead.
    """
    few = min(coarse_points, len(sink) // 4)
    return Scales(
        coarse or surfaces.voxel_for(sink, few),
        fine or surfaces.voxel_for(sink, fine_points),
    )


def prepare_levels(points: Floats, scales: Scales) -> Levels:
    """Thin points (n, 3) to both scales, with normals and covariances."""
    coarse, fine = (prepare(points, voxel, scales.neighbours) for voxel in (scales.coarse, scales.fine))
    return Levels(coarse, fine)


def refine(
    source: Levels, sink: Levels, guess: Floats, method: Method, scales: Scales, iterations: int
) -> Refined:
    """Align two clouds, which were prepared at these scales, from the guess ``T_sink_source`` (4, 4) on."""
    limits = Limits(distance=COARSE_REACH * scales.coarse, iterations=iterations)
    begun = align(sink.coarse, source.coarse, guess, method, limits)
    return Refined(_realign(source.fine, sink.fine, begun, method, limits), begun, source, sink, scales)


def _realign(source: Prepared, sink: Prepared, begun: Aligned, method: Method, limits: Limits) -> Aligned:
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


@dataclass(frozen=True)
class Quality:
    """What a registration came to.

    Attributes
    ----------
    fitness : float
        Share of the source's points that have a partner in the sink, near for the clouds' resolution.
    rmse : float
        Root mean square of those distances, metres.
    degeneracy : float
        1 where every motion is held alike, 0 where one is free (`geometry.surfaces.Information`).
    weakest : (6,)
        The motion that is held least, in the frame of the sink.
    covariance : (6, 6)
        Of the transform: translation then rotation, in the frame of the sink; see `covariance_of`.
    rival : Rival or None
        The other place that fits best, where that was looked for.
    """

    fitness: float
    rmse: float
    degeneracy: float | None = None
    weakest: Floats | None = None
    covariance: Floats | None = None
    rival: Rival | None = None


class Overlap(NamedTuple):
    """Share of points with a near partner, and root mean square of those distances, metres."""

    fitness: float
    rmse: float


def overlap_of(moved: Floats, sink: Floats, coarse: float) -> Overlap:
    """Return how points (n, 3) lie on others (m, 3), whose spacing and coarse voxels (m) say what is near."""
    reach = max(PARTNERS * coarse, SAMPLING * surfaces.spacing(sink))
    distance, _ = _partners(moved, sink)
    near = distance <= reach
    rmse = float(np.sqrt(np.mean(distance[near] ** 2))) if near.any() else float("inf")
    return Overlap(float(np.mean(near)), rmse)


def quality_of(refined: Refined) -> Quality:
    """Judge a registration."""
    moved = se3.apply(refined.aligned.T_target_source, refined.source.fine.points)
    overlap = overlap_of(moved, refined.sink.fine.points, refined.scales.coarse)
    held = _measure_hold(refined)
    return Quality(*overlap, held.ratio, held.weakest, covariance_of(refined))


def _measure_hold(refined: Refined) -> surfaces.Information:
    """How well the surfaces hold the source, at the coarse level, where normals are surest."""
    sink = refined.sink.coarse
    moved = se3.apply(refined.aligned.T_target_source, refined.source.coarse.points)
    distance, partner = _partners(moved, sink.points)
    near = distance <= refined.scales.coarse
    return surfaces.information(moved[near], sink.normals[partner[near]])


def _partners(points: Floats, others: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Distances (n,) from points (n, 3) to the nearest of others (m, 3), and which that is (n,)."""
    from scipy.spatial import KDTree

    distance, partner = KDTree(others).query(points)
    return np.asarray(distance), np.asarray(partner)


def covariance_of(refined: Refined) -> Floats:
    """Return the covariance (6, 6) of ``T_sink_source`` in the frame of the sink: m^2, then rad^2.

    Of the position and of the attitude, about the axes of the sink. The inverse Hessian scaled by the
    residuals' own variance, and by how many points share a normal, because their errors are one and the same,
    is still too small: partners are other points of the same surface, which pulls all of them one way, and no
    residual shows it. How far the result moved from the coarse level to the fine one does. So all of it is
    enlarged until such a shift is likely; divided by six less two, as six squares know a variance badly.
    What both clouds have in common (a lidar's bias, its motion) is not in it. Infinite where the Hessian is
    singular.
    """
    found = refined.aligned
    freedom = found.inliers - 6
    values = np.linalg.eigvalsh(found.hessian)
    if freedom <= 0 or not values[0] > 1e-12 * values[-1]:
        return np.diag(np.full(6, np.inf))
    in_source = np.linalg.inv(found.hessian) * (2 * found.error / freedom * refined.scales.neighbours)
    turn = np.kron(np.eye(2), found.T_target_source[:3, :3])
    spread = turn @ in_source @ turn.T
    shift = _difference(found.T_target_source, refined.begun.T_target_source)
    return spread * (1 + float(shift @ np.linalg.solve(spread, shift)) / (len(shift) - 2))


def _difference(a: Floats, b: Floats) -> Floats:
    """Return by how much (6,) two transforms (4, 4) differ in position, m, and attitude, rad."""
    turned = rotations.rotation_vector_from_matrix(a[:3, :3] @ b[:3, :3].T)
    return np.concatenate([a[:3, 3] - b[:3, 3], turned])
