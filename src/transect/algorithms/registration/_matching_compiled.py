"""Compiled loops of correlative scan matching."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]


@njit(cache=True, nogil=True)
def stamp(grid: Any, points: Any, sigma: float) -> None:
    """Raise each cell near a point to 255 exp(-d^2 / 2 sigma^2); points and sigma are in cells."""
    rows, columns = grid.shape
    radius = int(np.ceil(2.5 * sigma))
    scale = -0.5 / (sigma * sigma)
    for n in range(len(points)):
        x, y = points[n, 0], points[n, 1]
        column, row = int(np.floor(x)), int(np.floor(y))
        for i in range(max(row - radius, 0), min(row + radius + 1, rows)):
            for j in range(max(column - radius, 0), min(column + radius + 1, columns)):
                away = (j + 0.5 - x) ** 2 + (i + 0.5 - y) ** 2
                value = np.uint8(255.0 * np.exp(scale * away) + 0.5)
                if value > grid[i, j]:
                    grid[i, j] = value


@njit(cache=True, nogil=True)
def _bound(levels: Any, level: int, columns: Any, rows: Any, i: int, j: int) -> float:
    """Return the mean of one pyramid level over points that are shifted by (i, j) cells."""
    height, width = levels.shape[1], levels.shape[2]
    total = 0
    for n in range(len(columns)):
        row, column = rows[n] + i, columns[n] + j
        if row >= 0 and row < height and column >= 0 and column < width:
            total += levels[level, row, column]
    return total / (255.0 * len(columns))


@njit(cache=True, nogil=True)
def search(
    levels: Any,
    points: Any,
    angles: Any,
    first: Any,
    size: int,
    min_score: float,
    max_second_best_ratio: float,
    separation: Any,
    max_expansions: int,
) -> Any:
    """Find the best pose of a scan in a window, and the best separate pose, by branch and bound.

    Parameters
    ----------
    levels : (L, H, W) uint8
        A likelihood field, and its maxima over 2^l by 2^l cells to the upper right.
    points : (P, 2)
        Scan in the body frame, in cells.
    angles : (A,)
        Candidate headings.
    first : (2,)
        Position of the body at the lower left of the window, in cells.
    size : int
        Cells of the window along each side.
    min_score : float
        Poses with a lower score are discarded.
    max_second_best_ratio : float
        The second pose is reported if its score is at least this fraction of the best.
    separation : (2,)
        Cells and radians from which on a pose is separate from the best.
    max_expansions : int
        Largest number of nodes of the search tree.

    Returns
    -------
    (2, 4)
        Score, index of the angle, column and row of the body's cell; of the best and the second pose; score 0
        if not found.
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
                if bound >= min_score:
                    heap.append((-bound, top, a, i, j))
    heapq.heapify(heap)
    for expanded in range(max_expansions + 1):
        if not len(heap):
            break
        if expanded == max_expansions:  # too many poses score alike: the result is ambiguous
            found[1] = found[0]
            break
        bound, level, a, i, j = heapq.heappop(heap)
        if found[0, 0] > 0.0 and -bound < max_second_best_ratio * found[0, 0]:
            break
        if found[0, 0] > 0.0:  # poses near the best one are no second
            away = max(abs(i - found[0, 3]), abs(j - found[0, 2]))
            if (
                away + (1 << level) <= separation[0]
                and abs(angles[a] - angles[int(found[0, 1])]) < separation[1]
            ):
                continue
        if level == 0:
            if found[0, 0] == 0.0:
                found[0] = np.array((-bound, float(a), float(j), float(i)))
                continue
            away = max(abs(i - found[0, 3]), abs(j - found[0, 2]))
            if away >= separation[0] or abs(angles[a] - angles[int(found[0, 1])]) >= separation[1]:
                found[1] = np.array((-bound, float(a), float(j), float(i)))
                break
            continue
        half = 1 << (level - 1)
        for di in (0, half):
            for dj in (0, half):
                if i + di < size and j + dj < size:
                    value = _bound(levels, level - 1, columns[a], rows[a], i + di, j + dj)
                    if value >= min_score:
                        heapq.heappush(heap, (-value, level - 1, a, i + di, j + dj))
    return found


@njit(cache=True, nogil=True)
def _interpolate(
    grid: Any, points: Any, x: float, y: float, heading: float, values: Any, slopes: Any
) -> None:
    """Interpolate the field at the points of a body, and its derivatives by x, y and heading."""
    height, width = grid.shape
    c, s = np.cos(heading), np.sin(heading)
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
def refine(grid: Any, points: Any, pose: Any, steps: int) -> Any:
    """Refine a pose by Gauss-Newton on the interpolated field.

    Parameters
    ----------
    grid : (H, W) uint8
    points : (P, 2)
        Scan in the body frame, in cells.
    pose : (3,)
        Column, row and heading of the body; (0.5, 0.5) is the centre of the first cell.

    Returns
    -------
    (4,)
        Pose and score.
    """
    count = len(points)
    values, slopes = np.empty(count), np.empty((count, 3))
    best, now = np.zeros(4), pose.copy()
    for _ in range(steps + 1):
        _interpolate(grid, points, now[0], now[1], now[2], values, slopes)
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
def curvature(grid: Any, points: Any, pose: Any, steps: Any) -> Any:
    """Return the negative Hessian (3, 3) of the summed field at a pose, by central differences."""
    count = len(points)
    values, slopes = np.empty(count), np.empty((count, 3))
    found = np.zeros((3, 3))
    for i in range(3):
        for side in (-1.0, 1.0):
            there = pose.copy()
            there[i] += side * steps[i]
            _interpolate(grid, points, there[0], there[1], there[2], values, slopes)
            for j in range(3):
                found[i, j] -= side * slopes[:, j].sum() / (2.0 * steps[i])
    return (found + found.T) / 2.0
