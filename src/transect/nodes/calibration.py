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
    """Parameters of a chessboard, for nodes that detect one."""

    columns: int = param(9, ge=3, doc="number of inner corners along a row of the calibration board")
    rows: int = param(6, ge=3, doc="number of inner corners along a column of the calibration board")
    square: float = param(0.025, gt=0, unit="m", doc="width of a square of the board")
    square_height: float = param(
        0.0, ge=0, unit="m", doc="height of a square of the board; 0: equal to its width"
    )

    @property
    def board(self) -> Chessboard:
        """The board to detect."""
        return Chessboard(self.columns, self.rows, self.square, self.square_height or self.square)


@outputs
class CalibratedCamera:
    """Whether the board was found in each image; at the end, the calibration."""

    found: bool | None = None
    camera: CameraModel | None = None  # with five distortion coefficients (`radtan`)
    rms: Annotated[float, Unit("px")] | None = None  # RMS reprojection error of all corners
    errors: Annotated[NDArray[np.float64], Unit("px")] | None = None  # (n,) the same for each board found
    sigma: Annotated[NDArray[np.float64], Unit("px")] | None = None  # (4,) of fx, fy, cx, cy


class CameraFit(NamedTuple):
    """A calibrated camera and its residuals, as in `CalibratedCamera`."""

    camera: CameraModel
    rms: float
    errors: Floats
    sigma: Floats


class CameraCalibration(WithBoard, Node):
    """Calibrates a camera from images of a chessboard in different poses (Zhang 2000, from OpenCV).

    Emits the camera after the last image, or raises if the board was found in too few of them.
    """

    min_boards: int = param(8, ge=3, doc="smallest number of images in which the board is found")

    def reset(self) -> None:
        self.corners: list[Floats] = []
        self.images = 0
        self.last: Image | None = None

    def process(self, image: Image) -> CalibratedCamera:
        found = self.board.corners(gray_of(image))
        self.images, self.last = self.images + 1, image
        if found is not None:
            self.corners.append(found)
        return CalibratedCamera(found=found is not None)

    def finish(self) -> CalibratedCamera | None:
        if self.last is None:
            return None
        require_boards(len(self.corners), self.images, self.min_boards, "a camera")
        fit = fit_camera(self.corners, self.board, self.last)
        return CalibratedCamera(camera=fit.camera, rms=fit.rms, errors=fit.errors, sigma=fit.sigma)


def fit_camera(corners: Sequence[Floats], board: Chessboard, image: Image) -> CameraFit:
    """Calibrate from the corners (n, 2) of a board in several images; size and name are those of `image`."""
    import cv2

    size = image.width, image.height
    points = [board.points.astype(np.float32)] * len(corners)
    seen = [each.astype(np.float32) for each in corners]
    found = cv2.calibrateCameraExtended(points, seen, size, np.eye(3), np.zeros(5))
    rms, K, lens, _, _, sigma, _, errors = (np.asarray(each, np.float64) for each in found)
    name = image.camera.name if image.camera else image.frame
    camera = CameraModel(name, *size, K, "radtan", lens.ravel(), frame=image.frame)
    return CameraFit(camera, float(rms), errors.ravel(), sigma.ravel()[:4])


@outputs
class CalibratedPair:
    """Whether the board was found in both images of each pair; at the end, the calibration."""

    found: bool | None = None
    leftCamera: CameraModel | None = None  # with the `R` and `P` that rectify the pair
    rightCamera: CameraModel | None = None
    transform: Transform | None = None  # takes points of the left camera to the right one; m
    rms: Annotated[float, Unit("px")] | None = None  # RMS reprojection error of all corners
    errors: Annotated[NDArray[np.float64], Unit("px")] | None = (
        None  # (n, 2) the same per board, left and right
    )
    rows_apart: Annotated[float, Unit("px")] | None = (
        None  # RMS row difference of corners after rectification
    )


class StereoCalibration(WithBoard, Node):
    """Calibrates a stereo pair from images of a chessboard in different poses (OpenCV).

    Each camera is calibrated separately first, then both together. Emits the pair after the last images, or
    raises if the board was found in too few pairs.
    """

    square: float = param(
        0.025, gt=0, unit="m", doc="width of a square of the board; it sets the scale of the baseline"
    )
    min_boards: int = param(8, ge=3, doc="smallest number of image pairs in which the board is found")

    def reset(self) -> None:
        self.corners: list[tuple[Floats, Floats]] = []
        self.images = 0
        self.last: tuple[Image, Image] | None = None

    def process(self, left: Image, right: Annotated[Image, Synced(0.005)]) -> CalibratedPair:
        first = self.board.corners(gray_of(left))
        second = None if first is None else self.board.corners(gray_of(right))
        self.images, self.last = self.images + 1, (left, right)
        if first is not None and second is not None:
            self.corners.append((first, second))
        return CalibratedPair(found=first is not None and second is not None)

    def finish(self) -> CalibratedPair | None:
        if self.last is None:
            return None
        require_boards(len(self.corners), self.images, self.min_boards, "a pair")
        return calibrate_pair(self.corners, self.board, *self.last)


def calibrate_pair(
    corners: list[tuple[Floats, Floats]], board: Chessboard, left: Image, right: Image
) -> CalibratedPair:
    """Calibrate from the corners (n, 2) of a board in several pairs of images like `left` and `right`."""
    import cv2

    sides = [list(side) for side in zip(*corners, strict=True)]
    single = [fit_camera(side, board, image).camera for side, image in zip(sides, (left, right), strict=True)]
    points = [board.points.astype(np.float32)] * len(corners)
    seen = [[each.astype(np.float32) for each in side] for side in sides]
    found: Any = cv2.stereoCalibrateExtended(
        points, seen[0], seen[1], single[0].K, single[0].coefficients, single[1].K, single[1].coefficients,
        (left.width, left.height), np.eye(3), np.zeros((3, 1)), flags=cv2.CALIB_USE_INTRINSIC_GUESS,
    )  # fmt: skip
    rms, K_left, lens_left, K_right, lens_right, rotation, translation, *_, errors = found
    T_right_left = se3.from_matrix(rotation, np.ravel(translation))
    first, second = rectify_pair(
        dataclasses.replace(single[0], K=K_left, coefficients=np.ravel(lens_left)),
        dataclasses.replace(single[1], K=K_right, coefficients=np.ravel(lens_right)),
        T_right_left,
    )
    return CalibratedPair(
        leftCamera=first,
        rightCamera=second,
        transform=Transform(target=right.frame, source=left.frame, matrix=T_right_left),
        rms=float(rms),
        errors=np.asarray(errors, np.float64),
        rows_apart=_row_difference(corners, first, second),
    )


def _row_difference(corners: list[tuple[Floats, Floats]], left: CameraModel, right: CameraModel) -> float:
    """Return the RMS difference (px) of the rows of corners after rectification."""
    import cv2

    rows = [
        cv2.undistortPoints(
            np.concatenate(side)[:, None], camera.K, camera.coefficients, R=camera.R, P=camera.P
        )
        for side, camera in zip(zip(*corners, strict=True), (left, right), strict=True)
    ]
    return float(np.sqrt(np.mean((rows[0][..., 1] - rows[1][..., 1]) ** 2)))


@outputs
class CalibratedMount:
    """Whether laser and camera both saw the board; at the end, the transform between them."""

    found: bool | None = None
    transform: Transform | None = None  # takes points of the camera to the laser; m
    # RMS distance of laser points to the planes of the boards, without sightings whose error exceeds five
    # times the median.
    rms: Annotated[float, Unit("m")] | None = None
    errors: Annotated[NDArray[np.float64], Unit("m")] | None = None  # (n,) the same for every sighting
    sigma: NDArray[np.float64] | None = (
        None  # (6,) of the transform: m along the camera's axes, rad about them
    )


class LaserCameraCalibration(WithBoard, Node):
    """Estimates the transform between a planar laser and a calibrated camera (Pless and Zhang 2004).

    The laser's points on the board are the straight segment of a sweep that is at most as long as the board
    and at about the distance that the camera measures. All sweeps shortly before the image are used, so the
    board must be held still. Emits the transform after the last data, or raises if too few boards were seen
    by both or their orientations are too similar.
    """

    calibrated = ("image",)

    square: float = param(0.075, gt=0, unit="m", doc="width of a square of the board")
    max_baseline: float = param(1.0, gt=0, unit="m", doc="largest distance between laser and camera")
    max_scan_age: float = param(0.1, gt=0, unit="s", doc="time before an image from which sweeps are used")
    max_gap: float = param(
        0.1, gt=0, unit="m", doc="distance between neighbouring laser points at which a board ends"
    )
    max_line_error: float = param(
        0.03,
        gt=0,
        unit="m",
        doc="largest RMS distance of points on a board from a line: three sigma of a range",
    )
    min_boards: int = param(8, ge=MIN_BOARDS, doc="smallest number of board positions seen by both sensors")

    def reset(self) -> None:
        self.sightings: list[BoardSighting] = []
        self.seen = self.images = 0
        self.frames = ("", "")

    def process(self, image: Image, scan: Batch[LaserScan]) -> CalibratedMount:
        recent = [each for each in scan if image.t_ns - each.t_ns <= self.max_scan_age * NS]
        self.images += 1
        plane = board_plane(gray_of(image), require_camera(image), self.board) if recent else None
        if plane is None:
            return CalibratedMount(found=False)
        self.frames = recent[-1].frame, image.frame
        found = [points for each in recent if (points := self._points_on_board(each, plane[2])) is not None]
        self.sightings += [BoardSighting(plane[0], plane[1], points) for points in found]
        self.seen += bool(found)
        return CalibratedMount(found=bool(found))

    def finish(self) -> CalibratedMount | None:
        if not self.images:
            return None
        require_boards(self.seen, self.images, self.min_boards, "laser and camera")
        mount = estimate_mount(self.sightings)
        laser, camera = self.frames
        for sentence in _describe(mount, laser, camera):
            self.ctx.conclude(sentence)
        return CalibratedMount(
            transform=Transform(target=laser, source=camera, matrix=se3.invert(mount.T_camera_laser)),
            rms=mount.rms,
            errors=mount.errors,
            sigma=mount.sigma,
        )

    def _points_on_board(self, scan: LaserScan, distance: float) -> Floats | None:
        """Return the laser's points (n, 2) on the board, whose centre is `distance` m from the camera."""
        segments = board_segments(scan, self.board.diagonal, self.max_gap, self.max_line_error)
        differences = [abs(float(np.linalg.norm(each.mean(axis=0))) - distance) for each in segments]
        if not segments or min(differences) > self.max_baseline + self.board.diagonal / 2:
            return None
        return segments[int(np.argmin(differences))]


def board_plane(
    gray: NDArray[np.uint8], camera: CameraModel, board: Chessboard
) -> tuple[Floats, float, float] | None:
    """Return the plane of a board in the camera: unit normal (3,), distances of plane and board (m)."""
    import cv2

    corners = board.corners(gray)
    if corners is None:
        return None
    lens = camera.coefficients if camera.distortion != "none" else None
    _, rotation, translation = cv2.solvePnP(board.points, corners, camera.K, lens)
    normal = cv2.Rodrigues(rotation)[0][:, 2]
    centre = cv2.Rodrigues(rotation)[0] @ board.points.mean(axis=0) + translation.ravel()
    distance = float(normal @ centre)
    return np.sign(distance) * normal, abs(distance), float(np.linalg.norm(centre))


def board_segments(
    scan: LaserScan,
    diagonal: float,
    max_gap: float = 0.1,
    max_line_error: float = 0.03,
    min_points: int = 5,
) -> list[Floats]:
    """Return the segments (n, 2) of a sweep, m, that are straight and as long as a board of this diagonal."""
    points = points_from_polar(scan.measured, scan.angles)[:, :2]
    with np.errstate(invalid="ignore"):
        ends = ~(np.linalg.norm(np.diff(points, axis=0), axis=1) < max_gap)
    segments = np.split(points, np.flatnonzero(ends) + 1)
    return [
        each for each in segments if len(each) >= min_points and _is_board(each, diagonal, max_line_error)
    ]


def _is_board(segment: Floats, diagonal: float, max_line_error: float) -> bool:
    if not np.isfinite(segment).all():
        return False
    extent = np.linalg.svd(segment - segment.mean(axis=0), compute_uv=False)
    length = float(np.linalg.norm(segment[-1] - segment[0]))
    is_straight = extent[1] / np.sqrt(len(segment)) < max_line_error
    return bool(is_straight and 0.2 * diagonal < length <= 1.1 * diagonal)


def _describe(mount: LaserCameraMount, laser: str, camera: str) -> list[str]:
    """Return sentences: the transform, its uncertainty, and the residuals of the boards."""
    laser, camera = laser or "the laser", camera or "the camera"
    T_laser_camera = se3.invert(mount.T_camera_laser)
    position = ", ".join(f"{each:.3f}" for each in T_laser_camera[:3, 3])
    angles = rotations.euler_from_matrix("rpy", T_laser_camera[:3, :3])
    attitude = ", ".join(f"{each:.2f}" for each in np.degrees(angles))
    uncertainty = (
        f"one sigma is {_list(mount.sigma[:3])} m along the axes of {camera} and "
        f"{_list(np.degrees(mount.sigma[3:]))} deg about them"
        if np.isfinite(mount.sigma).all()
        else f"the uncertainty is not known: the board had only {mount.positions} positions"
    )
    outliers, size = np.count_nonzero(~mount.used), f"{1000 * mount.rms:.2g} mm RMS"
    rejected = f"; {outliers} of {len(mount.used)} sightings are outliers" if outliers else ""
    return [
        f"{camera} in {laser}: x, y, z = {position} m; roll, pitch, yaw = {attitude} deg",
        uncertainty,
        f"distance of laser points to the board, at {mount.positions} positions: {size}{rejected}",
    ]


def _list(values: Floats) -> str:
    return ", ".join(f"{each:.2g}" for each in values)
