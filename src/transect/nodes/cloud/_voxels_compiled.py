"""Compiled sums over voxels, in a hash table with open addressing, filled in the order of the points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

from transect.base.arrays import Floats, Ints

_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, for multiplicative hashing (Knuth, TAOCP 3, 6.4)."""
_INITIAL_BITS = 12
"""Initial size of the table. It grows with the voxels, not with the points, so that it fits the cache."""


def voxel_sums(
    points: Floats, weights: Floats, numbers: Ints, size: float, corner: Floats
) -> tuple[Floats, Ints, Ints]:
    """Sum points (n, 3) with weights (n,) over voxels of edge `size`.

    `numbers` (n,) are the measurements of each point. `corner` (3,) is the lowest voxel, in voxels from the
    origin. Returns for each voxel, in the order of its first point: weight and weighted offsets from the
    corner (m, 4), numbers (m,), row of the first point (m,).
    """
    bits, row, found = _INITIAL_BITS, 0, 0
    whole, sums = np.zeros((1 << (bits - 1), 3), np.int64), np.zeros((1 << (bits - 1), 4))
    while True:
        row, found = _fill(points, weights, numbers, size, corner, (row, found), whole, sums, bits)
        if row == len(points):
            return sums[:found].copy(), whole[:found, 2].copy(), whole[:found, 1].copy()
        bits += 2
        whole = np.vstack([whole, np.zeros((3 * found, 3), np.int64)])
        sums = np.vstack([sums, np.zeros((3 * found, 4))])


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(
    points: Any,
    weights: Any,
    numbers: Any,
    size: float,
    corner: Any,
    begin: Any,
    whole: Any,
    sums: Any,
    bits: int,
) -> Any:
    """Continue from a row and a number of voxels, to the last row or until the table is full.

    `whole` (k, 3) are the key of each voxel, the row of its first point, and numbers; `sums` (k, 4) as above.
    The table has ``2**bits`` slots, more than k.
    """
    row, found = begin
    slots, shift, mask = np.full(1 << bits, -1, np.int32), np.uint64(64 - bits), (1 << bits) - 1
    for voxel in range(found):
        slot = np.int64((np.uint64(whole[voxel, 0]) * _HASH_FACTOR) >> shift)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = voxel
    x0, y0, z0 = corner[0] * size, corner[1] * size, corner[2] * size
    for i in range(row, len(points)):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        a = np.int64(np.floor(x / size) - corner[0])
        b = np.int64(np.floor(y / size) - corner[1])
        c = np.int64(np.floor(z / size) - corner[2])
        key = (a << 42) | (b << 21) | c
        slot = np.int64((np.uint64(key) * _HASH_FACTOR) >> shift)
        while slots[slot] >= 0 and whole[slots[slot], 0] != key:
            slot = (slot + 1) & mask
        voxel = slots[slot]
        if voxel < 0:
            if found == len(whole):
                return i, found
            voxel = found
            slots[slot] = voxel
            whole[voxel, 0], whole[voxel, 1] = key, i
            found += 1
        w = weights[i]
        sums[voxel, 0] += w
        sums[voxel, 1] += w * (x - x0)
        sums[voxel, 2] += w * (y - y0)
        sums[voxel, 3] += w * (z - z0)
        whole[voxel, 2] += numbers[i]
    return len(points), found
