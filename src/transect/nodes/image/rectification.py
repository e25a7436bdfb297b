"""Rectification of images and stereo pairs."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np

from transect.algorithms.vision.rectification import (
    is_rectified_pair,
    pair_baseline,
    rectified_frame,
    rectify,
    require_camera,
    undistort,
)
from transect.base.arrays import Floats
from transect.engine import Node, Synced, outputs, param
from transect.errors import FrameError, TransectError
from transect.geometry import se3
from transect.geometry.rectification import rectify_pair
from transect.recording import FrameTree
from transect.recording.content_hash import RECTIFICATION
from transect.types import CameraModel, Image, StereoPair


def add_rectified_frame(camera: CameraModel, frames: FrameTree) -> None:
    """Add the rectified frame of a camera to a tree, below the camera's, so that it can be looked up."""
    rectified = rectified_frame(camera)
    if rectified != camera.frame:
        T_camera_rectified = se3.from_matrix(camera.R.T, np.zeros(3))
        frames.add_static(camera.frame, rectified, T_camera_rectified, source=RECTIFICATION, replace=True)


class ImageRectification(Node):
    """Undistorts an image and rectifies it by the `R` and `P` of its calibration.

    With a calibration without `P`, e.g. of a single camera, the image is only undistorted. Rectified images
    are returned unchanged. `valid` of the result is False where the original has no pixels. The rectified
    camera has a frame of its own, `<frame>_rect`, which is added to the frames of the recording. Raises if
    there is no calibration, or one for another image size.
    """

    calibrated = ("originalImage",)

    out_name = "rectifiedImage"

    def process(self, originalImage: Image) -> Image:
        camera = require_camera(originalImage)
        if camera.P is None:
            return undistort(originalImage)
        add_rectified_frame(camera, self.ctx.frames)
        return rectify(originalImage)


class StereoPairing(Node):
    """Pairs simultaneous left and right images; the time of the pair is that of the left image."""

    out_name = "stereoPair"

    def process(self, left: Image, right: Annotated[Image, Synced(0.005)]) -> StereoPair:
        return StereoPair(left, right, left.t_ns)


MIN_BASELINE_M = 1e-4
"""Frames of cameras closer than this are wrong, as they would have no depth."""


class StereoRectification(Node):
    """Rectifies a stereo pair, so that corresponding points are in the same row.

    The relative pose of the cameras is that of the `R` and `P` of their calibrations, if these belong to one
    pair, otherwise of the frames of the recording. A rectified pair passes unchanged. Afterwards
    ``right.camera.P[0, 3] = -fx * baseline``, and the frames `<frame>_rect` are added to the recording's.
    Raises if calibration or frames are missing.
    """

    calibrated = ("originalStereoPair",)

    out_name = "rectifiedStereoPair"
    alpha: float = param(
        0.0,
        ge=0,
        le=1,
        doc="visible part of the images: 0 only pixels valid everywhere, 1 all pixels with black borders",
    )

    def reset(self) -> None:
        self.known: tuple[CameraModel, CameraModel, CameraModel, CameraModel] | None = None

    def process(self, originalStereoPair: StereoPair) -> StereoPair:
        pair = originalStereoPair
        left, right = require_camera(pair.left), require_camera(pair.right)
        if is_rectified_pair(left, right):
            return pair
        if self.known is None or not (self.known[0].same_as(left) and self.known[1].same_as(right)):
            self.known = left, right, *self._plan(left, right)
        left_image, right_image = (
            rectify(dataclasses.replace(image, camera=camera))
            for image, camera in zip((pair.left, pair.right), self.known[2:], strict=True)
        )
        return dataclasses.replace(pair, left=left_image, right=right_image)

    def _plan(self, left: CameraModel, right: CameraModel) -> tuple[CameraModel, CameraModel]:
        """Return both cameras with the `R` and `P` that make their rows correspond."""
        cameras = left, right
        if not _belong_together(left, right):
            cameras = rectify_pair(left, right, _look_up_baseline(left, right, self.ctx.frames), self.alpha)
        for camera in cameras:
            add_rectified_frame(camera, self.ctx.frames)
        return cameras


def _belong_together(left: CameraModel, right: CameraModel) -> bool:
    """Whether the rectifications of two calibrations are those of one pair."""
    if left.P is None or right.P is None or not pair_baseline(left, right) > MIN_BASELINE_M:
        return False
    return bool(np.allclose(left.P[:, :2], right.P[:, :2]) and abs(left.P[1, 2] - right.P[1, 2]) < 1.0)


def _look_up_baseline(left: CameraModel, right: CameraModel, frames: FrameTree) -> Floats:
    """Return T_right_left (4, 4) from the frames of the recording."""
    try:
        T_right_left = frames.lookup(right.frame, left.frame)
    except FrameError as error:
        raise TransectError(
            f"the pose of {right.name or 'the right camera'} in {left.name or 'the left one'} is not known",
            why=f"the calibration has no P for a pair, and: {error.what}",
            hint="give a calibration of both cameras with the transform between them (OpenCV, Kalibr, ...)",
        ) from error
    if np.linalg.norm(T_right_left[:3, 3]) < MIN_BASELINE_M:
        raise TransectError(
            f"{left.name} and {right.name} have the same position", why="depth needs a baseline"
        )
    return T_right_left


@outputs
class Images:
    """The images of a pair."""

    left: Image
    right: Image


class StereoSplitting(Node):
    """Emits the images of a pair on separate ports."""

    def process(self, stereoPair: StereoPair) -> Images:
        return Images(stereoPair.left, stereoPair.right)
