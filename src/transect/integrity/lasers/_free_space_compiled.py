"""Compiled: beams through cells around a robot, and through places that other beams came back from."""

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


@njit(cache=True, nogil=True)
def count_around(ranges: Any, T: Any, first: float, step: float, later: int, beside: int, near: float) -> Any:
    """Return how many beams (s, d) of the sweeps around came back from where a return is, and went on there.

    Ranges (s, d) are NaN where nothing was measured, infinite where nothing came back; T (s, 4, 4) is where
    the laser was. Looked at are so many sweeps before and after, and directions to each side. A beam that
    comes back within `near` m agrees, one that is longer by twice as much went through; a shorter one tells
    nothing.
    """
    sweeps, directions = ranges.shape
    agree = np.zeros(ranges.shape, np.int16)
    through = np.zeros(ranges.shape, np.int16)
    for s in range(sweeps):
        for o in range(max(0, s - later), min(sweeps, s + later + 1)):
            to_other = np.ascontiguousarray(T[o, :3, :3].T)
            A = to_other @ np.ascontiguousarray(T[s, :3, :3])
            b = to_other @ (T[s, :3, 3] - T[o, :3, 3])
            for d in range(directions):
                if not np.isfinite(ranges[s, d]):
                    continue
                x = ranges[s, d] * np.cos(first + d * step)
                y = ranges[s, d] * np.sin(first + d * step)
                u, v = A[0, 0] * x + A[0, 1] * y + b[0], A[1, 0] * x + A[1, 1] * y + b[1]
                if abs(A[2, 0] * x + A[2, 1] * y + b[2]) > near:
                    continue
                q, place = np.hypot(u, v), int(np.rint((np.arctan2(v, u) - first) / step))
                aside = beside if abs(step) * q < near else 0
                for k in range(max(0, place - aside), min(directions, place + aside + 1)):
                    if o == s and k == d:
                        continue
                    if abs(ranges[o, k] - q) < near:
                        agree[s, d] += 1
                    elif ranges[o, k] > q + 2 * near:
                        through[s, d] += 1
    return agree, through
