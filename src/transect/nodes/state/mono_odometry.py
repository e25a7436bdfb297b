"""Visual odometry of one camera, with the scale from wheels or an inertial system."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.odometry.mono_odometer import MonoImage, MonoOdometer, MonoOdometrySettings
from transect.algorithms.odometry.mono_window import MonoAdjustmentSettings
from transect.algorithms.vision.image_conversion import gray_of
from transect.algorithms.vision.rectification import require_camera
from transect.engine import At, Node, Shape, outputs, param
from transect.errors import FrameError, TransectError
from transect.geometry import se3
from transect.geometry.robust import inflate
from transect.types import Image, PointCloud, Pose

from .._attempts import Attempts

MOUNTING_FILES = (
    "MainArmJointAngles.csv (AMEDS), calib_imu_to_velo.txt and calib_velo_to_cam.txt (KITTI), "
    "cam0/sensor.yaml (EuRoC), tf_static (ROS), or frames in a recording.yaml"
)


@outputs
class MonoMotion:
    """The pose of an image; at the end, the landmarks."""

    pose: Pose | None = None  # of the body in `odom`, which is the body's frame at the start
    success: bool | None = None  # whether there is a pose; reasons are counted as skipped
    inliers: int | None = None
    # Of the motion since the last pose, without the error of its scale: translation (m), then rotation (rad),
    # in the axes of the body.
    covariance: Annotated[NDArray[np.float64], Shape(6, 6)] | None = None
    # Points observed by several keyframes, in `odom`, with `intensity`, `sigma` (m) and `count` (keyframes).
    landmarks: PointCloud | None = None


class MonoOdometry(Node, interface=True):
    """Pose of a body from undistorted images of one camera on it; the scale comes from a reference.

    One camera observes its motion up to scale. The reference is the pose of the same body by wheels or an
    inertial system. Its lengths are averaged over some metres, between which the images determine the scale.
    Slip of wheels scales all lengths by its mean.
    """

    calibrated = ("image",)

    body: str = param("", doc="frame whose pose the reference gives; if empty, the one that it names")
    max_mount_gap: float = param(
        1.0, ge=0, unit="s", doc="largest time to the nearest sample of a moving mount of the camera"
    )
    max_failed_ratio: float = param(
        0.5, ge=0, le=1, doc="largest ratio of failed attempts in a result that can be trusted"
    )

    def reset(self) -> None:
        self.odometer: MonoOdometer | None = None
        self.attempts = Attempts(self.max_failed_ratio)

    def make_odometer(self) -> MonoOdometer:
        """Return an odometer with the parameters of the node."""
        raise NotImplementedError

    def process(self, image: Image, reference: At[Pose]) -> MonoMotion:
        if self.odometer is None:
            self.odometer = self.make_odometer()
        body = self.body or reference.child
        result = self.odometer.advance(self._mono_image(image, reference, body))
        self.attempts.add(result.T_world_body is not None)
        if result.T_world_body is None:
            self.ctx.skip(result.reason)
            return MonoMotion(success=False, inliers=result.inliers)
        orientation, position = se3.to_quaternion(result.T_world_body)
        pose = Pose(position, orientation, self.ctx.time, frame="odom", child=body)
        return MonoMotion(pose, True, result.inliers, inflate(result.covariance, self.ctx.trust("image")))

    def finish(self) -> MonoMotion | None:
        """Return the landmarks."""
        self.attempts.report(self.ctx, "images have no pose", "the path")
        if self.odometer is None:
            return None
        cloud = self.odometer.map.cloud(np.eye(4), "odom")
        return MonoMotion(landmarks=cloud) if len(cloud) else None

    def _mono_image(self, image: Image, reference: Pose, body: str) -> MonoImage:
        camera = require_camera(image)
        if camera.distortion != "none":
            raise TransectError(
                f"the images of {camera.name} are not undistorted",
                why=f"its lens is {camera.distortion}",
                hint="put ImageRectification before the odometry",
            )
        T_reference_body = se3.from_quaternion(reference.orientation, reference.position)
        mounting = self._lookup_mounting(body, image.frame)
        return MonoImage(gray_of(image), image.valid, camera.K, mounting, T_reference_body)

    def _lookup_mounting(self, body: str, camera: str) -> NDArray[np.float64]:
        """Return T_body_camera (4, 4) at the current time."""
        try:
            return self.ctx.frames.lookup(body, camera, self.ctx.time, tolerance=self.max_mount_gap)
        except FrameError as error:
            raise TransectError(
                f"the mounting of the camera {camera} on {body or 'the body'} is not known",
                why=f"{error.what}: {error.why}" if error.why else error.what,
                hint=f"provide {MOUNTING_FILES}",
            ) from error


class MonoKeyframes(MonoOdometry):
    """Corners tracked by KLT; the last keyframes are adjusted with the reference's motions (gtsam).

    The visual scale drifts by 2 % over a metre, growing with the square root of the path, and is corrected
    by the mean length of the reference. Errors of wheels by slip, as on slopes, have a sigma of 10 % and are
    correlated over 3 m. Averaging over 8 to 10 m balances both.
    """

    features: int = param(400, ge=50, doc="largest number of corners per image")
    min_inliers: int = param(20, ge=6, doc="smallest number of inliers of a motion")
    keyframes: int = param(8, ge=3, doc="number of keyframes that are adjusted together")
    parallax: float = param(
        10.0, gt=0, unit="px", doc="motion of points, without rotation, for a new keyframe"
    )
    keyframe_ratio: float = param(
        0.7,
        gt=0,
        le=1,
        doc="smallest ratio of a keyframe's points that are still tracked; below it a new one starts",
    )
    steps: int = param(4, ge=1, doc="iterations of the adjustment at each keyframe")
    scale_memory: float = param(10.0, gt=0, unit="m", doc="distance over which the scale is averaged")

    def make_odometer(self) -> MonoOdometer:
        return MonoOdometer(
            MonoOdometrySettings(
                features=self.features,
                min_inliers=self.min_inliers,
                keyframes=self.keyframes,
                parallax_px=self.parallax,
                min_tracked_ratio=self.keyframe_ratio,
                scale_memory_m=self.scale_memory,
                adjustment=MonoAdjustmentSettings(self.steps),
            )
        )
