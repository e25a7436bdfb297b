"""Height rasters: cell coordinates, bilinear interpolation, slopes, and reduction of the resolution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError, UsageError, did_you_mean
from transect.types import GridMap

ELEVATION = "elevation"
CENTRE_TOLERANCE_CELLS = 1e-6
"""Positions closer than this to a cell centre are at the centre: coordinates may have been rounded."""


@dataclass(frozen=True)
class HeightRaster:
    """The heights of one layer of a map, with the transform from the plane to cells."""

    values: Floats  # (rows, cols) float64, m; NaN where not measured
    cells_from_plane: Floats  # (2, 3) float64, takes x, y, 1 to the column and row of a cell's centre

    def at(self, x: Floats, y: Floats) -> Floats:
        """HeightRaster (...) at x, y, bilinear; NaN outside the map and next to unmeasured cells."""
        a, b, c = self.cells_from_plane[0]
        d, e, f = self.cells_from_plane[1]
        return bilinear(self.values, d * x + e * y + f, a * x + b * y + c)

    @property
    def plane_from_cells(self) -> Floats:
        """(2, 3): takes column, row, 1 of a cell's centre to x, y."""
        inverse = np.linalg.inv(self.cells_from_plane[:, :2])
        return np.asarray(np.column_stack([inverse, -inverse @ self.cells_from_plane[:, 2]]), np.float64)

    @property
    def cell(self) -> float:
        """Mean edge length of a cell, in units of the plane."""
        return float(np.mean(np.linalg.norm(self.plane_from_cells[:, :2], axis=0)))

    @property
    def centres(self) -> tuple[Floats, Floats]:
        """Centres of cells: x and y (rows, cols)."""
        row, col = np.indices(self.values.shape, dtype=np.float64)
        (a, b, c), (d, e, f) = self.plane_from_cells
        return a * col + b * row + c, d * col + e * row + f

    def close_holes(self) -> HeightRaster:
        """Fill single unknown cells with the mean of the known cells on opposite sides of them."""
        inner = np.pad(self.values, 1, constant_values=np.nan)
        rows, cols = self.values.shape
        total, count = np.zeros((2, rows, cols))
        for i, j in ((0, 1), (1, 0), (1, 1), (1, -1)):
            pair = inner[1 + i : 1 + i + rows, 1 + j : 1 + j + cols], inner[1 - i :, 1 - j :][:rows, :cols]
            mean = (pair[0] + pair[1]) / 2
            known = np.isfinite(mean)
            total[known] += mean[known]
            count += known
        open_ = np.isnan(self.values) & (count > 0)
        return HeightRaster(np.where(open_, total / np.maximum(count, 1), self.values), self.cells_from_plane)

    def measure_slopes(self) -> Floats:
        """Return the gradient (rows, cols, 2) along x and y, by central differences; NaN next to NaN."""
        if min(self.values.shape) < 2:
            return np.full((*self.values.shape, 2), np.nan)
        down, across = np.gradient(self.values)
        return np.stack([across, down], axis=-1) @ self.cells_from_plane[:, :2]

    def reduce(self, factor: int, known: float = 0.5) -> HeightRaster:
        """Average blocks of `factor` x `factor` cells; NaN if less than the fraction `known` is measured.

        Incomplete blocks at the end of rows and columns are left out.
        """
        if factor <= 1:
            return self
        rows, cols = (n // factor for n in self.values.shape)
        blocks = self.values[: rows * factor, : cols * factor].reshape(rows, factor, cols, factor)
        measured = np.isfinite(blocks)
        count = measured.sum(axis=(1, 3))
        mean = np.where(measured, blocks, 0.0).sum(axis=(1, 3)) / np.maximum(count, 1)
        cells = self.cells_from_plane.copy()
        cells[:, 2] -= (factor - 1) / 2  # the centre of the first block, in cells
        return HeightRaster(np.where(count >= known * factor**2, mean, np.nan), cells / factor)


def heights_of(grid: GridMap, layer: str = ELEVATION) -> HeightRaster:
    """Return a layer of a map; if the map has one layer, its name does not matter."""
    if layer not in grid.layers and len(grid.layers) == 1:
        layer = next(iter(grid.layers))
    if layer not in grid.layers:
        raise UsageError(f"the map has no layer {layer!r}", hint=did_you_mean(layer, grid.layers))
    values = np.asarray(grid.layers[layer], np.float64)
    a, b, c, d, e, f = grid.transform
    if a * e - b * d == 0:
        raise GeometryError("the cells of the map have no area", why=f"its transform is {grid.transform}")
    inverse = np.linalg.inv(np.array([[a, b], [d, e]]))
    # The map's transform is that of cell corners.
    shift = -inverse @ np.array([c, f]) - 0.5
    return HeightRaster(values, np.column_stack([inverse, shift]))


def centres_of(grid: GridMap, values: Floats) -> tuple[Floats, Floats]:
    """Return x and y (rows, cols) of the cell centres of a layer, in units of the map's plane."""
    a, b, c, d, e, f = grid.transform
    rows, cols = values.shape
    row, col = np.meshgrid(np.arange(rows) + 0.5, np.arange(cols) + 0.5, indexing="ij")
    return a * col + b * row + c, d * col + e * row + f


def cut_to_known(grid: GridMap, known: Mask) -> GridMap:
    """Crop a map to the bounding box of the known cells (rows, cols); to one cell if none is known."""
    rows, cols = (np.flatnonzero(known.any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        rows = cols = np.zeros(1, np.int64)
    window = slice(rows[0], rows[-1] + 1), slice(cols[0], cols[-1] + 1)
    a, b, c, d, e, f = grid.transform
    corner = (a * cols[0] + b * rows[0] + c, d * cols[0] + e * rows[0] + f)
    layers = {name: layer[window] for name, layer in grid.layers.items()}
    return replace(grid, layers=layers, transform=(a, b, corner[0], d, e, corner[1]))


def cell_size(grid: GridMap) -> float:
    """Return the mean edge length of a cell in metres."""
    return float(np.mean(grid.resolution))


def bilinear(values: Floats, row: Floats, col: Floats) -> Floats:
    """Interpolate values (rows, cols) at rows and columns (...); NaN cells of weight zero are ignored."""
    rows, cols = values.shape
    i, down, row_inside = _split_position(row, rows)
    j, right, col_inside = _split_position(col, cols)
    below, beside = np.minimum(i + 1, rows - 1), np.minimum(j + 1, cols - 1)
    total = np.zeros(np.shape(row))
    for weight, at in (
        ((1 - down) * (1 - right), (i, j)),
        ((1 - down) * right, (i, beside)),
        (down * (1 - right), (below, j)),
        (down * right, (below, beside)),
    ):
        total += np.where(weight > 0, weight * values[at], 0.0)
    return np.where(row_inside & col_inside, total, np.nan)


def _split_position(position: Floats, count: int) -> tuple[Ints, Floats, Mask]:
    """Split positions into cell index and fraction to the next cell; also return which are inside the map."""
    tolerance = CENTRE_TOLERANCE_CELLS
    with np.errstate(invalid="ignore"):
        inside = (position >= -tolerance) & (position <= count - 1 + tolerance)
    clipped = np.clip(np.where(inside, position, 0.0), 0, count - 1)
    at_centre = np.abs(clipped - np.round(clipped)) < tolerance
    clipped = np.where(at_centre, np.round(clipped), clipped)
    cell = np.minimum(clipped.astype(np.int64), max(count - 2, 0))
    return cell, clipped - cell, inside
