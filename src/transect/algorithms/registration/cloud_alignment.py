"""Registration of two point clouds from coarse to fine, with the quality of the result.

The coarse level has few points and correspondences up to three voxels away, for a wide basin of convergence.
The fine level has many points and correspondences up to three times the median distance between the clouds:
more distant ones are of other surfaces (trimmed ICP of Chetverikov et al., with a median in place of the
overlap).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats
from transect.geometry import rotations, se3, surfaces

from .gicp import AlignmentLimits, AlignmentResult, Method, PreparedCloud, align, prepare
from .icp import AlternativePose, IcpResult, find_alternative_pose

LEVEL_POINTS = (5000, 20000)  # approximate numbers of points of the sink at the coarse and the fine level


@dataclass(frozen=True)
class CoarseToFineSettings:
    """Settings of registration from coarse to fine."""

    coarse_correspondence_voxels: float = 3.0  # largest distance of correspondences at the coarse level
    # Largest distance at the fine level, in medians of the distances; these decrease from round to round.
    trim_medians: float = 3.0
    max_trim_rounds: int = 4
    trim_convergence_ratio: float = 0.95  # of a distance to the last one, which ends the rounds

    # Overlap: largest distance to the nearest sink point, the larger of both. At a wrong pose most points are
    # within one coarse voxel; a surface is sampled at other points, so the spacing matters.
    max_overlap_voxels: float = 0.5
    max_overlap_spacings: float = 1.5  # medians of the point spacing


COARSE_TO_FINE = CoarseToFineSettings()


@dataclass(frozen=True)
class VoxelScales:
    """Voxel sizes of the two levels."""

    coarse: float  # m
    fine: float  # m
    neighbours: int = 20  # points of a normal; ten of a spinning lidar may be on one ring


@dataclass(frozen=True)
class CloudLevels:
    """A cloud at both scales."""

    coarse: PreparedCloud
    fine: PreparedCloud


@dataclass(frozen=True)
class CoarseToFineResult:
    """Results of the fine and the coarse level, the clouds, and their scales."""

    aligned: AlignmentResult
    coarse_result: AlignmentResult
    source: CloudLevels
    sink: CloudLevels
    scales: VoxelScales


@dataclass(frozen=True)
class RegistrationQuality:
    """Quality of a registration."""

    fitness: float  # ratio of source points with a sink point nearby
    rmse: float  # of those distances, m
    degeneracy: float | None = None  # 1: all motions equally constrained, 0: one free (`geometry.surfaces`)
    weakest: Floats | None = None  # (6,) least constrained motion, in the frame of the sink
    covariance: Floats | None = None  # (6, 6) of the transform: see `registration_covariance`
    alternative: AlternativePose | None = None  # if it was searched


class Overlap(NamedTuple):
    """Ratio of points with a match nearby, and RMS of those distances, m."""

    fitness: float
    rmse: float


@dataclass(frozen=True)
class CloudAlignment:
    """Pose of the source in the sink."""

    matrix: Floats  # T_sink_source (4, 4)
    converged: bool
    iterations: int  # of all levels
    quality: RegistrationQuality


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
        Points, m.
    guess : (4, 4) array, optional
        Initial ``T_sink_source``; by default the identity.
    method : {"GICP", "PLANE_ICP", "ICP"}
        Plane to plane, point to plane, or point to point.
    iterations : int
        Largest number per level.
    points : (int, int)
        Approximate numbers of points of the sink at the coarse and the fine level.
    voxels : (float, float)
        Voxel sizes of the two levels, m; 0: chosen from `points`.
    """
    source_points, sink_points = np.asarray(source, np.float64), np.asarray(sink, np.float64)
    initial = np.eye(4) if guess is None else np.asarray(guess, np.float64)
    scales = choose_scales(sink_points, *points, *voxels)
    clouds = prepare_levels(source_points, scales), prepare_levels(sink_points, scales)
    result = align_coarse_to_fine(*clouds, initial, method, scales, iterations)
    aligned = result.aligned
    return CloudAlignment(
        aligned.T_target_source, aligned.converged, aligned.iterations, evaluate_registration(result)
    )


def evaluate_alignment(
    source: Floats, sink: Floats, result: IcpResult, normals: Floats | None = None
) -> CloudAlignment:
    """Evaluate the alignment of a source (n, 3) with a sink (m, 3), and by its normals the observability."""
    voxel = choose_scales(sink, *LEVEL_POINTS).coarse
    overlap = measure_overlap(se3.apply(result.matrix, source), sink, voxel)
    quality = RegistrationQuality(
        *overlap, alternative=find_alternative_pose(source, sink, result.matrix, voxel)
    )
    if normals is not None:
        information = surfaces.information(sink, normals)
        quality = replace(quality, degeneracy=information.ratio, weakest=information.weakest)
    return CloudAlignment(result.matrix, result.converged, result.iterations, quality)


def choose_scales(
    sink: Floats, coarse_points: int, fine_points: int, coarse: float = 0.0, fine: float = 0.0
) -> VoxelScales:
    """Return voxel sizes that leave these numbers of sink points (n, 3), coarse at most a quarter of them.

    Given sizes, in m, are used instead.
    """
    coarse_count = min(coarse_points, len(sink) // 4)
    return VoxelScales(
        coarse or surfaces.voxel_for(sink, coarse_count),
        fine or surfaces.voxel_for(sink, fine_points),
    )


def prepare_levels(points: Floats, scales: VoxelScales) -> CloudLevels:
    """Downsample points (n, 3) to both scales, with normals and covariances."""
    coarse, fine = (prepare(points, voxel, scales.neighbours) for voxel in (scales.coarse, scales.fine))
    return CloudLevels(coarse, fine)


def align_coarse_to_fine(
    source: CloudLevels,
    sink: CloudLevels,
    guess: Floats,
    method: Method,
    scales: VoxelScales,
    iterations: int,
    settings: CoarseToFineSettings = COARSE_TO_FINE,
) -> CoarseToFineResult:
    """Align two clouds, prepared at these scales, starting from ``T_sink_source`` (4, 4)."""
    limits = AlignmentLimits(
        max_distance_m=settings.coarse_correspondence_voxels * scales.coarse, iterations=iterations
    )
    coarse_result = align(sink.coarse, source.coarse, guess, method, limits)
    return CoarseToFineResult(
        _align_trimmed(source.fine, sink.fine, coarse_result, method, limits, settings),
        coarse_result,
        source,
        sink,
        scales,
    )


def _align_trimmed(
    source: PreparedCloud,
    sink: PreparedCloud,
    coarse_result: AlignmentResult,
    method: Method,
    limits: AlignmentLimits,
    settings: CoarseToFineSettings,
) -> AlignmentResult:
    """Align with decreasing correspondence distances; iterations are summed."""
    from scipy.spatial import KDTree

    tree, points, iterations = KDTree(sink.points), source.points, coarse_result.iterations
    result = coarse_result
    for _ in range(settings.max_trim_rounds):
        moved = se3.apply(result.T_target_source, points)
        nearest = settings.trim_medians * float(np.median(np.asarray(tree.query(moved)[0])))
        if result is not coarse_result and nearest > settings.trim_convergence_ratio * limits.max_distance_m:
            break
        limits = replace(limits, max_distance_m=min(max(nearest, 1e-6), limits.max_distance_m))
        result = align(sink, source, result.T_target_source, method, limits)
        iterations += result.iterations
    return replace(result, iterations=iterations)


def measure_overlap(
    moved: Floats, sink: Floats, coarse: float, settings: CoarseToFineSettings = COARSE_TO_FINE
) -> Overlap:
    """Return the overlap of points (n, 3) with others (m, 3), given the coarse voxel size (m)."""
    max_distance = max(
        settings.max_overlap_voxels * coarse, settings.max_overlap_spacings * surfaces.spacing(sink)
    )
    distance, _ = _nearest(moved, sink)
    near = distance <= max_distance
    rmse = float(np.sqrt(np.mean(distance[near] ** 2))) if near.any() else float("inf")
    return Overlap(float(np.mean(near)), rmse)


def evaluate_registration(refined: CoarseToFineResult) -> RegistrationQuality:
    """Return the quality of a registration."""
    moved = se3.apply(refined.aligned.T_target_source, refined.source.fine.points)
    overlap = measure_overlap(moved, refined.sink.fine.points, refined.scales.coarse)
    information = _surface_information(refined)
    return RegistrationQuality(
        *overlap, information.ratio, information.weakest, registration_covariance(refined)
    )


def _surface_information(refined: CoarseToFineResult) -> surfaces.Information:
    """Return how well the surfaces constrain the source, at the coarse level, whose normals are best."""
    sink = refined.sink.coarse
    moved = se3.apply(refined.aligned.T_target_source, refined.source.coarse.points)
    distance, match = _nearest(moved, sink.points)
    near = distance <= refined.scales.coarse
    return surfaces.information(moved[near], sink.normals[match[near]])


def _nearest(points: Floats, targets: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the distances (n,) from points (n, 3) to the nearest of others (m, 3), and their rows (n,)."""
    from scipy.spatial import KDTree

    distance, match = KDTree(targets).query(points)
    return np.asarray(distance), np.asarray(match)


def registration_covariance(refined: CoarseToFineResult) -> Floats:
    """Return the covariance (6, 6) of ``T_sink_source`` in the frame of the sink: m^2, then rad^2.

    The inverse Hessian is scaled by the variance of the residuals, and by the number of points that share a
    normal, whose errors are identical. It is still too small: correspondences are other points of the same
    surface, which pulls all of them one way without a residual. The shift from the coarse to the fine result
    shows this error, so the covariance is enlarged until that shift is plausible; the divisor is six less
    two, since six squares determine a variance poorly. Errors common to both clouds (a lidar's bias, its
    motion) are not included. It is infinite if the Hessian is singular.
    """
    result = refined.aligned
    degrees_of_freedom = result.inliers - 6
    values = np.linalg.eigvalsh(result.hessian)
    if degrees_of_freedom <= 0 or not values[0] > 1e-12 * values[-1]:
        return np.diag(np.full(6, np.inf))
    source_covariance = np.linalg.inv(result.hessian) * (
        2 * result.error / degrees_of_freedom * refined.scales.neighbours
    )
    rotation = np.kron(np.eye(2), result.T_target_source[:3, :3])
    covariance = rotation @ source_covariance @ rotation.T
    fine, coarse = result.T_target_source, refined.coarse_result.T_target_source
    turn = rotations.rotation_vector_from_matrix(fine[:3, :3] @ coarse[:3, :3].T)
    shift = np.concatenate([fine[:3, 3] - coarse[:3, 3], turn])
    return covariance * (1 + float(shift @ np.linalg.solve(covariance, shift)) / (len(shift) - 2))
