"""Compiled heightfield traversal: a ray steps over the largest blocks that it passes above.

`tops` holds, level by level, the greatest height of blocks of 4**level by 4**level cells. Where a ray comes
below the top of a block, it goes on where it does so, in the blocks below. Where it comes below the top of a
single cell it meets the bilinear patch through the cell's four corners, exactly: a quadratic equation in the
distance along the ray.

Neighbouring rays of an image run side by side. How far all rays of a bundle are above the ground is found
once, by the same blocks, and each of them begins there.

The ground is passed as a tuple: height (ny, nx), tops, first index and width of each level, cell (m), x and y
of the first corner.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

_START = 4
"""Level at which rays begin: most start near the ground and soon meet it."""
_BUNDLE, _STEPS = 16, 64
"""Rays that are looked at together, and the most steps that are taken for them."""
_HARDLY = 1e-300
"""Cells per metre: the direction of a ray that does not move along an axis, so that it can be divided by."""

# What is called for each ray is inlined, and does not count references to the arrays (`_nrt`): passing and
# counting them took a quarter of the time. It makes no arrays, so there is nothing to count.
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


@njit(**_PER_RAY)
def _never_still(d: Any, g: Any, cells: int) -> Any:
    """`d`, or hardly anything towards the middle of the ground where that is 0."""
    if d != 0.0:
        return d
    return _HARDLY if g < 0.5 * cells else -_HARDLY


@njit(**_PER_RAY)
def _clip(g: Any, per: Any, cells: int, near: Any, far: Any) -> Any:
    """The part of [near, far] in which ``g + t / per`` is within [0, cells]."""
    t0, t1 = -g * per, (cells - g) * per
    return max(near, min(t0, t1)), min(far, max(t0, t1))


@njit(**_PER_RAY)
def _under(highest: Any, z: Any, dz: Any, near: Any, far: Any) -> Any:
    """The part of [near, far] in which ``z + dz * t`` is not above the highest ground."""
    if dz < 0.0:
        return max(near, (highest - z) / dz), far
    if dz > 0.0:
        return near, min(far, (highest - z) / dz)
    return near, (far if z <= highest else -1.0)


@njit(**_PER_RAY)
def _within(g: Any, low: int, size: int, cells: int) -> int:
    """The cell at place g of a block that begins at cell `low`, whatever rounding says."""
    return min(max(int(g), low), min(low + size, cells) - 1)


@njit(**_PER_RAY)
def _crest(tops: Any, start: int, width: int, rows: int, shift: int, low: Any, high: Any) -> Any:
    """Greatest height in the blocks of a level under a rectangle, from corner `low` to `high` in cells."""
    x0, x1 = max(int(np.floor(low[0])) >> shift, 0), min(int(np.floor(high[0])) >> shift, width - 1)
    y0, y1 = max(int(np.floor(low[1])) >> shift, 0), min(int(np.floor(high[1])) >> shift, rows - 1)
    crest = -np.inf
    for by in range(y0, y1 + 1):
        for bx in range(x0, x1 + 1):
            crest = max(crest, np.float64(tops[start + by * width + bx]))
    return crest


@njit(**_PER_RAY)
def _above(tops: Any, first: Any, widths: Any, middle: Any, spread: Any, far: Any) -> Any:
    """How far all rays of a bundle are surely above the ground, and the level of blocks where that ends.

    `middle` is the place and direction (6 numbers, in cells and m) of a ray among them, `spread` how far the
    others part from it with each metre: to a side (cells) and downwards (m).
    """
    gx, gy, oz, dx, dy, dz = middle
    if not np.isfinite(gx + gy + oz + dx + dy + dz):
        return 0.0, _START
    parting, sinking = spread
    speed = max(abs(dx), abs(dy)) + 2.0 * parting
    fall = dz - sinking
    t, level, top = 0.0, min(len(first) - 1, _START), len(first) - 1
    highest = np.float64(tops[-1])
    for _ in range(_STEPS):
        if not t < far:
            break
        z = oz + fall * t
        if fall >= 0.0 and z > highest:
            return far, 0
        shift = 2 * level
        room = (1 << shift) - 2.0 * parting * t
        if room > 0.25 * (1 << shift):
            after = min(t + room / max(speed, 1e-12), far)
            wide = parting * after
            ax, bx, ay, by = gx + dx * t, gx + dx * after, gy + dy * t, gy + dy * after
            low = min(ax, bx) - wide, min(ay, by) - wide
            high = max(ax, bx) + wide, max(ay, by) + wide
            end = len(tops) if level == top else first[level + 1]
            rows = (end - first[level]) // widths[level]
            crest = _crest(tops, first[level], widths[level], rows, shift, low, high)
            if min(z, z + fall * (after - t)) > crest:
                t = after
                level = min(level + 1, top)
                continue
        elif level >= _START:
            return t, _START
        else:
            return t, level + 1
        if level == 0:
            break
        level -= 1
    return t, level


@njit(**_PER_RAY)
def _trace(
    height: Any, tops: Any, first: Any, widths: Any, place: Any, ray: Any, near: Any, far: Any, level: int
) -> Any:
    """Distance to the ground, not before `near`, and the cell: (distance or inf, ix, iy)."""
    gx, gy, oz = place
    ny, nx = height.shape[0] - 1, height.shape[1] - 1
    dx, dy, dz = _never_still(ray[0], gx, nx), _never_still(ray[1], gy, ny), ray[2]
    per_x, per_y, per_z = 1.0 / dx, 1.0 / dy, 1.0 / dz
    t, end = _clip(gx, per_x, nx, near, far)
    t, end = _clip(gy, per_y, ny, t, end)
    t, end = _under(np.float64(tops[-1]), oz, dz, t, end)
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
    """The largest of three numbers, the last two of which may be NaN."""
    most = a if a > most else most  # noqa: FURB136 - max may keep a NaN
    return b if b > most else most  # noqa: FURB136


@njit(**_PER_RAY)
def _bundle(origins: Any, directions: Any, begin: int, end: int, corner: Any, per_cell: Any) -> Any:
    """The middle one of some rays from one place, and how far the others part from it: see `_above`."""
    m = min((begin + end) // 2, len(directions) - 1)
    dx, dy, dz = directions[m, 0], directions[m, 1], directions[m, 2]
    parting, sinking = 0.0, 0.0
    for i in range(begin, min(end, len(directions))):
        parting = _larger(parting, abs(directions[i, 0] - dx), abs(directions[i, 1] - dy))
        sinking = _larger(sinking, dz - directions[i, 2], 0.0)
    x, y = (origins[0, 0] - corner[0]) * per_cell, (origins[0, 1] - corner[1]) * per_cell
    return (x, y, origins[0, 2], dx * per_cell, dy * per_cell, dz), (parting * per_cell, sinking)


@njit(cache=True, nogil=True, error_model="numpy")
def cast(ground: Any, origins: Any, directions: Any, far: Any, ranges: Any, normals: Any) -> None:
    """Cast rays and write where they meet the ground, and its normals there."""
    height, tops, first, widths, cell, corner = ground
    per_cell, x0, y0 = 1.0 / cell, corner[0], corner[1]
    near, level = 0.0, _START
    for i in range(len(ranges)):
        o, d = (i if len(origins) > 1 else 0), (i if len(directions) > 1 else 0)
        if len(origins) == 1 and i % _BUNDLE == 0:
            bundle = _bundle(origins, directions, i, min(i + _BUNDLE, len(ranges)), corner, per_cell)
            near, level = _above(tops, first, widths, bundle[0], bundle[1], far)
        gx, gy, oz = (origins[o, 0] - x0) * per_cell, (origins[o, 1] - y0) * per_cell, origins[o, 2]
        dx, dy, dz = directions[d, 0] * per_cell, directions[d, 1] * per_cell, directions[d, 2]
        s, ix, iy = np.inf, 0, 0
        if near < far and np.isfinite(
            gx + gy + oz + dx + dy + dz
        ):  # NaN: a pixel for which the lens has no ray
            s, ix, iy = _trace(height, tops, first, widths, (gx, gy, oz), (dx, dy, dz), near, far, level)
        ranges[i] = s
        if s == np.inf:
            normals[i, 0] = normals[i, 1] = normals[i, 2] = np.nan
        else:
            _write_normal(normals, i, height, ix, iy, gx + dx * s - ix, gy + dy * s - iy, per_cell)


@njit(cache=True, nogil=True, error_model="numpy")
def pass_ball(ball: Any, origins: Any, directions: Any, limit: Any, near: Any) -> None:
    """Write which rays (n,) pass through a ball (4,: middle, radius) before their limits (n,)."""
    for i in range(len(limit)):
        o, d = (i if len(origins) > 1 else 0), (i if len(directions) > 1 else 0)
        x, y, z = ball[0] - origins[o, 0], ball[1] - origins[o, 1], ball[2] - origins[o, 2]
        along = x * directions[d, 0] + y * directions[d, 1] + z * directions[d, 2]
        aside = x * x + y * y + z * z - along * along
        near[i] = aside <= ball[3] * ball[3] and -ball[3] <= along <= limit[i] + ball[3]
