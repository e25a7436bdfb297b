"""Camera models, images and depth maps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats

from ._fields import NOWHERE


def _no_coefficients() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class CameraModel:
    """Intrinsics, distortion and rectification of a camera.

    `frame` is the frame of the optical centre: x right, y down, z forward.
    """

    name: str  # Name of the camera in its recording
    width: int  # Pixels; 0 if unknown
    height: int  # Pixels; 0 if unknown
    K: Floats  # (3, 3) intrinsic matrix in pixels; the centre of the top-left pixel is (0, 0)
    # `none`, `radtan` (k1 k2 p1 p2 [k3 [k4 k5 k6]], OpenCV order) or `equidistant` (k1 k2 k3 k4)
    distortion: str = "none"
    coefficients: Floats = field(default_factory=_no_coefficients)  # (n,) in the order of `distortion`
    # (3, 3) rectifying rotation: transforms points of the camera frame to the rectified frame
    R: Floats = field(default_factory=lambda: np.eye(3))
    # (3, 4) projection after rectification; ``P[0, 3] = -fx * baseline`` for the right camera of a pair
    P: Floats | None = None
    frame: str = NOWHERE
    invented: bool = False  # True if the values are assumed, not calibrated

    @property
    def baseline(self) -> float:
        """Distance to the other camera of a rectified pair in metres, from `P`; NaN if unknown."""
        if self.P is None:
            return float("nan")
        return float(-self.P[0, 3] / self.P[0, 0])

    def same_as(self, other: CameraModel, tolerance: float = 0.0) -> bool:
        """Return whether two calibrations agree to `tolerance` (absolute, in each number)."""

        def close(a: Floats | None, b: Floats | None) -> bool:
            if a is None or b is None:
                return a is b
            return a.shape == b.shape and bool(np.allclose(a, b, rtol=0.0, atol=tolerance, equal_nan=True))

        return (
            (self.width, self.height, self.distortion) == (other.width, other.height, other.distortion)
            and close(self.K, other.K)
            and close(self.coefficients, other.coefficients)
            and close(self.R, other.R)
            and close(self.P, other.P)
        )


@dataclass(frozen=True, eq=False)
class Image:
    """An image with its pixel format and camera."""

    data: NDArray[Any]  # (h, w) or (h, w, channels) uint8, uint16 or float32
    mode: str = "gray"  # `gray`, `rgb`, `rgba`, `bgr`, `bayer_rggb` (and the other three), `thermal`
    t_ns: int = 0
    frame: str = NOWHERE
    camera: CameraModel | None = None  # Intrinsics and distortion, if known
    valid: NDArray[np.bool_] | None = None  # (h, w) pixels that were measured; None means all

    @property
    def height(self) -> int:
        """Rows."""
        return int(self.data.shape[0])

    @property
    def width(self) -> int:
        """Columns."""
        return int(self.data.shape[1])


@dataclass(frozen=True, eq=False)
class DepthMap:
    """Depth along the optical axis per pixel."""

    data: NDArray[np.float32]  # (h, w) depth z in metres; NaN if not measured
    t_ns: int = 0
    frame: str = NOWHERE
    camera: CameraModel | None = None  # Camera whose optical axis it is
