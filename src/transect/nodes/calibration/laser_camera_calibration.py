"""How a planar laser and a camera are mounted, from a chessboard that both see."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.calibration.chessboards import Chessboard, enough_boards
from transect.algorithms.calibration.laser_camera import FEWEST, Mount, Sighting, mount_from_boards
from transect.algorithms.vision.gray_images import gray_of
from transect.algorithms.vision.rectification import require_camera
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine import Batch, Node, Unit, outputs, param
from transect.geometry import rotations, se3
from transect.geometry.planar import points_from_polar
from transect.types import CameraModel, Image, LaserScan, Transform

from ._board_params import WithBoard

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
    least_boards: int = param(8, ge=FEWEST, doc="smallest number of board positions seen by both sensors")

    def reset(self) -> None:
        self.sightings: list[Sighting] = []
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
        self.sightings += [Sighting(plane[0], plane[1], points) for points in found]
        self.seen += bool(found)
        return CalibratedMount(found=bool(found))

    def finish(self) -> CalibratedMount | None:
        if not self.looked:
            return None
        enough_boards(self.seen, self.looked, self.least_boards, "laser and camera")
        mount = mount_from_boards(self.sightings)
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


def _describe(mount: Mount, laser: str, camera: str) -> list[str]:
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
        else f"how sure this is cannot be told: the board was held at {mount.places} places only"
    )
    left_out, size = np.count_nonzero(~mount.used), f"{1000 * mount.rms:.2g} mm RMS"
    off = f"; {left_out} of {len(mount.used)} sightings do not fit and are left out" if left_out else ""
    return [
        f"{camera} in {laser}: x, y, z = {place} m; roll, pitch, yaw = {turn} deg",
        sure,
        f"points of the laser miss the board, held at {mount.places} places, by {size}{off}",
    ]


def _list(values: Floats) -> str:
    return ", ".join(f"{each:.2g}" for each in values)
