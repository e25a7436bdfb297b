"""Chessboards as calibration targets, and the detection of their corners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Bytes, Floats, Singles
from transect.errors import TransectError

REFINEMENT_WINDOW_PX = 2, 5
"""Smallest and largest half-width of the window in which a corner is refined."""


@dataclass(frozen=True)
class Chessboard:
    """A chessboard."""

    columns: int  # inner corners along a row
    rows: int  # inner corners along a column
    width: float  # m, of one square
    height: float  # m

    @property
    def points(self) -> Floats:
        """Corners (n, 3) on the board in metres: x along rows, y down, z = 0; row by row."""
        row, column = np.divmod(np.arange(self.columns * self.rows), self.columns)
        return np.stack([column * self.width, row * self.height, np.zeros(row.size)], axis=1)

    @property
    def diagonal(self) -> float:
        """Length in metres from corner to corner of the board, one square beyond the inner corners."""
        return float(np.hypot((self.columns + 1) * self.width, (self.rows + 1) * self.height))

    def corners(self, gray: Bytes) -> Floats | None:
        """Return the corners (n, 2) in pixels, ordered as `points`; None if not all are visible."""
        import cv2

        found = self._find(gray)
        if (
            found is None and gray.size < 500_000
        ):  # squares of distant boards have a few pixels in small images
            larger = cv2.resize(gray, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
            found = self._find(np.asarray(larger, np.uint8))
            # The centre of the first pixel is at (0, 0) in both images.
            found = None if found is None else ((found + 0.5) / 2 - 0.5).astype(np.float32)
        if found is None:
            return None
        until = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_MAX_ITER, 50, 1e-3)
        # From half a square on, the window would contain the next corner.
        window = int(np.clip(0.4 * self._smallest_square(found), *REFINEMENT_WINDOW_PX))
        refined = cv2.cornerSubPix(gray, np.ascontiguousarray(found), (window, window), (-1, -1), until)
        return np.asarray(refined, np.float64).reshape(-1, 2)

    def _find(self, gray: Bytes) -> Singles | None:
        """Return the corners (n, 1, 2), accurate to about a pixel; None if not all are found."""
        import cv2

        flags = cv2.CALIB_CB_ADAPTIVE_THRESH | cv2.CALIB_CB_NORMALIZE_IMAGE
        found, corners = cv2.findChessboardCorners(gray, (self.columns, self.rows), flags=flags)
        return np.asarray(corners, np.float32) if found else None

    def _smallest_square(self, corners: Singles) -> float:
        """Return the shortest distance in pixels between neighbouring corners."""
        grid = corners.reshape(self.rows, self.columns, 2)
        return min(float(np.linalg.norm(np.diff(grid, axis=axis), axis=-1).min()) for axis in (0, 1))


def require_boards(found: int, images: int, min_boards: int, what: str) -> None:
    """Raise if the board was found in too few images."""
    if found < min_boards:
        raise TransectError(
            f"{found} boards are too few to calibrate {what}",
            why=f"{images} images were searched, and at least {min_boards} must show the whole chessboard",
            hint="`columns` and `rows` count inner corners; show it near and far, tilted, and at the edges",
        )
