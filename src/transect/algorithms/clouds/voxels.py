"""Voxels: octrees of the occupied ones, and running means of the points in each."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


WAITING = 400_000
"""Points that may wait before they are merged, or as many as there are voxels: fewer at a time cost more."""
BITS = 21
"""Of each axis in a voxel's number: two million voxels along each."""


class VoxelSums:
    """Sums over voxels of points and whatever goes with them.

    Parameters
    ----------
    size : float or (3,)
        Edges of a voxel in metres.
    """

    def __init__(self, size: ArrayLike) -> None:
        self.size = np.broadcast_to(np.asarray(size, dtype=np.float64), (3,)).copy()
        self._origin: Floats | None = None
        self._keys = np.zeros(0, dtype=np.int64)
        self._sums: Floats | None = None  # (k, m), a column for each voxel
        self._waiting: list[Floats] = []
        self._count = 0

    def add(self, points: ArrayLike, values: ArrayLike | None = None) -> None:
        """Add points (n, 3) in metres, and values (n, k) that go with them; rows with NaN are left out."""
        cloud = np.asarray(points, dtype=np.float64)
        parts = [cloud.T] if values is None else [cloud.T, np.asarray(values, dtype=np.float64).T]
        columns = np.concatenate([np.ones((1, len(cloud))), *parts])
        known = np.isfinite(columns).all(axis=0)
        columns = columns if known.all() else columns[:, known]
        if self._origin is None and columns.size:
            # Voxels are numbered from where the first point is: northings are millions of metres.
            self._origin = np.floor(columns[1:4, 0] / self.size)
        self._waiting.append(columns)
        self._count += columns.shape[1]
        if self._count > max(WAITING, len(self._keys)):
            self._merge()

    def sums(self) -> tuple[Ints, Floats]:
        """Return the voxels (m, 3) in order, and by voxel: count, sums of x, y, z, sums of the values.

        Voxel i, j, k reaches from (i, j, k) to (i + 1, j + 1, k + 1) edges.
        """
        self._merge()
        if self._sums is None or self._origin is None:
            return np.zeros((0, 3), dtype=np.int64), np.zeros((0, 4))
        voxels = np.stack([(self._keys >> shift) & _MASK for shift in _SHIFTS], axis=1) - _HALF
        return voxels + self._origin.astype(np.int64), self._sums.T

    def means(self) -> tuple[Ints, Floats]:
        """Return counts (m,), and means (m, 3 + k) of points and values."""
        sums = self.sums()[1]
        return sums[:, 0].astype(np.int64), sums[:, 1:] / sums[:, :1]

    def _merge(self) -> None:
        waiting, self._waiting, self._count = self._waiting, [], 0
        if self._origin is None or not waiting:
            return
        columns = np.concatenate(waiting, axis=1)
        keys, near = _numbers(columns[1:4].T, self.size, self._origin)
        keys, columns = _reduce(keys[near], columns[:, near])
        if self._sums is not None:
            keys, columns = _reduce(
                np.concatenate([self._keys, keys]), np.concatenate([self._sums, columns], axis=1)
            )
        self._keys, self._sums = keys, columns


_MASK, _HALF = (1 << BITS) - 1, 1 << (BITS - 1)
_SHIFTS = (2 * BITS, BITS, 0)


def _numbers(points: Floats, size: Floats, origin: Floats) -> tuple[Ints, NDArray[np.bool_]]:
    """Return a number (n,) for each point's voxel, in order of x, y, z; and which points are in reach."""
    index = np.floor(points / size) - origin
    near = np.asarray((np.abs(index) < _HALF).all(axis=1), dtype=np.bool_)
    index = np.where(near[:, None], index, 0.0).astype(np.int64) + _HALF
    return (index[:, 0] << _SHIFTS[0]) | (index[:, 1] << _SHIFTS[1]) | index[:, 2], near


def _reduce(keys: Ints, columns: Floats) -> tuple[Ints, Floats]:
    """Return each key (n,) once, in order, with the sums of its columns (k, n)."""
    order = np.argsort(keys, kind="stable")
    new = np.diff(keys[order], prepend=-1) != 0
    voxel = np.empty(len(keys), dtype=np.int64)
    voxel[order] = np.cumsum(new) - 1
    # Counting column by column takes an eighth of the time of sorting all of them.
    sums = np.stack([np.bincount(voxel, values).astype(np.float64) for values in columns])
    return keys[order[new]], sums
