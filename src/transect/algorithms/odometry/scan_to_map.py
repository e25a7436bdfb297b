"""Scan-to-map registration of a lidar, and the uncertainty of its motion.

A scan is deskewed to its *middle*, so that the effects of a wrong velocity on both halves nearly cancel.
Deskewed to its end with the motion since the last scan, an error of a pose would alternate in sign from scan
to scan; deskewed to its start it would grow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import se3

from ..clouds.deskewing import deskew
from ..registration.gicp import (
    AlignmentLimits,
    AlignmentResult,
    PreparedCloud,
    align,
    downsample_cloud,
    prepare,
)
from .lidar_sweep import (
    SWEEP,
    LidarSweepSettings,
    PreviousScan,
    ScanFit,
    ScanSlice,
    ScanTrajectory,
    fit_scan,
    orthonormalise,
    slice_scan,
)


class LocalMap(Protocol):
    """Map that scans are aligned to and inserted in."""

    def align(
        self, scan: PreparedCloud, guess: ArrayLike, limits: AlignmentLimits | None = None
    ) -> AlignmentResult: ...

    def insert(self, parts: Sequence[PreparedCloud], poses: Floats) -> None: ...


@dataclass(frozen=True, eq=False)
class LidarScan:
    """Points (n, 3) of a scan in the sensor's frame, measured at times (n,) in ns after the scan's time."""

    points: Floats
    offset_ns: Ints | None
    t_ns: int

    @property
    def half_ns(self) -> int:
        """Time from the scan's time to its middle."""
        return 0 if self.offset_ns is None else int(self.offset_ns.max(initial=0)) // 2

    @property
    def middle_ns(self) -> int:
        """Time of the middle of the scan."""
        return self.t_ns + self.half_ns

    @property
    def seconds(self) -> Floats | None:
        """Times (n,) of the points after the middle."""
        return None if self.offset_ns is None else (self.offset_ns - self.half_ns) / NS

    def deskewed(self, velocity: Floats) -> Floats:
        """Return points (n, 3) as at the middle, for a constant velocity (6,) in the sensor's frame."""
        return self.points if self.seconds is None else deskew(self.points, self.seconds, velocity)


@dataclass(frozen=True, eq=False)
class ScanToMapSettings:
    """Downsampling of scans, and acceptance of matches."""

    voxel: float  # m
    min_inlier_ratio: float  # of points with a correspondence
    # Relaxes the ratio if the match agrees with the predicted pose, e.g. over a crest with mostly new ground.
    predicted_ratio_factor: float = 0.5
    lost_ratio_factor: float = 0.7  # of the last inlier ratio, which a lost lidar needs
    min_step_s: float = 0.01  # between the middles of scans: scans without point times may overlap

    # Alignment: largest distance of correspondences, and convergence
    correspondence_voxels: float = 2.0
    max_iterations: int = 50
    min_step_rad: float = 1e-3
    min_step_m: float = 1e-3

    # Alignment without a motion estimate: larger voxels, and decreasing distances of correspondences
    initial_voxel_factor: float = 2.0
    initial_correspondence_voxels: tuple[float, ...] = (6.0, 2.0)
    min_distortion_m: float = 0.02  # range noise of a lidar; smaller distortions of a scan are not corrected

    # Covariance from third differences of poses (`MotionNoise`)
    max_differences: int = 30
    min_differences: int = 3

    sweep: LidarSweepSettings = SWEEP

    def limits(self, max_distance_m: float) -> AlignmentLimits:
        """Return the limits of an alignment, given the largest distance of correspondences."""
        return AlignmentLimits(max_distance_m, self.max_iterations, self.min_step_rad, self.min_step_m)


@dataclass(frozen=True, eq=False)
class ScanPose:
    """Result of a scan."""

    pose: Floats  # T_map_sensor (4, 4) at the scan's time
    fit: ScanFit
    trajectory: ScanTrajectory
    points: Floats  # (n, 3) downsampled and deskewed, in the map's frame
    accepted: bool  # enough inliers and convergence; otherwise nothing else changed
    covariance: Floats | None  # (6, 6) of the motion since the last scan, in the sensor's axes, if known


class ScanToMap:
    """Poses of scans relative to a growing map, which is empty at first."""

    def __init__(self, local_map: LocalMap, settings: ScanToMapSettings) -> None:
        self.map, self.settings = local_map, settings
        self.pose, self.velocity, self.middle_ns = np.eye(4), np.zeros(6), 0
        self.motion_noise = MotionNoise(settings.max_differences, settings.min_differences)
        self.first: LidarScan | None = None
        self.last_points: Floats | None = None
        self.inlier_ratio = 0.0
        self.last_failed = True
        self.first_points = np.zeros((0, 3))  # of the first scan, deskewed, in the map's frame

    def set_first(self, first: LidarScan) -> None:
        """Set the first scan, whose pose is the identity; its motion is known with the second."""
        self.first = first

    def step(self, scan: LidarScan, *, lost: bool = False) -> ScanPose:
        """Align the next scan; `lost` if its pose is unknown."""
        if self.first is not None:
            self._initialise(self.first, scan)
            self.first = None
        seconds = max((scan.middle_ns - self.middle_ns) / NS, self.settings.min_step_s)
        found = self._fit(scan, seconds, lost=lost)
        pose, points = found.alignment.T_target_source, found.points
        accepted = found.is_accepted(self._min_inlier_ratio(found, scan, seconds, lost=lost))
        self.last_failed = not accepted
        if accepted:
            self.inlier_ratio = found.inlier_ratio
            self.motion_noise.add(PreviousScan(self.pose, seconds).velocity_to(pose), seconds)
            self.map.insert(found.clouds, pose @ found.corrections)
            self.pose, self.velocity, self.middle_ns = pose, found.velocity, scan.middle_ns
            self.last_points = points
        trajectory = found.trajectory(scan.half_ns)
        [origin] = trajectory.poses_at(np.zeros(1, np.int64))
        covariance = self.motion_noise.covariance(found.alignment) if accepted else None
        return ScanPose(origin, found, trajectory, se3.apply(pose, points), accepted, covariance)

    def extrapolate(self, scan: LidarScan) -> Floats:
        """Return ``T_map_sensor`` (4, 4) at a scan's time, extrapolated at the last velocity."""
        return self.pose @ se3.exp(self.velocity * ((scan.t_ns - self.middle_ns) / NS))

    def _min_inlier_ratio(self, found: ScanFit, scan: LidarScan, seconds: float, *, lost: bool) -> float:
        """Return the smallest inlier ratio of an accepted fit; it is lower at the predicted pose.

        Over a crest 36 % of the points of a scan had a correspondence at the correct pose. On rough ground
        42 % had one at a pose 48 m off, and 95 % at the correct pose.
        """
        min_ratio = self.settings.min_inlier_ratio
        predicted = self.pose @ se3.exp(self.velocity * seconds)
        correction = se3.log(se3.invert(predicted) @ found.alignment.T_target_source)
        as_predicted = self._displacement(correction, scan) < self.settings.voxel
        if as_predicted and not lost:
            return min_ratio if self.last_failed else self.settings.predicted_ratio_factor * min_ratio
        if lost or self.last_failed:
            return max(min_ratio, self.settings.lost_ratio_factor * self.inlier_ratio)
        return min_ratio

    def _fit(self, scan: LidarScan, seconds: float, *, lost: bool) -> ScanFit:
        """Fit a scan from the predicted pose, else after a coarse alignment; again if it was distorted."""
        previous = PreviousScan(self.pose, seconds)
        limits = self.settings.limits(self.settings.correspondence_voxels * self.settings.voxel)
        motion = se3.exp(self.velocity * seconds)
        slices = self._slice(scan, self.velocity)
        found = fit_scan(
            self.map, slices, self.pose @ motion, self.velocity, previous, limits, self.settings.sweep
        )
        min_ratio = self._min_inlier_ratio(found, scan, seconds, lost=lost)
        if not found.is_accepted(min_ratio) and self.last_points is not None:
            points = np.concatenate([each.cloud.points for each in slices])
            guess = self.pose @ self._align_initially(self.last_points, points, motion)
            retry = fit_scan(self.map, slices, guess, self.velocity, previous, limits, self.settings.sweep)
            found = max(found, retry, key=lambda each: (each.alignment.converged, each.inlier_ratio))
        if self._distortion(found.velocity - self.velocity, scan) > self.settings.voxel / 2:
            slices, guess = self._slice(scan, found.velocity), found.alignment.T_target_source
            found = fit_scan(self.map, slices, guess, found.velocity, previous, limits, self.settings.sweep)
        return found

    def _slice(self, scan: LidarScan, velocity: Floats) -> list[ScanSlice]:
        """Return the slices of a deskewed scan."""
        return slice_scan(scan.deskewed(velocity), scan.seconds, self.settings.voxel, self.settings.sweep)

    def _initialise(self, first: LidarScan, second: LidarScan) -> None:
        """Estimate the motion between the first two scans, deskew the first one, and start the map.

        Both scans have the same distortion, so the motion between them is correct except for the time that
        the sensor's own rotation adds or removes between two measurements of the same point. If that matters,
        they are deskewed and aligned again.
        """
        seconds = max((second.middle_ns - first.middle_ns) / NS, self.settings.min_step_s)
        velocity = se3.log(self._align_initially(first.points, second.points, np.eye(4))) / seconds
        revolutions = float(np.linalg.norm(velocity[3:])) * seconds / (2 * np.pi)
        if self._distortion(revolutions * velocity, first) > self.settings.min_distortion_m:
            old, new = first.deskewed(velocity), second.deskewed(velocity)
            velocity = se3.log(self._align_initially(old, new, se3.exp(velocity * seconds))) / seconds
        downsampled = downsample_cloud(first.deskewed(velocity), self.settings.voxel)
        self.pose = se3.exp(velocity * (first.half_ns / NS))
        self.velocity, self.middle_ns, self.last_points = velocity, first.middle_ns, downsampled.points
        self.map.insert([downsampled], self.pose[None])
        self.first_points = se3.apply(self.pose, downsampled.points)

    def _align_initially(self, old: Floats, new: Floats, guess: Floats) -> Floats:
        """Return the motion (4, 4) from points (n, 3) to points (m, 3) with distant correspondences."""
        voxel = self.settings.initial_voxel_factor * self.settings.voxel
        target, source = prepare(old, voxel), downsample_cloud(new, voxel)
        for voxels in self.settings.initial_correspondence_voxels:
            limits = self.settings.limits(voxels * voxel)
            guess = orthonormalise(align(target, source, guess, "GICP", limits).T_target_source)
        return guess

    def _distortion(self, change: Floats, scan: LidarScan) -> float:
        """Return the displacement (m) of the last point at the median range by a change of velocity (6,)."""
        return self._displacement(change, scan) * scan.half_ns / NS

    @staticmethod
    def _displacement(twist: Floats, scan: LidarScan) -> float:
        """Return the displacement (m) at the median range by a small motion (6,)."""
        middle = float(np.median(np.linalg.norm(scan.points[::16], axis=1)))
        return float(np.linalg.norm(twist[:3]) + np.linalg.norm(twist[3:]) * middle)


class MotionNoise:
    """Covariance of the motion from third differences of poses.

    The Hessian of an alignment assumes independent errors of all points. They are correlated: vibration
    during a scan distorts whole sectors, and neighbouring points share a voxel. The resulting variances are a
    thousand times too small, and only indicate directions in which a scan can slide.

    Common errors displace each pose independently, while the motion itself changes slowly. Third differences
    of the poses, which cancel a constant acceleration, therefore consist of these errors, with twenty times
    their variance (1 + 9 + 9 + 1). They include motion that is too fast for the rate of scans, as they
    should: deskewing ignores it.
    """

    def __init__(self, max_differences: int, min_differences: int) -> None:
        self.min_differences = min_differences
        self._velocities: deque[Floats] = deque(maxlen=3)
        self._squared_differences: deque[Floats] = deque(maxlen=max_differences)

    def add(self, velocity: Floats, seconds: float) -> None:
        """Add the velocity (6,) of the sensor since the last scan, m/s and rad/s in its own axes."""
        self._velocities.append(velocity)
        if len(self._velocities) == 3:
            first, second, third = self._velocities
            self._squared_differences.append(((third - 2 * second + first) * seconds) ** 2)

    def covariance(self, alignment: AlignmentResult) -> Floats | None:
        """Return the covariance (6, 6) of the last step in the sensor's axes, m^2 then rad^2.

        It is twice that of a pose, for the two ends. The sum of squares is divided by their number less two:
        the mean of a variance given n squares and no prior.
        """
        count = len(self._squared_differences)
        if count < self.min_differences:
            return None
        third_difference_factor = 20.0  # 1 + 9 + 9 + 1
        common_variance = np.sum(self._squared_differences, axis=0) / (third_difference_factor * (count - 2))
        return 2 * (np.diag(common_variance) + hessian_covariance(alignment))


def hessian_covariance(alignment: AlignmentResult) -> Floats:
    """Return the covariance (6, 6) in the source's axes for independent errors of points."""
    values, vectors = np.linalg.eigh(alignment.hessian)
    values = np.maximum(values, 1e-9 * values[-1])
    variance = 2 * alignment.error / max(3 * alignment.inliers - 6, 1)
    return variance * (vectors / values) @ vectors.T
