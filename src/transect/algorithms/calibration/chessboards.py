"""Chessboards: what they are, and where their corners are in an image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Bytes, Floats, Singles
from transect.errors import TransectError

REFINED = 2, 5
"""Pixels around a corner in which it is refined, least and most."""
OF_SQUARE = 0.4
"""Part of the smallest square for that: beyond half of one the next corner draws it away."""
SMALL = 500_000
"""Pixels of an image that is looked at again twice as large: far boards have squares of a few pixels."""


@dataclass(frozen=True)
class Chessboard:
    """A chessboard.

    Attributes
    ----------
    columns, rows : int
        Inner corners along its rows and columns.
    width, height : float
        Of one square, metres.
    """

    columns: int
    rows: int
    width: float
    height: float

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
        """Return the corners (n, 2) in pixels, ordered as `points`; None if the board is not seen whole."""
        import cv2

        found = self._find(gray)
        if found is None and gray.size < SMALL:
            larger = cv2.resize(gray, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
            found = self._find(np.asarray(larger, np.uint8))
            # The middle of the first pixel is at (0, 0) in both.
            found = None if found is None else ((found + 0.5) / 2 - 0.5).astype(np.float32)
        if found is None:
            return None
        until = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_MAX_ITER, 50, 1e-3)
        window = int(np.clip(OF_SQUARE * self._smallest_square(found), *REFINED))
        refined = cv2.cornerSubPix(gray, np.ascontiguousarray(found), (window, window), (-1, -1), until)
        return np.asarray(refined, np.float64).reshape(-1, 2)

    def _find(self, gray: Bytes) -> Singles | None:
        """Return the corners (n, 1, 2) to about a pixel; None if not all are found."""
        import cv2

        flags = cv2.CALIB_CB_ADAPTIVE_THRESH | cv2.CALIB_CB_NORMALIZE_IMAGE
        found, corners = cv2.findChessboardCorners(gray, (self.columns, self.rows), flags=flags)
        return np.asarray(corners, np.float32) if found else None

    def _smallest_square(self, corners: Singles) -> float:
        """Return the shortest distance in pixels between neighbouring corners."""
        grid = corners.reshape(self.rows, self.columns, 2)
        return min(float(np.linalg.norm(np.diff(grid, axis=axis), axis=-1).min()) for axis in (0, 1))


def enough_boards(seen: int, looked: int, least: int, what: str) -> None:
    """Refuse to calibrate from too few boards."""
    if seen < least:
        raise TransectError(
            f"{seen} boards are too few to calibrate {what}",
            why=f"{looked} were looked at, and at least {least} must show the whole chessboard",
            hint="`columns` and `rows` count inner corners; show it near and far, tilted, and at the edges",
        )
