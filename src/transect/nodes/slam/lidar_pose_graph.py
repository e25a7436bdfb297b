"""SLAM with a lidar."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.odometry.lidar_odometer import choose_voxel_size
from transect.algorithms.slam.keyframe_odometry import drift_covariance
from transect.algorithms.slam.lidar_recogniser import LIDAR_MAPPING, LidarRecogniser, ScanAccumulator
from transect.base.arrays import Floats
from transect.engine import Batch, Latest, Node, Shape, param
from transect.geometry import se3
from transect.types import NavFix, PointCloud, Pose

from .session import SlamOutput, SlamSession, check_map

KIND = "LidarSlam"
UNKNOWN_DRIFT = (0.02, 0.01)  # path and rotation ratio of an odometry without covariance


@dataclass(frozen=True)
class LidarDriftSettings:
    """Model of the drift of lidar odometry."""

    # Fraction of the variance of a step that accumulates. Errors of poses are independent, since the next
    # scan is aligned to the same map, of which this scan is a fortieth. On two simulated days the errors over
    # 10 m were equal to those over 1 m.
    step_variance_ratio: float = 1 / 40**2
    # Sigma of the drift over a metre, which grows with the square root of the path. The first is twice the
    # drift of four simulated days over 10 and 32 m; both were validated on six drives with ground truth.
    walk_sigma_m: float = 0.006
    walk_sigma_rad: float = 0.0002
    rotation_path_m: float = 1.0  # path length equivalent to a rotation of 1 rad


LIDAR_DRIFT = LidarDriftSettings()


class LidarPoseGraph(Node):
    """Corrects the odometry of a lidar by loop closures, or localises it in a map.

    Poses are of the lidar; scans are deskewed. A keyframe stores the scans of the last metre as one
    downsampled cloud. A candidate is verified by registration (GICP) from its predicted pose, or, if that is
    not known, from the alignment of elevation maps; it is accepted if odometry or another loop is consistent
    with it (`loop_consistency`).
    """

    voxel: float = param(
        0.0,
        ge=0,
        le=5,
        unit="m",
        doc="voxel size of the cloud of a keyframe; 0: chosen from the first scan",
    )
    keyframe_voxel_ratio: float = param(
        0.75,
        gt=0,
        doc="chosen voxel size over that of the odometry: several scans are denser than one",
    )
    min_range: float = param(1.0, ge=0, unit="m", doc="smallest range of the returns that are used")
    max_range: float = param(
        40.0, gt=0, unit="m", doc="largest range of the returns that are kept in the map"
    )
    keyframe_distance: float = param(
        LIDAR_MAPPING.keyframe_distance_m, gt=0, unit="m", doc="distance between keyframes"
    )
    keyframe_angle: float = param(
        LIDAR_MAPPING.keyframe_angle_rad, gt=0, unit="rad", doc="rotation between keyframes"
    )
    search_radius: float = param(
        LIDAR_MAPPING.search_radius_m,
        gt=0,
        unit="m",
        doc="distance of keyframes that are candidates for a loop",
    )
    min_loop_path: float = param(
        LIDAR_MAPPING.min_loop_path_m,
        gt=0,
        unit="m",
        doc="smallest length of the path between two keyframes of a loop",
    )

    def reset(self) -> None:
        self.session: SlamSession | None = None
        self.accumulator: ScanAccumulator | None = None
        self.last_pose: Floats | None = None

    def ready(self) -> None:
        """Refuse a map of another kind of SLAM."""
        check_map(self.ctx, KIND)

    def process(
        self,
        pose: Pose,
        cloud: PointCloud,
        covariance: Annotated[Latest[NDArray[np.float64]], Shape(6, 6)] | None = None,
        success: Batch[bool] = (),
        fix: Batch[NavFix] = (),
    ) -> SlamOutput:
        if self.session is None or self.accumulator is None:
            self.session, self.accumulator = self._start_session(cloud, pose.child)
        for each in fix:
            self.session.add_fix(each)
        T_odom_lidar = se3.from_quaternion(pose.orientation, pose.position)
        self.accumulator.add(cloud, T_odom_lidar)
        covariance = self._motion_covariance(T_odom_lidar, covariance)
        return self.session.step(
            pose.t_ns, T_odom_lidar, covariance, self.accumulator.observe, success=success
        )

    def finish(self) -> SlamOutput | None:
        """Return the corrected trajectory and the map."""
        return None if self.session is None else self.session.finish(self.ctx)

    def _start_session(self, cloud: PointCloud, child: str) -> tuple[SlamSession, ScanAccumulator]:
        """Start a map, or localisation in one with the same voxel size."""
        stored = {} if self.ctx.map is None else self.ctx.map.places.calibration
        voxel = (
            float(stored.get("voxel", 0.0))
            or self.voxel
            or self.keyframe_voxel_ratio * choose_voxel_size(np.asarray(cloud.points))
        )
        settings = replace(
            LIDAR_MAPPING,
            keyframe_distance_m=self.keyframe_distance,
            keyframe_angle_rad=self.keyframe_angle,
            search_radius_m=self.search_radius,
            min_loop_path_m=self.min_loop_path,
            omnidirectional=is_omnidirectional(cloud),
        )
        session = SlamSession(
            self.ctx, KIND, LidarRecogniser(voxel), settings, {"voxel": voxel, "far": self.max_range}, child
        )
        return session, ScanAccumulator(voxel, self.min_range, self.max_range, self.keyframe_distance)

    def _motion_covariance(self, T: Floats, covariance: Floats | None) -> Floats:
        """Return the covariance of the motion since the last pose, with unmodelled drift of the odometry."""
        motion = np.eye(4) if self.last_pose is None else se3.invert(self.last_pose) @ T
        self.last_pose = T
        if covariance is None:
            return drift_covariance(motion, UNKNOWN_DRIFT)
        return LIDAR_DRIFT.step_variance_ratio * covariance + random_walk_covariance(motion)


def random_walk_covariance(motion: Floats, settings: LidarDriftSettings = LIDAR_DRIFT) -> Floats:
    """Return the covariance (6, 6) of the random walk over a motion (4, 4), proportional to its length."""
    twist = se3.log(motion)
    rotation = settings.rotation_path_m * np.linalg.norm(twist[3:])
    length = float(np.linalg.norm(twist[:3]) + rotation) + 1e-3
    sigmas = (settings.walk_sigma_m, settings.walk_sigma_rad)
    return np.diag(length * np.repeat(np.square(sigmas), 3))


def is_omnidirectional(cloud: PointCloud, sectors: int = 12) -> bool:
    """Return whether a scan has returns in all sectors of the horizon but one."""
    x, y = np.asarray(cloud.points, np.float64)[:, :2].T
    sector = np.floor(np.arctan2(y, x) / (2 * np.pi) * sectors)
    return len(np.unique(sector[np.isfinite(sector)])) >= sectors - 1
