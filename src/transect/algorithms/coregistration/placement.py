"""Two maps in one metric plane, and the placement of one in the other: shift, rotation and scale."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from transect.base.arrays import Floats
from transect.errors import UsageError
from transect.geometry import rotations
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


@dataclass(frozen=True, eq=False)
class Placement:
    """Takes points of a map to the reference: ``middle + shift + scale * rotation @ (p - middle)``.

    Attributes
    ----------
    middle : (3,) float64
        About which the map is turned, in metres of the common plane.
    shift : (3,) float64
        Of the middle, in metres.
    rotation : (3, 3) float64
    scale : float
    """

    middle: Floats
    shift: Floats = field(default_factory=lambda: np.zeros(3))
    rotation: Floats = field(default_factory=lambda: np.eye(3))
    scale: float = 1.0

    def carry(self, offsets: Floats) -> Floats:
        """Return points (..., 3) of the reference for offsets (..., 3) from the middle."""
        return self.middle + self.shift + self.turn(offsets)

    def turn(self, offsets: Floats) -> Floats:
        """Return offsets (..., 3) from the middle, turned and scaled."""
        return self.scale * offsets @ self.rotation.T

    def step(self, small: Floats) -> Placement:
        """Return it after a small motion (6,) or (7,): shift, turn in the reference's axes, scale."""
        scale = self.scale * float(np.exp(small[6])) if len(small) > 6 else self.scale
        turned = rotations.matrix_from_rotation_vector(small[3:6]) @ self.rotation
        return replace(self, shift=self.shift + small[:3], rotation=turned, scale=scale)

    @property
    def matrix(self) -> Floats:
        """``T_reference_map`` (4, 4): the scale stands in its rotation."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.scale * self.rotation
        matrix[:3, 3] = self.middle + self.shift - matrix[:3, :3] @ self.middle
        return matrix

    @property
    def heading(self) -> float:
        """Turn about the vertical in rad: the twist of the rotation."""
        _, _, z, w = rotations.quaternion_from_matrix(self.rotation)
        return float(np.arctan2(np.sin(2 * np.arctan2(z, w)), np.cos(2 * np.arctan2(z, w))))

    @property
    def tilt(self) -> float:
        """Angle in rad between the verticals of both maps."""
        return float(np.arccos(np.clip(self.rotation[2, 2], -1.0, 1.0)))


def begin_at(heights: Heights, shift: Floats | None = None, heading: float = 0.0) -> Placement:
    """Return a placement of a map about the middle of its known cells."""
    x, y = heights.centres
    known = np.isfinite(heights.values)
    middle = np.array([float(np.mean(each[known])) for each in (x, y, heights.values)])
    turn = rotations.matrix_from_rotation_vector(np.array([0.0, 0.0, heading]))
    return Placement(middle, np.zeros(3) if shift is None else np.asarray(shift, np.float64), turn)
