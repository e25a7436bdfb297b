"""Frames of rectified cameras in the frame tree of a recording."""

from __future__ import annotations

import numpy as np

from transect.algorithms.vision.rectification import rectified_frame
from transect.geometry import se3
from transect.recording import FrameTree
from transect.recording.fingerprint import RECTIFICATION
from transect.types import CameraModel


def add_rectified_frame(camera: CameraModel, frames: FrameTree) -> None:
    """Add the rectified frame of a camera to a tree, below the camera's, so that it can be looked up."""
    rectified = rectified_frame(camera)
    if rectified != camera.frame:
        T_camera_rectified = se3.from_matrix(camera.R.T, np.zeros(3))
        frames.add_static(camera.frame, rectified, T_camera_rectified, source=RECTIFICATION, replace=True)
