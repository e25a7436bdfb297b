"""A rectified pair of cameras, as odometry needs it."""

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
    """A rectified stereo pair.

    Attributes
    ----------
    fx, fy, cx, cy : float
        Of the left camera, in pixels.
    baseline : float
        Metres.
    width, height : int
        Pixels.
    offset : float
        Pixels of disparity that a point at infinity has: what the principal points differ by, also because
        `StereoOffsetCalibration` moved one.
    """

    fx: float
    fy: float
    cx: float
    cy: float
    baseline: float
    width: int
    height: int
    offset: float = 0.0

    @property
    def K(self) -> Floats:
        """The intrinsic matrix (3, 3)."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    def points(self, pixels: Floats) -> Floats:
        """Points (n, 3) in the left camera, metres, of left column, left row, right column (n, 3)."""
        depth = self.fx * self.baseline / (pixels[:, 0] - pixels[:, 2] - self.offset)
        x = (pixels[:, 0] - self.cx) * depth / self.fx
        y = (pixels[:, 1] - self.cy) * depth / self.fy
        return np.stack([x, y, depth], axis=1)

    def pixels(self, points: Floats) -> Floats:
        """Left column, left row, right column (n, 3) of points (n, 3); NaN behind the camera."""
        x, y, z = points.T
        z = np.where(z > 0, z, np.nan)
        left = self.fx * x / z + self.cx
        right = left - self.fx * self.baseline / z - self.offset
        return np.stack([left, self.fy * y / z + self.cy, right], axis=1)

    def depth_sigma(self, points: Floats, noise: float) -> Floats:
        """Standard deviations (n,) in metres of the depth of points (n, 3); noise is a disparity's, in px."""
        return points[:, 2] ** 2 * noise / (self.fx * self.baseline)


def stereo_rig_of(left: Image, right: Image) -> StereoRig:
    """Return the rectified pair that took two images.

    Raises
    ------
    TransectError
        If the images are not rectified, or no file said how far apart the cameras are.
    """
    first, second = require_camera(left), require_camera(right)
    if is_rectified(first) and is_rectified(second) and not pair_baseline(first, second) > 0:
        raise TransectError(
            "the baseline of the stereo pair is not known",
            where=f"camera {second.name}",
            why="its P has no -fx * baseline at row 0, column 3",
            hint=f"wanted is {CALIBRATIONS}",
        )
    camera = disparity_camera(left, right)
    K = camera.K
    return StereoRig(
        float(K[0, 0]), float(K[1, 1]), float(K[0, 2]), float(K[1, 2]), camera.baseline,
        left.width, left.height, zero_disparity(camera, second),
    )  # fmt: skip
