"""Compiled ray tracing on a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]


@njit(cache=True, nogil=True)
def trace(seen: Any, hits: Any, start: Any, ends: Any) -> None:
    """Count the cells between a start (2,) and each end (n, 2), all in cells; an end is a hit.

    Each scan counts a cell at most once: near the sensor many beams pass through the same ones.
    """
    rows, columns = seen.shape
    passed = np.zeros((rows, columns), np.uint8)
    for n in range(len(ends)):
        dx, dy = ends[n, 0] - start[0], ends[n, 1] - start[1]
        steps = int(np.ceil(max(abs(dx), abs(dy)) * 1.5)) + 1
        last_row, last_column = int(np.floor(ends[n, 1])), int(np.floor(ends[n, 0]))
        for k in range(steps):
            fraction = k / steps
            row, column = int(np.floor(start[1] + fraction * dy)), int(np.floor(start[0] + fraction * dx))
            if row < 0 or column < 0 or row >= rows or column >= columns:
                continue
            if row == last_row and column == last_column:
                break
            passed[row, column] = max(passed[row, column], 1)
        if last_row >= 0 and last_column >= 0 and last_row < rows and last_column < columns:
            passed[last_row, last_column] = 2
    for row in range(rows):
        for column in range(columns):
            if passed[row, column]:
                seen[row, column] += 1
                hits[row, column] += passed[row, column] == 2
