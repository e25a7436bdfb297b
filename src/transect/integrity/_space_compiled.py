"""Compiled: beams through a grid of cells around a robot, which wraps around as the robot moves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]


@njit(cache=True, nogil=True)
def look_up(passed: Any, struck: Any, home: Any, points: Any, cell: float, least: float, few: float) -> Any:
    """Return (m,) of points (m, 3): 1 where beams went through, -1 where something was struck, else 0.

    Struck counts in the cell and in those beside it, and beyond the grid.
    """
    nx, ny, nz = passed.shape
    found = np.zeros(len(points), np.int8)
    for k in range(len(points)):
        i = int(np.floor(points[k, 0] / cell))
        j = int(np.floor(points[k, 1] / cell))
        h = int(np.floor(points[k, 2] / cell))
        if (
            abs(i - home[0]) >= nx // 2 - 1
            or abs(j - home[1]) >= ny // 2 - 1
            or abs(h - home[2]) >= nz // 2 - 1
        ):
            found[k] = -1
            continue
        for di in range(-1, 2):
            for dj in range(-1, 2):
                for dh in range(-1, 2):
                    if struck[(i + di) % nx, (j + dj) % ny, (h + dh) % nz] > few:
                        found[k] = -1
        if found[k] == 0 and passed[i % nx, j % ny, h % nz] >= least:
            found[k] = 1
    return found


@njit(cache=True, nogil=True)
def lay_beams(
    passed: Any, struck: Any, home: Any, origins: Any, towards: Any, free: Any, hit: Any, kind: Any, cell: Any
) -> None:
    """Add beams from origins (m, 3) along unit vectors (m, 3), free and struck as far as (m,) m or NaN.

    `struck` (kinds, ...) is counted by the kind (m,) of what came back.
    """
    nx, ny, nz = passed.shape
    for k in range(len(origins)):
        steps = int(free[k] / cell)
        for s in range(1, steps + 1):
            i = int(np.floor((origins[k, 0] + s * cell * towards[k, 0]) / cell))
            j = int(np.floor((origins[k, 1] + s * cell * towards[k, 1]) / cell))
            h = int(np.floor((origins[k, 2] + s * cell * towards[k, 2]) / cell))
            if abs(i - home[0]) >= nx // 2 or abs(j - home[1]) >= ny // 2 or abs(h - home[2]) >= nz // 2:
                break
            passed[i % nx, j % ny, h % nz] += 1.0
        if np.isfinite(hit[k]):
            i = int(np.floor((origins[k, 0] + hit[k] * towards[k, 0]) / cell))
            j = int(np.floor((origins[k, 1] + hit[k] * towards[k, 1]) / cell))
            h = int(np.floor((origins[k, 2] + hit[k] * towards[k, 2]) / cell))
            if abs(i - home[0]) < nx // 2 and abs(j - home[1]) < ny // 2 and abs(h - home[2]) < nz // 2:
                struck[kind[k], i % nx, j % ny, h % nz] += 1.0
