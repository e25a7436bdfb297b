"""Lidar odometry: scans of a moving sensor, aligned to a map of the scans before.

The voxel size is chosen from the first two scans. Scans that match nothing have no pose; after
`LOST_S` without a match a new map begins where the lidar should be by its velocity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import se3
from transect.types import PointCloud

from ..clouds.deskewing import OFFSET_FIELD, point_offsets
from ..clouds.voxels import VoxelSums
from ..registration.gicp import Aligned, Limits, VoxelMap, thinned_size
from .lidar_sweep import SLICES, Sweep
from .scan_to_map import LidarScan, LocalMap, ScanPose, ScanToMap, ScanToMapSettings

VOXEL_SIZES_M = (0.4, 0.5, 0.63, 0.8, 1.0)
"""Tried for a sensor, the finest first."""
MAX_POINTS = 7000
"""Of a downsampled scan: more take longer and do not make poses better."""
LOST_S, LOST_PERIODS = 2.0, 20
"""A lidar without a match for longer than both restarts, as if it had been carried elsewhere."""
MIN_FIRST_RATIO = 0.5
"""Ratio of the second scan that must meet voxels of the first: rings far apart need larger ones."""
HISTORY_SCANS = 300
"""Scans after which an unseen voxel is removed from the default map."""

NO_OVERLAP, NOT_CONVERGED = "no overlap with the map", "the alignment did not come to rest"
RESTARTED = "begun anew"

NewMap = Callable[[float, int], LocalMap]
"""Makes an empty map, by the voxel size (m) and the number of parts in which each scan is inserted."""


@dataclass(frozen=True)
class LidarOdometrySettings:
    """What scans must be like, and how they are downsampled."""

    voxel_m: float = 0.0  # 0: chosen from the first two scans
    min_range_m: float = 1.0  # nearer returns are the vehicle, or fog
    deskew: bool = True
    min_points: int = 100
    min_inlier_ratio: float = 0.4  # half of it suffices where the match agrees with the predicted pose


@dataclass(frozen=True, eq=False)
class LidarMotion:
    """The result of one scan; without a match there is a reason instead of a pose."""

    pose: Floats | None  # T_odom_lidar (4, 4) at the scan's time; odom is the lidar at the first scan
    velocity: Floats | None = None  # (6,) m/s and rad/s, in the axes of the lidar; not of the first scan
    converged: bool | None = None
    inlier_ratio: float | None = None
    degeneracy: float | None = None  # weakest over strongest direction of the match: near 0 it can slide
    covariance: Floats | None = None  # (6, 6) of the motion since the pose before; from the sixth scan on
    reason: str = ""  # why there is no pose


def new_voxel_map(voxel: float, parts: int) -> LocalMap:
    """Return an empty map of one Gaussian per voxel (VGICP)."""
    return VoxelMap(voxel, HISTORY_SCANS * parts)


class LidarOdometer:
    """Estimates the poses of a lidar from its scans alone.

    Parameters
    ----------
    settings : LidarOdometrySettings
    new_map : callable
        Makes the map that scans are aligned to.

    Attributes
    ----------
    voxel : float
        Voxel size in metres, as it was given or chosen.
    period_ns : int
        Shortest time between two scans so far; a revolution of a spinning lidar.
    """

    def __init__(
        self, settings: LidarOdometrySettings | None = None, new_map: NewMap = new_voxel_map
    ) -> None:
        self.settings, self.new_map = settings or LidarOdometrySettings(), new_map
        self.voxel, self.period_ns = self.settings.voxel_m, 0
        self.has_covariance = False
        self._matcher: ScanToMap | None = None
        self._first: PointCloud | None = None
        self._scan: PointCloud | None = None
        self._last_ns: int | None = None
        self._matched_ns = 0
        self._base = np.eye(4)
        self._sweep: Sweep | None = None
        self._sums: VoxelSums | None = None

    def register(self, points: ArrayLike, t_ns: int, offset_ns: ArrayLike | None = None) -> LidarMotion:
        """Align the next scan.

        Parameters
        ----------
        points : (n, 3) array
            Metres, in the axes of the lidar.
        t_ns : int
            Time of the scan.
        offset_ns : (n,) array, optional
            When each point was measured, after that time; without it that is estimated from the order of the
            points of a spinning lidar.
        """
        fields = {} if offset_ns is None else {OFFSET_FIELD: np.asarray(offset_ns, np.int64)}
        return self.register_cloud(PointCloud(np.asarray(points, np.float64), fields, t_ns))

    def register_cloud(self, cloud: PointCloud) -> LidarMotion:
        """Align the next scan, given as a cloud with its time; see `register`."""
        self._sweep = None
        scan = self._drop_near(cloud)
        if len(scan) < self.settings.min_points:
            return LidarMotion(None, reason="too few points")
        if self._last_ns is None:
            return self._begin(scan)
        if scan.t_ns <= self._last_ns:
            return LidarMotion(None, reason="not later than the scan before")
        gap_ns, self._last_ns = scan.t_ns - self._last_ns, scan.t_ns
        self.period_ns = min(self.period_ns or gap_ns, gap_ns)
        lost = self.is_lost(scan.t_ns)
        if self._matcher is not None:
            found = self._matcher.step(self._timed(scan), lost=lost)
        else:
            found = self._start(scan)
        if not found.believed and lost:
            return self._restart(scan)
        return self._accept(found, scan)

    def is_lost(self, t_ns: int) -> bool:
        """Return whether the last match is too long before a time, ns; not before the first scan."""
        limit_ns = max(LOST_S * NS, LOST_PERIODS * self.period_ns)
        return self._last_ns is not None and t_ns - self._matched_ns > limit_ns

    def poses_at(self, offset_ns: Ints) -> Floats | None:
        """Return ``T_odom_lidar`` (n, 4, 4) so many ns (n,) after the time of the last scan.

        None if that had no match, and of the first: how the lidar moved is known with the second.
        """
        return None if self._sweep is None else self._base @ self._sweep.poses_at(offset_ns)

    def deskewed_points(self) -> Floats:
        """Return the points (n, 3) of the last scan with a pose as if all were measured at its time."""
        if self._scan is None:
            return np.zeros((0, 3))
        if self._sweep is None:
            return self._scan.points
        scan = self._timed(self._scan)
        return scan.points if scan.offset_ns is None else self._sweep.straighten(scan.points, scan.offset_ns)

    def map_points(self) -> tuple[Ints, Floats] | None:
        """Return how many points (n,) each voxel has and their means (n, 3); None before the first match."""
        return None if self._sums is None else self._sums.means()

    @property
    def has_begun(self) -> bool:
        """Whether there was a scan."""
        return self._last_ns is not None

    def _begin(self, scan: PointCloud) -> LidarMotion:
        """Take the first scan: its pose is the identity, and its motion is known with the second."""
        self._first = self._scan = scan
        self._last_ns = self._matched_ns = scan.t_ns
        return LidarMotion(np.eye(4), converged=True, inlier_ratio=1.0)

    def _restart(self, scan: PointCloud) -> LidarMotion:
        """Begin a new map with a scan, which is taken to be where the lidar should be by its velocity."""
        if self._matcher is not None:
            self._base = self._base @ self._matcher.forecast(self._timed(scan))
        self._first, self._matcher, self._matched_ns = scan, None, scan.t_ns
        return LidarMotion(None, reason=RESTARTED)

    def _start(self, second: PointCloud) -> ScanPose:
        """Align a second scan to the first, in the finest voxels in which they meet; go on if it matches."""
        assert self._first is not None
        first, scan = self._timed(self._first), self._timed(second)
        finest = choose_voxel_size(self._first.points)
        given = self.settings.voxel_m
        tried: list[tuple[ScanToMap, ScanPose]] = []
        for voxel in (given,) if given else VOXEL_SIZES_M[VOXEL_SIZES_M.index(finest) :]:
            matcher = self._new_matcher(first, voxel)
            tried.append((matcher, matcher.step(scan)))
            if tried[-1][1].believed and tried[-1][1].fitted.share >= MIN_FIRST_RATIO:
                break
        matcher, found = max(tried, key=lambda each: (each[1].believed, each[1].fitted.share))
        self.voxel = matcher.settings.voxel
        if found.believed:
            self._matcher, self._first = matcher, None
            self._sums = self._sums or VoxelSums(self.voxel)
            self._sums.add(se3.apply(self._base, matcher.begun))
        return found

    def _new_matcher(self, first: LidarScan, voxel: float) -> ScanToMap:
        """Return a matcher that has the first scan, for whose times the period had to be known."""
        limits = Limits(2 * voxel, 50, 1e-3, 1e-3)
        local_map = self.new_map(voxel, 1 if first.offset_ns is None else SLICES)
        settings = ScanToMapSettings(voxel, self.settings.min_inlier_ratio, limits)
        matcher = ScanToMap(local_map, settings)
        matcher.begin(first)
        return matcher

    def _accept(self, found: ScanPose, scan: PointCloud) -> LidarMotion:
        """Return the result of a scan; one without a match has no pose."""
        aligned, ratio = found.fitted.aligned, found.fitted.share
        if not found.believed:
            lost = ratio < self.settings.min_inlier_ratio
            reason = NO_OVERLAP if lost else NOT_CONVERGED
            return LidarMotion(None, converged=aligned.converged, inlier_ratio=ratio, reason=reason)
        assert self._sums is not None
        self._sweep, self._scan = found.sweep, scan
        self._sums.add(se3.apply(self._base, found.points))
        self._matched_ns = scan.t_ns
        self.has_covariance = self.has_covariance or found.covariance is not None
        return LidarMotion(
            self._base @ found.pose,
            found.fitted.velocity,
            aligned.converged,
            ratio,
            _degeneracy(aligned, found.points),
            found.covariance,
        )

    def _drop_near(self, cloud: PointCloud) -> PointCloud:
        """Return the returns that are not too near; NaN are none."""
        points = np.asarray(cloud.points, dtype=np.float64)
        kept = np.einsum("ij,ij->i", points, points) > self.settings.min_range_m**2
        fields = {name: cloud.fields[name][kept] for name in cloud.fields if name == OFFSET_FIELD}
        # Four times as fast as points[kept].
        return PointCloud(points.compress(kept, axis=0), fields, cloud.t_ns, cloud.frame)

    def _timed(self, cloud: PointCloud) -> LidarScan:
        offset_ns = point_offsets(cloud, self.period_ns) if self.settings.deskew else None
        return LidarScan(cloud.points, offset_ns, cloud.t_ns)


def choose_voxel_size(points: Floats) -> float:
    """Return the finest voxel (m) that leaves few enough of the points (n, 3) of a scan."""
    sizes = (size for size in VOXEL_SIZES_M if thinned_size(points, size) <= MAX_POINTS)
    return next(sizes, VOXEL_SIZES_M[-1])


def _degeneracy(aligned: Aligned, points: Floats) -> float:
    """Return the weakest over the strongest eigenvalue; rotations are scaled by the points' radius."""
    radius = float(np.sqrt(3 * np.mean((points - aligned.T_target_source[:3, 3]) ** 2)))
    scale = np.repeat([1.0, 1.0 / max(radius, 1e-9)], 3)
    values = np.linalg.eigvalsh(scale[:, None] * aligned.hessian * scale)
    return float(max(values[0], 0.0) / values[-1])
