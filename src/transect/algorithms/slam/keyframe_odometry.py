"""Odometry as input of SLAM: accumulated between keyframes, and as a prediction for scan matching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import rotations, se3
from transect.types import Pose

from ..registration.scan_matching import compose, flatten_pose, relative_pose
from .place_recognition import MappingSettings, OdometryGapSettings

Link = Literal["connected", "uncertain", "disconnected"]
"""Whether odometry connects two scans; if uncertain, the scans have to match."""


@dataclass
class KeyframeOdometry:
    """Odometry since the last keyframe, with its covariance."""

    settings: MappingSettings
    motion: Floats = field(default_factory=lambda: np.eye(4))
    covariance: Floats = field(default_factory=lambda: np.zeros((6, 6)))
    path_m: float = 0.0
    last_pose: Floats | None = None
    t_ns: int = 0
    periods: list[int] = field(default_factory=list[int])

    def has_gap(self, t_ns: int) -> bool:
        """Return whether a sample follows a gap, or is the first one."""
        if self.last_pose is None:
            return True
        period_ns = float(np.median(self.periods)) if self.periods else 0.0
        return self.settings.gaps.is_gap((t_ns - self.t_ns) / NS, period_ns / NS)

    def start(self, t_ns: int, T_odom_body: Floats) -> None:
        """Start with a pose of unknown motion before it."""
        self.reset()
        self.last_pose, self.t_ns = T_odom_body, t_ns

    def reset(self) -> None:
        """Set the accumulated motion to zero."""
        self.motion, self.covariance, self.path_m = np.eye(4), np.zeros((6, 6)), 0.0

    def add(self, t_ns: int, T_odom_body: Floats, covariance: Floats | None) -> None:
        """Add a pose, with the covariance (6, 6) of the motion since the last one in the axes of the body."""
        assert self.last_pose is not None
        step = se3.invert(self.last_pose) @ T_odom_body
        added = drift_covariance(step, self.settings.odometry_drift) if covariance is None else covariance
        self.covariance = se3.transform_covariance(se3.invert(step), self.covariance) + added
        self.motion = self.motion @ step
        self.path_m += float(np.linalg.norm(step[:3, 3]))
        self.periods = [*self.periods[-self.settings.gaps.period_samples :], t_ns - self.t_ns]
        self.last_pose, self.t_ns = T_odom_body, t_ns

    @property
    def needs_keyframe(self) -> bool:
        """Whether the body moved far enough for a keyframe."""
        angle = np.linalg.norm(rotations.rotation_vector_from_matrix(self.motion[:3, :3]))
        distance = np.linalg.norm(self.motion[:3, 3])
        return bool(
            distance >= self.settings.keyframe_distance_m or angle >= self.settings.keyframe_angle_rad
        )


def drift_covariance(motion: Floats, drift: tuple[float, float]) -> Floats:
    """Return the covariance (6, 6) of a motion by an odometry without covariance."""
    path_m = float(np.linalg.norm(motion[:3, 3]))
    turn = float(np.linalg.norm(rotations.rotation_vector_from_matrix(motion[:3, :3])))
    distance, rotation_sigma = drift[0] * (path_m + 1e-3), drift[1] * np.sqrt(turn**2 + path_m / 10.0 + 1e-6)
    return np.diag([distance**2] * 3 + [rotation_sigma**2] * 3)


@dataclass(frozen=True)
class PredictionSettings:
    """Settings of the prediction by odometry."""

    # Largest motion over a gap in time that is accepted; a larger one is a reset of the odometry.
    max_bridged_m: float = 1.0
    max_bridged_rad: float = 1.0
    max_speed_mps: float = 5.0  # a faster jump without a gap is a reset, too
    min_period_s: float = 0.2  # smallest time to which the speed limit is applied
    max_extrapolation_s: float = 0.5
    max_extrapolation_periods: float = 2.0
    gaps: OdometryGapSettings = field(default_factory=OdometryGapSettings)


class OdometryPrediction:
    """The last two poses of an odometry, from which its pose at the time of a scan is predicted."""

    def __init__(self, settings: PredictionSettings) -> None:
        self.settings = settings
        self.poses: list[tuple[int, Floats]] = []
        self.scan_times_ns: list[int] = []
        self.last_prediction: tuple[int, Floats] | None = None
        self.gap_ns = 0

    def add(self, poses: Sequence[Pose]) -> None:
        """Add poses in order of time."""
        for pose in poses:
            planar = flatten_pose(se3.from_quaternion(pose.orientation, pose.position))
            if np.isfinite(planar).all() and (not self.poses or pose.t_ns > self.poses[-1][0]):
                self.gap_ns = max(self.gap_ns, pose.t_ns - self.poses[-1][0] if self.poses else 0)
                self.poses = [*self.poses[-1:], (pose.t_ns, planar)]

    def predict(self, t_ns: int) -> Floats | None:
        """Return the pose (3,) at a time, extrapolated from the last two; None without odometry."""
        if not self.poses:
            return None
        last_ns, last = self.poses[-1]
        if len(self.poses) < 2:
            return last
        first_ns, first = self.poses[0]
        fraction = np.clip(t_ns - last_ns, 0, self.settings.max_extrapolation_s * NS) / max(
            last_ns - first_ns, 1
        )
        return compose(
            last, relative_pose(first, last) * min(fraction, self.settings.max_extrapolation_periods)
        )

    def link(self, t_ns: int) -> Link:
        """Return whether the motion from the last scan to one at a time is known."""
        current, previous = self.predict(t_ns), self.last_prediction
        settings, gap_s, self.gap_ns = self.settings, self.gap_ns / NS, 0
        last_ns = self.scan_times_ns[-1] if self.scan_times_ns else None
        periods = np.diff(self.scan_times_ns)
        self.scan_times_ns = [*self.scan_times_ns[-settings.gaps.period_samples :], t_ns]
        self.last_prediction = None if current is None else (t_ns, current)
        if last_ns is None:
            return "disconnected"
        elapsed_s = (t_ns - last_ns) / NS
        period_s = float(np.median(periods)) / NS if len(periods) else 0.0
        if current is None or previous is None:
            return "disconnected" if settings.gaps.is_gap(elapsed_s, period_s) else "connected"
        motion = relative_pose(previous[1], current)
        distance, turn = float(np.hypot(*motion[:2])), abs(float(motion[2]))
        if not settings.gaps.is_gap(gap_s, period_s):
            max_distance = settings.max_speed_mps * max(elapsed_s, settings.min_period_s)
            return "connected" if distance <= max_distance else "disconnected"
        if not settings.gaps.is_gap(elapsed_s, period_s):
            return "connected"
        plausible = distance <= settings.max_bridged_m and turn <= settings.max_bridged_rad
        return "uncertain" if plausible else "disconnected"
