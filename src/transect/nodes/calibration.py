"""Calibration of cameras, stereo pairs and a planar laser with a chessboard."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.calibration.chessboards import Chessboard, require_boards
from transect.algorithms.calibration.laser_camera import (
    MIN_BOARDS,
    BoardSighting,
    LaserCameraMount,
    estimate_mount,
)
from transect.algorithms.vision.image_conversion import gray_of
from transect.algorithms.vision.rectification import require_camera
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine import Batch, Node, Synced, Unit, outputs, param
from transect.geometry import rotations, se3
from transect.geometry.planar import points_from_polar
from transect.geometry.rectification import rectify_pair
from transect.types import CameraModel, Image, LaserScan, Transform


class WithBoard:
    """What nodes that look at a chessboard have in common: its parameters."""

    columns: int = param(9, ge=3, doc="number of inner corners along a row of the calibration board")
    rows: int = param(6, ge=3, doc="number of inner corners along a column of the calibration board")
    square: float = param(0.025, gt=0, unit="m", doc="width of a square of the board")
    square_height: float = param(
        0.0, ge=0, unit="m", doc="height of a square of the board; 0: equal to its width"
    )

    @property
    def board(self) -> Chessboard:
        """The board that is looked for."""
        return Chessboard(self.columns, self.rows, self.square, self.square_height or self.square)


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
        require_boards(len(self.corners), self.looked, self.least_boards, "a camera")
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
        require_boards(len(self.corners), self.looked, self.least_boards, "a pair")
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


JUMP = 0.1
"""Metres between neighbouring laser points at which the board ends."""
STRAIGHT = 0.03
"""Metres, root mean square, that points on a board may be off a line: three deviations of such lasers."""


@outputs
class CalibratedMount:
    """Whether laser and camera both saw the board, and at the end how they stand.

    Attributes
    ----------
    found : bool
    transform : Transform
        Takes points of the camera to the laser; metres.
    rms : float
        What is left: root mean square distance of laser points to the planes of the boards, metres. Sightings
        that miss by more than five times the median are left out.
    errors : (n,) array
        The same for each sighting, also those that were left out.
    sigma : (6,) array
        Standard deviations of the transform: m along the camera's axes, then rad about them.
    """

    found: bool | None = None
    transform: Transform | None = None
    rms: Annotated[float, Unit("m")] | None = None
    errors: Annotated[NDArray[np.float64], Unit("m")] | None = None
    sigma: NDArray[np.float64] | None = None


class LaserCameraCalibration(WithBoard, Node):
    """Finds how a planar laser and a calibrated camera stand (Pless and Zhang 2004).

    The laser's points on the board are the straight piece of a sweep, no longer than the board and about as
    far away as the camera sees it, of all sweeps in a moment before the image: the board must be held still.
    When the data end it gives the transform, or an error if too few boards
    were seen by both or all were tilted alike.
    """

    calibrated = ("image",)

    square: float = param(0.075, gt=0, unit="m", doc="width of a square of the board")
    apart: float = param(1.0, gt=0, unit="m", doc="largest distance between laser and camera")
    within: float = param(0.1, gt=0, unit="s", doc="time before an image from which sweeps are taken")
    least_boards: int = param(8, ge=MIN_BOARDS, doc="smallest number of board positions seen by both sensors")

    def reset(self) -> None:
        self.sightings: list[BoardSighting] = []
        self.seen = self.looked = 0
        self.between = ("", "")

    def process(self, image: Image, scan: Batch[LaserScan]) -> CalibratedMount:
        recent = [each for each in scan if image.t_ns - each.t_ns <= self.within * NS]
        self.looked += 1
        plane = board_plane(gray_of(image), require_camera(image), self.board) if recent else None
        if plane is None:
            return CalibratedMount(found=False)
        self.between = recent[-1].frame, image.frame
        found = [points for each in recent if (points := self._on_board(each, plane[2])) is not None]
        self.sightings += [BoardSighting(plane[0], plane[1], points) for points in found]
        self.seen += bool(found)
        return CalibratedMount(found=bool(found))

    def finish(self) -> CalibratedMount | None:
        if not self.looked:
            return None
        require_boards(self.seen, self.looked, self.least_boards, "laser and camera")
        mount = estimate_mount(self.sightings)
        laser, camera = self.between
        for sentence in _describe(mount, laser, camera):
            self.ctx.conclude(sentence)
        return CalibratedMount(
            transform=Transform(target=laser, source=camera, matrix=se3.invert(mount.T_camera_laser)),
            rms=mount.rms,
            errors=mount.errors,
            sigma=mount.sigma,
        )

    def _on_board(self, scan: LaserScan, reach: float) -> Floats | None:
        """Return the laser's points (n, 2) on the board, whose middle is `reach` metres from the camera."""
        pieces = straight_pieces(scan, self.board.diagonal)
        off = [abs(float(np.linalg.norm(piece.mean(axis=0))) - reach) for piece in pieces]
        if not pieces or min(off) > self.apart + self.board.diagonal / 2:
            return None
        return pieces[int(np.argmin(off))]


def board_plane(
    gray: NDArray[np.uint8], camera: CameraModel, board: Chessboard
) -> tuple[Floats, float, float] | None:
    """Return the plane of a board in the camera: unit normal (3,), its distance, and the board's, m."""
    import cv2

    corners = board.corners(gray)
    if corners is None:
        return None
    lens = camera.coefficients if camera.distortion != "none" else None
    _, turn, shift = cv2.solvePnP(board.points, corners, camera.K, lens)
    normal = cv2.Rodrigues(turn)[0][:, 2]
    middle = cv2.Rodrigues(turn)[0] @ board.points.mean(axis=0) + shift.ravel()
    distance = float(normal @ middle)
    return np.sign(distance) * normal, abs(distance), float(np.linalg.norm(middle))


def straight_pieces(scan: LaserScan, longest: float, fewest: int = 5) -> list[Floats]:
    """Return the pieces (n, 2) of a sweep, in metres, that lie on a line and could be a board."""
    points = points_from_polar(scan.measured, scan.angles)[:, :2]
    with np.errstate(invalid="ignore"):
        ends = ~(np.linalg.norm(np.diff(points, axis=0), axis=1) < JUMP)
    pieces = np.split(points, np.flatnonzero(ends) + 1)
    return [piece for piece in pieces if len(piece) >= fewest and _is_line(piece, longest)]


def _is_line(piece: Floats, longest: float) -> bool:
    if not np.isfinite(piece).all():
        return False
    extent = np.linalg.svd(piece - piece.mean(axis=0), compute_uv=False)
    length = float(np.linalg.norm(piece[-1] - piece[0]))
    return bool(extent[1] / np.sqrt(len(piece)) < STRAIGHT and 0.2 * longest < length <= 1.1 * longest)


def _describe(mount: LaserCameraMount, laser: str, camera: str) -> list[str]:
    """Return sentences: the transform, its uncertainty, and what is left of the boards."""
    laser, camera = laser or "the laser", camera or "the camera"
    T_laser_camera = se3.invert(mount.T_camera_laser)
    place = ", ".join(f"{each:.3f}" for each in T_laser_camera[:3, 3])
    angles = rotations.euler_from_matrix("rpy", T_laser_camera[:3, :3])
    turn = ", ".join(f"{each:.2f}" for each in np.degrees(angles))
    sure = (
        f"one sigma is {_list(mount.sigma[:3])} m along the axes of {camera} and "
        f"{_list(np.degrees(mount.sigma[3:]))} deg about them"
        if np.isfinite(mount.sigma).all()
        else f"how sure this is cannot be told: the board was held at {mount.positions} places only"
    )
    left_out, size = np.count_nonzero(~mount.used), f"{1000 * mount.rms:.2g} mm RMS"
    off = f"; {left_out} of {len(mount.used)} sightings do not fit and are left out" if left_out else ""
    return [
        f"{camera} in {laser}: x, y, z = {place} m; roll, pitch, yaw = {turn} deg",
        sure,
        f"points of the laser miss the board, held at {mount.positions} places, by {size}{off}",
    ]


def _list(values: Floats) -> str:
    return ", ".join(f"{each:.2g}" for each in values)
