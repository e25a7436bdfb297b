"""Lidar odometry: scans of a moving sensor are aligned to a map of the previous scans.

The voxel size is chosen from the first two scans. Scans without a match have no pose; after some seconds
without a match a new map starts at the extrapolated pose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import rotations, se3
from transect.types import PointCloud

from ..clouds.deskewing import OFFSET_FIELD, point_offsets
from ..clouds.voxels import VoxelSums
from ..registration.gicp import (
    HISTORY_SCANS,
    AlignmentLimits,
    AlignmentResult,
    Method,
    PreparedCloud,
    VoxelMap,
    align,
    count_voxels,
    prepare,
)
from .lidar_sweep import SWEEP, LidarSweepSettings, ScanTrajectory
from .scan_to_map import LidarScan, LocalMap, ScanPose, ScanToMap, ScanToMapSettings

VOXEL_SIZES_M = (0.4, 0.5, 0.63, 0.8, 1.0)  # candidates, the finest first
NO_OVERLAP, NOT_CONVERGED = "no overlap with the map", "the alignment did not converge"
RESTARTED = "restarted"

NewMap = Callable[[float, int], LocalMap]
"""Makes an empty map, from the voxel size (m) and the number of parts in which each scan is inserted."""


@dataclass(frozen=True)
class LidarOdometrySettings:
    """Downsampling and acceptance of scans."""

    voxel_m: float = 0.0  # 0: the finest that suits the first two scans
    min_range_m: float = 1.0  # nearer returns are of the vehicle, or fog
    deskew: bool = True
    min_points: int = 100
    min_inlier_ratio: float = 0.4  # half of this if the match agrees with the predicted pose
    min_first_inlier_ratio: float = 0.5  # of the second scan; below it larger voxels are tried
    # A new map starts if the time without a match is longer than both of these.
    max_lost_s: float = 2.0
    max_lost_periods: int = 20
    sweep: LidarSweepSettings = SWEEP


@dataclass(frozen=True, eq=False)
class LidarMotion:
    """Result of one scan; without a match there is a reason instead of a pose."""

    pose: Floats | None  # T_odom_lidar (4, 4) at the scan's time; odom is the lidar at the first scan
    velocity: Floats | None = None  # (6,) m/s and rad/s, in the axes of the lidar; not of the first scan
    converged: bool | None = None
    inlier_ratio: float | None = None
    degeneracy: float | None = None  # smallest over largest eigenvalue of the Hessian; 0: unconstrained
    covariance: Floats | None = None  # (6, 6) of the motion since the last pose; from the sixth scan on
    reason: str = ""  # why there is no pose


def new_voxel_map(voxel: float, parts: int) -> LocalMap:
    """Return an empty map of one Gaussian per voxel (VGICP)."""
    return VoxelMap(voxel, HISTORY_SCANS * parts)


class LidarOdometer:
    """Estimates the poses of a lidar from its scans."""

    def __init__(
        self, settings: LidarOdometrySettings | None = None, new_map: NewMap = new_voxel_map
    ) -> None:
        self.settings, self.new_map = settings or LidarOdometrySettings(), new_map
        self.voxel = self.settings.voxel_m  # m, given or chosen
        self.period_ns = 0  # shortest time between two scans so far: a revolution of a spinning lidar
        self.has_covariance = False
        self._matcher: ScanToMap | None = None
        self._first: PointCloud | None = None
        self._scan: PointCloud | None = None
        self._last_ns: int | None = None
        self._matched_ns = 0
        self._T_odom_map = np.eye(4)  # the map's frame is that of its first scan
        self._trajectory: ScanTrajectory | None = None
        self._sums: VoxelSums | None = None

    def register(self, points: ArrayLike, t_ns: int, offset_ns: ArrayLike | None = None) -> LidarMotion:
        """Align the next scan.

        Parameters
        ----------
        points : (n, 3) array
            Points, m, in the axes of the lidar.
        t_ns : int
            Time of the scan.
        offset_ns : (n,) array, optional
            Times of the points after that time; by default estimated from the order of the points of a
            spinning lidar.
        """
        fields = {} if offset_ns is None else {OFFSET_FIELD: np.asarray(offset_ns, np.int64)}
        return self.register_cloud(PointCloud(np.asarray(points, np.float64), fields, t_ns))

    def register_cloud(self, cloud: PointCloud) -> LidarMotion:
        """Align the next scan, given as a cloud with its time; see `register`."""
        self._trajectory = None
        scan = self._remove_near(cloud)
        if len(scan) < self.settings.min_points:
            return LidarMotion(None, reason="too few points")
        if self._last_ns is None:
            return self._set_first(scan)
        if scan.t_ns <= self._last_ns:
            return LidarMotion(None, reason="not later than the scan before")
        gap_ns, self._last_ns = scan.t_ns - self._last_ns, scan.t_ns
        self.period_ns = min(self.period_ns or gap_ns, gap_ns)
        lost = self.is_lost(scan.t_ns)
        if self._matcher is not None:
            found = self._matcher.step(self._with_times(scan), lost=lost)
        else:
            found = self._initialise(scan)
        if not found.accepted and lost:
            return self._restart(scan)
        return self._accept(found, scan)

    def is_lost(self, t_ns: int) -> bool:
        """Return whether the last match is too long before a time, ns; not before the first scan."""
        limit_ns = max(self.settings.max_lost_s * NS, self.settings.max_lost_periods * self.period_ns)
        return self._last_ns is not None and t_ns - self._matched_ns > limit_ns

    def poses_at(self, offset_ns: Ints) -> Floats | None:
        """Return ``T_odom_lidar`` (n, 4, 4) at times (n,) in ns after the time of the last scan.

        None if that had no match, and for the first scan, whose motion is known with the second.
        """
        return None if self._trajectory is None else self._T_odom_map @ self._trajectory.poses_at(offset_ns)

    def deskewed_points(self) -> Floats:
        """Return the points (n, 3) of the last scan with a pose, as measured at its time."""
        if self._scan is None:
            return np.zeros((0, 3))
        if self._trajectory is None:
            return self._scan.points
        scan = self._with_times(self._scan)
        return scan.points if scan.offset_ns is None else self._trajectory.deskew(scan.points, scan.offset_ns)

    def map_points(self) -> tuple[Ints, Floats] | None:
        """Return numbers of points (n,) per voxel and their means (n, 3); None before the first match."""
        return None if self._sums is None else self._sums.means()

    @property
    def has_scans(self) -> bool:
        """Whether there was a scan."""
        return self._last_ns is not None

    def _set_first(self, scan: PointCloud) -> LidarMotion:
        """Set the first scan: its pose is the identity, and its motion is known with the second."""
        self._first = self._scan = scan
        self._last_ns = self._matched_ns = scan.t_ns
        return LidarMotion(np.eye(4), converged=True, inlier_ratio=1.0)

    def _restart(self, scan: PointCloud) -> LidarMotion:
        """Start a new map with a scan at its extrapolated pose."""
        if self._matcher is not None:
            self._T_odom_map = self._T_odom_map @ self._matcher.extrapolate(self._with_times(scan))
        self._first, self._matcher, self._matched_ns = scan, None, scan.t_ns
        return LidarMotion(None, reason=RESTARTED)

    def _initialise(self, second: PointCloud) -> ScanPose:
        """Align the second scan to the first, with the finest voxels in which they overlap."""
        assert self._first is not None
        first, scan = self._with_times(self._first), self._with_times(second)
        finest = choose_voxel_size(self._first.points)
        given = self.settings.voxel_m
        attempts: list[tuple[ScanToMap, ScanPose]] = []
        for voxel in (given,) if given else VOXEL_SIZES_M[VOXEL_SIZES_M.index(finest) :]:
            matcher = self._new_matcher(first, voxel)
            attempts.append((matcher, matcher.step(scan)))
            if (
                attempts[-1][1].accepted
                and attempts[-1][1].fit.inlier_ratio >= self.settings.min_first_inlier_ratio
            ):
                break
        matcher, found = max(attempts, key=lambda each: (each[1].accepted, each[1].fit.inlier_ratio))
        self.voxel = matcher.settings.voxel
        if found.accepted:
            self._matcher, self._first = matcher, None
            self._sums = self._sums or VoxelSums(self.voxel)
            self._sums.add(se3.apply(self._T_odom_map, matcher.first_points))
        return found

    def _new_matcher(self, first: LidarScan, voxel: float) -> ScanToMap:
        """Return a matcher with the first scan, whose point times depend on the period."""
        local_map = self.new_map(voxel, 1 if first.offset_ns is None else self.settings.sweep.slices)
        settings = ScanToMapSettings(voxel, self.settings.min_inlier_ratio, sweep=self.settings.sweep)
        matcher = ScanToMap(local_map, settings)
        matcher.set_first(first)
        return matcher

    def _accept(self, found: ScanPose, scan: PointCloud) -> LidarMotion:
        """Return the result of a scan; one without a match has no pose."""
        alignment, ratio = found.fit.alignment, found.fit.inlier_ratio
        if not found.accepted:
            lost = ratio < self.settings.min_inlier_ratio
            reason = NO_OVERLAP if lost else NOT_CONVERGED
            return LidarMotion(None, converged=alignment.converged, inlier_ratio=ratio, reason=reason)
        assert self._sums is not None
        self._trajectory, self._scan = found.trajectory, scan
        self._sums.add(se3.apply(self._T_odom_map, found.points))
        self._matched_ns = scan.t_ns
        self.has_covariance = self.has_covariance or found.covariance is not None
        return LidarMotion(
            self._T_odom_map @ found.pose,
            found.fit.velocity,
            alignment.converged,
            ratio,
            _degeneracy(alignment, found.points),
            found.covariance,
        )

    def _remove_near(self, cloud: PointCloud) -> PointCloud:
        """Return the returns beyond the smallest range; NaN are dropped."""
        points = np.asarray(cloud.points, dtype=np.float64)
        is_far = np.einsum("ij,ij->i", points, points) > self.settings.min_range_m**2
        fields = {name: cloud.fields[name][is_far] for name in cloud.fields if name == OFFSET_FIELD}
        # Four times as fast as points[kept].
        return PointCloud(points.compress(is_far, axis=0), fields, cloud.t_ns, cloud.frame)

    def _with_times(self, cloud: PointCloud) -> LidarScan:
        offset_ns = point_offsets(cloud, self.period_ns) if self.settings.deskew else None
        return LidarScan(cloud.points, offset_ns, cloud.t_ns)


def choose_voxel_size(points: Floats, max_points: int = 7000) -> float:
    """Return the finest voxel size (m) that leaves at most `max_points` of points (n, 3).

    More points are slower, and do not improve poses.
    """
    sizes = (size for size in VOXEL_SIZES_M if count_voxels(points, size) <= max_points)
    return next(sizes, VOXEL_SIZES_M[-1])


def _degeneracy(alignment: AlignmentResult, points: Floats) -> float:
    """Return the smallest over the largest eigenvalue; rotations are scaled by the points' radius."""
    radius = float(np.sqrt(3 * np.mean((points - alignment.T_target_source[:3, 3]) ** 2)))
    scale = np.repeat([1.0, 1.0 / max(radius, 1e-9)], 3)
    values = np.linalg.eigvalsh(scale[:, None] * alignment.hessian * scale)
    return float(max(values[0], 0.0) / values[-1])


class KeyframeSubmap:
    """Map of the last keyframes, rebuilt with each of them, to which scans are aligned.

    Parameters
    ----------
    voxel : float
        Voxel size of the merged keyframes, m.
    keyframes : int
        Largest number of keyframes.
    keyframe_distance_m, keyframe_angle_rad : float
        A scan further from the last keyframe becomes one.
    method : {"PLANE_ICP", "GICP", "ICP"}
    """

    def __init__(
        self,
        voxel: float,
        keyframes: int,
        keyframe_distance_m: float,
        keyframe_angle_rad: float,
        method: Method = "PLANE_ICP",
    ) -> None:
        self.voxel = voxel
        self.keyframes = keyframes
        self.keyframe_distance_m = keyframe_distance_m
        self.keyframe_angle_rad = keyframe_angle_rad
        self.method: Method = method
        self._poses: list[Floats] = []
        self._points: list[Floats] = []
        self._target: PreparedCloud | None = None

    def align(
        self, scan: PreparedCloud, guess: ArrayLike, limits: AlignmentLimits | None = None
    ) -> AlignmentResult:
        """Align a scan to the keyframes, starting from ``T_map_scan`` (4, 4)."""
        if self._target is None:
            self._target = prepare(np.concatenate(self._points), self.voxel)
        return align(self._target, scan, guess, self.method, limits)

    def insert(self, parts: Sequence[PreparedCloud], poses: Floats) -> None:
        """Add a scan by the poses ``T_map_part`` (k, 4, 4) of its parts, if far from the last keyframe."""
        T_map_scan = np.array(poses[len(poses) // 2])
        if self._poses and not self._is_far(se3.invert(self._poses[-1]) @ T_map_scan):
            return
        points = np.concatenate([se3.apply(T, part.points) for T, part in zip(poses, parts, strict=True)])
        self._poses = [*self._poses, T_map_scan][-self.keyframes :]
        self._points = [*self._points, points][-self.keyframes :]
        self._target = None

    def _is_far(self, motion: Floats) -> bool:
        angle = np.linalg.norm(rotations.rotation_vector_from_matrix(motion[:3, :3]))
        return bool(
            np.linalg.norm(motion[:3, 3]) > self.keyframe_distance_m or angle > self.keyframe_angle_rad
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> KeyframeSubmap:
        # The library's clouds and trees cannot be copied; rebuilt from the same points they are identical.
        copy = KeyframeSubmap(
            self.voxel, self.keyframes, self.keyframe_distance_m, self.keyframe_angle_rad, self.method
        )
        copy._poses, copy._points = list(self._poses), list(self._points)
        return copy
