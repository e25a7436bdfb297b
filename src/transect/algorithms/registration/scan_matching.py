"""How well points fit the walls that others saw, and where they fit best (correlative scan matching).

Olson, "Real-time correlative scan matching" (ICRA 2009); the branch and bound of Hess et al., "Real-time loop
closure in 2D LIDAR SLAM" (ICRA 2016).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Mask
from transect.base.cache_folder import load_compiled

from .planar_poses import place

LEVELS = 6
STEPS = 20
INDEPENDENT = 15.0
"""Points of a scan that count as independent: neighbours err together."""
NOISE = 0.03
"""Metres: sigma of a point beside its wall."""
LEAST_BEND = 3e-4
"""Least sharpness of a score, as a part of that of points that all lie on walls across: else it can slide."""
FLOOR = np.array([0.01, 0.01, 0.002])
"""Least sigma of a match: m, m and rad."""
FITS = 128
"""Value of a field, of 255, from which on a point is on a wall."""


@dataclass(frozen=True, eq=False)
class ScanMatch:
    """Where points fit best.

    Attributes
    ----------
    pose : (3,)
        x, y (m) and heading (rad) of the body in the frame of the field.
    covariance : (3, 3)
        In the axes of the field.
    score : float
        0 to 1: how near to the walls the points are, on average.
    rival : float
        Score of the best pose apart from this one, as a part of this one's; 0 if there is none worth it.
    overruled : (3,)
        By how much it contradicts an odometry that it is believed against: m, m and rad.
    led : (3, 3)
        Part of the odometry's motion that is left in it: 0 if it was not weighed with one.
    """

    pose: Floats
    covariance: Floats
    score: float
    rival: float = 0.0
    overruled: Floats = field(default_factory=lambda: np.zeros(3))
    led: Floats = field(default_factory=lambda: np.zeros((3, 3)))


@dataclass(frozen=True)
class SearchWindow:
    """Where a pose is looked for: around a pose (3,), by metres and radians to each side."""

    pose: Floats
    reach: float
    turn: float


class LikelihoodField:
    """A grid that is highest on walls.

    Parameters
    ----------
    walls : (n, 2)
        Points on walls, in m.
    cell, sigma : float
        Edge of a cell, and how far beside a wall a point still fits, in m.
    """

    def __init__(self, walls: Floats, cell: float = 0.05, sigma: float = 0.08) -> None:
        stamp = load_compiled(__name__, "matching").stamp

        margin = 4 * sigma
        self.cell, self.sigma = cell, sigma
        self.origin = np.floor(walls.min(axis=0) - margin)
        size = np.ceil((walls.max(axis=0) + margin - self.origin) / cell).astype(np.int64)
        self.grid: NDArray[np.uint8] = np.zeros((size[1], size[0]), np.uint8)
        stamp(self.grid, (walls - self.origin) / cell, sigma / cell)
        self._pyramid: NDArray[np.uint8] = np.zeros((0, 0, 0), np.uint8)

    def pyramid(self, count: int) -> NDArray[np.uint8]:
        """Return maxima (count or more, H, W) over ever larger squares of cells, with a margin before."""
        if len(self._pyramid) < count:
            rows, columns = self.grid.shape
            margin = 1 << (count - 1)
            made = np.zeros((count, rows + margin, columns + margin), np.uint8)
            made[0, margin:, margin:] = self.grid
            for level in range(1, count):
                step, before = 1 << (level - 1), made[level - 1]
                np.maximum(before, _shifted(before, step, 0), out=made[level])
                np.maximum(made[level], _shifted(before, 0, step), out=made[level])
                np.maximum(made[level], _shifted(before, step, step), out=made[level])
            self._pyramid = made
        return self._pyramid

    def search(
        self,
        points: Floats,
        window: SearchWindow,
        least: float,
        rival: float = 1.0,
        apart: tuple[float, float] = (1.0, 0.2),
    ) -> ScanMatch | None:
        """Return the best pose of points (n, 2) in a window, None if none fits as well as `least`.

        Parameters
        ----------
        rival : float
            Part of the best score from which on a pose that is `apart` (m, rad) is worth telling; 1 for none.
        """
        search = load_compiled(__name__, "matching").search

        size = 2 * int(np.ceil(window.reach / self.cell)) + 1
        pyramid = self.pyramid(int(np.clip(size.bit_length() - 1, 2, LEVELS)))
        margin = 1 << (len(pyramid) - 1)
        farthest = max(float(np.percentile(np.linalg.norm(points, axis=1), 90)), 1.0)
        step = self.cell / farthest
        count = int(np.ceil(window.turn / step))
        angles = window.pose[2] + step * np.arange(-count, count + 1)
        first = (window.pose[:2] - self.origin) / self.cell + margin - (size - 1) / 2
        found = search(
            pyramid, points / self.cell, angles, first, size, least, rival,
            np.array([apart[0] / self.cell, apart[1]]),
        )  # fmt: skip
        if found[0, 0] == 0.0:
            return None
        place = (first - margin + found[0, 2:]) * self.cell + self.origin
        match = self.climb(points, np.array([*place, angles[int(found[0, 1])]]))
        return ScanMatch(match.pose, match.covariance, match.score, float(found[1, 0] / found[0, 0]))

    def climb(self, points: Floats, pose: Floats) -> ScanMatch:
        """Return the best pose of points (n, 2) near a pose (3,)."""
        climb = load_compiled(__name__, "matching").climb

        start = np.array([*(pose[:2] - self.origin) / self.cell, pose[2]])
        found = climb(self.grid, points / self.cell, start, STEPS)
        best = np.array([*found[:2] * self.cell + self.origin, found[2]])
        return ScanMatch(best, self._covariance(points, found[:3]), float(found[3]))

    def score(self, points: Floats, pose: Floats) -> float:
        """Return how well points (n, 2) of a body at a pose (3,) fit, 0 to 1."""
        climb = load_compiled(__name__, "matching").climb

        start = np.array([*(pose[:2] - self.origin) / self.cell, pose[2]])
        return float(climb(self.grid, points / self.cell, start, 0)[3])

    def fits(self, points: Floats, pose: Floats) -> Mask:
        """Tell which points (n, 2) of a body at a pose (3,) are on walls."""
        column, row = np.floor((place(points, pose) - self.origin) / self.cell).astype(np.int64).T
        rows, columns = self.grid.shape
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        value = self.grid[row.clip(0, rows - 1), column.clip(0, columns - 1)]
        return inside & (value > FITS)

    def doubt(self, match: ScanMatch) -> ScanMatch:
        """Return a match that is as unsure as its points are beside walls.

        Points that are beside them by a sigma n have a score of 1 / sqrt(1 + n^2 / sigma^2).
        """
        noise = self.sigma**2 * (1.0 / max(match.score, 0.1) ** 2 - 1.0)
        return replace(match, covariance=match.covariance * max(noise / NOISE**2, 1.0))

    def _covariance(self, points: Floats, pose: Floats) -> Floats:
        """Return the covariance (3, 3) of a pose by how sharply the score falls off beside it."""
        bend = load_compiled(__name__, "matching").bend

        lever = max(float(np.sqrt(np.mean(points**2) * 2)), 1.0)
        scale = np.array([1.0, 1.0, self.cell / lever])
        bent = bend(self.grid, points / self.cell, pose, scale * self.sigma / self.cell)
        values, vectors = np.linalg.eigh(scale[:, None] * bent * scale)
        sharp = np.maximum(values, LEAST_BEND * len(points) * (self.cell / self.sigma) ** 2)
        spread = (NOISE / self.sigma) ** 2 * max(len(points) / INDEPENDENT, 1.0)
        found = (vectors / sharp) @ vectors.T * spread
        units = np.array([self.cell, self.cell, self.cell / lever])
        return units[:, None] * found * units + np.diag(FLOOR**2)


def _shifted(grid: NDArray[np.uint8], rows: int, columns: int) -> NDArray[np.uint8]:
    """Return a grid whose cell has what is some rows and columns further on; nothing beyond the rim."""
    moved = np.zeros_like(grid)
    moved[: grid.shape[0] - rows, : grid.shape[1] - columns] = grid[rows:, columns:]
    return moved
