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
    """The image as a pinhole camera would have taken it, rectified by the `R` and `P` of its calibration.

    A calibration without `P`, as of a single camera, only undistorts. What is rectified already comes back as
    it was. `valid` of the result is False where the camera saw nothing. A rectifying rotation makes a frame
    of its own, `<frame>_rect`, which is put into the frames of the recording. Raises where there is no
    calibration, or one for another image size.
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
    """The left and the right image that were taken at once, as a pair at the time of the left one."""

    out_name = "stereoPair"

    def process(self, left: Image, right: Annotated[Image, Synced(0.005)]) -> StereoPair:
        return StereoPair(left, right, left.t_ns)


LEAST_BASELINE = 1e-4
"""Metres: cameras nearer than this see no depth; the frames are taken to be wrong."""


class StereoRectification(Node):
    """The pair as two equal pinhole cameras beside each other would have taken it: rows correspond.

    How the cameras stand comes from the `R` and `P` of their calibrations, if these belong together, else
    from the frames of the recording. A pair that is rectified already passes unchanged. Afterwards
    ``right.camera.P[0, 3] = -fx * baseline``, and the turned frames `<frame>_rect` are in the recording's.
    Raises where calibration or frames are missing.
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
    """Tell whether the rectification that two calibrations bring is one of a pair."""
    if left.P is None or right.P is None or not pair_baseline(left, right) > LEAST_BASELINE:
        return False
    return bool(np.allclose(left.P[:, :2], right.P[:, :2]) and abs(left.P[1, 2] - right.P[1, 2]) < 1.0)


def _look_up_baseline(left: CameraModel, right: CameraModel, frames: FrameTree) -> Floats:
    """Return T_right_left (4, 4) from the frames of the recording."""
    try:
        T_right_left = frames.lookup(right.frame, left.frame)
    except FrameError as error:
        raise TransectError(
            f"it is not known how {right.name or 'the right camera'} stands to {left.name or 'the left one'}",
            why=f"the calibration has no P for a pair, and: {error.what}",
            hint="wanted is a calibration with both cameras and T between them (OpenCV, Kalibr, EuRoC, ...)",
        ) from error
    if np.linalg.norm(T_right_left[:3, 3]) < LEAST_BASELINE:
        raise TransectError(
            f"{left.name} and {right.name} are at the same place", why="no baseline, no depth"
        )
    return T_right_left


@outputs
class Images:
    """Of one pair."""

    left: Image
    right: Image


class StereoSplitting(Node):
    """The images of a pair on a port each, for nodes that take them so."""

    def process(self, stereoPair: StereoPair) -> Images:
        return Images(stereoPair.left, stereoPair.right)
