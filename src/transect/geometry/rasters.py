"""Where the cells of a map are, what a map says between them, and how steep it is there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError, UsageError, did_you_mean
from transect.types import GridMap

ELEVATION = "elevation"
CENTRE = 0.5
"""Of a cell, in cells from its corner."""
ROUNDING = 1e-6
"""Cells: a place that near to a centre is the centre, though its coordinates have been rounded."""


@dataclass(frozen=True)
class Heights:
    """One layer of a map, with the way from places to cells.

    Attributes
    ----------
    values : (rows, cols) float64
        Metres; NaN where not measured.
    cells_from_plane : (2, 3) float64
        Takes x, y, 1 to the column and row of a cell's centre.
    """

    values: Floats
    cells_from_plane: Floats

    def at(self, x: Floats, y: Floats) -> Floats:
        """Heights (...) between cells, bilinear; NaN outside and beside cells that were not measured."""
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
        """Edge of a cell in units of the plane: the mean of its two."""
        return float(np.mean(np.linalg.norm(self.plane_from_cells[:, :2], axis=0)))

    @property
    def centres(self) -> tuple[Floats, Floats]:
        """Centres of cells: x and y (rows, cols)."""
        row, col = np.indices(self.values.shape, dtype=np.float64)
        (a, b, c), (d, e, f) = self.plane_from_cells
        return a * col + b * row + c, d * col + e * row + f

    def close_holes(self) -> Heights:
        """Return heights in which single unknown cells lie between the known ones on either side of them."""
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
        return Heights(np.where(open_, total / np.maximum(count, 1), self.values), self.cells_from_plane)

    def measure_slopes(self) -> Floats:
        """Return (rows, cols, 2) rises along x and y, by the two neighbours; NaN beside what is not known."""
        if min(self.values.shape) < 2:
            return np.full((*self.values.shape, 2), np.nan)
        down, across = np.gradient(self.values)
        return np.stack([across, down], axis=-1) @ self.cells_from_plane[:, :2]

    def reduce(self, factor: int, known: float = 0.5) -> Heights:
        """Return means over blocks of `factor` cells a side; NaN where less than a share of them is known.

        Rows and columns at the end that fill no block are left out.
        """
        if factor <= 1:
            return self
        rows, cols = (n // factor for n in self.values.shape)
        blocks = self.values[: rows * factor, : cols * factor].reshape(rows, factor, cols, factor)
        there = np.isfinite(blocks)
        count = there.sum(axis=(1, 3))
        mean = np.where(there, blocks, 0.0).sum(axis=(1, 3)) / np.maximum(count, 1)
        # The centre of the first block lies half of what is left of it further on.
        shift = (factor - 1) / 2
        cells = self.cells_from_plane.copy()
        cells[:, 2] -= shift
        return Heights(np.where(count >= known * factor**2, mean, np.nan), cells / factor)


def heights_of(grid: GridMap, layer: str = ELEVATION) -> Heights:
    """Return a layer of a map; a map's only layer need not be named right."""
    if layer not in grid.layers and len(grid.layers) == 1:
        layer = next(iter(grid.layers))
    if layer not in grid.layers:
        raise UsageError(f"the map has no layer {layer!r}", hint=did_you_mean(layer, grid.layers))
    values = np.asarray(grid.layers[layer], np.float64)
    a, b, c, d, e, f = grid.transform
    if a * e - b * d == 0:
        raise GeometryError("the cells of the map have no area", why=f"its transform is {grid.transform}")
    inverse = np.linalg.inv(np.array([[a, b], [d, e]]))
    # The transform is that of corners; half a cell less is that of centres.
    shift = -inverse @ np.array([c, f]) - CENTRE
    return Heights(values, np.column_stack([inverse, shift]))


def centres_of(grid: GridMap, values: Floats) -> tuple[Floats, Floats]:
    """Return x and y of the centres of cells of a layer (rows, cols), in units of the map's plane."""
    a, b, c, d, e, f = grid.transform
    rows, cols = values.shape
    row, col = np.meshgrid(np.arange(rows) + CENTRE, np.arange(cols) + CENTRE, indexing="ij")
    return a * col + b * row + c, d * col + e * row + f


def cut_to_known(grid: GridMap, known: Mask) -> GridMap:
    """Return a map without the rows and columns around what is known (rows, cols); one cell if nothing is."""
    rows, cols = (np.flatnonzero(known.any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        rows = cols = np.zeros(1, np.int64)
    window = slice(rows[0], rows[-1] + 1), slice(cols[0], cols[-1] + 1)
    a, b, c, d, e, f = grid.transform
    corner = (a * cols[0] + b * rows[0] + c, d * cols[0] + e * rows[0] + f)
    layers = {name: layer[window] for name, layer in grid.layers.items()}
    return replace(grid, layers=layers, transform=(a, b, corner[0], d, e, corner[1]))


def cell_size(grid: GridMap) -> float:
    """Return the edge of a cell in metres: the mean of its two."""
    return float(np.mean(grid.resolution))


def bilinear(values: Floats, row: Floats, col: Floats) -> Floats:
    """Return (...) values between cells of (rows, cols); a NaN counts only where it has a weight."""
    rows, cols = values.shape
    i, down, seen = _before(row, rows)
    j, right, there = _before(col, cols)
    below, beside = np.minimum(i + 1, rows - 1), np.minimum(j + 1, cols - 1)
    total = np.zeros(np.shape(row))
    for weight, at in (
        ((1 - down) * (1 - right), (i, j)),
        ((1 - down) * right, (i, beside)),
        (down * (1 - right), (below, j)),
        (down * right, (below, beside)),
    ):
        total += np.where(weight > 0, weight * values[at], 0.0)
    return np.where(seen & there, total, np.nan)


def _before(place: Floats, count: int) -> tuple[Ints, Floats, Mask]:
    """Return the cell before each place, how far beyond its centre (0 to 1), and whether it is on the map."""
    with np.errstate(invalid="ignore"):
        inside = (place >= -ROUNDING) & (place <= count - 1 + ROUNDING)
    known = np.clip(np.where(inside, place, 0.0), 0, count - 1)
    near = np.abs(known - np.round(known)) < ROUNDING
    known = np.where(near, np.round(known), known)
    cell = np.minimum(known.astype(np.int64), max(count - 2, 0))
    return cell, known - cell, inside
