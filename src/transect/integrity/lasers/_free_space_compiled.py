"""Compiled loops: beams through grid cells, and through the positions of other returns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]


@njit(cache=True, nogil=True)
def classify_points(
    passed: Any, struck: Any, centre: Any, points: Any, cell: float, min_passed: float, max_struck: float
) -> Any:
    """Return (m,) for points (m, 3): 1 if beams passed, -1 if a beam ended there, else 0.

    Ends count in the cell, in its neighbours, and beyond the grid.
    """
    nx, ny, nz = passed.shape
    found = np.zeros(len(points), np.int8)
    for k in range(len(points)):
        i = int(np.floor(points[k, 0] / cell))
        j = int(np.floor(points[k, 1] / cell))
        h = int(np.floor(points[k, 2] / cell))
        if (
            abs(i - centre[0]) >= nx // 2 - 1
            or abs(j - centre[1]) >= ny // 2 - 1
            or abs(h - centre[2]) >= nz // 2 - 1
        ):
            found[k] = -1
            continue
        for di in range(-1, 2):
            for dj in range(-1, 2):
                for dh in range(-1, 2):
                    if struck[(i + di) % nx, (j + dj) % ny, (h + dh) % nz] > max_struck:
                        found[k] = -1
        if found[k] == 0 and passed[i % nx, j % ny, h % nz] >= min_passed:
            found[k] = 1
    return found


@njit(cache=True, nogil=True)
def add_beams(
    passed: Any,
    struck: Any,
    centre: Any,
    origins: Any,
    directions: Any,
    free: Any,
    hit: Any,
    kind: Any,
    cell: Any,
) -> None:
    """Add beams from origins (m, 3) along unit vectors (m, 3), free and struck up to (m,) m or NaN.

    `struck` (kinds, ...) is counted by the kind (m,) of the return.
    """
    nx, ny, nz = passed.shape
    for k in range(len(origins)):
        steps = int(free[k] / cell)
        for s in range(1, steps + 1):
            i = int(np.floor((origins[k, 0] + s * cell * directions[k, 0]) / cell))
            j = int(np.floor((origins[k, 1] + s * cell * directions[k, 1]) / cell))
            h = int(np.floor((origins[k, 2] + s * cell * directions[k, 2]) / cell))
            if (
                abs(i - centre[0]) >= nx // 2
                or abs(j - centre[1]) >= ny // 2
                or abs(h - centre[2]) >= nz // 2
            ):
                break
            passed[i % nx, j % ny, h % nz] += 1.0
        if np.isfinite(hit[k]):
            i = int(np.floor((origins[k, 0] + hit[k] * directions[k, 0]) / cell))
            j = int(np.floor((origins[k, 1] + hit[k] * directions[k, 1]) / cell))
            h = int(np.floor((origins[k, 2] + hit[k] * directions[k, 2]) / cell))
            if abs(i - centre[0]) < nx // 2 and abs(j - centre[1]) < ny // 2 and abs(h - centre[2]) < nz // 2:
                struck[kind[k], i % nx, j % ny, h % nz] += 1.0


@njit(cache=True, nogil=True)
def count_agreeing_beams(
    ranges: Any, T: Any, first: float, step: float, max_sweeps: int, neighbours: int, near: float
) -> Any:
    """Count the beams of other sweeps that ended at the position of each return (s, d), or went beyond it.

    Ranges (s, d) are NaN if not measured, infinite without a return; T (s, 4, 4) are the laser's poses.
    `max_sweeps` sweeps before and after and `neighbours` directions to each side are compared. A beam that
    ends within `near` m agrees; one that is longer by twice as much went beyond; a shorter one does not
    observe the position.
    """
    sweeps, directions = ranges.shape
    agree = np.zeros(ranges.shape, np.int16)
    through = np.zeros(ranges.shape, np.int16)
    for s in range(sweeps):
        for o in range(max(0, s - max_sweeps), min(sweeps, s + max_sweeps + 1)):
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
                q, index = np.hypot(u, v), int(np.rint((np.arctan2(v, u) - first) / step))
                width = neighbours if abs(step) * q < near else 0
                for k in range(max(0, index - width), min(directions, index + width + 1)):
                    if o == s and k == d:
                        continue
                    if abs(ranges[o, k] - q) < near:
                        agree[s, d] += 1
                    elif ranges[o, k] > q + 2 * near:
                        through[s, d] += 1
    return agree, through
