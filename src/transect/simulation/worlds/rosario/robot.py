"""The weeding robot as it was built on a simulated day: chassis, calibration, cameras of any size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect import robots
from transect.base.arrays import Floats
from transect.geometry import camera as lens
from transect.geometry import rotations, se3
from transect.recording import FrameTree, Robot
from transect.types import CameraModel

from ...driving import Chassis
from .route import LANE

BASE, IMU, ANTENNA = "base_link", "imu", "gps"
SIDES = ("left", "right")
IMU_PLACE = (1.96, -0.017, 1.02)
"""m in base_link: what the authors added to the published tracks of the real robot."""
CAMERA_DOWN = np.radians(10.0)
"""How far the left camera looks down; 7 to 18 degrees in the real sequences."""
CAMERA_LEFT = np.radians(-2.0)
"""How far it looks to the left of the way; it looks a little to the right."""
GYRO_OFFSET, ACC_OFFSET = (0.8, -1.9, 6.4), (12.5, -21.0, 8.25)
"""deg/s and milli-g that the imu's log is off by, as the calibration file says: invented."""


def weeder() -> Robot:
    """Return the robot."""
    return robots.load("weeder")


def chassis(robot: Robot) -> Chassis:
    """Return what carries base_link, which is taken to be on the ground below the rear axle.

    Table 1 does not say how high the frame is. In real pictures rows, if 0.52 m apart, are seen from about a
    metre; Table 1 with the imu's place has the camera 0.98 m over base_link.
    """
    ahead, side = float(robot.constants["wheelbase"]), LANE / 2
    contacts = np.array([[0.0, side], [0.0, -side], [ahead, side], [ahead, -side]])
    return Chassis(contacts, height=0.0, suspension=0.25, shaking=0.001)


def calibrated_frames(robot: Robot) -> FrameTree:
    """Return Table 1's frames with base_link <- imu, invented, and a right camera exactly one baseline away.

    Table 1 is rounded to millimetres: its two cameras are 119.2 mm apart, the calibration says 118.7.
    """
    frames, source = robot.frames.copy(), "simulated calibration"
    left, right = (frames.lookup(IMU, f"{side}_camera") for side in SIDES)
    across = right[:3, 3] - left[:3, 3]
    across *= robot.constants["stereo_baseline"] / np.linalg.norm(across)
    moved = se3.from_matrix(right[:3, :3], left[:3, 3] + across)
    frames.add_static(IMU, "right_camera", moved, source=source, replace=True)
    turn = _camera_axes() @ left[:3, :3].T
    frames.add_static(BASE, IMU, se3.from_matrix(turn, np.array(IMU_PLACE)), source=source)
    return frames


def _camera_axes() -> Floats:
    """Return the rotation (3, 3) that takes vectors of the left camera to base_link."""
    level = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    return rotations.matrix_from_euler("rpy", np.array([0.0, CAMERA_DOWN, CAMERA_LEFT])) @ level


def scaled(camera: CameraModel, scale: float) -> CameraModel:
    """Return the camera of pictures `scale` times as large, to whole pixels."""
    width, height = max(round(camera.width * scale), 1), max(round(camera.height * scale), 1)
    k = lens.scale_intrinsics(camera.K, width / camera.width, height / camera.height)
    return replace(camera, width=width, height=height, K=k)
