"""Two maps in one metric plane, and the placement of one in the other: shift, rotation and scale."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from transect.base.arrays import Floats
from transect.errors import UsageError
from transect.geometry import rotations
from transect.geometry.map_planes import plane_between, shares_local_frame
from transect.geometry.rasters import HeightRaster, heights_of
from transect.types import GridMap

MAX_DISTORTION_CELLS = 0.1
"""Largest residual of the affine transform of a map into another reference system."""


@dataclass(frozen=True)
class MetricPlane:
    """A plane with axes in metres to the east and north of an origin."""

    origin: Floats  # (2,), in units of the reference system; (0, 0) for maps in frames of their own
    unit: Floats  # (2,), metres of one unit of the reference system along x and y
    crs: str = ""

    def to_metres(self, xy: Floats) -> Floats:
        """Return points (..., 2) of the reference system in metres of the plane."""
        return (np.asarray(xy, np.float64) - self.origin) * self.unit

    def from_metres(self, metres: Floats) -> Floats:
        """Return points (..., 2) of the plane in units of the reference system."""
        return np.asarray(metres, np.float64) / self.unit + self.origin


@dataclass(frozen=True, eq=False)
class MapPair:
    """A reference and the map that is aligned to it, in one plane."""

    reference: HeightRaster
    moved: HeightRaster
    plane: MetricPlane


def to_common_plane(reference: GridMap, moved: GridMap, *, placed: bool = False) -> MapPair:
    """Return both maps in metres of one plane.

    Parameters
    ----------
    placed : bool
        Whether the initial position of the map is given, so that a map in a local frame can be aligned to
        one with a reference system.

    Raises
    ------
    UsageError
        If only one map has a reference system and `placed` is False, or if the transform between two
        reference systems is not affine within `MAX_DISTORTION_CELLS`.
    """
    if bool(reference.crs) != bool(moved.crs) and not (placed or shares_local_frame(reference, moved)):
        local = "map" if reference.crs else "reference"
        raise UsageError(
            f"the {local} has no coordinate reference system, the other one has",
            why=f"the other is in {reference.crs or moved.crs}",
            hint="say where it is: --at X,Y (in Python at=)",
        )
    plane = _plane_of(reference)
    moved_heights = heights_of(moved)
    affine = moved_heights.plane_from_cells
    if moved.crs and reference.crs:
        project, _ = plane_between(moved, reference, placed=placed, degrees=True)
        columns, rows = _sample_cells(moved_heights)
        x, y = _apply(affine, columns, rows)
        affine = _fit_affine(columns, rows, plane.to_metres(np.stack(project(x, y), axis=-1)))
    return MapPair(_in_plane(reference, plane), _with_affine(moved_heights.values, affine), plane)


def _plane_of(grid: GridMap) -> MetricPlane:
    if not grid.crs:
        return MetricPlane(np.zeros(2), np.ones(2))
    import pyproj

    heights = heights_of(grid)
    rows, cols = heights.values.shape
    middle = np.array(_apply(heights.plane_from_cells, (cols - 1) / 2, (rows - 1) / 2), np.float64)
    unit = np.ones(2)
    if pyproj.CRS.from_user_input(grid.crs).is_geographic:
        # The length of a degree of latitude, rounded: it cancels out, as both maps are scaled by it.
        unit = 111_320.0 * np.array([np.cos(np.radians(middle[1])), 1.0])
    return MetricPlane(middle, unit, grid.crs)


def _in_plane(grid: GridMap, plane: MetricPlane) -> HeightRaster:
    heights = heights_of(grid)
    affine = heights.plane_from_cells * plane.unit[:, None]
    affine[:, 2] -= plane.origin * plane.unit
    return _with_affine(heights.values, affine)


def _with_affine(values: Floats, affine: Floats) -> HeightRaster:
    inverse = np.linalg.inv(affine[:, :2])
    return HeightRaster(values, np.asarray(np.column_stack([inverse, -inverse @ affine[:, 2]]), np.float64))


def _sample_cells(heights: HeightRaster, per_side: int = 9) -> tuple[Floats, Floats]:
    """Return columns and rows (n,) on a regular grid over a map."""
    rows, cols = heights.values.shape
    grid = np.meshgrid(np.linspace(0, cols - 1, per_side), np.linspace(0, rows - 1, per_side))
    return grid[0].ravel(), grid[1].ravel()


def _apply(affine: Floats, columns: Floats | float, rows: Floats | float) -> tuple[Floats, Floats]:
    (a, b, c), (d, e, f) = affine
    return np.asarray(a * columns + b * rows + c), np.asarray(d * columns + e * rows + f)


def _fit_affine(columns: Floats, rows: Floats, points: Floats) -> Floats:
    """Return the affine transform (2, 3) from cells to points (n, 2); raise if it does not fit."""
    design = np.column_stack([columns, rows, np.ones(len(rows))])
    affine = np.asarray(np.linalg.lstsq(design, points, rcond=None)[0].T, np.float64)
    cell = float(np.mean(np.linalg.norm(affine[:, :2], axis=0)))
    residual = float(np.abs(design @ affine.T - points).max()) / cell
    if residual > MAX_DISTORTION_CELLS:
        raise UsageError(
            "the map is distorted by the transform into the reference's system",
            why=f"its cells would be up to {residual:.2g} cells off",
            hint="reproject it first (gdalwarp -t_srs), or cut out a smaller part",
        )
    return affine


@dataclass(frozen=True, eq=False)
class MapPlacement:
    """Similarity transform of points p: ``middle + shift + scale * rotation @ (p - middle)``."""

    middle: Floats  # (3,), centre of rotation in metres of the common plane
    shift: Floats = field(default_factory=lambda: np.zeros(3))  # (3,) m
    rotation: Floats = field(default_factory=lambda: np.eye(3))  # (3, 3)
    scale: float = 1.0

    def transform_offsets(self, offsets: Floats) -> Floats:
        """Return the points (..., 3) of the reference at offsets (..., 3) from the centre of rotation."""
        return self.middle + self.shift + self.rotate_and_scale(offsets)

    def rotate_and_scale(self, offsets: Floats) -> Floats:
        """Return the rotated and scaled offsets (..., 3)."""
        return self.scale * offsets @ self.rotation.T

    def step(self, small: Floats) -> MapPlacement:
        """Return it after a small motion (6,) or (7,): shift, rotation about the reference's axes, scale."""
        scale = self.scale * float(np.exp(small[6])) if len(small) > 6 else self.scale
        rotation = rotations.matrix_from_rotation_vector(small[3:6]) @ self.rotation
        return replace(self, shift=self.shift + small[:3], rotation=rotation, scale=scale)

    @property
    def matrix(self) -> Floats:
        """``T_reference_map`` (4, 4); the scale is contained in its rotation."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.scale * self.rotation
        matrix[:3, 3] = self.middle + self.shift - matrix[:3, :3] @ self.middle
        return matrix

    @property
    def heading(self) -> float:
        """Rotation about the vertical in rad: the twist of the rotation."""
        _, _, z, w = rotations.quaternion_from_matrix(self.rotation)
        return float(np.arctan2(np.sin(2 * np.arctan2(z, w)), np.cos(2 * np.arctan2(z, w))))

    @property
    def tilt(self) -> float:
        """Angle in rad between the verticals of both maps."""
        return float(np.arccos(np.clip(self.rotation[2, 2], -1.0, 1.0)))


def place_at_centre(heights: HeightRaster, shift: Floats | None = None, heading: float = 0.0) -> MapPlacement:
    """Return a placement whose centre of rotation is the centroid of the map's known cells."""
    x, y = heights.centres
    known = np.isfinite(heights.values)
    middle = np.array([float(np.mean(each[known])) for each in (x, y, heights.values)])
    turn = rotations.matrix_from_rotation_vector(np.array([0.0, 0.0, heading]))
    return MapPlacement(middle, np.zeros(3) if shift is None else np.asarray(shift, np.float64), turn)
