"""Height maps from clouds that lie in one level frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.engine import Node, param
from transect.types import GridMap, PointCloud

from ..lidar._accumulation import VoxelSums
from ._dem_surface import CellSums, gridded, surface

AT_ONCE = 200_000
"""Points whose products are in memory at a time."""
ALL_HEIGHTS = 1e6
"""Metres of a layer that holds everything."""


class DemBuilding(Node, interface=True):
    """A map of all clouds, at the end: elevation, its uncertainty, count, roughness and slope by cell.

    The elevation is that of the cell's middle (m); the uncertainty its standard error (m), of points that
    scatter at least by the noise of a range; the slope (rad) and the roughness (RMS in m) are those of the
    plane through the points of the cell and of the eight around it.
    """

    out_name = "dem"
    cell: float = param(0.1, gt=0, unit="m", doc="edge of a cell")
    least: int = param(3, ge=1, doc="cells with fewer points have no elevation")
    range_noise: float = param(0.03, ge=0, unit="m", doc="deviation of a single range")

    def reset(self) -> None:
        self.sums: VoxelSums | None = None
        self.height = 0.0
        self.frame = ""

    def process(self, cloud: PointCloud) -> GridMap | None: ...

    def finish(self) -> GridMap | None:
        """Return the map."""
        if self.sums is None:
            return None
        voxels, sums = self.sums.sums()
        found = _by_cell(voxels, sums, self._ground(voxels, sums))
        layers = surface(found, self.cell, self.height, self.least, self.range_noise)
        return gridded(found.cells, layers, self.cell, self.frame)

    def _ground(self, voxels: Ints, sums: Floats) -> NDArray[np.bool_]:
        """Return which voxels (m,) count: all of them."""
        return np.ones(len(voxels), dtype=np.bool_)

    def _added(self, cloud: PointCloud, layer: float) -> None:
        """Add a cloud to the sums over cells, in layers of a height (m)."""
        points = np.asarray(cloud.points, dtype=np.float64)
        points = points[np.isfinite(points).all(axis=1)]
        if not len(points):
            return self.ctx.skip("empty cloud")
        if self.sums is None:
            self.sums = VoxelSums((self.cell, self.cell, layer))
            self.height, self.frame = float(points[0, 2]), cloud.frame
        for start in range(0, len(points), AT_ONCE):
            part = points[start : start + AT_ONCE]
            middle = (np.floor(part[:, :2] / self.cell) + 0.5) * self.cell
            u, v = (part[:, :2] - middle).T
            w = part[:, 2] - self.height
            self.sums.add(part, np.stack([u, v, w, u * u, u * v, v * v, u * w, v * w, w * w]).T)
        return None


class MeanElevation(DemBuilding):
    """The mean of all points of a cell."""

    def process(self, cloud: PointCloud) -> GridMap | None:
        return self._added(cloud, ALL_HEIGHTS)


class GroundElevation(DemBuilding):
    """The mean of the lowest points of a cell: without what stands or hangs over the ground."""

    layer: float = param(0.05, gt=0, unit="m", doc="height of the layers in which points are counted")
    lowest: float = param(0.05, gt=0, lt=1, doc="share of a cell's points that may lie below the ground")
    thickness: float = param(0.3, gt=0, unit="m", doc="of the ground within a cell, from there on")

    def process(self, cloud: PointCloud) -> GridMap | None:
        return self._added(cloud, self.layer)

    def _ground(self, voxels: Ints, sums: Floats) -> NDArray[np.bool_]:
        """Return which voxels (m,), ordered by cell and then by height, lie in the ground."""
        first = np.flatnonzero(
            np.any(np.diff(voxels[:, :2], axis=0, prepend=voxels[:1, :2] - 1) != 0, axis=1)
        )
        cell = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(voxels))))
        count = sums[:, 0]
        below = np.cumsum(count) - np.concatenate([[0.0], np.cumsum(count)])[first][cell]
        total = np.add.reduceat(count, first)[cell]
        # The layer in which the share is reached is the lowest that is believed.
        reached = np.where(below > self.lowest * total, voxels[:, 2], np.iinfo(np.int64).max)
        ground = np.minimum.reduceat(reached, first)[cell]
        return (voxels[:, 2] >= ground) & (voxels[:, 2] <= ground + round(self.thickness / self.layer))


def _by_cell(voxels: Ints, sums: Floats, kept: NDArray[np.bool_]) -> CellSums:
    """Return the sums over cells of the voxels that count; voxels are ordered by cell."""
    cells, rows = voxels[kept, :2], sums[kept]
    first = _starts(cells)
    n, *_xyz, u, v, w, uu, uv, vv, uw, vw, ww = np.add.reduceat(rows, first, axis=0).T
    return CellSums(cells[first], n, u, v, w, uu, uv, vv, uw, vw, ww)


def _starts(cells: Ints) -> Ints:
    """Return where another cell begins in cells (m, 2), of which equal ones stand together."""
    return np.flatnonzero(np.any(np.diff(cells, axis=0, prepend=cells[:1] - 1) != 0, axis=1))
