"""Height maps from clouds that lie in one level frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.clouds.voxels import VoxelSums
from transect.base.arrays import Floats, Ints, Mask
from transect.engine import Node, param
from transect.types import GridMap, PointCloud

LEAST_FOR_PLANE = 6
"""Points around a cell from which a plane is fitted."""
SPREAD = 0.05
"""Least variance of these points along any direction, in squared cells: points in a line hold no plane."""
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
    cell: float = param(0.1, gt=0, unit="m", doc="edge length of a grid cell")
    least: int = param(3, ge=1, doc="smallest number of points in a cell with an elevation")
    range_noise: float = param(0.03, ge=0, unit="m", doc="standard deviation of a single range measurement")

    def reset(self) -> None:
        self.sums: VoxelSums | None = None
        self.height = 0.0
        self.frame = ""

    def process(self, cloud: PointCloud) -> GridMap | None:
        points = np.asarray(cloud.points, dtype=np.float64)
        points = points[np.isfinite(points).all(axis=1)]
        if not len(points):
            return self.ctx.skip("empty cloud")
        if self.sums is None:
            self.sums = VoxelSums((self.cell, self.cell, self.choose_layer()))
            self.height, self.frame = float(points[0, 2]), cloud.frame
        for start in range(0, len(points), AT_ONCE):
            part = points[start : start + AT_ONCE]
            middle = (np.floor(part[:, :2] / self.cell) + 0.5) * self.cell
            u, v = (part[:, :2] - middle).T
            w = part[:, 2] - self.height
            self.sums.add(part, np.stack([u, v, w, u * u, u * v, v * v, u * w, v * w, w * w]).T)
        return None

    def finish(self) -> GridMap | None:
        """Return the map."""
        if self.sums is None:
            return None
        voxels, sums = self.sums.sums()
        found = _by_cell(voxels, sums, self.find_ground(voxels, sums))
        layers = surface(found, self.cell, self.height, self.least, self.range_noise)
        return make_grid(found.cells, layers, self.cell, self.frame)

    def choose_layer(self) -> float:
        """Return the height (m) of the layers in which the points of a cell are summed."""
        raise NotImplementedError

    def find_ground(self, voxels: Ints, sums: Floats) -> Mask:
        """Return which voxels (m,) count; they are (m, 3), ordered by cell and then by height.

        Parameters
        ----------
        sums : (m, 13)
            Over the points of each voxel: their number, x, y, z, and those of `CellSums`.
        """
        raise NotImplementedError


class MeanElevation(DemBuilding):
    """The mean of all points of a cell."""

    def choose_layer(self) -> float:
        return ALL_HEIGHTS

    def find_ground(self, voxels: Ints, sums: Floats) -> Mask:
        return np.ones(len(voxels), dtype=np.bool_)


class GroundElevation(DemBuilding):
    """The mean of the lowest points of a cell: without what stands or hangs over the ground."""

    layer: float = param(
        0.05, gt=0, unit="m", doc="thickness of the horizontal layers in which points are counted"
    )
    lowest: float = param(0.05, gt=0, lt=1, doc="share of a cell's points that may lie below the ground")
    thickness: float = param(
        0.3,
        gt=0,
        unit="m",
        doc="thickness of the ground within a cell, measured upwards from its lowest layer",
    )

    def choose_layer(self) -> float:
        return self.layer

    def find_ground(self, voxels: Ints, sums: Floats) -> Mask:
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


def _by_cell(voxels: Ints, sums: Floats, kept: Mask) -> CellSums:
    """Return the sums over cells of the voxels that count; voxels are ordered by cell."""
    cells, rows = voxels[kept, :2], sums[kept]
    first = _starts(cells)
    n, *_xyz, u, v, w, uu, uv, vv, uw, vw, ww = np.add.reduceat(rows, first, axis=0).T
    return CellSums(cells[first], n, u, v, w, uu, uv, vv, uw, vw, ww)


def _starts(cells: Ints) -> Ints:
    """Return where another cell begins in cells (m, 2), of which equal ones stand together."""
    return np.flatnonzero(np.any(np.diff(cells, axis=0, prepend=cells[:1] - 1) != 0, axis=1))


@dataclass(frozen=True, eq=False)
class CellSums:
    """Sums over the points of each cell, with u, v from its middle and w from a common height, in metres.

    Attributes
    ----------
    cells : (m, 2) int64
        Column to the east and row to the north; cell i, j reaches from (i, j) to (i + 1, j + 1) edges.
    n, u, v, w, uu, uv, vv, uw, vw, ww : (m,) float64
    """

    cells: Ints
    n: Floats
    u: Floats
    v: Floats
    w: Floats
    uu: Floats
    uv: Floats
    vv: Floats
    uw: Floats
    vw: Floats
    ww: Floats

    def move(self, u: float, v: float) -> Floats:
        """Return the sums (10, m) as seen from another middle, which lies at (-u, -v) from the cell's own."""
        n = self.n
        return np.stack([
            n,
            self.u + n * u,
            self.v + n * v,
            self.w,
            self.uu + 2 * u * self.u + n * u * u,
            self.uv + u * self.v + v * self.u + n * u * v,
            self.vv + 2 * v * self.v + n * v * v,
            self.uw + u * self.w,
            self.vw + v * self.w,
            self.ww,
        ])  # fmt: skip


@dataclass(frozen=True, eq=False)
class Planes:
    """Of each cell (m,): slopes towards east and north, squared deviations, points; NaN if none is held."""

    east: Floats
    north: Floats
    squares: Floats
    count: Floats


def local_planes(sums: CellSums, cell: float) -> Planes:
    """Fit a plane to the points of each cell and of the eight around it."""
    total = np.zeros((10, len(sums.n)))
    for (i, j), here, there in _neighbours(sums.cells):
        total[:, here] += sums.move(i * cell, j * cell)[:, there]
    n, u, v, w, uu, uv, vv, uw, vw, ww = total
    # About the mean, which makes the normal equations two by two.
    uu, uv, vv = uu - u * u / n, uv - u * v / n, vv - v * v / n
    uw, vw, ww = uw - u * w / n, vw - v * w / n, ww - w * w / n
    narrow = (uu + vv) / 2 - np.hypot((uu - vv) / 2, uv)
    held = (n >= LEAST_FOR_PLANE) & (narrow > SPREAD * cell**2 * n)
    determinant = np.where(held, uu * vv - uv * uv, np.nan)
    east, north = (vv * uw - uv * vw) / determinant, (uu * vw - uv * uw) / determinant
    return Planes(east, north, np.maximum(ww - east * uw - north * vw, 0.0), n)


def surface(sums: CellSums, cell: float, height: float, least: int, noise: float) -> dict[str, Floats]:
    """Return the layers of the map, a value (m,) for each cell.

    Parameters
    ----------
    cell : float
        Edge in metres.
    height : float
        The common height of the sums.
    least : int
        Cells with fewer points have no elevation.
    noise : float
        Deviation of a single height in metres, at least.
    """
    planes = local_planes(sums, cell)
    east, north = np.nan_to_num(planes.east), np.nan_to_num(planes.north)
    # Points are not spread evenly over a cell: along the plane, the mean is moved to the middle.
    middle = (sums.w - east * sums.u - north * sums.v) / sums.n + height
    variance = planes.squares / np.maximum(planes.count - 3, 1)
    deviation = np.sqrt(np.fmax(variance, noise**2) / sums.n)
    enough = sums.n >= least
    return {
        "elevation": np.where(enough, middle, np.nan),
        "uncertainty": np.where(enough, deviation, np.nan),
        "count": sums.n,
        "roughness": np.where(enough, np.sqrt(planes.squares / planes.count), np.nan),
        "slope": np.where(enough, np.arctan(np.hypot(planes.east, planes.north)), np.nan),
    }


def make_grid(cells: Ints, layers: Mapping[str, Floats], cell: float, frame: str) -> GridMap:
    """Return layers (m,) of cells (m, 2) as a map, north up; NaN where there is no cell, but 0 for counts."""
    low, high = cells.min(axis=0), cells.max(axis=0)
    columns, rows = (high - low + 1).tolist()
    across, down = cells[:, 0] - low[0], high[1] - cells[:, 1]
    grids: dict[str, NDArray[np.float32]] = {}
    for name, values in layers.items():
        grids[name] = np.full((rows, columns), 0.0 if name == "count" else np.nan, dtype=np.float32)
        grids[name][down, across] = values
    transform = (cell, 0.0, float(low[0] * cell), 0.0, -cell, float((high[1] + 1) * cell))
    return GridMap(grids, transform, frame=frame)


def _neighbours(cells: Ints) -> Iterator[tuple[tuple[int, int], Ints, Ints]]:
    """For each step to one of nine neighbours: the step, the cells that have it, and which cells it is."""
    span = int(cells[:, 1].max() - cells[:, 1].min()) + 3
    numbers = cells[:, 0] * span + cells[:, 1]
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            wanted = numbers + i * span + j
            at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
            here = np.flatnonzero(ordered[at] == wanted)
            yield (i, j), here, order[at[here]]
