"""How a planar laser and a camera are mounted, from a chessboard that both see."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.engine import Node, Synced, Unit, outputs, param
from transect.geometry import se3
from transect.geometry.planar import points_from_polar
from transect.nodes.image._gray import gray_of
from transect.nodes.image._lens import require_camera
from transect.types import CameraModel, Image, LaserScan, Transform

from ._boards import Board, WithBoard, enough_boards
from ._pless_zhang import FEWEST, Sighting, mount_from_boards

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
        Root mean square distance of laser points to the board, metres.
    errors : (n,) array
        The same for each board.
    sigma : (6,) array
        Standard deviations: m along the camera's axes, then rad about them.
    """

    found: bool | None = None
    transform: Transform | None = None
    rms: Annotated[float, Unit("m")] | None = None
    errors: Annotated[NDArray[np.float64], Unit("m")] | None = None
    sigma: NDArray[np.float64] | None = None


class LaserCameraCalibration(WithBoard, Node):
    """Finds how a planar laser and a calibrated camera stand (Pless and Zhang 2004).

    The laser's points on the board are the straight piece of its sweep, no longer than the board and about as
    far away as the camera sees it. When the data end it gives the transform, or an error if too few boards
    were seen by both or all were tilted alike.
    """

    square: float = param(0.075, gt=0, unit="m", doc="width of a square of the board")
    apart: float = param(1.0, gt=0, unit="m", doc="largest distance between laser and camera")
    least_boards: int = param(8, ge=FEWEST, doc="smallest number of board positions seen by both sensors")

    def reset(self) -> None:
        self.sightings: list[Sighting] = []
        self.looked = 0
        self.between = ("", "")

    def process(self, image: Image, scan: Annotated[LaserScan, Synced(0.1)]) -> CalibratedMount:
        self.looked, self.between = self.looked + 1, (scan.frame, image.frame)
        plane = board_plane(gray_of(image), require_camera(image), self.board)
        points = None if plane is None else self._on_board(scan, plane[2])
        if plane is not None and points is not None:
            self.sightings.append(Sighting(plane[0], plane[1], points))
        return CalibratedMount(found=points is not None)

    def finish(self) -> CalibratedMount | None:
        if not self.looked:
            return None
        enough_boards(len(self.sightings), self.looked, self.least_boards, "laser and camera")
        mount = mount_from_boards(self.sightings)
        laser, camera = self.between
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
    gray: NDArray[np.uint8], camera: CameraModel, board: Board
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
