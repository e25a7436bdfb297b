"""Whether the walls of an occupancy grid are single: where loops are wrong, they are there twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.types import GridMap

OCCUPIED, FREE = 0.65, 0.35
"""Probabilities from which on a cell is a wall, and below which it is free."""
SEEN = 2
"""Scans that must have ended in a wall, or gone through what is free."""
AROUND = 0.1
"""Metres around a cell from which the direction of its wall is told: a second wall is further away."""
ALONG = 0.4
"""How much longer than wide what is around must be, for it to be a wall: 0 a blob, 1 a line."""
PARALLEL = np.radians(25.0)


@dataclass(frozen=True)
class Walls:
    """How many cells are walls, and how many of these have a second wall beside them.

    Attributes
    ----------
    cells : int
        Occupied cells that lie along a wall.
    doubled : int
        Those with a parallel wall within reach, and free space between them.
    """

    cells: int
    doubled: int

    @property
    def share(self) -> float:
        """Part of the cells that are doubled; 0 without any."""
        return self.doubled / self.cells if self.cells else 0.0


def count_double_walls(grid: GridMap, reach: float = 0.3) -> Walls:
    """Count wall cells with a second wall beside them.

    Between the two must be a cell that beams went through: then one of them is where there was nothing, or
    nobody looked along it. Between the two faces of a thin wall, which are both true, no beam goes.

    Parameters
    ----------
    grid : GridMap
        With layers `occupancy` and `hits`, as `LaserSlam`'s maps are exported.
    reach : float
        Metres between two walls.
    """
    cell = grid.resolution[0]
    chance, hits = grid.layers["occupancy"], grid.layers["hits"]
    wall = (chance >= OCCUPIED) & (hits >= SEEN)
    free = (chance < FREE) & (grid.layers["seen"] >= SEEN)
    direction, straight = _directions(wall, round(AROUND / cell))
    places = np.argwhere(wall & straight)
    doubled = np.zeros(len(places), bool)
    for side in (-1.0, 1.0):
        doubled |= _has_second(places, direction, wall & straight, free, side, round(reach / cell))
    return Walls(len(places), int(doubled.sum()))


def _directions(wall: Mask, reach: int) -> tuple[Floats, Mask]:
    """Return the angle of the wall through each cell, by the cells around it, and where there is one."""
    from scipy.ndimage import uniform_filter

    rows, columns = np.indices(wall.shape).astype(np.float64)
    size = 2 * reach + 1
    count, *moments = (
        uniform_filter(wall * each, size, mode="constant") * size**2
        for each in (np.ones_like(rows), columns, rows, columns**2, rows**2, columns * rows)
    )
    x, y, xx, yy, xy = (each / np.maximum(count, 1) for each in moments)
    xx, yy, xy = xx - x * x, yy - y * y, xy - x * y
    spread = np.hypot(xx - yy, 2 * xy)
    enough = count > reach
    return 0.5 * np.arctan2(2 * xy, xx - yy), enough & (spread >= ALONG * np.maximum(xx + yy, 1e-9))


def _has_second(places: Ints, direction: Floats, wall: Mask, free: Mask, side: float, reach: int) -> Mask:
    """Tell which cells meet free space and then a parallel wall on one side."""
    rows, columns = places.T
    angle = direction[rows, columns]
    passed = np.zeros(len(places), bool)
    found = np.zeros(len(places), bool)
    for step in range(1, reach + 1):
        row = np.clip(np.rint(rows + side * step * np.cos(angle)), 0, wall.shape[0] - 1).astype(int)
        column = np.clip(np.rint(columns - side * step * np.sin(angle)), 0, wall.shape[1] - 1).astype(int)
        turned = np.abs((direction[row, column] - angle + np.pi / 2) % np.pi - np.pi / 2)
        found |= passed & wall[row, column] & (turned <= PARALLEL)
        passed |= free[row, column]
    return found
