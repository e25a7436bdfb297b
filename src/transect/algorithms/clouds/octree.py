"""Cubes that have points in them, as the leaves of an octree."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError
from transect.types import Octree

DEEPEST = 20
"""Halvings of the root: codes of three times as many bits fit into a whole number."""


def octree(points: Floats, resolution: float, t_ns: int, frame: str) -> Octree:
    """Return the octree of points (n, 3), at least one, whose leaves have that edge (m).

    Leaves lie on the multiples of the edge, so that octrees of one frame fit together.
    """
    cells = np.floor(points / resolution)
    low = cells.min(axis=0)
    depth = int(np.ceil(np.log2(np.max(cells.max(axis=0) - low) + 1)))
    if depth > DEEPEST:
        raise GeometryError(
            f"leaves of {resolution:g} m are too small for {np.max(np.ptp(points, axis=0)):.3g} m of points",
            hint="leave out far points first, or take larger leaves",
        )
    index = (cells - low).astype(np.int64)
    _, first, counts = np.unique(morton(index), return_index=True, return_counts=True)
    return Octree(low * resolution, resolution * 2.0**depth, depth, index[first], counts, t_ns, frame)


def morton(cells: Ints) -> Ints:
    """Return codes (n,) of cells (n, 3): their bits in turn, x the lowest; near cells have near codes."""
    codes = np.zeros(len(cells), dtype=np.int64)
    for bit in range(DEEPEST):
        for axis in range(3):
            codes |= ((cells[:, axis] >> bit) & 1) << (3 * bit + axis)
    return codes
