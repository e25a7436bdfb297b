"""Projection and triangulation with a rectified stereo pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.types import Image

from ..vision.rectification import (
    CALIBRATIONS,
    disparity_camera,
    is_rectified,
    pair_baseline,
    require_camera,
    zero_disparity,
)


@dataclass(frozen=True)
class StereoRig:
    """A rectified stereo pair."""

    fx: float  # px, of the left camera, as are the next three
    fy: float
    cx: float
    cy: float
    baseline: float  # m
    width: int  # px
    height: int
    offset: float = 0.0  # px, disparity at infinity: difference of the principal points

    @property
    def K(self) -> Floats:
        """(3, 3) intrinsic matrix."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    def points(self, pixels: Floats) -> Floats:
        """Triangulate left column, left row, right column (n, 3) to points (n, 3), m, in the left camera."""
        depth = self.fx * self.baseline / (pixels[:, 0] - pixels[:, 2] - self.offset)
        x = (pixels[:, 0] - self.cx) * depth / self.fx
        y = (pixels[:, 1] - self.cy) * depth / self.fy
        return np.stack([x, y, depth], axis=1)

    def pixels(self, points: Floats) -> Floats:
        """Project points (n, 3) to left column, left row, right column (n, 3); NaN behind the camera."""
        x, y, z = points.T
        z = np.where(z > 0, z, np.nan)
        left = self.fx * x / z + self.cx
        right = left - self.fx * self.baseline / z - self.offset
        return np.stack([left, self.fy * y / z + self.cy, right], axis=1)

    def depth_sigma(self, points: Floats, noise_px: float) -> Floats:
        """Return the sigma (n,) of the depth of points (n, 3), m, by that of their disparity."""
        return points[:, 2] ** 2 * noise_px / (self.fx * self.baseline)


def stereo_rig_of(left: Image, right: Image) -> StereoRig:
    """Return the stereo rig of two rectified images.

    Raises
    ------
    TransectError
        If the images are not rectified, or the baseline is not known.
    """
    first, second = require_camera(left), require_camera(right)
    if is_rectified(first) and is_rectified(second) and not pair_baseline(first, second) > 0:
        raise TransectError(
            "the baseline of the stereo pair is not known",
            where=f"camera {second.name}",
            why="its P has no -fx * baseline at row 0, column 3",
            hint=f"provide {CALIBRATIONS}",
        )
    camera = disparity_camera(left, right)
    K = camera.K
    return StereoRig(
        float(K[0, 0]), float(K[1, 1]), float(K[0, 2]), float(K[1, 2]), camera.baseline,
        left.width, left.height, zero_disparity(camera, second),
    )  # fmt: skip
