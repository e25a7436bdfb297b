"""Voxels: octrees of the occupied ones, and running means of the points in each."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError
from transect.types import Octree

MAX_DEPTH = 20  # of an octree: codes have three bits for each level, in 64 bits
BITS_PER_AXIS = 21  # of the key of a voxel: two million voxels along each axis


def build_octree(points: Floats, resolution: float, t_ns: int, frame: str) -> Octree:
    """Return the octree of points (n, 3), at least one, with leaves of an edge of `resolution` metres.

    Leaves are aligned to multiples of the edge, so that octrees of one frame fit together.
    """
    cells = np.floor(points / resolution)
    low = cells.min(axis=0)
    depth = int(np.ceil(np.log2(np.max(cells.max(axis=0) - low) + 1)))
    if depth > MAX_DEPTH:
        raise GeometryError(
            f"leaves of {resolution:g} m are too small for {np.max(np.ptp(points, axis=0)):.3g} m of points",
            hint="remove far points first, or choose larger leaves",
        )
    index = (cells - low).astype(np.int64)
    _, first, counts = np.unique(morton_codes(index), return_index=True, return_counts=True)
    return Octree(low * resolution, resolution * 2.0**depth, depth, index[first], counts, t_ns, frame)


def morton_codes(cells: Ints) -> Ints:
    """Return the Morton codes (n,) of cells (n, 3): their bits interleaved, x the lowest."""
    codes = np.zeros(len(cells), dtype=np.int64)
    for bit in range(MAX_DEPTH):
        for axis in range(3):
            codes |= ((cells[:, axis] >> bit) & 1) << (3 * bit + axis)
    return codes


class VoxelSums:
    """Sums over voxels of points and other values.

    Parameters
    ----------
    size : float or (3,)
        Edges of a voxel in metres.
    batch : int
        Smallest number of points that are merged at a time, for speed; at least the number of voxels.
    """

    def __init__(self, size: ArrayLike, batch: int = 400_000) -> None:
        self.batch = batch
        self.size = np.broadcast_to(np.asarray(size, dtype=np.float64), (3,)).copy()
        self._origin: Floats | None = None
        self._keys = np.zeros(0, dtype=np.int64)
        self._sums: Floats | None = None  # (k, m), a column for each voxel
        self._waiting: list[Floats] = []
        self._count = 0

    def add(self, points: ArrayLike, values: ArrayLike | None = None) -> None:
        """Add points (n, 3) in metres with values (n, k); rows with NaN are ignored."""
        cloud = np.asarray(points, dtype=np.float64)
        parts = [cloud.T] if values is None else [cloud.T, np.asarray(values, dtype=np.float64).T]
        columns = np.concatenate([np.ones((1, len(cloud))), *parts])
        known = np.isfinite(columns).all(axis=0)
        columns = columns if known.all() else columns[:, known]
        if self._origin is None and columns.size:
            # Keys are relative to the first point, as northings are millions of metres.
            self._origin = np.floor(columns[1:4, 0] / self.size)
        self._waiting.append(columns)
        self._count += columns.shape[1]
        if self._count > max(self.batch, len(self._keys)):
            self._merge()

    def sums(self) -> tuple[Ints, Floats]:
        """Return the sorted voxels (m, 3), and for each: count, sums of x, y, z, sums of the values.

        Voxel i, j, k extends from (i, j, k) to (i + 1, j + 1, k + 1) times its edges.
        """
        self._merge()
        if self._sums is None or self._origin is None:
            return np.zeros((0, 3), dtype=np.int64), np.zeros((0, 4))
        voxels = (
            np.stack([(self._keys >> shift) & _AXIS_MASK for shift in _AXIS_SHIFTS], axis=1) - _HALF_RANGE
        )
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
        keys, in_range = _voxel_keys(columns[1:4].T, self.size, self._origin)
        keys, columns = _sum_by_key(keys[in_range], columns[:, in_range])
        if self._sums is not None:
            keys, columns = _sum_by_key(
                np.concatenate([self._keys, keys]), np.concatenate([self._sums, columns], axis=1)
            )
        self._keys, self._sums = keys, columns


_AXIS_MASK, _HALF_RANGE = (1 << BITS_PER_AXIS) - 1, 1 << (BITS_PER_AXIS - 1)
_AXIS_SHIFTS = (2 * BITS_PER_AXIS, BITS_PER_AXIS, 0)


def _voxel_keys(points: Floats, size: Floats, origin: Floats) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the key (n,) of each point's voxel, in order of x, y, z; and which points are in range."""
    index = np.floor(points / size) - origin
    in_range = np.asarray((np.abs(index) < _HALF_RANGE).all(axis=1), dtype=np.bool_)
    index = np.where(in_range[:, None], index, 0.0).astype(np.int64) + _HALF_RANGE
    return (index[:, 0] << _AXIS_SHIFTS[0]) | (index[:, 1] << _AXIS_SHIFTS[1]) | index[:, 2], in_range


def _sum_by_key(keys: Ints, columns: Floats) -> tuple[Ints, Floats]:
    """Return the sorted unique keys, with the sums of their columns (k, n)."""
    order = np.argsort(keys, kind="stable")
    new = np.diff(keys[order], prepend=-1) != 0
    voxel = np.empty(len(keys), dtype=np.int64)
    voxel[order] = np.cumsum(new) - 1
    # bincount by column takes an eighth of the time of sorting all columns.
    sums = np.stack([np.bincount(voxel, values).astype(np.float64) for values in columns])
    return keys[order[new]], sums
