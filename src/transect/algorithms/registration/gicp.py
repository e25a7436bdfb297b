"""Typed interface to small_gicp: clouds with covariances, alignment, voxel maps.

One thread is used, for repeatable results. The library orders twists rotation first and applies them on the
right, ``T exp(xi)``, in the frame of the source. This module orders them translation first, as `geometry.se3`
does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats
from transect.errors import MissingExtraError
from transect.geometry import se3

Method = Literal["GICP", "PLANE_ICP", "ICP"]

TRANSLATION_FIRST = np.array([3, 4, 5, 0, 1, 2])
COVARIANCE_NEIGHBOURS = 10
HISTORY_SCANS = 300  # scans after which a voxel without a point is removed


@dataclass(frozen=True)
class PreparedCloud:
    """A downsampled cloud with normals and covariances, and a search tree."""

    cloud: Any  # small_gicp.PointCloud
    tree: Any  # small_gicp.KdTree

    def __len__(self) -> int:
        return int(self.cloud.size())

    @property
    def points(self) -> Floats:
        """(n, 3) m."""
        return np.asarray(self.cloud.points(), dtype=np.float64)[:, :3]

    @property
    def normals(self) -> Floats:
        """(n, 3) unit vectors of either sign; zero for points with too few neighbours."""
        return np.asarray(self.cloud.normals(), dtype=np.float64)[:, :3]


@dataclass(frozen=True)
class AlignmentResult:
    """Result of an alignment."""

    T_target_source: Floats  # (4, 4)
    converged: bool  # False if the iterations ran out
    iterations: int
    inliers: int  # source points with a correspondence
    error: float  # half the weighted sum of squares over the inliers, in the units of the method
    # Derivatives of the error before the last step, by a small motion of the source in its own frame.
    hessian: Floats  # (6, 6)
    gradient: Floats  # (6,)


@dataclass(frozen=True)
class AlignmentLimits:
    """Correspondences and convergence of an alignment."""

    max_distance_m: float = 1.0  # of correspondences
    iterations: int = 100  # the library's default of 20 is often too few
    rotation_rad: float = 1e-4  # smallest step
    translation_m: float = 1e-4


def prepare(points: ArrayLike, voxel: float, neighbours: int = COVARIANCE_NEIGHBOURS) -> PreparedCloud:
    """Downsample points (n, 3) to voxel means, and estimate normals and covariances; NaN rows are dropped."""
    return PreparedCloud(*_library().preprocess_points(_drop_nan(points), voxel, neighbours, 1))


def downsample_cloud(points: ArrayLike, voxel: float) -> PreparedCloud:
    """Like `prepare` with covariances only, for alignment to a `VoxelMap`; `tree` is None."""
    return PreparedCloud(_add_covariances(_downsample(points, voxel)), None)


def estimate_covariances(points: Floats) -> PreparedCloud:
    """Return downsampled points (n, 3) with covariances; `tree` is None."""
    return PreparedCloud(_add_covariances(_library().PointCloud(np.ascontiguousarray(points))), None)


def downsample_with_incidence(points: ArrayLike, voxel: float) -> tuple[Floats, Floats]:
    """Downsample points (n, 3), with the sines of the angles between beams from the origin and the surface.

    Returns
    -------
    points : (m, 3)
    sine : (m,)
    """
    return _incidence(_downsample(points, voxel))


def incidence_sines(points: Floats) -> Floats:
    """Return the sines (n,) of the angles between beams from the origin and the surface at points (n, 3)."""
    return _incidence(_library().PointCloud(np.ascontiguousarray(points)))[1]


def _incidence(cloud: Any) -> tuple[Floats, Floats]:
    if cloud.empty():
        return np.zeros((0, 3)), np.zeros(0)
    _library().estimate_normals(cloud, None, COVARIANCE_NEIGHBOURS, 1)
    points, normals = (np.asarray(rows, np.float64)[:, :3] for rows in (cloud.points(), cloud.normals()))
    ranges = np.maximum(np.linalg.norm(points, axis=1), 1e-9)
    return points, np.abs(np.einsum("ij,ij->i", points, normals)) / ranges


def downsample_points(points: ArrayLike, voxel: float) -> Floats:
    """Return the means (m, 3) of points (n, 3) in voxels (m); rows with NaN are dropped."""
    return np.array(_downsample(points, voxel).points(), dtype=np.float64)[:, :3]


def count_voxels(points: ArrayLike, voxel: float) -> int:
    """Return the number of occupied voxels (m) of points (n, 3)."""
    return int(_downsample(points, voxel).size())


def align(
    target: PreparedCloud,
    source: PreparedCloud,
    guess: ArrayLike,
    method: Method = "GICP",
    limits: AlignmentLimits | None = None,
) -> AlignmentResult:
    """Align two prepared clouds, starting from ``T_target_source`` (4, 4)."""
    limits = limits or AlignmentLimits()
    result = _library().align(
        target.cloud,
        source.cloud,
        target.tree,
        _matrix(guess),
        method,
        limits.max_distance_m,
        1,
        *_stop_criteria(limits),
    )
    return _read_result(result)


class VoxelMap:
    """A map of one Gaussian per voxel, which scans are aligned to and inserted in (VGICP).

    The library cannot copy its map. A copy shares the downsampled points of the scans in the map, and inserts
    them again when it is first used, with identical results.

    Parameters
    ----------
    voxel : float
        Voxel size in m.
    history : int
        Voxels without a point for this many insertions are removed.
    """

    def __init__(self, voxel: float, history: int = HISTORY_SCANS) -> None:
        self.voxel, self.history = voxel, history
        self._map_object: Any = None
        self._scans: deque[tuple[Floats, Floats]] = deque()
        self._dropped = 0

    def __len__(self) -> int:
        return int(self._map.size())

    @property
    def points(self) -> Floats:
        """(n, 3) means of the voxels, m."""
        return np.asarray(self._map.voxel_points(), dtype=np.float64)[:, :3]

    def insert(self, parts: Sequence[PreparedCloud], poses: ArrayLike) -> None:
        """Insert a scan by the poses ``T_map_part`` (k, 4, 4) of its parts."""
        for part, pose in zip(parts, _matrix(poses), strict=True):
            self._map.insert(part.cloud, pose)
            self._scans.append((np.ascontiguousarray(part.points), pose))
            if (self._dropped + len(self._scans)) % self.history == 0:
                self._drop_old_scans()

    def align(
        self, scan: PreparedCloud, guess: ArrayLike, limits: AlignmentLimits | None = None
    ) -> AlignmentResult:
        """Align a scan to the map, starting from ``T_map_scan`` (4, 4)."""
        limits = limits or AlignmentLimits()
        result = _library().align(
            self._map, scan.cloud, _matrix(guess), limits.max_distance_m, 1, *_stop_criteria(limits)
        )
        return _read_result(result)

    @property
    def _map(self) -> Any:
        if self._map_object is None:
            self._map_object = _library().GaussianVoxelMap(self.voxel)
            self._map_object.set_lru(self.history, max(self.history // 30, 1))
            # Empty scans replace dropped ones, since the library counts insertions.
            for points, pose in [(np.zeros((0, 3)), np.eye(4))] * self._dropped + [*self._scans]:
                self._map_object.insert(_add_covariances(_library().PointCloud(points)), pose)
        return self._map_object

    def _drop_old_scans(self) -> None:
        """Drop the oldest scans without a voxel in the map."""
        occupied = np.unique(self._voxel_ids(self.points))
        while self._scans:
            points, pose = self._scans[0]
            scan_ids = self._voxel_ids(se3.apply(pose, points))
            if (occupied.take(np.searchsorted(occupied, scan_ids), mode="clip") == scan_ids).any():
                return
            self._scans.popleft()
            self._dropped += 1

    def _voxel_ids(self, points: Floats) -> NDArray[np.int64]:
        """Return an id (n,) of the voxel of each point (n, 3), unique within a large distance."""
        return np.floor(points / self.voxel).astype(np.int64) @ np.array([1, 1 << 21, 1 << 42])

    def __deepcopy__(self, memo: dict[int, Any]) -> VoxelMap:
        copy = VoxelMap(self.voxel, self.history)
        copy._scans, copy._dropped = self._scans.copy(), self._dropped
        return copy


def _library() -> Any:
    try:
        return import_module("small_gicp")
    except ModuleNotFoundError as error:
        raise MissingExtraError("small_gicp", "fusion") from error


def _downsample(points: ArrayLike, voxel: float) -> Any:
    return _library().voxelgrid_sampling(_drop_nan(points), voxel, 1)


def _add_covariances(cloud: Any) -> Any:
    if cloud.empty():  # the library would warn on stderr
        return cloud
    _library().estimate_covariances(cloud, None, COVARIANCE_NEIGHBOURS, 1)
    return cloud


def _drop_nan(points: ArrayLike) -> Floats:
    """Return the rows (m, 3) without NaN."""
    cloud = np.ascontiguousarray(points, dtype=np.float64)
    finite = np.isfinite(cloud)
    return cloud if finite.all() else cloud[finite.all(axis=1)]


def _matrix(transform: ArrayLike) -> Floats:
    return np.array(transform, dtype=np.float64)


def _stop_criteria(limits: AlignmentLimits) -> tuple[int, float, float]:
    return limits.iterations, limits.rotation_rad, limits.translation_m


def _read_result(result: Any) -> AlignmentResult:
    return AlignmentResult(
        T_target_source=np.array(result.T_target_source, dtype=np.float64),
        converged=bool(result.converged),
        iterations=int(result.iterations),
        inliers=int(result.num_inliers),
        error=float(result.error),
        hessian=np.asarray(result.H, dtype=np.float64)[TRANSLATION_FIRST[:, None], TRANSLATION_FIRST],
        gradient=np.asarray(result.b, dtype=np.float64).reshape(6)[TRANSLATION_FIRST],
    )
