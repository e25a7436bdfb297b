"""Loop closure for a lidar: candidates by elevation profile, verified by registration (GICP).

A registration starts from the predicted pose. If that is too uncertain, it starts from the alignment of two
local elevation maps, searched over all headings and shifts. No lidar is mounted exactly level, and the body
follows the slope of the ground, so points are first levelled by the dominant plane.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import GeometryError
from transect.geometry import rotations, se3
from transect.geometry.rasters import HeightRaster
from transect.types import PointCloud
from transect.types.places import Observation

from ..coregistration.alignment import AlignmentSettings, evaluate_fit, find_defect, find_fits, match_cells
from ..coregistration.placement import MapPair, MetricPlane, place_at_centre
from ..coregistration.search import SearchRange
from ..odometry.lidar_sweep import MIN_INCIDENCE_SINE, orthonormalise
from ..registration.cloud_alignment import (
    CloudLevels,
    VoxelScales,
    align_coarse_to_fine,
    evaluate_registration,
    prepare_levels,
)
from ..registration.gicp import downsample_points, incidence_sines
from .place_recognition import Loop, LoopSettings, MappingSettings, PosePrior

METRIC = MetricPlane(np.zeros(2), np.ones(2))
LIDAR_MAPPING = MappingSettings(
    keyframe_distance_m=1.0,
    keyframe_angle_rad=0.5,
    search_radius_m=5.0,
    min_loop_path_m=15.0,
    max_candidates=2,
    loops=LoopSettings(max_lone_sigma_m=2.0),
    omnidirectional=True,
)


@dataclass(frozen=True)
class ElevationMapSettings:
    """Settings of the elevation map around a keyframe, and of the alignment of two of them."""

    radius_m: float = 20.0
    cell_voxels: float = 1.5  # edge of a cell over that of a voxel
    min_filled_ratio: float = 0.5  # cells grow until this ratio of the disc is filled: one scan is sparse
    max_cell_m: float = 1.5
    profile_rings: int = 10

    # Ground plane: the densest layer of heights, then reweighted least squares
    layer_m: float = 0.3
    initial_half_layer_m: float = 1.5  # of the first inliers
    max_iterations: int = 6
    inlier_sigmas: float = 2.0
    min_sigma_m: float = 0.05
    min_inliers: int = 10
    max_tilt_step_deg: float = 40.0  # of the normal in one iteration

    # Alignment
    search_radius_m: float = 6.0
    min_overlap_ratio: float = 0.45  # of two maps: rocks occlude other ground from other viewpoints
    candidates: int = 4  # of the search that are refined


ELEVATION = ElevationMapSettings()


@dataclass(frozen=True)
class LidarRecognitionSettings:
    """Settings of lidar loop closure."""

    elevation: ElevationMapSettings = ELEVATION

    nearest_candidates: int = 2  # tried in the order of distance; others in the order of similarity

    # Registration starts from the predicted pose up to this sigma, else from the elevation maps.
    max_prior_sigma_m: float = 0.7
    max_prior_sigma_rad: float = 0.1
    coarse_voxels: float = 3.0  # edge of the coarse voxels over that of the fine ones
    max_iterations: int = 40
    max_cached_clouds: int = 8

    # Acceptance of a registration
    min_points: int = 100  # of each cloud
    min_fitness: float = 0.6  # ratio of points with a correspondence
    min_degeneracy: float = 0.003  # weakest over strongest constrained motion
    max_correction_m: float = 1.0  # of the initial pose
    max_correction_rad: float = 0.12
    min_sigma: tuple[float, float] = (0.015, 0.002)  # m, rad: noise of keyframes made of few scans


@dataclass(frozen=True, eq=False)
class ElevationMap:
    """Ground around a body."""

    heights: HeightRaster  # m above the ground plane
    level: Floats  # T_level_body (4, 4)
    profile: Floats  # (2 * rings,) mean height and roughness by distance: invariant to the heading


@dataclass(frozen=True, eq=False)
class KeyframeCloud:
    """Points of a keyframe, without those at grazing incidence, and the elevation map of all points."""

    points: Floats  # (n, 3) m
    elevation: ElevationMap


class LidarRecogniser:
    """Stores the clouds of all keyframes.

    Parameters
    ----------
    voxel_m : float
        Voxel size of the clouds.
    """

    def __init__(self, voxel_m: float, settings: LidarRecognitionSettings | None = None) -> None:
        self.settings = settings = settings or LidarRecognitionSettings()
        self.voxel_m, self.scales = voxel_m, VoxelScales(settings.coarse_voxels * voxel_m, voxel_m)
        self.keyframes: dict[int, KeyframeCloud] = {}
        self._last: tuple[Observation, KeyframeCloud] | None = None
        self._prepared: dict[KeyframeCloud, CloudLevels] = {}

    def add(self, k: int, observation: Observation) -> None:
        """Store the observation of keyframe `k`."""
        self.keyframes[k] = self._keyframe(observation)

    def _keyframe(self, observation: Observation) -> KeyframeCloud:
        """Return the keyframe of an observation; consecutive calls are for the same one."""
        if self._last is None or self._last[0] is not observation:
            points = np.asarray(observation["points"], np.float64)
            steep = points[incidence_sines(points) >= MIN_INCIDENCE_SINE]
            self._last = (
                observation,
                KeyframeCloud(steep, build_elevation_map(points, self.voxel_m, self.settings.elevation)),
            )
        return self._last[1]

    def _prepare(self, keyframe: KeyframeCloud) -> CloudLevels:
        """Return the prepared clouds of a keyframe; consecutive keyframes have the same candidates."""
        result = self._prepared.pop(keyframe, None) or prepare_levels(keyframe.points, self.scales)
        self._prepared[keyframe] = result
        if len(self._prepared) > self.settings.max_cached_clouds:
            del self._prepared[next(iter(self._prepared))]
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> LidarRecogniser:
        # The library's clouds cannot be copied; keyframes are immutable.
        copy = LidarRecogniser(self.voxel_m, self.settings)
        copy.keyframes, copy._last = dict(self.keyframes), self._last
        return copy

    def candidates(self, observation: Observation, allowed: Ints) -> Sequence[int]:
        """Return the nearest allowed keyframes, then those with the most similar elevation profile."""
        profile = self._keyframe(observation).elevation.profile
        others = allowed[self.settings.nearest_candidates :].tolist()
        similar = sorted(
            others, key=lambda k: float(np.linalg.norm(self.keyframes[k].elevation.profile - profile))
        )
        nearest = allowed[: self.settings.nearest_candidates].tolist()
        return [*nearest[:1], *similar[:1], *nearest[1:], *similar[1:]]

    def verify(self, old: int, observation: Observation, prior: PosePrior | None) -> Loop | None:
        """Register a cloud with that of an old keyframe; return None if the registration is not accepted."""
        keyframe = self._keyframe(observation)
        initial = prior.T_old_new if prior is not None and self._is_certain(prior) else None
        if initial is None:
            initial = align_elevation_maps(
                self.keyframes[old].elevation, keyframe.elevation, self.settings.elevation
            )
        return None if initial is None else self._register(self.keyframes[old], keyframe, initial)

    def _register(self, old: KeyframeCloud, new: KeyframeCloud, initial: Floats) -> Loop | None:
        limits = self.settings
        if min(len(old.points), len(new.points)) < limits.min_points:
            return None
        clouds = self._prepare(new), self._prepare(old)
        refined = align_coarse_to_fine(*clouds, initial, "GICP", self.scales, self.settings.max_iterations)
        result, quality = refined.aligned, evaluate_registration(refined)
        correction = se3.log(se3.invert(initial) @ result.T_target_source)
        if not result.converged or quality.fitness < limits.min_fitness or quality.covariance is None:
            return None
        if (quality.degeneracy or 0.0) < limits.min_degeneracy or not np.isfinite(quality.covariance).all():
            return None
        if (
            np.linalg.norm(correction[:3]) > limits.max_correction_m
            or np.linalg.norm(correction[3:]) > limits.max_correction_rad
        ):
            return None
        rotation = np.kron(np.eye(2), result.T_target_source[:3, :3].T)
        covariance = rotation @ quality.covariance @ rotation.T + np.diag(
            np.repeat(np.square(limits.min_sigma), 3)
        )
        return Loop(orthonormalise(result.T_target_source), (covariance + covariance.T) / 2, quality.fitness)

    def _is_certain(self, prior: PosePrior) -> bool:
        """Return whether a registration can start from a prior."""
        sigma = np.sqrt(np.maximum(np.diag(prior.covariance), 0.0))
        limits = self.settings
        return bool(
            np.linalg.norm(sigma[:3]) < limits.max_prior_sigma_m
            and np.linalg.norm(sigma[3:]) < limits.max_prior_sigma_rad
        )


@dataclass
class ScanAccumulator:
    """The scans of the last metres, from which the observation of a keyframe is made.

    Parameters
    ----------
    voxel_m : float
        Voxel size to which scans are downsampled.
    path_m : float
        Length of the path whose scans make a keyframe.
    max_scans : int
        Largest number of scans of a keyframe.
    max_gap_s : float
        Largest time between two scans of one keyframe.
    """

    voxel_m: float
    min_range_m: float
    max_range_m: float
    path_m: float
    max_scans: int = 12
    max_gap_s: float = 2.0
    scans: deque[tuple[Floats, Floats]] = field(default_factory=deque[tuple[Floats, Floats]])
    last_ns: int = 0

    def add(self, cloud: PointCloud, T_odom_lidar: Floats) -> None:
        """Add a deskewed scan with its pose (4, 4)."""
        points = np.asarray(cloud.points, np.float64)
        if not 0 < cloud.t_ns - self.last_ns < self.max_gap_s * NS:
            self.scans.clear()
        self.last_ns = cloud.t_ns
        ranges = np.linalg.norm(points, axis=1)
        with np.errstate(invalid="ignore"):
            kept = points[(ranges > self.min_range_m) & (ranges < self.max_range_m)]
        self.scans.append((T_odom_lidar, downsample_points(kept, self.voxel_m)))
        position = T_odom_lidar[:3, 3]
        while (
            len(self.scans) > self.max_scans
            or np.linalg.norm(position - self.scans[0][0][:3, 3]) > self.path_m
        ):
            self.scans.popleft()

    def observe(self) -> Observation:
        """Return the downsampled points (n, 3) of all scans, in the axes of the newest one."""
        T_lidar_odom = se3.invert(self.scans[-1][0])
        clouds = [se3.apply(T_lidar_odom @ pose, points) for pose, points in self.scans]
        return {"points": downsample_points(np.concatenate(clouds), self.voxel_m).astype(np.float32)}


def build_elevation_map(
    points: Floats, voxel_m: float, settings: ElevationMapSettings = ELEVATION
) -> ElevationMap:
    """Return the elevation map of downsampled points (n, 3) in the body frame."""
    T_level_cloud = find_ground_rotation(points, settings)
    levelled = se3.apply(T_level_cloud, points)
    levelled = levelled[np.hypot(levelled[:, 0], levelled[:, 1]) < settings.radius_m]
    return ElevationMap(
        _grid_adaptively(levelled, settings.cell_voxels * voxel_m, settings),
        T_level_cloud,
        _elevation_profile(levelled, settings),
    )


def find_ground_rotation(points: Floats, settings: ElevationMapSettings = ELEVATION) -> Floats:
    """Return T_level_body (4, 4), whose z axis is the normal of the dominant plane of points (n, 3)."""
    points_near = points[np.hypot(points[:, 0], points[:, 1]) < settings.radius_m]
    if len(points_near) < 3:
        return np.eye(4)
    ground = _densest_layer(points_near[:, 2], settings.layer_m)
    # The ground is below a lidar, which may be mounted upside down.
    up = np.array([0.0, 0.0, 1.0 if ground < 0 else -1.0])
    inliers = points_near[np.abs(points_near[:, 2] - ground) < settings.initial_half_layer_m]
    for _ in range(settings.max_iterations):
        centroid = inliers.mean(axis=0)
        _, vectors = np.linalg.eigh(np.cov((inliers - centroid).T))
        normal = vectors[:, 0] * np.sign(vectors[:, 0] @ up)
        if normal @ up < np.cos(np.radians(settings.max_tilt_step_deg)):
            break
        up = normal
        offset = (points_near - centroid) @ up
        sigma = max(float(np.median(np.abs(offset - np.median(offset)))) * 1.4826, settings.min_sigma_m)
        inliers = points_near[np.abs(offset - np.median(offset)) < settings.inlier_sigmas * sigma]
        if len(inliers) < settings.min_inliers:
            break
    rotation = rotations.rotation_between(up, np.array([0.0, 0.0, 1.0]))
    return se3.from_matrix(rotation, np.zeros(3))


def _densest_layer(heights: Floats, layer_m: float) -> float:
    """Return the height of the layer with most of the heights (n,), m."""
    layer = np.floor(heights / layer_m).astype(np.int64)
    first = int(layer.min())
    return float((np.argmax(np.bincount(layer - first)) + first + 0.5) * layer_m)


def _grid_adaptively(points: Floats, cell: float, settings: ElevationMapSettings) -> HeightRaster:
    """Return a grid of points (n, 3) with the smallest cells, from `cell` on, that are mostly filled."""
    grid = _grid(points, cell, settings)
    while (
        cell < settings.max_cell_m and np.isfinite(grid.values).mean() < settings.min_filled_ratio * np.pi / 4
    ):
        cell *= np.sqrt(2)
        grid = _grid(points, cell, settings)
    return grid


def _grid(points: Floats, cell: float, settings: ElevationMapSettings) -> HeightRaster:
    """Return the mean height of points (n, 3) per cell, north up."""
    side = 2 * int(np.ceil(settings.radius_m / cell))
    column = np.floor(points[:, 0] / cell).astype(np.int64) + side // 2
    row = side // 2 - 1 - np.floor(points[:, 1] / cell).astype(np.int64)
    index = row * side + column
    count = np.bincount(index, minlength=side * side)
    total = np.bincount(index, points[:, 2], minlength=side * side)
    values = np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(side, side)
    half = side / 2 - 0.5
    return HeightRaster(values, np.array([[1 / cell, 0.0, half], [0.0, -1 / cell, half]]))


def _elevation_profile(points: Floats, settings: ElevationMapSettings) -> Floats:
    """Return mean and standard deviation (2 * rings,) of heights by distance; 0 without points."""
    distance = np.hypot(points[:, 0], points[:, 1])
    ring = np.minimum(
        (settings.profile_rings * distance / settings.radius_m).astype(np.int64), settings.profile_rings - 1
    )
    count = np.maximum(np.bincount(ring, minlength=settings.profile_rings), 1)
    mean = np.bincount(ring, points[:, 2], minlength=settings.profile_rings) / count
    square = np.bincount(ring, points[:, 2] ** 2, minlength=settings.profile_rings) / count
    return np.concatenate([mean - mean.mean(), np.sqrt(np.maximum(square - mean**2, 0.0))])


def align_elevation_maps(
    old: ElevationMap, new: ElevationMap, settings: ElevationMapSettings = ELEVATION
) -> Floats | None:
    """Return T_old_new (4, 4) of two bodies by their elevation maps; None if not significant."""
    pair = match_cells(MapPair(old.heights, new.heights, METRIC))
    start = place_at_centre(pair.moved)
    try:
        fits, sweep = find_fits(
            pair,
            start,
            SearchRange(settings.search_radius_m, np.pi, settings.min_overlap_ratio),
            AlignmentSettings(candidates=settings.candidates),
        )
    except GeometryError:
        return None
    alignment = evaluate_fit(fits[0], pair, start)
    if find_defect(alignment, sweep.tried) is not None:
        return None
    return se3.invert(old.level) @ alignment.T_reference_map @ new.level
