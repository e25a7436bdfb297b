"""Compiled sums over voxels: points go into a table with open addressing, in the order in which they come."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""Two to the 64th by the golden ratio: neighbouring numbers go to slots far apart."""


@njit(cache=True, nogil=True, error_model="numpy")
def voxel_sums(points: Any, weights: Any, numbers: Any, size: float, corner: Any, bits: int) -> Any:
    """Sum up points (n, 3) with weights (n,) over voxels whose edge is `size`.

    `numbers` (n,) says for how many each point stands. `corner` (3,) is the lowest voxel, in voxels from the
    origin; the table has ``2**bits`` slots, more than n. Returned for each voxel, in the order of its first
    point: weight and weighted offsets from the corner (m, 4), numbers (m,), row of the first point (m,).
    """
    n = points.shape[0]
    slots = np.full(1 << bits, -1, np.int32)
    shift, mask = np.uint64(64 - bits), (1 << bits) - 1
    keys, sums = np.empty(n, np.int64), np.zeros((n, 4))
    count, first = np.zeros(n, np.int64), np.empty(n, np.int64)
    x0, y0, z0 = corner[0] * size, corner[1] * size, corner[2] * size
    found = 0
    for i in range(n):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        a = np.int64(np.floor(x / size) - corner[0])
        b = np.int64(np.floor(y / size) - corner[1])
        c = np.int64(np.floor(z / size) - corner[2])
        key = (a << 42) | (b << 21) | c
        slot = np.int64((np.uint64(key) * _SPREAD) >> shift)
        while slots[slot] >= 0 and keys[slots[slot]] != key:
            slot = (slot + 1) & mask
        voxel = slots[slot]
        if voxel < 0:
            voxel = found
            slots[slot] = voxel
            keys[voxel], first[voxel] = key, i
            found += 1
        w = weights[i]
        sums[voxel, 0] += w
        sums[voxel, 1] += w * (x - x0)
        sums[voxel, 2] += w * (y - y0)
        sums[voxel, 3] += w * (z - z0)
        count[voxel] += numbers[i]
    return sums[:found].copy(), count[:found].copy(), first[:found].copy()
