"""Pairs whose rows correspond."""

from __future__ import annotations

import dataclasses

import numpy as np

from transect.algorithms.vision.rectification import rectify, require_camera
from transect.algorithms.vision.stereo_pairs import is_rectified_pair, pair_baseline, replace_images
from transect.base.arrays import Floats
from transect.engine import Node, param
from transect.errors import FrameError, TransectError
from transect.geometry.rectification import rectify_pair
from transect.nodes.image._rectified_frames import add_rectified_frame
from transect.recording import FrameTree
from transect.types import CameraModel, StereoPair

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
        images = (
            rectify(dataclasses.replace(image, camera=camera))
            for image, camera in zip((pair.left, pair.right), self.known[2:], strict=True)
        )
        return replace_images(pair, *images)

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
