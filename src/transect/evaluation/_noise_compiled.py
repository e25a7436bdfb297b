"""The compiled loop of `noise`: all averaging times of one signal, without an array of differences."""

from __future__ import annotations

from typing import Any

from numba import njit  # pyright: ignore[reportMissingTypeStubs]


# Sums may be taken in any order: without that no two of them are added at once.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def sums_of_squares(phase: Any, sizes: Any, out: Any) -> None:
    """Fill `out` (m,) with sums of squared second differences of `phase` (n,) over each of `sizes` (m,)."""
    for k in range(len(sizes)):
        m = sizes[k]
        count = len(phase) - 2 * m
        early, middle, late = phase[:count], phase[m : m + count], phase[2 * m :]
        total = 0.0
        for i in range(count):
            second = late[i] - 2 * middle[i] + early[i]
            total += second * second
        out[k] = total
