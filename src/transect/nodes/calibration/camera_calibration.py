"""A camera's focal length, centre and lens, from pictures of a chessboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.calibration.chessboards import Chessboard, enough_boards
from transect.algorithms.vision.gray_images import gray_of
from transect.base.arrays import Floats
from transect.engine import Node, Unit, outputs, param
from transect.types import CameraModel, Image

from ._board_params import WithBoard


@outputs
class CalibratedCamera:
    """Whether each image showed the board, and at the end what all of them tell.

    Attributes
    ----------
    found : bool
    camera : CameraModel
        With a lens of five coefficients (`radtan`).
    rms : float
        Root mean square distance of all corners to where the calibration puts them, pixels.
    errors : (n,) array
        The same for each board, in the order of the images that showed it.
    sigma : (4,) array
        Standard deviations of fx, fy, cx, cy, pixels.
    """

    found: bool | None = None
    camera: CameraModel | None = None
    rms: Annotated[float, Unit("px")] | None = None
    errors: Annotated[NDArray[np.float64], Unit("px")] | None = None
    sigma: Annotated[NDArray[np.float64], Unit("px")] | None = None


class Fit(NamedTuple):
    """A camera, and how well it fits its boards, as in `CalibratedCamera`."""

    camera: CameraModel
    rms: float
    errors: Floats
    sigma: Floats


class CameraCalibration(WithBoard, Node):
    """Calibrates a camera from images of a chessboard in many places (Zhang 2000, by OpenCV).

    When the images end it gives the camera, or an error if too few of them showed the board.
    """

    least_boards: int = param(8, ge=3, doc="smallest number of images in which the board is found")

    def reset(self) -> None:
        self.corners: list[Floats] = []
        self.looked = 0
        self.last: Image | None = None

    def process(self, image: Image) -> CalibratedCamera:
        found = self.board.corners(gray_of(image))
        self.looked, self.last = self.looked + 1, image
        if found is not None:
            self.corners.append(found)
        return CalibratedCamera(found=found is not None)

    def finish(self) -> CalibratedCamera | None:
        if self.last is None:
            return None
        enough_boards(len(self.corners), self.looked, self.least_boards, "a camera")
        fit = fit_camera(self.corners, self.board, self.last)
        return CalibratedCamera(camera=fit.camera, rms=fit.rms, errors=fit.errors, sigma=fit.sigma)


def fit_camera(corners: Sequence[Floats], board: Chessboard, image: Image) -> Fit:
    """Calibrate from the corners (n, 2) of a board in several images; one of them tells size and name."""
    import cv2

    size = image.width, image.height
    points = [board.points.astype(np.float32)] * len(corners)
    seen = [each.astype(np.float32) for each in corners]
    found = cv2.calibrateCameraExtended(points, seen, size, np.eye(3), np.zeros(5))
    rms, K, lens, _, _, sigma, _, errors = (np.asarray(each, np.float64) for each in found)
    name = image.camera.name if image.camera else image.frame
    camera = CameraModel(name, *size, K, "radtan", lens.ravel(), frame=image.frame)
    return Fit(camera, float(rms), errors.ravel(), sigma.ravel()[:4])
