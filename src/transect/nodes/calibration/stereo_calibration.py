"""Both cameras of a pair and how they stand to each other, from pictures of a chessboard."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.calibration.chessboards import Chessboard, enough_boards
from transect.algorithms.vision.gray_images import gray_of
from transect.base.arrays import Floats
from transect.engine import Node, Synced, Unit, outputs, param
from transect.geometry import se3
from transect.geometry.rectification import rectify_pair
from transect.types import CameraModel, Image, Transform

from ._board_params import WithBoard
from .camera_calibration import fit_camera


@outputs
class CalibratedPair:
    """Whether each pair showed the board, and at the end what all of them tell.

    Attributes
    ----------
    found : bool
        Whether both images showed it.
    leftCamera, rightCamera : CameraModel
        With the `R` and `P` that rectify the pair.
    transform : Transform
        Takes points of the left camera to the right one; metres.
    rms : float
        Root mean square distance of all corners to where the calibration puts them, pixels.
    errors : (n, 2) array
        The same for each board, left and right.
    rows_apart : float
        Root mean square difference of the rows of a corner after rectification, pixels.
    """

    found: bool | None = None
    leftCamera: CameraModel | None = None
    rightCamera: CameraModel | None = None
    transform: Transform | None = None
    rms: Annotated[float, Unit("px")] | None = None
    errors: Annotated[NDArray[np.float64], Unit("px")] | None = None
    rows_apart: Annotated[float, Unit("px")] | None = None


class StereoCalibration(WithBoard, Node):
    """Calibrates a pair of cameras from images of a chessboard in many places (OpenCV).

    Each camera is calibrated alone first, then both together. When the images end it gives the pair, or an
    error if too few of them showed the board on both sides.
    """

    square: float = param(
        0.025, gt=0, unit="m", doc="width of a square of the board; it sets the scale of the baseline"
    )
    least_boards: int = param(8, ge=3, doc="smallest number of image pairs in which the board is found")

    def reset(self) -> None:
        self.corners: list[tuple[Floats, Floats]] = []
        self.looked = 0
        self.last: tuple[Image, Image] | None = None

    def process(self, left: Image, right: Annotated[Image, Synced(0.005)]) -> CalibratedPair:
        first = self.board.corners(gray_of(left))
        second = None if first is None else self.board.corners(gray_of(right))
        self.looked, self.last = self.looked + 1, (left, right)
        if first is not None and second is not None:
            self.corners.append((first, second))
        return CalibratedPair(found=first is not None and second is not None)

    def finish(self) -> CalibratedPair | None:
        if self.last is None:
            return None
        enough_boards(len(self.corners), self.looked, self.least_boards, "a pair")
        return calibrate_pair(self.corners, self.board, *self.last)


def calibrate_pair(
    corners: list[tuple[Floats, Floats]], board: Chessboard, left: Image, right: Image
) -> CalibratedPair:
    """Calibrate from the corners (n, 2) of a board in several pairs; one of them tells sizes and names."""
    import cv2

    sides = [list(side) for side in zip(*corners, strict=True)]
    alone = [fit_camera(side, board, image).camera for side, image in zip(sides, (left, right), strict=True)]
    points = [board.points.astype(np.float32)] * len(corners)
    seen = [[each.astype(np.float32) for each in side] for side in sides]
    found: Any = cv2.stereoCalibrateExtended(
        points, seen[0], seen[1], alone[0].K, alone[0].coefficients, alone[1].K, alone[1].coefficients,
        (left.width, left.height), np.eye(3), np.zeros((3, 1)), flags=cv2.CALIB_USE_INTRINSIC_GUESS,
    )  # fmt: skip
    rms, K_left, lens_left, K_right, lens_right, turn, shift, *_, errors = found
    T_right_left = se3.from_matrix(turn, np.ravel(shift))
    first, second = rectify_pair(
        dataclasses.replace(alone[0], K=K_left, coefficients=np.ravel(lens_left)),
        dataclasses.replace(alone[1], K=K_right, coefficients=np.ravel(lens_right)),
        T_right_left,
    )
    return CalibratedPair(
        leftCamera=first,
        rightCamera=second,
        transform=Transform(target=right.frame, source=left.frame, matrix=T_right_left),
        rms=float(rms),
        errors=np.asarray(errors, np.float64),
        rows_apart=_rows_apart(corners, first, second),
    )


def _rows_apart(corners: list[tuple[Floats, Floats]], left: CameraModel, right: CameraModel) -> float:
    """Return by how many pixels, root mean square, rows of a corner differ after rectification."""
    import cv2

    rows = [
        cv2.undistortPoints(
            np.concatenate(side)[:, None], camera.K, camera.coefficients, R=camera.R, P=camera.P
        )
        for side, camera in zip(zip(*corners, strict=True), (left, right), strict=True)
    ]
    return float(np.sqrt(np.mean((rows[0][..., 1] - rows[1][..., 1]) ** 2)))
