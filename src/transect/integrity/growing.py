"""Masks of clouds, grown: what hangs among masked returns is of the cloud, too.

Two grains of dust are near each other by chance, and then look like a surface. A true surface has neighbours
that are not masked: those beside it on the same surface.
"""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats, Mask

BESIDE, LATER = 3, 2
"""Directions to each side, and sweeps before and after, in which neighbours are."""
NEAR_M = 1.0
"""By how much a neighbour's range may differ."""
MOST, LEAST = 0.5, 3
"""Share and number of a return's neighbours that are masked, from which on it is masked."""
ROUNDS = 2


def grow(mask: Mask, ranges: Floats) -> Mask:
    """Return a mask (s, d) with the returns most of whose neighbours are masked.

    Parameters
    ----------
    mask : (s, d) bool array
        By sweep and direction.
    ranges : (s, d) array
        m; NaN where nothing came back.
    """
    grown = mask.copy()
    if not mask.any():
        return grown
    sweeps, directions = ranges.shape
    around = ((LATER, LATER), (BESIDE, BESIDE))
    far = np.pad(ranges, around, constant_values=np.nan)
    beside = [
        (slice(i, i + sweeps), slice(j, j + directions))
        for i in range(2 * LATER + 1)
        for j in range(2 * BESIDE + 1)
        if (i, j) != (LATER, BESIDE)
    ]
    near = [np.abs(far[place] - ranges) < NEAR_M for place in beside]
    count = sum(each.astype(np.int8) for each in near)
    for _ in range(ROUNDS):
        dropped = np.pad(grown, around)
        hits = sum((each & dropped[place]).astype(np.int8) for each, place in zip(near, beside, strict=True))
        grown |= (hits >= MOST * count) & (hits >= LEAST)
    return grown
