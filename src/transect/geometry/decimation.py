"""Fewer points that look the same: extremes of a curve are kept, so that no spike is lost."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints


class Extremes:
    """Lowest and highest value in each of equal parts of an axis; filled block by block.

    As long as there are no more points than two for each part, all of them are kept as they are.

    Parameters
    ----------
    start, end : float
        Of the axis; points outside are left out.
    parts : int
    """

    def __init__(self, start: float, end: float, parts: int) -> None:
        self.start, self.end, self.parts = start, end, parts
        self.count = 0
        self._few: list[tuple[Floats, Floats]] | None = []
        self._low, self._high = np.full(parts, np.nan), np.full(parts, np.nan)

    @property
    def exact(self) -> bool:
        """Whether all points are kept."""
        return self._few is not None

    def add(self, x: ArrayLike, y: ArrayLike) -> None:
        """Add points: places (n,) on the axis in any order, and values (n,); NaN is not measured."""
        at, values = np.asarray(x, np.float64), np.asarray(y, np.float64)
        known = np.isfinite(values) & (at >= self.start) & (at <= self.end)
        at, values = at[known], values[known]
        self.count += len(at)
        if self._few is not None:
            self._few.append((at, values))
            if self.count > 2 * self.parts:
                self._few = None
        width = (self.end - self.start) or 1.0
        part = np.minimum((self.parts * ((at - self.start) / width)).astype(np.int64), self.parts - 1)
        np.fmin.at(self._low, part, values)
        np.fmax.at(self._high, part, values)

    def curve(self) -> tuple[Floats, Floats]:
        """Return places (k,) in order and values (k,) of a line: lowest and highest of each part in turn."""
        if self._few is not None:
            pieces = self._few or [(np.zeros(0), np.zeros(0))]
            x, y = (np.concatenate(each) for each in zip(*pieces, strict=True))
            order = np.argsort(x, kind="stable")
            return x[order], y[order]
        there = np.flatnonzero(np.isfinite(self._low))
        middle = self.start + (there + 0.5) * (self.end - self.start) / self.parts
        low, high = self._low[there], self._high[there]
        one = low == high
        x, y = np.repeat(middle, 2), np.column_stack([low, high]).ravel()
        kept = np.ones(len(x), dtype=bool)
        kept[1::2] = ~one
        return x[kept], y[kept]


def thin_path(points: Floats, cell: float, most: int) -> Ints:
    """Return which points (k,) of a path (n, 2) are enough to draw it: the first in each cell that it enters.

    Parameters
    ----------
    points : (n, 2)
        No NaN.
    cell : float
        Side of a cell; doubled until no more than `most` points are left.
    """
    if not len(points):
        return np.zeros(0, np.int64)
    from_corner = points - points.min(axis=0)
    while True:
        cells = np.floor(from_corner / cell)
        new = np.any(cells[1:] != cells[:-1], axis=1)
        kept = np.unique(np.concatenate([[0], np.flatnonzero(new) + 1, [len(points) - 1]]))
        if len(kept) <= most:
            return kept
        cell *= 2
