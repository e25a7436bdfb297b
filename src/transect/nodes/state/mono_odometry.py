"""Odometry of one camera, with lengths from wheels or an inertial system."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.odometry.mono_odometer import MonoImage, MonoOdometer, MonoOdometrySettings
from transect.algorithms.vision.image_conversion import gray_of
from transect.algorithms.vision.rectification import require_camera
from transect.engine import At, Node, Shape, outputs, param
from transect.errors import FrameError, TransectError
from transect.geometry import se3
from transect.geometry.robust import inflate
from transect.types import Image, PointCloud, Pose

from .._attempts import Attempts

BEYOND = 1.0
"""Seconds for which a moving mount is taken to hold still after its last sample."""
MOUNTS = (
    "MainArmJointAngles.csv (AMEDS), calib_imu_to_velo.txt and calib_velo_to_cam.txt (KITTI), "
    "cam0/sensor.yaml (EuRoC), tf_static (ROS), or frames in a recording.yaml"
)


@outputs
class MonoMoved:
    """What a picture came to.

    Attributes
    ----------
    pose : Pose
        Of the body in `odom`: where it began, in its own axes. None where it is not known.
    success : bool
        Whether there is a pose; why not is counted among the reasons for skipping.
    inliers : int
        Points that agree on the motion.
    covariance : (6, 6)
        Of the motion since the pose before, without that of its length: translation (m), then rotation (rad),
        in the axes of the body.
    landmarks : PointCloud
        Points that several keyframes saw, in `odom`, with `intensity`, `sigma` (m) and `count` (keyframes);
        once, at the end.
    """

    pose: Pose | None = None
    success: bool | None = None
    inliers: int | None = None
    covariance: Annotated[NDArray[np.float64], Shape(6, 6)] | None = None
    landmarks: PointCloud | None = None


class MonoOdometry(Node, interface=True):
    """Pose of a body by undistorted pictures of one camera on it; lengths come from a reference.

    One camera cannot see how far it moved, only which way. The reference is where the same body is by wheels
    or by an inertial system; its lengths are averaged over some metres, and what is seen holds them between.
    Where wheels slip, all lengths are wrong by the mean slip.
    """

    calibrated = ("image",)

    body: str = param("", doc="frame whose pose the reference gives; if empty, the one that it names")
    max_failed_ratio: float = param(
        0.5, ge=0, le=1, doc="largest ratio of failed attempts in a result that can be trusted"
    )

    def reset(self) -> None:
        self.odometer: MonoOdometer | None = None
        self.attempts = Attempts(self.max_failed_ratio)

    def begin(self) -> MonoOdometer:
        """Return an odometer with the node's limits."""
        raise NotImplementedError

    def process(self, image: Image, reference: At[Pose]) -> MonoMoved:
        if self.odometer is None:
            self.odometer = self.begin()
        body = self.body or reference.child
        step = self.odometer.advance(self._shot(image, reference, body))
        self.attempts.add(step.T_world_body is not None)
        if step.T_world_body is None:
            self.ctx.skip(step.failed)
            return MonoMoved(success=False, inliers=step.inliers)
        turned, place = se3.to_quaternion(step.T_world_body)
        pose = Pose(place, turned, self.ctx.time, frame="odom", child=body)
        return MonoMoved(pose, True, step.inliers, inflate(step.covariance, self.ctx.trust("image")))

    def finish(self) -> MonoMoved | None:
        """Return the landmarks."""
        self.attempts.report(self.ctx, "images have no pose", "the path")
        if self.odometer is None:
            return None
        cloud = self.odometer.landmarks.cloud(np.eye(4), "odom")
        return MonoMoved(landmarks=cloud) if len(cloud) else None

    def _shot(self, image: Image, reference: Pose, body: str) -> MonoImage:
        camera = require_camera(image)
        if camera.distortion != "none":
            raise TransectError(
                f"the images of {camera.name} are not undistorted",
                why=f"its lens is {camera.distortion}",
                hint="put ImageRectification before the odometry",
            )
        where = se3.from_quaternion(reference.orientation, reference.position)
        return MonoImage(gray_of(image), image.valid, camera.K, self._mount(body, image.frame), where)

    def _mount(self, body: str, camera: str) -> NDArray[np.float64]:
        try:
            return self.ctx.frames.lookup(body, camera, self.ctx.time, tolerance=BEYOND)
        except FrameError as error:
            raise TransectError(
                f"where the camera {camera} is on {body or 'the body'} is not known",
                why=f"{error.what}: {error.why}" if error.why else error.what,
                hint=f"wanted is {MOUNTS}",
            ) from error


class MonoKeyframes(MonoOdometry):
    """Corners followed by gray values; the last keyframes adjusted with the reference's steps (gtsam).

    Lengths are held by what is seen, to two hundredths in a metre, adding up with its square root, and told
    by the reference on average. Slip of wheels lasts for some three metres, as slopes do, and has a deviation
    of a tenth: between these, 8 to 10 m are best. Noise of fixes, centimetres, is less than that after 3 m.
    """

    features: int = param(400, ge=50, doc="largest number of corners per image")
    least_inliers: int = param(20, ge=6, doc="smallest number of points that agree on a motion")
    keyframes: int = param(8, ge=3, doc="number of keyframes that are adjusted together")
    parallax: float = param(
        10.0, gt=0, unit="px", doc="motion of points, without rotation, for a new keyframe"
    )
    keyframe_share: float = param(
        0.7, gt=0, le=1, doc="share of tracked points below which a keyframe is made"
    )
    steps: int = param(4, ge=1, doc="iterations of the adjustment at each keyframe")
    memory: float = param(10.0, gt=0, unit="m", doc="distance over which the scale is averaged")

    def begin(self) -> MonoOdometer:
        settings = (self.features, self.least_inliers, self.keyframes, self.parallax)
        return MonoOdometer(MonoOdometrySettings(*settings, self.keyframe_share, self.steps, self.memory))
