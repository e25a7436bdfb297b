"""Decimation of curves and paths for drawing: the extremes of a curve are kept, so that no spike is lost."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints


class Extremes:
    """Minimum and maximum in each of equal bins of an axis, updated block by block.

    Up to two points per bin, all points are kept unchanged.

    Parameters
    ----------
    start, end : float
        Range of the axis; points outside are left out.
    parts : int
        Number of bins.
    """

    def __init__(self, start: float, end: float, parts: int) -> None:
        self.start, self.end, self.parts = start, end, parts
        self.count = 0
        self._exact: list[tuple[Floats, Floats]] | None = []
        self._low, self._high = np.full(parts, np.nan), np.full(parts, np.nan)

    @property
    def exact(self) -> bool:
        """Whether all points are kept."""
        return self._exact is not None

    def add(self, x: ArrayLike, y: ArrayLike) -> None:
        """Add points: positions (n,) on the axis in any order, and values (n,); NaN is not measured."""
        at, values = np.asarray(x, np.float64), np.asarray(y, np.float64)
        known = np.isfinite(values) & (at >= self.start) & (at <= self.end)
        at, values = at[known], values[known]
        self.count += len(at)
        if self._exact is not None:
            self._exact.append((at, values))
            if self.count > 2 * self.parts:
                self._exact = None
        width = (self.end - self.start) or 1.0
        part = np.minimum((self.parts * ((at - self.start) / width)).astype(np.int64), self.parts - 1)
        np.fmin.at(self._low, part, values)
        np.fmax.at(self._high, part, values)

    def curve(self) -> tuple[Floats, Floats]:
        """Return sorted positions (k,) and values (k,) of a line: minimum and maximum of each bin in turn."""
        if self._exact is not None:
            pieces = self._exact or [(np.zeros(0), np.zeros(0))]
            x, y = (np.concatenate(each) for each in zip(*pieces, strict=True))
            order = np.argsort(x, kind="stable")
            return x[order], y[order]
        filled = np.flatnonzero(np.isfinite(self._low))
        middle = self.start + (filled + 0.5) * (self.end - self.start) / self.parts
        low, high = self._low[filled], self._high[filled]
        x, y = np.repeat(middle, 2), np.column_stack([low, high]).ravel()
        kept = np.ones(len(x), dtype=bool)
        kept[1::2] = low != high
        return x[kept], y[kept]


def decimate_path(points: Floats, cell: float, max_points: int) -> Ints:
    """Return indices (k,) of the points of a path (n, 2) to draw: the first in each cell that it enters.

    Parameters
    ----------
    points : (n, 2)
        No NaN.
    cell : float
        Side of a cell; doubled until no more than `max_points` points are left.
    """
    if not len(points):
        return np.zeros(0, np.int64)
    from_corner = points - points.min(axis=0)
    while True:
        cells = np.floor(from_corner / cell)
        new = np.any(cells[1:] != cells[:-1], axis=1)
        kept = np.unique(np.concatenate([[0], np.flatnonzero(new) + 1, [len(points) - 1]]))
        if len(kept) <= max_points:
            return kept
        cell *= 2
