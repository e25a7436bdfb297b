"""Compiled stamps: rocks and plants on a height map, pebbles on a texture."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]


@njit(cache=True, nogil=True)
def _inside(row: int, column: int, bump: Any, cosine: Any, sine: Any) -> Any:
    """Distance from a bump's centre relative to its radius in that direction: below 1 inside."""
    across, down = column - bump[1], row - bump[0]
    u = np.abs(across * cosine + down * sine) / bump[2]
    v = np.abs(down * cosine - across * sine) / bump[3]
    if u > 1.3 or v > 1.3:
        return 2.0  # outside
    return (u ** bump[5] + v ** bump[5]) ** (1.0 / bump[5])


@njit(cache=True, nogil=True)
def raise_bumps(height: Any, ids: Any, bumps: Any, numbers: Any, lumps: Any) -> None:
    """Raise the ground to each bump where that is higher, and label it with the bump's number.

    `bumps` (n, 9): row, column, two half axes (cells), orientation (rad), exponent of the superellipse (2 an
    ellipse, larger a box), height above the ground at its centre and depth below it (m), steepness (0.5 a
    dome, smaller a table). `lumps` has the shape of `height`: noise relative to the height of the bumps.
    """
    rows, columns = height.shape
    ground = height.copy()  # bumps overlap and are not stacked
    for k in range(len(bumps)):
        bump = bumps[k]
        radius, cosine, sine = int(max(bump[2], bump[3]) * 1.5) + 1, np.cos(bump[4]), np.sin(bump[4])
        row, column = int(bump[0]), int(bump[1])
        base = ground[min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)] - bump[7]
        for i in range(max(row - radius, 0), min(row + radius + 2, rows)):
            for j in range(max(column - radius, 0), min(column + radius + 2, columns)):
                d = _inside(i, j, bump, cosine, sine) * (1.0 - lumps[i, j])
                if d < 1.0:
                    z = base + (bump[6] + bump[7]) * (1.0 - d * d) ** bump[8] * (1.0 + lumps[i, j])
                    if z > height[i, j]:
                        height[i, j] = z
                        ids[i, j] = numbers[k]


@njit(cache=True, nogil=True)
def lay_pebbles(tile: Any, bumps: Any) -> None:
    """Draw bumps on a periodic tile, darker towards their rim; `bumps` as in `raise_bumps`."""
    rows, columns = tile.shape
    for k in range(len(bumps)):
        bump = bumps[k]
        radius, cosine, sine = int(max(bump[2], bump[3]) * 1.5) + 1, np.cos(bump[4]), np.sin(bump[4])
        row, column = int(bump[0]), int(bump[1])
        for i in range(row - radius, row + radius + 2):
            for j in range(column - radius, column + radius + 2):
                d = _inside(i, j, bump, cosine, sine)
                if d < 1.0:
                    rim = d * d
                    keep = tile[i % rows, j % columns]
                    tile[i % rows, j % columns] = bump[6] * (1.0 - 0.5 * rim * rim) + 0.25 * keep
                elif d < 1.25:
                    tile[i % rows, j % columns] -= bump[7]
