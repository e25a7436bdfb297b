"""Stereo odometry: where a pair of cameras is, by what it sees."""

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
from transect.algorithms.vision.image_conversion import gray_of
from transect.engine import Node, Shape, Synced, outputs, param
from transect.geometry import se3
from transect.geometry.robust import inflate
from transect.types import Image, PointCloud, Pose

from .._attempts import Attempts

R_ODOM_CAMERA = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
"""Takes vectors of a camera (x right, y down, z forward) to x forward, y left, z up."""
T_ODOM_WORLD = se3.from_matrix(R_ODOM_CAMERA, np.zeros(3))


@outputs
class Moved:
    """What a pair of images came to.

    Attributes
    ----------
    pose : Pose
        Of the left camera in `odom`: where it began, x forward, y left, z up. None where it is not known.
    success : bool
        Whether there is a pose; why not is counted among the reasons for skipping.
    inliers : int
        Points that agree on the motion.
    covariance : (6, 6)
        Of the motion since the pose before: translation (m), then rotation (rad), in the axes of the camera.
    landmarks : PointCloud
        Points that several keyframes saw, in `odom`, with `intensity`, `sigma` (m, of the depth by the pair
        that measured it last) and `count` (keyframes); once, at the end.
    """

    pose: Pose | None = None
    success: bool | None = None
    inliers: int | None = None
    covariance: Annotated[NDArray[np.float64], Shape(6, 6)] | None = None
    landmarks: PointCloud | None = None


class StereoOdometry(Node, interface=True):
    """Pose of the left camera from rectified pairs, in `odom`: where it began, x forward, y left, z up.

    Where a motion is not found, there is no pose; the next one goes on from where the camera should have been
    by its velocity.
    """

    max_failed_ratio: float = param(
        0.5, ge=0, le=1, doc="largest ratio of failed attempts in a result that can be trusted"
    )

    def reset(self) -> None:
        self.odometer: StereoOdometer | None = None
        self.attempts = Attempts(self.max_failed_ratio)

    def begin(self) -> tuple[TrackingMethod, StereoOdometrySettings]:
        """Return how points are found and followed, and the limits of the odometry."""
        raise NotImplementedError

    def process(self, left: Image, right: Annotated[Image, Synced(0.005)]) -> Moved:
        rig = stereo_rig_of(left, right)
        if self.odometer is None:
            front, settings = self.begin()
            self.odometer = StereoOdometer(rig, front, settings)
        self.odometer.rig = rig
        step = self.odometer.advance(GrayPair(gray_of(left), gray_of(right), left.valid), self.ctx.time)
        self.attempts.add(step.T_world_camera is not None)
        if step.T_world_camera is None:
            self.ctx.skip(step.failed)
            return Moved(success=False, inliers=step.inliers)
        turned, place = se3.to_quaternion(T_ODOM_WORLD @ step.T_world_camera)
        pose = Pose(place, turned, self.ctx.time, frame="odom", child=left.frame)
        trust = min(self.ctx.trust("left"), self.ctx.trust("right"))
        return Moved(pose, True, step.inliers, inflate(step.covariance, trust))

    def finish(self) -> Moved | None:
        """Return the landmarks."""
        self.attempts.report(self.ctx, "pairs of images have no pose", "the path")
        if self.odometer is None or self.odometer.before is None:
            return None
        cloud = self.odometer.landmarks.cloud(T_ODOM_WORLD, "odom")
        if not len(cloud):
            return self.ctx.skip("no second keyframe: neither motion nor landmarks")
        return Moved(landmarks=cloud)


class KltFrameToFrame(StereoOdometry):
    """Corners followed by gray values; each motion from the points of the pair before, nothing adjusted."""

    features: int = param(400, ge=50, doc="largest number of corners per image")
    least_inliers: int = param(20, ge=6, doc="smallest number of points that must agree on a motion")

    def begin(self) -> tuple[TrackingMethod, StereoOdometrySettings]:
        return KltTracking(self.features), StereoOdometrySettings(
            self.least_inliers, keyframes=1, every=1, share=1.0
        )


class KltKeyframes(StereoOdometry):
    """Corners followed by gray values; poses and points of the last keyframes adjusted together (gtsam)."""

    features: int = param(400, ge=50, doc="largest number of corners per image")
    least_inliers: int = param(20, ge=6, doc="smallest number of points that must agree on a motion")
    keyframes: int = param(5, ge=3, doc="number of keyframes that are adjusted together")
    keyframe_every: int = param(3, ge=1, doc="largest number of frames between two keyframes")
    keyframe_share: float = param(
        0.8, gt=0, le=1, doc="share of a keyframe's points below which a new keyframe starts"
    )
    steps: int = param(2, ge=1, doc="number of iterations of the adjustment at each keyframe")

    def begin(self) -> tuple[TrackingMethod, StereoOdometrySettings]:
        return KltTracking(self.features), StereoOdometrySettings(
            self.least_inliers, self.keyframes, self.keyframe_every, self.keyframe_share, self.steps
        )


class DescriptorTracks(StereoOdometry):
    """Points compared by descriptors, for pictures too far apart to follow gray values; with keyframes."""

    descriptor: str = param(
        "SIFT",
        choices=("SIFT", "ORB"),
        doc="feature descriptor; ORB is faster but locates corners only to whole pixels",
    )
    features: int = param(1500, ge=50, doc="largest number of features per image")
    reach: float = param(60.0, gt=0, unit="px", doc="largest distance of a match from its predicted position")
    least_inliers: int = param(20, ge=6, doc="smallest number of points that must agree on a motion")
    keyframes: int = param(5, ge=3, doc="number of keyframes that are adjusted together")
    steps: int = param(2, ge=1, doc="number of iterations of the adjustment at each keyframe")

    def begin(self) -> tuple[TrackingMethod, StereoOdometrySettings]:
        front = DescriptorTracking("SIFT" if self.descriptor == "SIFT" else "ORB", self.features, self.reach)
        return front, StereoOdometrySettings(self.least_inliers, self.keyframes, 2, 0.8, self.steps)
