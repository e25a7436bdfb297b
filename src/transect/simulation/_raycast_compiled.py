"""Compiled heightfield traversal: a ray steps over the largest blocks that it passes above.

`tops` holds, level by level, the greatest height of blocks of 2**level by 2**level cells. Where a ray comes
below the top of a single cell it meets the bilinear patch through the cell's four corners, exactly: a
quadratic equation in the distance along the ray.

The ground is passed as a tuple: height (ny, nx), tops, first index and width of each level, cell (m), x and y
of the first corner.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange  # pyright: ignore[reportMissingTypeStubs]

_LANES = 16
"""Threads take interleaved pieces of the batch, so that each has its share of sky and of ground."""
_PIECE = 256


@njit(cache=True, nogil=True)
def _patch(
    height: Any, ix: int, iy: int, gx: Any, gy: Any, z: Any, dx: Any, dy: Any, dz: Any, span: Any
) -> Any:
    """Distance in [0, span] to the patch of cell (ix, iy) from a place at (gx, gy, z), or -1.

    Places are in cells, directions in cells per metre (dz: metres per metre).
    """
    u, v = gx - ix, gy - iy
    a = np.float64(height[iy, ix])
    b = np.float64(height[iy, ix + 1]) - a
    c = np.float64(height[iy + 1, ix]) - a
    d = np.float64(height[iy + 1, ix + 1]) - a - b - c
    over = z - (a + b * u + c * v + d * u * v)
    if over <= 0.0:  # the crossing lies in the rounding between two cells, or the ray begins underground
        return 0.0
    slope = dz - b * dx - c * dy - d * (u * dy + v * dx)
    bend = -d * dx * dy
    at_end = over + (slope + bend * span) * span
    if at_end > 0.0 and not (bend > 0.0 and slope < 0.0):
        return -1.0
    root = slope * slope - 4.0 * bend * over
    if root < 0.0:
        return -1.0
    q = -0.5 * (slope - np.sqrt(root)) if slope < 0.0 else -0.5 * (slope + np.sqrt(root))
    # The two roots are q / bend and over / q; the product of equal signs comes first.
    s = over / q if slope < 0.0 else q / bend
    if at_end > 0.0 and not 0.0 <= s <= span:
        return -1.0
    return min(max(s, 0.0), span)


@njit(cache=True, nogil=True)
def _clip(g: Any, d: Any, cells: int, near: Any, far: Any) -> Any:
    """The part of [near, far] in which ``g + d * t`` is within [0, cells]."""
    if d == 0.0:
        return (near, far) if 0.0 <= g <= cells else (near, -1.0)
    t0, t1 = -g / d, (cells - g) / d
    return max(near, min(t0, t1)), min(far, max(t0, t1))


@njit(cache=True, nogil=True)
def _trace(height: Any, tops: Any, first: Any, widths: Any, place: Any, ray: Any, far: Any) -> Any:
    """Distance to the ground and the cell: (distance or inf, ix, iy)."""
    gx, gy, oz = place
    dx, dy, dz = ray
    ny, nx = height.shape[0] - 1, height.shape[1] - 1
    t, end = _clip(gx, dx, nx, 0.0, far)
    t, end = _clip(gy, dy, ny, t, end)
    top = len(first) - 1
    highest = np.float64(tops[first[top]])
    if oz + dz * t > highest:
        if dz >= 0.0:
            return np.inf, 0, 0
        t = max(t, (highest - oz) / dz)
    if not t <= end:
        return np.inf, 0, 0
    ix = min(max(int(gx + dx * t), 0), nx - 1)
    iy = min(max(int(gy + dy * t), 0), ny - 1)
    ahead_x, ahead_y = (1 if dx > 0.0 else 0), (1 if dy > 0.0 else 0)
    per_x = 1.0 / dx if dx != 0.0 else 0.0
    per_y = 1.0 / dy if dy != 0.0 else 0.0
    level = min(top, 4)
    while True:
        bx, by = ix >> level, iy >> level
        tx = (((bx + ahead_x) << level) - gx) * per_x if dx != 0.0 else np.inf
        ty = (((by + ahead_y) << level) - gy) * per_y if dy != 0.0 else np.inf
        after = max(min(tx, ty, end), t)
        lowest = oz + dz * (after if dz < 0.0 else t)
        if lowest <= tops[first[level] + by * widths[level] + bx]:
            if level > 0:
                level -= 1
                continue
            s = _patch(height, ix, iy, gx + dx * t, gy + dy * t, oz + dz * t, dx, dy, dz, after - t)
            if s >= 0.0:
                return t + s, ix, iy
        if after >= end:
            return np.inf, 0, 0
        if tx <= ty:
            ix = ((bx + ahead_x) << level) if ahead_x else (bx << level) - 1
            iy = min(max(int(gy + dy * after), by << level), min(((by + 1) << level) - 1, ny - 1))
        else:
            iy = ((by + ahead_y) << level) if ahead_y else (by << level) - 1
            ix = min(max(int(gx + dx * after), bx << level), min(((bx + 1) << level) - 1, nx - 1))
        if ix < 0 or iy < 0 or ix >= nx or iy >= ny:
            return np.inf, 0, 0
        t = after
        if level < top and ((ix >> level) >> 1 != bx >> 1 or (iy >> level) >> 1 != by >> 1):
            level += 1


@njit(cache=True, nogil=True)
def _cast_one(
    i: int, ground: Any, origins: Any, directions: Any, far: Any, ranges: Any, normals: Any
) -> None:
    """Cast ray i and write where it meets the ground, and the ground's normal there."""
    height, tops, first, widths, cell, corner = ground
    o, d = (i if len(origins) > 1 else 0), (i if len(directions) > 1 else 0)
    gx, gy, oz = (origins[o, 0] - corner[0]) / cell, (origins[o, 1] - corner[1]) / cell, origins[o, 2]
    dx, dy, dz = directions[d, 0] / cell, directions[d, 1] / cell, directions[d, 2]
    s, ix, iy = np.inf, 0, 0
    if np.isfinite(gx + gy + oz + dx + dy + dz):  # a pixel for which the lens has no ray is NaN
        s, ix, iy = _trace(height, tops, first, widths, (gx, gy, oz), (dx, dy, dz), far)
    ranges[i] = s
    if s == np.inf:
        normals[i, 0] = normals[i, 1] = normals[i, 2] = np.nan
        return
    u, v = gx + dx * s - ix, gy + dy * s - iy
    low, high = height[iy, ix + 1] - height[iy, ix], height[iy + 1, ix + 1] - height[iy + 1, ix]
    left, right = height[iy + 1, ix] - height[iy, ix], height[iy + 1, ix + 1] - height[iy, ix + 1]
    nx, ny = -(low + v * (high - low)) / cell, -(left + u * (right - left)) / cell
    length = np.sqrt(nx * nx + ny * ny + 1.0)
    normals[i, 0], normals[i, 1], normals[i, 2] = nx / length, ny / length, 1.0 / length


@njit(cache=True, nogil=True)
def cast_in_order(ground: Any, origins: Any, directions: Any, far: Any, ranges: Any, normals: Any) -> None:
    """Cast all rays on one thread: for a scan of a thousand rays, starting threads takes longer."""
    for i in range(len(ranges)):
        _cast_one(i, ground, origins, directions, far, ranges, normals)


@njit(cache=True, nogil=True, parallel=True)
def cast_in_parallel(ground: Any, origins: Any, directions: Any, far: Any, ranges: Any, normals: Any) -> None:
    """Cast all rays on all threads; each ray is its own, so the result does not depend on them."""
    n = len(ranges)
    per_lane = (n + _LANES * _PIECE - 1) // (_LANES * _PIECE)
    for j in prange(_LANES * per_lane):  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
        begin = ((j % per_lane) * _LANES + j // per_lane) * _PIECE
        for i in range(begin, min(begin + _PIECE, n)):
            _cast_one(i, ground, origins, directions, far, ranges, normals)
