"""Compiled loops of scan matching: stamping walls, searching poses, climbing to the best one."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

MOST = 100_000
"""Squares of the window that are looked into."""


@njit(cache=True, nogil=True)
def stamp(grid: Any, points: Any, sigma: float) -> None:
    """Raise each cell near a point to 255 exp(-d^2 / 2 sigma^2); points and sigma are in cells."""
    rows, columns = grid.shape
    reach = int(np.ceil(2.5 * sigma))
    scale = -0.5 / (sigma * sigma)
    for n in range(len(points)):
        x, y = points[n, 0], points[n, 1]
        column, row = int(np.floor(x)), int(np.floor(y))
        for i in range(max(row - reach, 0), min(row + reach + 1, rows)):
            for j in range(max(column - reach, 0), min(column + reach + 1, columns)):
                away = (j + 0.5 - x) ** 2 + (i + 0.5 - y) ** 2
                value = np.uint8(255.0 * np.exp(scale * away) + 0.5)
                if value > grid[i, j]:
                    grid[i, j] = value


@njit(cache=True, nogil=True)
def _bound(levels: Any, level: int, columns: Any, rows: Any, i: int, j: int) -> float:
    """Return the mean of one level of a field over points, moved by (i, j) cells."""
    height, width = levels.shape[1], levels.shape[2]
    total = 0
    for n in range(len(columns)):
        row, column = rows[n] + i, columns[n] + j
        if row >= 0 and row < height and column >= 0 and column < width:
            total += levels[level, row, column]
    return total / (255.0 * len(columns))


@njit(cache=True, nogil=True)
def search(
    levels: Any, points: Any, angles: Any, first: Any, size: int, least: float, rival: float, apart: Any
) -> Any:
    """Find the best pose of a scan in a window, and the best one apart from it, by branch and bound.

    Parameters
    ----------
    levels : (L, H, W) uint8
        A field, and the maxima over 2^l by 2^l of its cells to the upper right.
    points : (P, 2)
        Of the scan, in cells, about the body.
    angles : (A,)
        Headings that are tried.
    first : (2,)
        Body at the lower left of the window, in cells.
    size : int
        Cells of the window along each side.
    least : float
        Poses with less are not looked for.
    rival : float
        Part of the best that a second one must have.
    apart : (2,)
        Cells and radians from which on a pose is another one.

    Returns
    -------
    (2, 4)
        Score, number of the angle, column and row of the body's cell; best and second; score 0 for none.
    """
    found = np.zeros((2, 4))
    count, top = len(points), levels.shape[0] - 1
    columns, rows = np.empty((len(angles), count), np.int64), np.empty((len(angles), count), np.int64)
    step = 1 << top
    heap = [(0.0, 0, 0, 0, 0)]
    heap.pop()
    for a in range(len(angles)):
        c, s = np.cos(angles[a]), np.sin(angles[a])
        for n in range(count):
            columns[a, n] = int(np.floor(first[0] + c * points[n, 0] - s * points[n, 1]))
            rows[a, n] = int(np.floor(first[1] + s * points[n, 0] + c * points[n, 1]))
        for i in range(0, size, step):
            for j in range(0, size, step):
                bound = _bound(levels, top, columns[a], rows[a], i, j)
                if bound >= least:
                    heap.append((-bound, top, a, i, j))
    heapq.heapify(heap)
    for looked in range(MOST + 1):
        if not len(heap):
            break
        if looked == MOST:  # poses that fit alike are too many to tell them apart
            found[1] = found[0]
            break
        bound, level, a, i, j = heapq.heappop(heap)
        if found[0, 0] > 0.0 and -bound < rival * found[0, 0]:
            break
        if found[0, 0] > 0.0:  # nothing near the best can be a second
            away = max(abs(i - found[0, 3]), abs(j - found[0, 2]))
            if away + (1 << level) <= apart[0] and abs(angles[a] - angles[int(found[0, 1])]) < apart[1]:
                continue
        if level == 0:
            if found[0, 0] == 0.0:
                found[0] = np.array((-bound, float(a), float(j), float(i)))
                continue
            away = max(abs(i - found[0, 3]), abs(j - found[0, 2]))
            if away >= apart[0] or abs(angles[a] - angles[int(found[0, 1])]) >= apart[1]:
                found[1] = np.array((-bound, float(a), float(j), float(i)))
                break
            continue
        half = 1 << (level - 1)
        for di in (0, half):
            for dj in (0, half):
                if i + di < size and j + dj < size:
                    value = _bound(levels, level - 1, columns[a], rows[a], i + di, j + dj)
                    if value >= least:
                        heapq.heappush(heap, (-value, level - 1, a, i + di, j + dj))
    return found


@njit(cache=True, nogil=True)
def _read(grid: Any, points: Any, x: float, y: float, turn: float, values: Any, slopes: Any) -> None:
    """Read the field between its cells at points of a body, and its slopes along x, y and the heading."""
    height, width = grid.shape
    c, s = np.cos(turn), np.sin(turn)
    for n in range(len(points)):
        px, py = c * points[n, 0] - s * points[n, 1], s * points[n, 0] + c * points[n, 1]
        u, v = x + px - 0.5, y + py - 0.5
        column, row = int(np.floor(u)), int(np.floor(v))
        values[n] = 0.0
        slopes[n, 0] = slopes[n, 1] = slopes[n, 2] = 0.0
        if column < 0 or row < 0 or column + 1 >= width or row + 1 >= height:
            continue
        fu, fv = u - column, v - row
        a, b = grid[row, column] / 255.0, grid[row, column + 1] / 255.0
        d, e = grid[row + 1, column] / 255.0, grid[row + 1, column + 1] / 255.0
        values[n] = (a * (1 - fu) + b * fu) * (1 - fv) + (d * (1 - fu) + e * fu) * fv
        slopes[n, 0] = (b - a) * (1 - fv) + (e - d) * fv
        slopes[n, 1] = (d - a) * (1 - fu) + (e - b) * fu
        slopes[n, 2] = slopes[n, 1] * px - slopes[n, 0] * py


@njit(cache=True, nogil=True)
def climb(grid: Any, points: Any, pose: Any, steps: int) -> Any:
    """Climb from a pose to the best one near it by Gauss-Newton on the field, between its cells.

    Parameters
    ----------
    grid : (H, W) uint8
    points : (P, 2)
        Of the scan, in cells, about the body.
    pose : (3,)
        Column, row and heading of the body; (0.5, 0.5) is the middle of the first cell.

    Returns
    -------
    (4,)
        Pose and score.
    """
    count = len(points)
    values, slopes = np.empty(count), np.empty((count, 3))
    best, now = np.zeros(4), pose.copy()
    for _ in range(steps + 1):
        _read(grid, points, now[0], now[1], now[2], values, slopes)
        score = values.mean()
        if score <= best[3]:
            break
        best[:3], best[3] = now, score
        normal = slopes.T @ slopes
        for i in range(3):
            normal[i, i] += 1e-3 * normal[i, i] + 1e-9
        move = np.linalg.solve(normal, slopes.T @ (1.0 - values))
        largest = max(abs(move[0]), abs(move[1]))
        if largest > 2.0:
            move *= 2.0 / largest
        now = now + move
        if largest < 1e-3:
            break
    return best


@njit(cache=True, nogil=True)
def bend(grid: Any, points: Any, pose: Any, steps: Any) -> Any:
    """Return how the sum of the field over points bends at a pose, (3, 3), by slopes some steps beside it."""
    count = len(points)
    values, slopes = np.empty(count), np.empty((count, 3))
    found = np.zeros((3, 3))
    for i in range(3):
        for side in (-1.0, 1.0):
            there = pose.copy()
            there[i] += side * steps[i]
            _read(grid, points, there[0], there[1], there[2], values, slopes)
            for j in range(3):
                found[i, j] -= side * slopes[:, j].sum() / (2.0 * steps[i])
    return (found + found.T) / 2.0
