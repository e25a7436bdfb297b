"""Two maps in one plane, in metres: whatever their reference systems are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.errors import UsageError
from transect.geometry.map_planes import plane_between, shares_local_frame
from transect.geometry.rasters import Heights, heights_of
from transect.types import GridMap

METRES_PER_DEGREE = 111_320.0
"""Along a meridian, about; both maps are measured by the same length."""
CURVED = 0.1
"""Cells by which a map may bend when it is brought into another reference system."""
SAMPLES = 9
"""Along each side of a map, by which its way into another reference system is measured."""


@dataclass(frozen=True)
class MetricPlane:
    """Metres to the east and north of a place.

    Attributes
    ----------
    origin : (2,) float64
        Of the plane in units of the reference system; (0, 0) for maps in frames of their own.
    unit : (2,) float64
        Metres of one unit of the reference system along x and y.
    crs : str
    """

    origin: Floats
    unit: Floats
    crs: str = ""

    def place(self, xy: Floats) -> Floats:
        """Return places (..., 2) of the reference system in metres."""
        return (np.asarray(xy, np.float64) - self.origin) * self.unit

    def locate(self, metres: Floats) -> Floats:
        """Return places (..., 2) of the plane in units of the reference system."""
        return np.asarray(metres, np.float64) / self.unit + self.origin


@dataclass(frozen=True, eq=False)
class MapPair:
    """A reference and the map that is to be laid on it, in one plane."""

    reference: Heights
    moved: Heights
    plane: MetricPlane


def bring_together(reference: GridMap, moved: GridMap, *, placed: bool = False) -> MapPair:
    """Return both maps in metres of one plane.

    Parameters
    ----------
    placed : bool
        Whether a map in a frame of its own may be laid on one with a reference system.

    Raises
    ------
    UsageError
        If nobody says where a map in its own frame is, or a map bends between two reference systems.
    """
    if bool(reference.crs) != bool(moved.crs) and not (placed or shares_local_frame(reference, moved)):
        local = "map" if reference.crs else "reference"
        raise UsageError(
            f"the {local} has no coordinate reference system, the other one has",
            why=f"the other is in {reference.crs or moved.crs}",
            hint="say where it is: --at X,Y (in Python at=)",
        )
    plane = _plane_of(reference)
    theirs = heights_of(moved)
    affine = theirs.plane_from_cells
    if moved.crs and reference.crs:
        way, _ = plane_between(moved, reference, placed=placed, degrees=True)
        columns, rows = _spread_cells(theirs)
        x, y = _apply(affine, columns, rows)
        affine = _fit_affine(columns, rows, plane.place(np.stack(way(x, y), axis=-1)))
    return MapPair(_in_plane(reference, plane), _with_affine(theirs.values, affine), plane)


def _plane_of(grid: GridMap) -> MetricPlane:
    if not grid.crs:
        return MetricPlane(np.zeros(2), np.ones(2))
    import pyproj

    heights = heights_of(grid)
    rows, cols = heights.values.shape
    middle = np.array(_apply(heights.plane_from_cells, (cols - 1) / 2, (rows - 1) / 2), np.float64)
    unit = np.ones(2)
    if pyproj.CRS.from_user_input(grid.crs).is_geographic:
        unit = METRES_PER_DEGREE * np.array([np.cos(np.radians(middle[1])), 1.0])
    return MetricPlane(middle, unit, grid.crs)


def _in_plane(grid: GridMap, plane: MetricPlane) -> Heights:
    heights = heights_of(grid)
    affine = heights.plane_from_cells * plane.unit[:, None]
    affine[:, 2] -= plane.origin * plane.unit
    return _with_affine(heights.values, affine)


def _with_affine(values: Floats, affine: Floats) -> Heights:
    inverse = np.linalg.inv(affine[:, :2])
    return Heights(values, np.asarray(np.column_stack([inverse, -inverse @ affine[:, 2]]), np.float64))


def _spread_cells(heights: Heights) -> tuple[Floats, Floats]:
    """Return columns and rows (n,) of cells all over a map."""
    rows, cols = heights.values.shape
    grid = np.meshgrid(np.linspace(0, cols - 1, SAMPLES), np.linspace(0, rows - 1, SAMPLES))
    return grid[0].ravel(), grid[1].ravel()


def _apply(affine: Floats, columns: Floats | float, rows: Floats | float) -> tuple[Floats, Floats]:
    (a, b, c), (d, e, f) = affine
    return np.asarray(a * columns + b * rows + c), np.asarray(d * columns + e * rows + f)


def _fit_affine(columns: Floats, rows: Floats, places: Floats) -> Floats:
    """Return (2, 3) that takes cells to places (n, 2); raise if it bends the map."""
    design = np.column_stack([columns, rows, np.ones(len(rows))])
    affine = np.asarray(np.linalg.lstsq(design, places, rcond=None)[0].T, np.float64)
    cell = float(np.mean(np.linalg.norm(affine[:, :2], axis=0)))
    off = float(np.abs(design @ affine.T - places).max()) / cell
    if off > CURVED:
        raise UsageError(
            "the map bends when it is brought into the reference's system",
            why=f"its cells would be up to {off:.2g} cells off",
            hint="reproject it first (gdalwarp -t_srs), or cut out a smaller part",
        )
    return affine
