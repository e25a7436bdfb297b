"""SLAM with a stereo pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.odometry.stereo_rig import StereoRig, stereo_rig_of
from transect.algorithms.odometry.stereo_tracking_methods import GrayPair
from transect.algorithms.slam.keyframe_odometry import drift_covariance
from transect.algorithms.slam.stereo_recogniser import (
    KEYFRAMES,
    StereoRecogniser,
    observe_stereo,
    stereo_keyframe_distance,
    stereo_mapping_settings,
)
from transect.algorithms.vision.image_conversion import gray_of
from transect.base.arrays import Floats
from transect.engine import Batch, Latest, Node, Shape, Synced, param
from transect.geometry import se3
from transect.types import Image, NavFix, Pose

from .session import SlamOutput, SlamSession, check_map

KIND = "VisualSlamStereo"
UNMODELLED_DRIFT = (0.01, 0.003)  # path and rotation ratio in addition to the covariance, e.g. of calibration
EXTRAPOLATION_DRIFT = (0.2, 0.3)  # the same while odometry extrapolated at constant velocity


class StereoSlam(Node):
    """Corrects the odometry of a stereo pair by loop closures, or localises it in a map.

    Poses are of the left camera. A keyframe stores corners with depth and binary descriptors of 256 bits.
    Keyframes that share many descriptors are verified by the pose on which their points agree; a loop is
    accepted if odometry or another loop is consistent with it (`loop_consistency`).
    """

    features: int = param(600, ge=50, doc="largest number of corners of a keyframe")
    keyframe_distance: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="distance between keyframes; 0: a tenth of the median depth of the first pair",
    )
    keyframe_angle: float = param(KEYFRAMES.angle_rad, gt=0, unit="rad", doc="rotation between keyframes")
    max_camera_difference: float = param(
        0.02, ge=0, doc="largest relative difference of focal length and baseline from those of the map"
    )

    def reset(self) -> None:
        self.session: SlamSession | None = None
        self.last_pose: Floats | None = None

    def ready(self) -> None:
        """Refuse a map of another kind of SLAM."""
        check_map(self.ctx, KIND)

    def process(
        self,
        pose: Pose,
        left: Annotated[Image, Synced(0.005)],
        right: Annotated[Image, Synced(0.005)],
        covariance: Annotated[Latest[NDArray[np.float64]], Shape(6, 6)] | None = None,
        success: Batch[bool] = (),
        fix: Batch[NavFix] = (),
    ) -> SlamOutput:
        rig = stereo_rig_of(left, right)
        pair = GrayPair(gray_of(left), gray_of(right), left.valid)
        if self.session is None:
            self.session = self._start_session(pair, rig, pose.child)
        for each in fix:
            self.session.add_fix(each)
        T_odom_camera = se3.from_quaternion(pose.orientation, pose.position)
        covariance = self._motion_covariance(T_odom_camera, covariance, success)
        return self.session.step(
            pose.t_ns,
            T_odom_camera,
            covariance,
            lambda: observe_stereo(pair, rig, self.features),
            success=success,
        )

    def finish(self) -> SlamOutput | None:
        """Return the corrected trajectory and the map."""
        return None if self.session is None else self.session.finish(self.ctx)

    def _start_session(self, pair: GrayPair, rig: StereoRig, child: str) -> SlamSession:
        """Start a map, or localisation in one, with keyframe distances by the depth of the scene."""
        keyframe_distance = self.keyframe_distance or stereo_keyframe_distance(
            observe_stereo(pair, rig, self.features), rig.baseline
        )
        settings = stereo_mapping_settings(keyframe_distance, self.keyframe_angle)
        calibration = {"fx": rig.fx, "fy": rig.fy, "cx": rig.cx, "cy": rig.cy, "baseline": rig.baseline}
        self._compare_camera(rig)
        stored = self.ctx.map
        fixed_poses = stored.places.poses if stored is not None and not stored.extend else None
        return SlamSession(self.ctx, KIND, StereoRecogniser(fixed_poses), settings, calibration, child)

    def _motion_covariance(self, T: Floats, covariance: Floats | None, success: Sequence[bool]) -> Floats:
        """Return the covariance of the motion since the last pose, with unmodelled drift of the odometry."""
        motion = np.eye(4) if self.last_pose is None else se3.invert(self.last_pose) @ T
        self.last_pose = T
        if covariance is None or not all(success):
            return drift_covariance(motion, EXTRAPOLATION_DRIFT)
        return covariance + drift_covariance(motion, UNMODELLED_DRIFT)

    def _compare_camera(self, rig: StereoRig) -> None:
        """Report if the pair is not the one that made the map."""
        stored = {} if self.ctx.map is None else self.ctx.map.places.calibration
        for name in ("fx", "baseline"):
            current, expected = getattr(rig, name), stored.get(name, getattr(rig, name))
            if abs(current / expected - 1) > self.max_camera_difference:
                self.ctx.conclude(
                    "another camera than the map's, or a wrong calibration: "
                    f"{name} {current:g}, not {expected:g}",
                    bad=True,
                )
