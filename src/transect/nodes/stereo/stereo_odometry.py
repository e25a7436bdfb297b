"""Stereo visual odometry."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.odometry.stereo_odometer import StereoOdometer, StereoOdometrySettings
from transect.algorithms.odometry.stereo_rig import stereo_rig_of
from transect.algorithms.odometry.stereo_tracking_methods import (
    DescriptorTracking,
    GrayPair,
    KltTracking,
    TrackingMethod,
)
from transect.algorithms.odometry.stereo_window import StereoAdjustmentSettings
from transect.algorithms.vision.image_conversion import gray_of
from transect.engine import Node, Shape, Synced, outputs, param
from transect.geometry import se3
from transect.geometry.robust import inflate
from transect.types import Image, PointCloud, Pose

from .._attempts import Attempts

R_ODOM_CAMERA = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
"""Rotates vectors of a camera (x right, y down, z forward) to x forward, y left, z up."""
T_ODOM_WORLD = se3.from_matrix(R_ODOM_CAMERA, np.zeros(3))


@outputs
class TrackedPair:
    """The pose of an image pair; at the end, the landmarks."""

    pose: Pose | None = None  # of the left camera in `odom`
    success: bool | None = None  # whether there is a pose; reasons are counted as skipped
    inliers: int | None = None
    # Of the motion since the last pose: translation (m), then rotation (rad), in the axes of the camera.
    covariance: Annotated[NDArray[np.float64], Shape(6, 6)] | None = None
    # Points observed by several keyframes, in `odom`, with `intensity`, `sigma` (m, of the depth by the last
    # pair) and `count` (keyframes).
    landmarks: PointCloud | None = None


class StereoOdometry(Node, interface=True):
    """Pose of the left camera from rectified pairs, in `odom`: its first pose, with x forward, y left, z up.

    Pairs whose motion is not found have no pose; the next one continues from a prediction at constant
    velocity.
    """

    max_failed_ratio: float = param(
        0.5, ge=0, le=1, doc="largest ratio of failed attempts in a result that can be trusted"
    )

    def reset(self) -> None:
        self.odometer: StereoOdometer | None = None
        self.attempts = Attempts(self.max_failed_ratio)

    def make_odometer(self) -> tuple[TrackingMethod, StereoOdometrySettings]:
        """Return the tracking method and the settings of the odometry."""
        raise NotImplementedError

    def process(self, left: Image, right: Annotated[Image, Synced(0.005)]) -> TrackedPair:
        rig = stereo_rig_of(left, right)
        if self.odometer is None:
            tracking, settings = self.make_odometer()
            self.odometer = StereoOdometer(rig, tracking, settings)
        self.odometer.rig = rig
        result = self.odometer.advance(GrayPair(gray_of(left), gray_of(right), left.valid), self.ctx.time)
        self.attempts.add(result.T_world_camera is not None)
        if result.T_world_camera is None:
            self.ctx.skip(result.reason)
            return TrackedPair(success=False, inliers=result.inliers)
        orientation, position = se3.to_quaternion(T_ODOM_WORLD @ result.T_world_camera)
        pose = Pose(position, orientation, self.ctx.time, frame="odom", child=left.frame)
        trust = min(self.ctx.trust("left"), self.ctx.trust("right"))
        return TrackedPair(pose, True, result.inliers, inflate(result.covariance, trust))

    def finish(self) -> TrackedPair | None:
        """Return the landmarks."""
        self.attempts.report(self.ctx, "pairs of images have no pose", "the path")
        if self.odometer is None or self.odometer.previous is None:
            return None
        cloud = self.odometer.map.cloud(T_ODOM_WORLD, "odom")
        if not len(cloud):
            return self.ctx.skip("no second keyframe: neither motion nor landmarks")
        return TrackedPair(landmarks=cloud)


class KltFrameToFrame(StereoOdometry):
    """Corners tracked by KLT; each motion from the points of the last pair, without adjustment."""

    features: int = param(400, ge=50, doc="largest number of corners per image")
    min_inliers: int = param(20, ge=6, doc="smallest number of inliers of a motion")

    def make_odometer(self) -> tuple[TrackingMethod, StereoOdometrySettings]:
        return KltTracking(self.features), StereoOdometrySettings(
            self.min_inliers, keyframes=1, keyframe_interval=1, min_tracked_ratio=1.0
        )


class KltKeyframes(StereoOdometry):
    """Corners tracked by KLT; poses and points of the last keyframes are adjusted together (gtsam)."""

    features: int = param(400, ge=50, doc="largest number of corners per image")
    min_inliers: int = param(20, ge=6, doc="smallest number of inliers of a motion")
    keyframes: int = param(5, ge=3, doc="number of keyframes that are adjusted together")
    keyframe_every: int = param(3, ge=1, doc="largest number of frames between two keyframes")
    keyframe_ratio: float = param(
        0.8,
        gt=0,
        le=1,
        doc="smallest ratio of a keyframe's points that are still tracked; below it a new one starts",
    )
    steps: int = param(2, ge=1, doc="number of iterations of the adjustment at each keyframe")

    def make_odometer(self) -> tuple[TrackingMethod, StereoOdometrySettings]:
        return KltTracking(self.features), StereoOdometrySettings(
            self.min_inliers,
            keyframes=self.keyframes,
            keyframe_interval=self.keyframe_every,
            min_tracked_ratio=self.keyframe_ratio,
            adjustment=StereoAdjustmentSettings(self.steps),
        )


class DescriptorTracks(StereoOdometry):
    """Features matched by descriptors, for images too far apart to be tracked; with keyframes."""

    descriptor: str = param(
        "SIFT",
        choices=("SIFT", "ORB"),
        doc="feature descriptor; ORB is faster but locates corners only to whole pixels",
    )
    features: int = param(1500, ge=50, doc="largest number of features per image")
    search_radius: float = param(
        60.0, gt=0, unit="px", doc="largest distance of a match from its predicted position"
    )
    min_inliers: int = param(20, ge=6, doc="smallest number of inliers of a motion")
    keyframes: int = param(5, ge=3, doc="number of keyframes that are adjusted together")
    steps: int = param(2, ge=1, doc="number of iterations of the adjustment at each keyframe")

    def make_odometer(self) -> tuple[TrackingMethod, StereoOdometrySettings]:
        tracking = DescriptorTracking(
            "SIFT" if self.descriptor == "SIFT" else "ORB", self.features, self.search_radius
        )
        return tracking, StereoOdometrySettings(
            self.min_inliers,
            keyframes=self.keyframes,
            keyframe_interval=2,
            adjustment=StereoAdjustmentSettings(self.steps),
        )
