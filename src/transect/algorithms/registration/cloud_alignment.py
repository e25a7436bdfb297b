"""Registration of two point clouds, with its quality: overlap, how well surfaces hold it, covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry import se3, surfaces

from .ambiguity import find_rival
from .coarse_to_fine import Quality, overlap_of, prepare_levels, quality_of, refine, scales_of
from .gicp import Method
from .icp import Closest

LEVEL_POINTS = (5000, 20000)
"""Approximate numbers of points of the sink at the coarse and at the fine level."""


@dataclass(frozen=True)
class CloudAlignment:
    """Where the source lies in the sink."""

    matrix: Floats  # T_sink_source (4, 4)
    converged: bool  # whether the last steps were small
    iterations: int  # of all levels together
    quality: Quality


def align_clouds(
    source: ArrayLike,
    sink: ArrayLike,
    guess: ArrayLike | None = None,
    method: Method = "GICP",
    iterations: int = 100,
    *,
    points: tuple[int, int] = LEVEL_POINTS,
    voxels: tuple[float, float] = (0.0, 0.0),
) -> CloudAlignment:
    """Align the points of a source with those of a sink, from coarse to fine.

    Parameters
    ----------
    source, sink : (n, 3) and (m, 3) arrays
        Metres.
    guess : (4, 4) array, optional
        ``T_sink_source`` to begin with; by default the identity.
    method : {"GICP", "PLANE_ICP", "ICP"}
        Distances between surfaces, from points to planes, or between points.
    iterations : int
        Of each level, at most.
    points : (int, int)
        Approximate numbers of points of the sink at the coarse and at the fine level.
    voxels : (float, float)
        Voxel sizes of the two levels, m; 0 for those that give these numbers of points.
    """
    moved, fixed = np.asarray(source, np.float64), np.asarray(sink, np.float64)
    begin = np.eye(4) if guess is None else np.asarray(guess, np.float64)
    scales = scales_of(fixed, *points, *voxels)
    clouds = prepare_levels(moved, scales), prepare_levels(fixed, scales)
    found = refine(*clouds, begin, method, scales, iterations)
    aligned = found.aligned
    return CloudAlignment(aligned.T_target_source, aligned.converged, aligned.iterations, quality_of(found))


def judge_pairs(
    source: Floats, sink: Floats, found: Closest, normals: Floats | None = None
) -> CloudAlignment:
    """Return how well the source (n, 3) lies on the sink (m, 3), and, by its normals, how well it is held."""
    voxel = scales_of(sink, *LEVEL_POINTS).coarse
    overlap = overlap_of(se3.apply(found.matrix, source), sink, voxel)
    quality = Quality(*overlap, rival=find_rival(source, sink, found.matrix, voxel))
    if normals is not None:
        held = surfaces.information(sink, normals)
        quality = replace(quality, degeneracy=held.ratio, weakest=held.weakest)
    return CloudAlignment(found.matrix, found.converged, found.iterations, quality)
