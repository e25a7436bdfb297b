"""Which images were taken together, by cameras that stand fixed to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.errors import FrameError, TransectError
from transect.geometry import se3
from transect.types import CameraModel

from ..transforms import Transforms


@dataclass(frozen=True, eq=False)
class CameraRig:
    """How images hang together.

    Attributes
    ----------
    body : list of int
        Of each image the number of the moment at which it was taken.
    T_body_camera : (m, 4, 4)
        Of each image where its camera is on the rig; the first camera of a moment is the body.
    """

    body: list[int]
    T_body_camera: Floats

    @property
    def bodies(self) -> int:
        """How many moments there are."""
        return self.body[-1] + 1

    @property
    def scaled(self) -> bool:
        """Whether two cameras at a known distance give the scene its size."""
        return self.bodies < len(self.body)


def camera_rig_of(cameras: Sequence[CameraModel], frames: Transforms) -> CameraRig:
    """Return how images hang together: one camera moves, or pairs left, right, left, right, ....

    How the second camera of a pair stands is taken from the projections of a rectified pair, else from the
    recording's frames.
    """
    alike = [camera.same_as(cameras[0]) and camera.frame == cameras[0].frame for camera in cameras]
    if all(alike):
        return CameraRig(list(range(len(cameras))), np.tile(np.eye(4), (len(cameras), 1, 1)))
    if len(cameras) % 2 or not all(alike[::2]) or any(alike[1::2]):
        raise TransectError(
            "these images are neither of one camera nor of stereo pairs",
            why="cameras: " + ", ".join(camera.name or "?" for camera in cameras),
            hint="give them in the order left, right, left, right, ...",
        )
    pair = np.stack([np.eye(4), _second_in_first(cameras[0], cameras[1], frames)])
    return CameraRig([image // 2 for image in range(len(cameras))], np.tile(pair, (len(cameras) // 2, 1, 1)))


def _second_in_first(first: CameraModel, second: CameraModel, frames: Transforms) -> Floats:
    """Return ``T_first_second`` (4, 4) of two cameras."""
    rectified = first.distortion == second.distortion == "none" and second.P is not None
    if rectified and second.P is not None:
        shift = second.P[0, 3] - (first.P[0, 3] if first.P is not None else 0.0)
        if shift:
            return se3.from_matrix(np.eye(3), [-shift / second.P[0, 0], 0.0, 0.0])
    try:
        return frames.lookup(first.frame, second.frame)
    except FrameError as error:
        raise TransectError(
            f"it is not known how the cameras {first.name!r} and {second.name!r} stand to each other",
            why=f"neither a projection matrix with a baseline, nor the frames, say it: {error.what}",
            hint="give the stereo calibration: P of the right camera, or the transform between the two",
        ) from error
