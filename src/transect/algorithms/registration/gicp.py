"""small_gicp behind types: clouds with covariances, alignment, voxel maps. One thread, so that bits repeat.

The library orders small motions rotation first and applies them on the right, ``T exp(xi)``, so they are in
the frame of the source; what leaves this module is ordered translation first, as in `geometry.se3`.
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
NEIGHBOURS = 10
"""Of whose points a covariance is made."""
HISTORY, LOOKS = 300, 30
"""Insertions after which a voxel that none touched is forgotten, and looks for such voxels in that time."""


@dataclass(frozen=True)
class Prepared:
    """A cloud thinned to voxels, each point with normal and covariance, and a tree over it.

    Attributes
    ----------
    cloud, tree : small_gicp.PointCloud, small_gicp.KdTree
    """

    cloud: Any
    tree: Any

    def __len__(self) -> int:
        return int(self.cloud.size())

    @property
    def points(self) -> Floats:
        """(n, 3) in metres."""
        return np.asarray(self.cloud.points(), dtype=np.float64)[:, :3]

    @property
    def normals(self) -> Floats:
        """(n, 3) unit vectors of either sign; zero where a point had too few neighbours."""
        return np.asarray(self.cloud.normals(), dtype=np.float64)[:, :3]


@dataclass(frozen=True)
class Aligned:
    """What an alignment came to.

    Attributes
    ----------
    T_target_source : (4, 4)
    converged : bool
        Whether the last step was small enough; False when the iterations ran out first.
    iterations : int
    inliers : int
        Source points with a partner near enough.
    error : float
        Half the weighted sum of squares over the inliers, in the units of the method.
    hessian : (6, 6)
        Of that sum by a small motion of the source in its own frame: translation, then rotation.
    gradient : (6,)
        Likewise. Both are those before the last step.
    """

    T_target_source: Floats
    converged: bool
    iterations: int
    inliers: int
    error: float
    hessian: Floats
    gradient: Floats


@dataclass(frozen=True)
class Limits:
    """When an alignment stops.

    Attributes
    ----------
    distance : float
        Metres: points farther apart are no partners.
    iterations : int
        The library's own 20 hide that it had not converged.
    rotation, translation : float
        Radians and metres: a step smaller than both ends it.
    """

    distance: float = 1.0
    iterations: int = 100
    rotation: float = 1e-4
    translation: float = 1e-4


def prepare(points: ArrayLike, voxel: float, neighbours: int = NEIGHBOURS) -> Prepared:
    """Thin points (n, 3) to the means of voxels of that edge (m), then estimate normals and covariances.

    Rows with NaN are left out; the covariances are those of the nearest `neighbours` thinned points.
    """
    return Prepared(*_library().preprocess_points(_drop_nan(points), voxel, neighbours, 1))


def thin(points: ArrayLike, voxel: float) -> Prepared:
    """Like `prepare` with covariances only, for alignment to a `VoxelMap`; `tree` is None."""
    return Prepared(_with_covariances(_sample(points, voxel)), None)


def describe(points: Floats) -> Prepared:
    """Return points (n, 3), which are thin already, with covariances; `tree` is None."""
    return Prepared(_with_covariances(_library().PointCloud(np.ascontiguousarray(points))), None)


def thin_and_meet(points: ArrayLike, voxel: float) -> tuple[Floats, Floats]:
    """Thin points (n, 3) as `thin_points` does, and tell how steeply a beam from the origin meets each.

    Returns
    -------
    points : (m, 3)
    sine : (m,)
        Of the angle between the beam and the surface that the nearest points lie on.
    """
    return _meet(_sample(points, voxel))


def meet(points: Floats) -> Floats:
    """Return the sines (n,) of how steeply beams from the origin meet points (n, 3), which are thin."""
    return _meet(_library().PointCloud(np.ascontiguousarray(points)))[1]


def _meet(cloud: Any) -> tuple[Floats, Floats]:
    if cloud.empty():
        return np.zeros((0, 3)), np.zeros(0)
    _library().estimate_normals(cloud, None, NEIGHBOURS, 1)
    places, normals = (np.asarray(rows, np.float64)[:, :3] for rows in (cloud.points(), cloud.normals()))
    away = np.maximum(np.linalg.norm(places, axis=1), 1e-9)
    return places, np.abs(np.einsum("ij,ij->i", places, normals)) / away


def thin_points(points: ArrayLike, voxel: float) -> Floats:
    """Return the means (m, 3) of points (n, 3) in voxels of that edge (m); rows with NaN are left out."""
    return np.array(_sample(points, voxel).points(), dtype=np.float64)[:, :3]


def thinned_size(points: ArrayLike, voxel: float) -> int:
    """Return how many of the points (n, 3) are left in voxels of that edge (m)."""
    return int(_sample(points, voxel).size())


def align(
    target: Prepared,
    source: Prepared,
    guess: ArrayLike,
    method: Method = "GICP",
    limits: Limits | None = None,
) -> Aligned:
    """Align two prepared clouds, from the guess ``T_target_source`` (4, 4) on."""
    limits = limits or Limits()
    result = _library().align(
        target.cloud, source.cloud, target.tree, _matrix(guess), method, limits.distance, 1, *_stops(limits)
    )
    return _read_result(result)


class VoxelMap:
    """A map of Gaussians, one for each voxel, that scans are aligned to and added to (VGICP).

    The library cannot copy its map. A copy (as a keyframe makes) shares the thinned points of the scans that
    the map still holds, and inserts them anew when it is first used, which gives the same bits.

    Parameters
    ----------
    voxel : float
        Edge in metres.
    history : int
        Voxels that this many insertions of parts did not touch are forgotten.
    """

    def __init__(self, voxel: float, history: int = HISTORY) -> None:
        self.voxel, self.history = voxel, history
        self._built: Any = None
        self._scans: deque[tuple[Floats, Floats]] = deque()
        self._forgotten = 0

    def __len__(self) -> int:
        return int(self._map.size())

    @property
    def points(self) -> Floats:
        """(n, 3) means of the voxels in metres."""
        return np.asarray(self._map.voxel_points(), dtype=np.float64)[:, :3]

    def insert(self, parts: Sequence[Prepared], poses: ArrayLike) -> None:
        """Add a scan by the poses ``T_map_part`` (k, 4, 4) of its parts, of the usual neighbours."""
        for part, pose in zip(parts, _matrix(poses), strict=True):
            self._map.insert(part.cloud, pose)
            self._scans.append((np.ascontiguousarray(part.points), pose))
            if (self._forgotten + len(self._scans)) % self.history == 0:
                self._forget()

    def align(self, scan: Prepared, guess: ArrayLike, limits: Limits | None = None) -> Aligned:
        """Align a scan to the map, from the guess ``T_map_scan`` (4, 4) on."""
        limits = limits or Limits()
        result = _library().align(self._map, scan.cloud, _matrix(guess), limits.distance, 1, *_stops(limits))
        return _read_result(result)

    @property
    def _map(self) -> Any:
        if self._built is None:
            self._built = _library().GaussianVoxelMap(self.voxel)
            self._built.set_lru(self.history, max(self.history // LOOKS, 1))
            # Empty scans stand for those that were forgotten: the library counts insertions.
            for points, pose in [(np.zeros((0, 3)), np.eye(4))] * self._forgotten + [*self._scans]:
                self._built.insert(_with_covariances(_library().PointCloud(points)), pose)
        return self._built

    def _forget(self) -> None:
        """Let go of the oldest scans of which no voxel is left."""
        live = np.unique(self._numbers(self.points))
        while self._scans:
            points, pose = self._scans[0]
            own = self._numbers(se3.apply(pose, points))
            if (live.take(np.searchsorted(live, own), mode="clip") == own).any():
                return
            self._scans.popleft()
            self._forgotten += 1

    def _numbers(self, points: Floats) -> NDArray[np.int64]:
        """Return a number (n,) for the voxel of each point (n, 3), which others have only far away."""
        return np.floor(points / self.voxel).astype(np.int64) @ np.array([1, 1 << 21, 1 << 42])

    def __deepcopy__(self, memo: dict[int, Any]) -> VoxelMap:
        copy = VoxelMap(self.voxel, self.history)
        copy._scans, copy._forgotten = self._scans.copy(), self._forgotten
        return copy


def _library() -> Any:
    try:
        return import_module("small_gicp")
    except ModuleNotFoundError as error:
        raise MissingExtraError("small_gicp", "fusion") from error


def _sample(points: ArrayLike, voxel: float) -> Any:
    return _library().voxelgrid_sampling(_drop_nan(points), voxel, 1)


def _with_covariances(cloud: Any) -> Any:
    if cloud.empty():  # the library says so on stderr
        return cloud
    _library().estimate_covariances(cloud, None, NEIGHBOURS, 1)
    return cloud


def _drop_nan(points: ArrayLike) -> Floats:
    """Return the rows (m, 3) without NaN; to find that there is none is faster than to leave them out."""
    cloud = np.ascontiguousarray(points, dtype=np.float64)
    finite = np.isfinite(cloud)
    return cloud if finite.all() else cloud[finite.all(axis=1)]


def _matrix(transform: ArrayLike) -> Floats:
    return np.array(transform, dtype=np.float64)


def _stops(limits: Limits) -> tuple[int, float, float]:
    return limits.iterations, limits.rotation, limits.translation


def _read_result(result: Any) -> Aligned:
    return Aligned(
        T_target_source=np.array(result.T_target_source, dtype=np.float64),
        converged=bool(result.converged),
        iterations=int(result.iterations),
        inliers=int(result.num_inliers),
        error=float(result.error),
        hessian=np.asarray(result.H, dtype=np.float64)[TRANSLATION_FIRST[:, None], TRANSLATION_FIRST],
        gradient=np.asarray(result.b, dtype=np.float64).reshape(6)[TRANSLATION_FIRST],
    )
