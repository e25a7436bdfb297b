"""Cameras and what they deliver."""

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
    """A calibrated camera.

    Attributes
    ----------
    name : str
        The camera's name in its recording.
    width, height : int
        Image size in pixels; 0 where the source does not say.
    K : (3, 3) array
        Intrinsic matrix, pixels; centre of the top-left pixel is (0, 0).
    distortion : str
        `none`, `radtan` (k1 k2 p1 p2 [k3 [k4 k5 k6]], OpenCV order) or `equidistant` (k1 k2 k3 k4).
    coefficients : (n,) array
        Distortion coefficients in the order of `distortion`.
    R : (3, 3) array
        Rectifying rotation: takes points of the camera frame to the rectified frame.
    P : (3, 4) array or None
        Projection after rectification; for the right camera of a pair ``P[0, 3] = -fx * baseline``.
    frame : str
        Frame of the optical centre: x right, y down, z forward.
    invented : bool
        True where the values are a guess and not a calibration.
    """

    name: str
    width: int
    height: int
    K: Floats
    distortion: str = "none"
    coefficients: Floats = field(default_factory=_no_coefficients)
    R: Floats = field(default_factory=lambda: np.eye(3))
    P: Floats | None = None
    frame: str = NOWHERE
    invented: bool = False

    @property
    def baseline(self) -> float:
        """Distance to the other camera of a rectified pair in metres, from `P`; NaN if unknown."""
        if self.P is None:
            return float("nan")
        return float(-self.P[0, 3] / self.P[0, 0])

    def same_as(self, other: CameraModel, tolerance: float = 0.0) -> bool:
        """Tell whether two calibrations agree to `tolerance` (absolute, in each number)."""

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
    """One picture.

    Attributes
    ----------
    data : (h, w) or (h, w, channels) array
        Pixels, uint8 or uint16 or float32.
    mode : str
        `gray`, `rgb`, `rgba`, `bgr`, `bayer_rggb` (and the other three), `thermal`.
    camera : CameraModel or None
        Intrinsics and distortion, where known.
    valid : (h, w) bool array or None
        Pixels that were measured; None means all.
    """

    data: NDArray[Any]
    mode: str = "gray"
    t_ns: int = 0
    frame: str = NOWHERE
    camera: CameraModel | None = None
    valid: NDArray[np.bool_] | None = None

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
    """Distance along the optical axis per pixel.

    Attributes
    ----------
    data : (h, w) float32 array
        Depth z in metres; NaN where not measured.
    camera : CameraModel or None
        Whose optical axis it is.
    """

    data: NDArray[np.float32]
    t_ns: int = 0
    frame: str = NOWHERE
    camera: CameraModel | None = None
