"""Parameters of nodes that look at a chessboard."""

from __future__ import annotations

from transect.algorithms.calibration.chessboards import Chessboard
from transect.engine import param


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
