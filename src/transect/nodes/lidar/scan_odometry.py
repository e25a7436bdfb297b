"""Where a lidar is by its scans alone: each is aligned to a map of those before."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from transect.algorithms.clouds.deskewing import point_offsets
from transect.algorithms.clouds.voxel_means import VoxelSums
from transect.algorithms.odometry.lidar_odometer import (
    LidarScan,
    LocalMap,
    ScanPose,
    ScanToMap,
    ScanToMapSettings,
)
from transect.algorithms.odometry.lidar_submap import Submap
from transect.algorithms.odometry.lidar_sweep import SLICES, Sweep
from transect.algorithms.registration.gicp import Aligned, Limits, VoxelMap, thinned_size
from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.engine import Node, outputs, param
from transect.engine.ports import Shape
from transect.geometry import se3
from transect.geometry.robust import inflate
from transect.types import PointCloud, Pose, Twist

from .._attempts import Attempts

FRAME = "odom"
VOXELS = (0.4, 0.5, 0.63, 0.8, 1.0)
"""Edges in metres that are tried for a sensor, the finest first."""
ENOUGH_POINTS = 7000
"""Of a thinned scan: more take longer and do not make poses better."""
LOST_S, LOST_PERIODS = 2.0, 20
"""A lidar that found no place for longer than both begins anew, as if it had been carried elsewhere."""
MEETING = 0.5
"""Share of the second scan that must meet voxels of the first: rings far apart need larger ones."""


@outputs
class ScanMotion:
    """What a scan tells.

    Attributes
    ----------
    pose : Pose
        Of the lidar at the scan's time, in the frame that it had at the first scan.
    velocity : Twist
        Of the lidar during the scan, in its own axes; not of the first.
    success : bool
        Whether the scan found its place; without it there is no pose, and the map stays as it was.
    converged : bool
        Whether the alignment came to rest.
    inliers : float
        Share of the thinned points that found a partner in the map.
    degeneracy : float
        Weakest over strongest direction in which the map holds the scan: near 0 it can slide, as in a tunnel.
    covariance : (6, 6) array
        Of the motion since the pose before: m, then rad, in the axes of the lidar; not before the sixth scan.
        By how unsteady the motion was found (`odometry.unsteadiness`), and how well the map held the scan.
    map : PointCloud
        All scans, thinned; once, at the end.
    scan : PointCloud
        The scan as if all of it had been measured at its time; where `give_scans` asks for it.
    """

    pose: Pose | None = None
    velocity: Twist | None = None
    success: bool | None = None
    converged: bool | None = None
    inliers: float | None = None
    degeneracy: float | None = None
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    map: PointCloud | None = None
    scan: PointCloud | None = None


class ScanOdometry(Node, interface=True):
    """Pose of a lidar by its scans, from its first one on; scans of a moving sensor are straightened."""

    voxel: float = param(
        0.0,
        ge=0,
        le=5,
        unit="m",
        doc="edge length of the voxels to which scans are thinned; 0: chosen from the first two scans",
    )
    near: float = param(
        1.0,
        ge=0,
        unit="m",
        doc="smallest range of the returns that are used; nearer ones are the vehicle, or fog",
    )
    deskew: bool = param(True, doc="whether scans are corrected for the motion during the scan")
    give_scans: bool = param(False, doc="whether straightened scans are given")
    least_points: int = param(100, ge=10, doc="smallest number of points of a scan")
    least_share: float = param(
        0.4,
        gt=0,
        lt=1,
        doc="smallest share of points that must find a partner in the map; half of it where it was foreseen",
    )
    max_failed_ratio: float = param(
        0.5, ge=0, le=1, doc="largest ratio of failed attempts in a result that can be trusted"
    )

    def reset(self) -> None:
        self.odometer: ScanToMap | None = None
        self.first: PointCloud | None = None
        self.period_ns = 0
        self.last_ns: int | None = None
        self.found_ns = 0
        self.base = np.eye(4)
        self.sweep: Sweep | None = None
        self.edge = self.voxel
        self.sums: VoxelSums | None = None
        self.judged = False
        self.attempts = Attempts(self.max_failed_ratio)

    def new_map(self, parts: int) -> LocalMap:
        """Return an empty map to align scans to, which are inserted in so many parts each.

        Called when `edge` says how fine it is.
        """
        raise NotImplementedError

    def process(self, cloud: PointCloud) -> ScanMotion | None:
        motion = self._process(cloud)
        self.attempts.add(bool(motion.success))
        return motion

    def _process(self, cloud: PointCloud) -> ScanMotion:
        self.sweep = None
        scan = self._drop_near(cloud)
        if len(scan) < self.least_points:
            return self._refuse("too few points")
        if self.last_ns is None:
            return self._begin(scan)
        if scan.t_ns <= self.last_ns:
            return self._refuse("not later than the scan before")
        gap_ns, self.last_ns = scan.t_ns - self.last_ns, scan.t_ns
        self.period_ns = min(self.period_ns or gap_ns, gap_ns)
        lost = self.is_lost(scan.t_ns)
        if self.odometer is not None:
            step = self.odometer.step(self._scan(scan), lost=lost)
        else:
            step = self._start(scan)
        if not step.believed and lost:
            return self._begin_anew(scan)
        return self._report(step, scan)

    def finish(self) -> ScanMotion | None:
        """Return the map."""
        self.attempts.report(self.ctx, "scans did not find their place in the map", "the path")
        if self.last_ns is None:
            return None
        if self.sums is None:
            return self.ctx.skip("only one scan found its place: no map")
        count, points = self.sums.means()
        if not self.judged:
            self.ctx.skip("fewer than six scans found their place: no covariance")
        return ScanMotion(map=PointCloud(points.astype(np.float32), {"count": count}, frame=FRAME))

    def _begin(self, scan: PointCloud) -> ScanMotion:
        """Take the first scan: its place is the origin, and its motion is not known before a second fits."""
        self.first, self.last_ns, self.found_ns = scan, scan.t_ns, scan.t_ns
        origin = Pose(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), scan.t_ns, FRAME, scan.frame)
        given = PointCloud(scan.points.astype(np.float32), t_ns=scan.t_ns, frame=scan.frame)
        kept = given if self.give_scans else None
        return ScanMotion(pose=origin, success=True, converged=True, inliers=1.0, scan=kept)

    def is_lost(self, t_ns: int) -> bool:
        """Tell whether too long before a time, ns, a scan found its place; not before the first."""
        return self.last_ns is not None and t_ns - self.found_ns > max(
            LOST_S * NS, LOST_PERIODS * self.period_ns
        )

    def _begin_anew(self, scan: PointCloud) -> ScanMotion:
        """Begin a new map with a scan, which is taken to be where the lidar should be by its velocity."""
        if self.odometer is not None:
            self.base = self.base @ self.odometer.forecast(self._scan(scan))
        self.first, self.odometer, self.found_ns = scan, None, scan.t_ns
        self.ctx.log("no scan found its place for long: begun anew")
        return self._refuse("begun anew")

    def _start(self, second: PointCloud) -> ScanPose:
        """Lay a second scan on the first, in the finest voxels in which they meet; go on if it fits."""
        assert self.first is not None
        first, scan = self._scan(self.first), self._scan(second)
        finest = choose_edge(self.first.points)
        tried: list[tuple[ScanToMap, ScanPose]] = []
        for edge in (self.voxel,) if self.voxel else VOXELS[VOXELS.index(finest) :]:
            self.edge = edge
            odometer = self._new_odometer(first)
            tried.append((odometer, odometer.step(scan)))
            if tried[-1][1].believed and tried[-1][1].fitted.share >= MEETING:
                break
        odometer, step = max(tried, key=lambda each: (each[1].believed, each[1].fitted.share))
        self.edge = odometer.settings.voxel
        if step.believed:
            self.odometer, self.first = odometer, None
            self.sums = self.sums or VoxelSums(self.edge)
            self.sums.add(se3.apply(self.base, odometer.begun))
        return step

    def _new_odometer(self, first: LidarScan) -> ScanToMap:
        """Return an odometer that has the first scan, for whose times the period had to be known."""
        limits = Limits(2 * self.edge, 50, 1e-3, 1e-3)
        local_map = self.new_map(1 if first.offset_ns is None else SLICES)
        odometer = ScanToMap(local_map, ScanToMapSettings(self.edge, self.least_share, limits))
        odometer.begin(first)
        return odometer

    def poses_at(self, offset_ns: Ints) -> Floats | None:
        """Return ``T_odom_lidar`` (n, 4, 4) so many ns (n,) after the time of the last scan.

        None if that found no place, and of the first: how the lidar moved is known with the second.
        """
        return None if self.sweep is None else self.base @ self.sweep.poses_at(offset_ns)

    def _report(self, step: ScanPose, scan: PointCloud) -> ScanMotion:
        """Return what a step came to; a scan that did not find its place has no pose."""
        aligned, share = step.fitted.aligned, step.fitted.share
        if not step.believed:
            lost = share < self.least_share
            self.ctx.skip("no overlap with the map" if lost else "the alignment did not come to rest")
            return ScanMotion(success=False, converged=aligned.converged, inliers=share)
        assert self.sums is not None
        self.sweep = step.sweep
        self.sums.add(se3.apply(self.base, step.points))
        self.found_ns, self.judged = scan.t_ns, self.judged or step.covariance is not None
        turned, place = se3.to_quaternion(self.base @ step.pose)
        velocity = step.fitted.velocity
        return ScanMotion(
            pose=Pose(place, turned, scan.t_ns, FRAME, scan.frame),
            velocity=Twist(velocity[:3], velocity[3:], t_ns=scan.t_ns, frame=scan.frame),
            success=True,
            converged=aligned.converged,
            inliers=share,
            degeneracy=_degeneracy(aligned, step.points),
            covariance=inflate(step.covariance, self.ctx.trust("cloud")),
            scan=self._straighten(step.sweep, scan) if self.give_scans else None,
        )

    def _straighten(self, sweep: Sweep, cloud: PointCloud) -> PointCloud:
        """Return a scan as it was at its time."""
        scan = self._scan(cloud)
        moved = scan.points if scan.offset_ns is None else sweep.straighten(scan.points, scan.offset_ns)
        return PointCloud(moved.astype(np.float32), t_ns=cloud.t_ns, frame=cloud.frame)

    def _refuse(self, reason: str) -> ScanMotion:
        self.ctx.skip(reason)
        return ScanMotion(success=False)

    def _drop_near(self, cloud: PointCloud) -> PointCloud:
        """Return the returns that are not too near; NaN are none."""
        points = np.asarray(cloud.points, dtype=np.float64)
        kept = np.einsum("ij,ij->i", points, points) > self.near**2
        fields = {name: cloud.fields[name][kept] for name in cloud.fields if name == "t_offset_ns"}
        # Four times as fast as points[kept].
        return PointCloud(points.compress(kept, axis=0), fields, cloud.t_ns or self.ctx.time, cloud.frame)

    def _scan(self, cloud: PointCloud) -> LidarScan:
        offset_ns = point_offsets(cloud, self.period_ns) if self.deskew else None
        return LidarScan(cloud.points, offset_ns, cloud.t_ns)


class VoxelGaussians(ScanOdometry):
    """To a map of one Gaussian per voxel, which forgets what it has not seen for long (VGICP, small_gicp)."""

    history: int = param(
        300, ge=10, doc="number of scans after which an unseen voxel is removed from the map"
    )

    def new_map(self, parts: int) -> LocalMap:
        return VoxelMap(self.edge, self.history * parts)


class PointToPlane(ScanOdometry):
    """To the planes around the points of the last keyframes (small_gicp)."""

    keyframes: int = param(20, ge=1, doc="number of keyframes in the map")
    spacing: float = param(
        1.0, gt=0, unit="m", doc="distance from the last keyframe at which a scan becomes a keyframe"
    )
    turning: float = param(
        0.2, gt=0, unit="rad", doc="rotation from the last keyframe at which a scan becomes a keyframe"
    )

    def new_map(self, parts: int) -> LocalMap:
        return Submap(self.edge / 2, self.keyframes, self.spacing, self.turning)


def choose_edge(points: Floats) -> float:
    """Return the finest voxel (m) that leaves few enough of the points (n, 3) of a scan."""
    return next((edge for edge in VOXELS if thinned_size(points, edge) <= ENOUGH_POINTS), VOXELS[-1])


def _degeneracy(aligned: Aligned, points: Floats) -> float:
    """Return the weakest over the strongest eigenvalue; rotations are scaled by the points' radius."""
    radius = float(np.sqrt(3 * np.mean((points - aligned.T_target_source[:3, 3]) ** 2)))
    scale = np.repeat([1.0, 1.0 / max(radius, 1e-9)], 3)
    values = np.linalg.eigvalsh(scale[:, None] * aligned.hessian * scale)
    return float(max(values[0], 0.0) / values[-1])
