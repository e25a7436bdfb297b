"""Compiled ray casting into a height field, with a maximum mipmap (Tevs et al., I3D 2008).

`tops` contains, level by level, the maximum height of blocks of 4**level by 4**level cells. A ray skips
blocks whose top it passes above. Where it drops below the top of a block, it continues at the next finer
level. Where it drops below the top of a single cell, it is intersected with the bilinear patch of the cell's
four corners, exactly: a quadratic equation in the distance along the ray.

Neighbouring rays of an image are nearly parallel. The distance up to which all rays of a bundle are above the
ground is computed once, with the same blocks, and each of them starts there.

The ground is passed as a tuple: height (ny, nx), tops, first index and width of each level, cell (m), x and y
of the first corner.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

_START_LEVEL = 4
"""Level at which rays start, as most start near the ground."""
_BUNDLE_RAYS, _MAX_BUNDLE_STEPS = 16, 64
"""Rays per bundle, and maximum number of steps of a bundle."""
_MIN_DIRECTION = 1e-300
"""Cells per metre: replaces a direction of 0 along an axis, as it is divided by."""

# Functions called per ray are inlined, and do not count references of arrays (`_nrt`): passing and counting
# them took a quarter of the time. They create no arrays, so there is nothing to count.
_PER_RAY: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "forceinline": True,
}


@njit(**_PER_RAY)
def _patch(
    height: Any, ix: int, iy: int, gx: Any, gy: Any, z: Any, dx: Any, dy: Any, dz: Any, span: Any
) -> Any:
    """Distance in [0, span] to the patch of cell (ix, iy) from a point at (gx, gy, z), or -1.

    Positions are in cells, directions in cells per metre (dz: metres per metre).
    """
    u, v = gx - ix, gy - iy
    a = np.float64(height[iy, ix])
    b = np.float64(height[iy, ix + 1]) - a
    c = np.float64(height[iy + 1, ix]) - a
    d = np.float64(height[iy + 1, ix + 1]) - a - b - c
    over = z - (a + b * u + c * v + d * u * v)
    if over <= 0.0:  # the intersection is within rounding between two cells, or the ray starts below ground
        return 0.0
    slope = dz - b * dx - c * dy - d * (u * dy + v * dx)
    curvature = -d * dx * dy
    at_end = over + (slope + curvature * span) * span
    if at_end > 0.0 and not (curvature > 0.0 and slope < 0.0):
        return -1.0
    root = slope * slope - 4.0 * curvature * over
    if root < 0.0:
        return -1.0
    q = -0.5 * (slope - np.sqrt(root)) if slope < 0.0 else -0.5 * (slope + np.sqrt(root))
    # The roots are q / curvature and over / q, in the form without cancellation.
    s = over / q if slope < 0.0 else q / curvature
    if at_end > 0.0 and not 0.0 <= s <= span:
        return -1.0
    return min(max(s, 0.0), span)


@njit(**_PER_RAY)
def _avoid_zero(d: Any, g: Any, cells: int) -> Any:
    """Return `d`, or a tiny direction towards the centre of the ground if it is 0."""
    if d != 0.0:
        return d
    return _MIN_DIRECTION if g < 0.5 * cells else -_MIN_DIRECTION


@njit(**_PER_RAY)
def _clip(g: Any, per: Any, cells: int, near: Any, far: Any) -> Any:
    """Return the interval of [near, far] in which ``g + t / per`` is within [0, cells]."""
    t0, t1 = -g * per, (cells - g) * per
    return max(near, min(t0, t1)), min(far, max(t0, t1))


@njit(**_PER_RAY)
def _clip_height(highest: Any, z: Any, dz: Any, near: Any, far: Any) -> Any:
    """Return the interval of [near, far] in which ``z + dz * t`` is not above the highest ground."""
    if dz < 0.0:
        return max(near, (highest - z) / dz), far
    if dz > 0.0:
        return near, min(far, (highest - z) / dz)
    return near, (far if z <= highest else -1.0)


@njit(**_PER_RAY)
def _within(g: Any, low: int, size: int, cells: int) -> int:
    """Return the cell at position g, clipped to the block that starts at cell `low` against rounding."""
    return min(max(int(g), low), min(low + size, cells) - 1)


@njit(**_PER_RAY)
def _crest(tops: Any, start: int, width: int, rows: int, shift: int, low: Any, high: Any) -> Any:
    """Return the maximum height of the blocks of a level under a rectangle from `low` to `high` in cells."""
    x0, x1 = max(int(np.floor(low[0])) >> shift, 0), min(int(np.floor(high[0])) >> shift, width - 1)
    y0, y1 = max(int(np.floor(low[1])) >> shift, 0), min(int(np.floor(high[1])) >> shift, rows - 1)
    crest = -np.inf
    for by in range(y0, y1 + 1):
        for bx in range(x0, x1 + 1):
            crest = max(crest, np.float64(tops[start + by * width + bx]))
    return crest


@njit(**_PER_RAY)
def _clear_distance(tops: Any, first: Any, widths: Any, middle: Any, spread: Any, far: Any) -> Any:
    """Return a distance up to which all rays of a bundle are above the ground, and the level of blocks there.

    `middle` is the origin and direction (6 numbers, in cells and m) of the middle ray, `spread` the largest
    divergence of the others from it per metre: horizontally (cells) and downwards (m).
    """
    gx, gy, oz, dx, dy, dz = middle
    if not np.isfinite(gx + gy + oz + dx + dy + dz):
        return 0.0, _START_LEVEL
    divergence, sinking = spread
    speed = max(abs(dx), abs(dy)) + 2.0 * divergence
    fall = dz - sinking
    t, level, top = 0.0, min(len(first) - 1, _START_LEVEL), len(first) - 1
    highest = np.float64(tops[-1])
    for _ in range(_MAX_BUNDLE_STEPS):
        if not t < far:
            break
        z = oz + fall * t
        if fall >= 0.0 and z > highest:
            return far, 0
        shift = 2 * level
        room = (1 << shift) - 2.0 * divergence * t
        if room > 0.25 * (1 << shift):
            after = min(t + room / max(speed, 1e-12), far)
            width = divergence * after
            ax, bx, ay, by = gx + dx * t, gx + dx * after, gy + dy * t, gy + dy * after
            low = min(ax, bx) - width, min(ay, by) - width
            high = max(ax, bx) + width, max(ay, by) + width
            end = len(tops) if level == top else first[level + 1]
            rows = (end - first[level]) // widths[level]
            crest = _crest(tops, first[level], widths[level], rows, shift, low, high)
            if min(z, z + fall * (after - t)) > crest:
                t = after
                level = min(level + 1, top)
                continue
        elif level >= _START_LEVEL:
            return t, _START_LEVEL
        else:
            return t, level + 1
        if level == 0:
            break
        level -= 1
    return t, level


@njit(**_PER_RAY)
def _trace(
    height: Any, tops: Any, first: Any, widths: Any, start: Any, ray: Any, near: Any, far: Any, level: int
) -> Any:
    """Return the distance to the ground beyond `near`, and the cell: (distance or inf, ix, iy)."""
    gx, gy, oz = start
    ny, nx = height.shape[0] - 1, height.shape[1] - 1
    dx, dy, dz = _avoid_zero(ray[0], gx, nx), _avoid_zero(ray[1], gy, ny), ray[2]
    per_x, per_y, per_z = 1.0 / dx, 1.0 / dy, 1.0 / dz
    t, end = _clip(gx, per_x, nx, near, far)
    t, end = _clip(gy, per_y, ny, t, end)
    t, end = _clip_height(np.float64(tops[-1]), oz, dz, t, end)
    if not t <= end:
        return np.inf, 0, 0
    ix, iy = _within(gx + dx * t, 0, nx, nx), _within(gy + dy * t, 0, ny, ny)
    ahead_x, ahead_y = (1 if dx > 0.0 else 0), (1 if dy > 0.0 else 0)
    top = len(first) - 1
    level = min(top, level)
    while True:
        shift = 2 * level
        size, bx, by = 1 << shift, ix >> shift, iy >> shift
        low_x, low_y = bx << shift, by << shift
        tx = (low_x + (ahead_x << shift) - gx) * per_x
        ty = (low_y + (ahead_y << shift) - gy) * per_y
        after = max(min(tx, ty, end), t)
        crest = np.float64(tops[first[level] + by * widths[level] + bx])
        if oz + dz * (after if dz < 0.0 else t) <= crest:
            if level == 0:
                s = _patch(height, ix, iy, gx + dx * t, gy + dy * t, oz + dz * t, dx, dy, dz, after - t)
                if s >= 0.0:
                    return t + s, ix, iy
            else:
                level -= 1
                below = (crest - oz) * per_z
                if dz < 0.0 and below > t:
                    t = min(below, after)
                    ix = _within(gx + dx * t, low_x, size, nx)
                    iy = _within(gy + dy * t, low_y, size, ny)
                continue
        if after >= end:
            return np.inf, 0, 0
        t = after
        if tx <= ty:
            ix, iy = low_x + (size if ahead_x else -1), _within(gy + dy * t, low_y, size, ny)
        else:
            ix, iy = _within(gx + dx * t, low_x, size, nx), low_y + (size if ahead_y else -1)
        if ix < 0 or iy < 0 or ix >= nx or iy >= ny:
            return np.inf, 0, 0
        if level < top and (ix >> shift >> 2 != bx >> 2 or iy >> shift >> 2 != by >> 2):
            level += 1


@njit(**_PER_RAY)
def _write_normal(normals: Any, i: int, height: Any, ix: int, iy: int, u: Any, v: Any, per_cell: Any) -> None:
    """Write the upward unit normal of cell (ix, iy) at (u, v) in it."""
    low, high = height[iy, ix + 1] - height[iy, ix], height[iy + 1, ix + 1] - height[iy + 1, ix]
    left, right = height[iy + 1, ix] - height[iy, ix], height[iy + 1, ix + 1] - height[iy, ix + 1]
    x, y = -(low + v * (high - low)) * per_cell, -(left + u * (right - left)) * per_cell
    z = 1.0 / np.sqrt(x * x + y * y + 1.0)
    normals[i, 0], normals[i, 1], normals[i, 2] = x * z, y * z, z


@njit(**_PER_RAY)
def _larger(most: Any, a: Any, b: Any) -> Any:
    """Return the largest of three numbers; the last two may be NaN."""
    most = a if a > most else most  # noqa: FURB136 - max may keep a NaN
    return b if b > most else most  # noqa: FURB136


@njit(**_PER_RAY)
def _bundle(origins: Any, directions: Any, begin: int, end: int, corner: Any, per_cell: Any) -> Any:
    """Return the middle ray of a bundle, and the divergence of the others: see `_clear_distance`."""
    m = min((begin + end) // 2, len(directions) - 1)
    dx, dy, dz = directions[m, 0], directions[m, 1], directions[m, 2]
    divergence, sinking = 0.0, 0.0
    for i in range(begin, min(end, len(directions))):
        divergence = _larger(divergence, abs(directions[i, 0] - dx), abs(directions[i, 1] - dy))
        sinking = _larger(sinking, dz - directions[i, 2], 0.0)
    x, y = (origins[0, 0] - corner[0]) * per_cell, (origins[0, 1] - corner[1]) * per_cell
    return (x, y, origins[0, 2], dx * per_cell, dy * per_cell, dz), (divergence * per_cell, sinking)


@njit(cache=True, nogil=True, error_model="numpy")
def cast(ground: Any, origins: Any, directions: Any, far: Any, ranges: Any, normals: Any) -> None:
    """Cast rays and write their ranges to the ground, and its normals there."""
    height, tops, first, widths, cell, corner = ground
    per_cell, x0, y0 = 1.0 / cell, corner[0], corner[1]
    near, level = 0.0, _START_LEVEL
    for i in range(len(ranges)):
        o, d = (i if len(origins) > 1 else 0), (i if len(directions) > 1 else 0)
        if len(origins) == 1 and i % _BUNDLE_RAYS == 0:
            bundle = _bundle(origins, directions, i, min(i + _BUNDLE_RAYS, len(ranges)), corner, per_cell)
            near, level = _clear_distance(tops, first, widths, bundle[0], bundle[1], far)
        gx, gy, oz = (origins[o, 0] - x0) * per_cell, (origins[o, 1] - y0) * per_cell, origins[o, 2]
        dx, dy, dz = directions[d, 0] * per_cell, directions[d, 1] * per_cell, directions[d, 2]
        s, ix, iy = np.inf, 0, 0
        if near < far and np.isfinite(gx + gy + oz + dx + dy + dz):  # NaN: a pixel outside the lens model
            s, ix, iy = _trace(height, tops, first, widths, (gx, gy, oz), (dx, dy, dz), near, far, level)
        ranges[i] = s
        if s == np.inf:
            normals[i, 0] = normals[i, 1] = normals[i, 2] = np.nan
        else:
            _write_normal(normals, i, height, ix, iy, gx + dx * s - ix, gy + dy * s - iy, per_cell)


@njit(cache=True, nogil=True, error_model="numpy")
def pass_ball(ball: Any, origins: Any, directions: Any, limit: Any, near: Any) -> None:
    """Write which rays (n,) intersect a sphere (4,: centre, radius) before their limits (n,)."""
    for i in range(len(limit)):
        o, d = (i if len(origins) > 1 else 0), (i if len(directions) > 1 else 0)
        x, y, z = ball[0] - origins[o, 0], ball[1] - origins[o, 1], ball[2] - origins[o, 2]
        along = x * directions[d, 0] + y * directions[d, 1] + z * directions[d, 2]
        offset_squared = x * x + y * y + z * z - along * along
        near[i] = offset_squared <= ball[3] * ball[3] and -ball[3] <= along <= limit[i] + ball[3]
