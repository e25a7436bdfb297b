"""Height maps from clouds in one level frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.clouds.voxels import VoxelSums
from transect.base.arrays import Floats, Ints, Mask
from transect.engine import Node, param
from transect.types import GridMap, PointCloud


class DemBuilding(Node, interface=True):
    """Builds a height map of all clouds: elevation, its uncertainty, count, roughness and slope per cell.

    The elevation is that of the cell's centre (m); the uncertainty is its standard error (m), from the
    scatter of the points but at least from the range noise; the slope (rad) and the roughness (RMS in m) are
    those of the plane fitted to the points of the cell and of its eight neighbours. The map is emitted at the
    end.
    """

    out_name = "dem"
    cell: float = param(0.1, gt=0, unit="m", doc="edge length of a grid cell")
    min_points: int = param(3, ge=1, doc="smallest number of points in a cell with an elevation")
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
        size = 200_000  # points per batch, limits the memory of the products
        for start in range(0, len(points), size):
            batch = points[start : start + size]
            centre = (np.floor(batch[:, :2] / self.cell) + 0.5) * self.cell
            u, v = (batch[:, :2] - centre).T
            w = batch[:, 2] - self.height
            self.sums.add(batch, np.stack([u, v, w, u * u, u * v, v * v, u * w, v * w, w * w]).T)
        return None

    def finish(self) -> GridMap | None:
        """Return the map."""
        if self.sums is None:
            return None
        voxels, sums = self.sums.sums()
        found = _sum_by_cell(voxels, sums, self.find_ground(voxels, sums))
        layers = map_layers(found, self.cell, self.height, self.min_points, self.range_noise)
        return make_grid(found.cells, layers, self.cell, self.frame)

    def choose_layer(self) -> float:
        """Return the thickness (m) of the layers in which the points of a cell are summed."""
        raise NotImplementedError

    def find_ground(self, voxels: Ints, sums: Floats) -> Mask:
        """Return which voxels (m,) are ground; they are (m, 3), ordered by cell and then by height.

        Parameters
        ----------
        sums : (m, 13)
            Sums over the points of each voxel: their number, x, y, z, and those of `CellSums`.
        """
        raise NotImplementedError


class MeanElevation(DemBuilding):
    """The mean of all points of a cell."""

    def choose_layer(self) -> float:
        return 1e6  # m, one layer for all heights

    def find_ground(self, voxels: Ints, sums: Floats) -> Mask:
        return np.ones(len(voxels), dtype=np.bool_)


class GroundElevation(DemBuilding):
    """The mean of the lowest points of a cell, without objects on or above the ground."""

    layer: float = param(
        0.05, gt=0, unit="m", doc="thickness of the horizontal layers in which points are counted"
    )
    max_below_ratio: float = param(
        0.05, gt=0, lt=1, doc="largest ratio of a cell's points below the ground, which are outliers"
    )
    thickness: float = param(
        0.3,
        gt=0,
        unit="m",
        doc="thickness of the ground within a cell, measured upwards from its lowest layer",
    )

    def choose_layer(self) -> float:
        return self.layer

    def find_ground(self, voxels: Ints, sums: Floats) -> Mask:
        first = _first_of_equal(voxels[:, :2])
        cell = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(voxels))))
        count = sums[:, 0]
        below = np.cumsum(count) - np.concatenate([[0.0], np.cumsum(count)])[first][cell]
        total = np.add.reduceat(count, first)[cell]
        # The ground starts with the layer in which the ratio is exceeded.
        reached = np.where(below > self.max_below_ratio * total, voxels[:, 2], np.iinfo(np.int64).max)
        ground = np.minimum.reduceat(reached, first)[cell]
        return (voxels[:, 2] >= ground) & (voxels[:, 2] <= ground + round(self.thickness / self.layer))


def _sum_by_cell(voxels: Ints, sums: Floats, selected: Mask) -> CellSums:
    """Return the sums over cells of the kept voxels, which are ordered by cell."""
    cells, rows = voxels[selected, :2], sums[selected]
    first = _first_of_equal(cells)
    n, *_xyz, u, v, w, uu, uv, vv, uw, vw, ww = np.add.reduceat(rows, first, axis=0).T
    return CellSums(cells[first], n, u, v, w, uu, uv, vv, uw, vw, ww)


def _first_of_equal(cells: Ints) -> Ints:
    """Return the index of the first of each run of equal cells (m, 2)."""
    return np.flatnonzero(np.any(np.diff(cells, axis=0, prepend=cells[:1] - 1) != 0, axis=1))


@dataclass(frozen=True, eq=False)
class CellSums:
    """Sums (m,) over the points of each cell, with u, v from its centre and w from a common height, in m."""

    cells: (
        Ints  # (m, 2): column to the east, row to the north; cell i, j is from (i, j) to (i + 1, j + 1) edges
    )
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
        """Return the sums (10, m) about another centre, at (-u, -v) from the cell's own."""
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
class CellPlanes:
    """Planes of cells (m,): slopes, sums of squared residuals and numbers of points; NaN if undetermined."""

    east: Floats
    north: Floats
    squares: Floats
    count: Floats


def local_planes(sums: CellSums, cell: float, min_points: int = 6, min_variance: float = 0.05) -> CellPlanes:
    """Fit a plane to the points of each cell and of its eight neighbours.

    Parameters
    ----------
    min_points : int
        Smallest number of points of a plane.
    min_variance : float
        Smallest variance of the points along any direction, in squared cells: collinear points do not
        determine a plane.
    """
    total = np.zeros((10, len(sums.n)))
    for (i, j), rows, neighbour_rows in _neighbours(sums.cells):
        total[:, rows] += sums.move(i * cell, j * cell)[:, neighbour_rows]
    n, u, v, w, uu, uv, vv, uw, vw, ww = total
    # About the mean, which reduces the normal equations to two by two.
    uu, uv, vv = uu - u * u / n, uv - u * v / n, vv - v * v / n
    uw, vw, ww = uw - u * w / n, vw - v * w / n, ww - w * w / n
    smaller_eigenvalue = (uu + vv) / 2 - np.hypot((uu - vv) / 2, uv)
    determined = (n >= min_points) & (smaller_eigenvalue > min_variance * cell**2 * n)
    determinant = np.where(determined, uu * vv - uv * uv, np.nan)
    east, north = (vv * uw - uv * vw) / determinant, (uu * vw - uv * uw) / determinant
    return CellPlanes(east, north, np.maximum(ww - east * uw - north * vw, 0.0), n)


def map_layers(
    sums: CellSums, cell: float, height: float, min_points: int, noise: float
) -> dict[str, Floats]:
    """Return the layers of the map, a value (m,) for each cell.

    Parameters
    ----------
    cell : float
        Edge in metres.
    height : float
        The common height of the sums.
    min_points : int
        Cells with fewer points have no elevation.
    noise : float
        Smallest standard deviation of a single height in metres.
    """
    planes = local_planes(sums, cell)
    east, north = np.nan_to_num(planes.east), np.nan_to_num(planes.north)
    # Points are not distributed evenly over a cell: the mean is moved along the plane to the centre.
    elevation = (sums.w - east * sums.u - north * sums.v) / sums.n + height
    variance = planes.squares / np.maximum(planes.count - 3, 1)
    sigma = np.sqrt(np.fmax(variance, noise**2) / sums.n)
    is_supported = sums.n >= min_points
    return {
        "elevation": np.where(is_supported, elevation, np.nan),
        "uncertainty": np.where(is_supported, sigma, np.nan),
        "count": sums.n,
        "roughness": np.where(is_supported, np.sqrt(planes.squares / planes.count), np.nan),
        "slope": np.where(is_supported, np.arctan(np.hypot(planes.east, planes.north)), np.nan),
    }


def make_grid(cells: Ints, layers: Mapping[str, Floats], cell: float, frame: str) -> GridMap:
    """Return layers (m,) of cells (m, 2) as a map, north up; NaN, or 0 for counts, where there is no cell."""
    low, high = cells.min(axis=0), cells.max(axis=0)
    columns, rows = (high - low + 1).tolist()
    column, row = cells[:, 0] - low[0], high[1] - cells[:, 1]
    grids: dict[str, NDArray[np.float32]] = {}
    for name, values in layers.items():
        grids[name] = np.full((rows, columns), 0.0 if name == "count" else np.nan, dtype=np.float32)
        grids[name][row, column] = values
    transform = (cell, 0.0, float(low[0] * cell), 0.0, -cell, float((high[1] + 1) * cell))
    return GridMap(grids, transform, frame=frame)


def _neighbours(cells: Ints) -> Iterator[tuple[tuple[int, int], Ints, Ints]]:
    """Yield each of the nine neighbour offsets, the cells that have this neighbour, and the neighbours."""
    span = int(cells[:, 1].max() - cells[:, 1].min()) + 3
    numbers = cells[:, 0] * span + cells[:, 1]
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            neighbour = numbers + i * span + j
            at = np.minimum(np.searchsorted(ordered, neighbour), len(ordered) - 1)
            here = np.flatnonzero(ordered[at] == neighbour)
            yield (i, j), here, order[at[here]]
