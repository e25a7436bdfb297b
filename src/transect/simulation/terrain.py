"""Terrain as a height map: rough lava, crop rows, open ground, or flat.

The surface is bilinear between grid corners, so that heights, normals and ray intersections are exact and
consistent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats
from transect.errors import UsageError
from transect.geometry.array_checks import floats
from transect.types import GridMap

from ._compiled import kernels
from .motion import WORLD
from .randomness import generator
from .textures import spectral_noise

CornerHeights = NDArray[np.float32]
MAX_ROCKS = 32_767
"""Rocks are numbered with 16 bits."""


class HeightPyramid(NamedTuple):
    """Maximum heights of blocks of 1, 4, 16, ... cells per side, level by level in one array."""

    tops: NDArray[np.float32]
    first: NDArray[np.int64]
    widths: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Terrain:
    """A height map."""

    # (ny, nx) float32, m at the corners of the grid; row 0 is the southernmost, column 0 the westernmost
    height: CornerHeights
    cell: float  # m between corners
    origin: tuple[float, float]  # x, y in the world of ``height[0, 0]``
    rock: NDArray[np.int16]  # (ny, nx) number of the rock at each corner; 0 is bare ground, negative a plant
    ground: str = "basalt"  # kind of ground, a name in `textures.GROUNDS`
    texture: int = 0  # seed of the texture

    def __post_init__(self) -> None:
        if self.height.shape != self.rock.shape or min(self.height.shape) < 2:
            raise UsageError(f"a terrain of {self.height.shape} corners with rocks {self.rock.shape}")

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """West, south, east and north edge in the world, m."""
        x, y = self.origin
        rows, columns = self.height.shape
        return x, y, x + (columns - 1) * self.cell, y + (rows - 1) * self.cell

    def at(self, xy: ArrayLike) -> Floats:
        """Height (...) in m at points (..., 2) in the world; outside the terrain that at its edge."""
        (a, b, c, d), u, v = self._patch(xy)
        return a + b * u + c * v + d * u * v

    def normal(self, xy: ArrayLike) -> Floats:
        """Upward unit normal (..., 3) of the ground at points (..., 2) in the world."""
        (_, b, c, d), u, v = self._patch(xy)
        up = np.stack([-(b + d * v) / self.cell, -(c + d * u) / self.cell, np.ones_like(u)], axis=-1)
        return up / np.linalg.norm(up, axis=-1, keepdims=True)

    def smooth(self, sigma: float) -> Terrain:
        """Return the terrain smoothed by a Gaussian of `sigma` m, as a wheel of finite size averages it.

        Without smoothing, a robot would pitch by ten degrees over every stone.
        """
        from scipy.ndimage import gaussian_filter

        return replace(self, height=gaussian_filter(self.height, sigma / self.cell, mode="nearest"))

    @cached_property
    def pyramid(self) -> HeightPyramid:
        """Maximum heights of blocks, with which rays skip ground far below them."""
        return _make_pyramid(self.height)

    @cached_property
    def openness(self) -> CornerHeights:
        """Approximate ratio of visible sky at each corner (ny, nx): 1 on open ground, less in hollows."""
        from scipy.ndimage import gaussian_filter

        near, wide = (
            gaussian_filter(self.height, max(s / self.cell, 0.7), mode="nearest") for s in (0.1, 0.4)
        )
        sunk = 4.0 * np.maximum(near - self.height, 0) + 1.5 * np.maximum(wide - self.height, 0)
        return np.asarray(1.0 / (1.0 + sunk / 0.12), dtype=np.float32)

    def as_grid(self) -> GridMap:
        """Return the heights as a map, north up; a cell of the map is centred on a corner of the grid."""
        west, _, _, north = self.extent
        left, top = west - self.cell / 2, north + self.cell / 2
        transform = (self.cell, 0.0, left, 0.0, -self.cell, top)
        return GridMap({"elevation": self.height[::-1]}, transform, frame=WORLD)

    def _patch(self, xy: ArrayLike) -> tuple[tuple[Floats, Floats, Floats, Floats], Floats, Floats]:
        """Return a, b, c, d of ``a + b u + c v + d u v`` around each point, and u, v in [0, 1]."""
        point = (floats("xy", xy, (..., 2)) - self.origin) / self.cell
        rows, columns = self.height.shape
        x, y = np.clip(point[..., 0], 0, columns - 1), np.clip(point[..., 1], 0, rows - 1)
        i, j = np.minimum(y.astype(np.intp), rows - 2), np.minimum(x.astype(np.intp), columns - 2)
        z00, z01 = self.height[i, j].astype(np.float64), self.height[i, j + 1].astype(np.float64)
        z10, z11 = self.height[i + 1, j].astype(np.float64), self.height[i + 1, j + 1].astype(np.float64)
        return (z00, z01 - z00, z10 - z00, z11 - z10 - z01 + z00), x - j, y - i


def _make_pyramid(height: CornerHeights) -> HeightPyramid:
    """Return the maximum heights of blocks of cells; `height` (ny, nx) is at the corners of cells."""
    level = np.maximum(height[1:], height[:-1])
    level = np.maximum(level[:, 1:], level[:, :-1])
    levels = [level]
    while level.size > 1:
        rows, columns = (n + -n % 4 for n in level.shape)
        padded = np.full((rows, columns), -np.inf, np.float32)
        padded[: level.shape[0], : level.shape[1]] = level
        level = padded.reshape(rows // 4, 4, columns // 4, 4).max(axis=(1, 3))
        levels.append(level)
    sizes = np.array([0, *(each.size for each in levels[:-1])], np.int64)
    widths = np.array([each.shape[1] for each in levels], np.int64)
    return HeightPyramid(np.concatenate([each.ravel() for each in levels]), np.cumsum(sizes), widths)


def flat(size_m: float = 40.0, cell: float = 0.5, z: float = 0.0, ground: str = "soil") -> Terrain:
    """Return level ground at height `z`, centred on the world's origin."""
    n = _corners(size_m, cell)
    height = np.full((n, n), z, np.float32)
    return Terrain(height, cell, _centre(height, cell), np.zeros((n, n), np.int16), ground)


def rough(
    seed: int,
    size_m: float = 76.8,
    cell: float = 0.05,
    relief: float = 0.5,
    rocks: int = 2500,
    slope: tuple[float, float] = (0.0, 0.0),
    ground: str = "basalt",
) -> Terrain:
    """Return rough ground strewn with rocks, as on Etna, centred on the world's origin.

    Parameters
    ----------
    size_m : float
        Length of a side, m.
    cell : float
        m.
    relief : float
        Standard deviation of the heights of hills of up to 30 m length, m; smaller on smaller terrain, so
        that slopes are equal. A roughness of 10 mm is added.
    rocks : int
        Rocks on 76.8 m x 76.8 m, with equal density on other sizes; most are a few centimetres, some a metre.
    slope : (2,)
        Rise per metre towards east and north.
    ground : str
        Kind of ground.
    """
    n = _corners(size_m, cell)
    rng = generator(seed, "terrain", "relief")
    height = relief * min(1.0, size_m / 30.0) ** 1.6 * spectral_noise(rng, (n, n), 2.6, 30.0 / cell)
    height += 0.010 * spectral_noise(generator(seed, "terrain", "roughness"), (n, n), 1.4, 0.8 / cell)
    height += _tilt((n, n), cell, slope)
    rock = np.zeros((n, n), np.int16)
    count = min(round(rocks * (size_m / 76.8) ** 2), MAX_ROCKS)
    bumps = _rocks(generator(seed, "terrain", "rocks"), count, n, cell)
    lumps = 0.05 * spectral_noise(generator(seed, "terrain", "lumps"), (n, n), 2.2, 0.6 / cell)
    _raise(height, rock, bumps, np.arange(1, count + 1), lumps)
    return Terrain(height, cell, _centre(height, cell), rock, ground)


def open_ground(
    seed: int,
    size_m: float = 120.0,
    cell: float = 0.1,
    relief: float = 0.25,
    slope: tuple[float, float] = (0.0, 0.0),
    tufts: int = 4000,
    ground: str = "grass",
) -> Terrain:
    """Return a gentle pasture with tufts of grass, as at Marulan, centred on the world's origin.

    Parameters
    ----------
    size_m, cell : float
        Length of a side and of a cell, m.
    relief : float
        Standard deviation of the hills, m.
    slope : (2,)
        Rise per metre towards east and north.
    tufts : int
        Number of tufts, each a few centimetres high.
    ground : str
        Kind of ground.
    """
    n = _corners(size_m, cell)
    height = relief * spectral_noise(generator(seed, "terrain", "relief"), (n, n), 3.0, 60.0 / cell)
    height += 0.012 * spectral_noise(generator(seed, "terrain", "roughness"), (n, n), 1.4, 2.0 / cell)
    height += _tilt((n, n), cell, slope)
    rng = generator(seed, "terrain", "tufts")
    bumps = _bumps(rng, rng.uniform(0, n - 1, (tufts, 2)), rng.uniform(0.08, 0.3, tufts) / cell, (0.7, 1.0))
    bumps[:, 6] = rng.uniform(0.02, 0.12, tufts)
    plant = np.zeros((n, n), np.int16)
    lumps = 0.1 * spectral_noise(generator(seed, "terrain", "lumps"), (n, n), 0.8, 0.6 / cell)
    _raise(height, plant, bumps, _plant_numbers(tufts), lumps)
    return Terrain(height, cell, _centre(height, cell), plant, ground)


def field(
    seed: int,
    row_length: float = 40.0,
    rows: int = 40,
    row_spacing: float = 0.52,
    furrow: float = 0.09,
    headland: float = 8.0,
    cell: float = 0.03,
    plant_height: float = 0.10,
    plant_distance: float = 0.12,
    ground: str = "soil",
    texture: int = 0,
) -> Terrain:
    """Return a field of crop rows surrounded by a headland.

    Rows are parallel to x. The bottom of furrow k is at ``y = k * row_spacing`` for k from 0 to `rows`, the
    plants are in between, at ``y = (k + 0.5) * row_spacing``, from x = 0 to `row_length`.

    Parameters
    ----------
    row_length : float
        m.
    rows : int
        Rows of plants.
    row_spacing : float
        m, 0.52 to 0.7 in Rosario.
    furrow : float
        Depth of the furrows under the ridges, m.
    headland : float
        Width of unploughed ground around, m.
    cell : float
        m.
    plant_height, plant_distance : float
        Mean height of the plants and mean distance along a row, m; height 0 for bare rows.
    ground, texture : str, int
        Kind of ground, and the seed of its texture.
    """
    width = rows * row_spacing
    shape = _corners(width + 2 * headland, cell), _corners(row_length + 2 * headland, cell)
    x = np.arange(shape[1]) * cell - headland
    y = np.arange(shape[0])[:, None] * cell - headland
    ploughed = _ramp(x, 0.0, row_length, 1.0) * _ramp(y, 0.0, width, 0.3)
    ridges = furrow * (0.5 - 0.5 * np.cos(2 * np.pi * y / row_spacing)) * ploughed
    height = ridges.astype(np.float32)
    height += 0.05 * spectral_noise(generator(seed, "terrain", "relief"), shape, 3.0, 30.0 / cell)
    height += 0.010 * spectral_noise(generator(seed, "terrain", "clods"), shape, 1.0, 0.5 / cell)
    plant = np.zeros(shape, np.int16)
    if plant_height > 0:
        rng = generator(seed, "terrain", "plants")
        bumps = _crop(rng, rows, row_length, row_spacing, plant_distance, plant_height)
        bumps[:, :2] = (bumps[:, :2] + headland) / cell
        bumps[:, 2:4] /= cell
        lumps = 0.06 * spectral_noise(generator(seed, "terrain", "lumps"), shape, 0.5, 0.3 / cell)
        _raise(height, plant, bumps, _plant_numbers(len(bumps)), lumps)
    return Terrain(height, cell, (-headland, -headland), plant, ground, texture)


def _crop(
    rng: np.random.Generator, rows: int, length: float, spacing: float, distance: float, tall: float
) -> Floats:
    """Return bumps in metres: six leaves around the stem of each plant."""
    along = int(length / distance)
    x = (np.arange(along) + rng.uniform(0.2, 0.8, (rows, along))) * distance
    y = (np.arange(rows)[:, None] + 0.5) * spacing + rng.normal(0, 0.015, (rows, along))
    grown = rng.random((rows, along)) > 0.06  # the others did not germinate
    stems = np.stack([y[grown], x[grown]], axis=1)
    size = tall * rng.lognormal(0.0, 0.3, len(stems))[:, None]
    azimuth = rng.uniform(0, 2 * np.pi, (len(stems), 6))
    offset = size * rng.uniform(0.3, 1.0, azimuth.shape)
    centres = stems[:, None] + np.stack([np.sin(azimuth), np.cos(azimuth)], axis=-1) * offset[..., None]
    radius = size * rng.uniform(0.35, 0.6, azimuth.shape)
    bumps = _bumps(rng, centres.reshape(-1, 2), radius.reshape(-1), (0.5, 0.8))
    bumps[:, 4] = azimuth.reshape(-1)
    bumps[:, 8] = 0.12
    bumps[:, 6] = (size * rng.uniform(0.35, 1.0, azimuth.shape)).reshape(-1)
    return bumps


def _rocks(rng: np.random.Generator, count: int, corners: int, cell: float) -> Floats:
    """Return bumps of rocks with Pareto-distributed radii: many small, few large."""
    radius = np.minimum(0.07 * (1.0 + rng.pareto(2.2, count)), 1.1)
    bumps = _bumps(rng, rng.uniform(0, corners - 1, (count, 2)), radius / cell, (0.55, 1.0))
    bumps[:, 5] = rng.uniform(2.0, 3.5, count)
    bumps[:, 6] = radius * rng.uniform(0.35, 0.8, count)
    bumps[:, 7] = 0.15 * radius
    return bumps


def _bumps(
    rng: np.random.Generator, centres: Floats, radius: Floats, flatness: tuple[float, float]
) -> Floats:
    """Return rows for `raise_bumps`: ellipses at positions (n, 2) with random orientation and zero height."""
    bumps = np.zeros((len(centres), 9))
    bumps[:, :2] = centres
    bumps[:, 2], bumps[:, 3] = radius, radius * rng.uniform(*flatness, len(centres))
    bumps[:, 4] = rng.uniform(0, np.pi, len(centres))
    bumps[:, 5], bumps[:, 8] = 2.0, 0.5
    return bumps


def _raise(
    height: CornerHeights,
    ids: NDArray[np.int16],
    bumps: Floats,
    numbers: NDArray[np.int64],
    lumps: CornerHeights,
) -> None:
    kernels("stamp").raise_bumps(height, ids, bumps, numbers.astype(np.int16), lumps)


def _plant_numbers(count: int) -> NDArray[np.int64]:
    return -1 - np.arange(count) % MAX_ROCKS


def _ramp(values: NDArray[np.floating[Any]], low: float, high: float, soft: float) -> Floats:
    """1 from low to high, falling to 0 within `soft` on both sides."""
    return np.clip(np.minimum(values - low, high - values, dtype=np.float64) / soft + 1.0, 0.0, 1.0)


def _tilt(shape: tuple[int, int], cell: float, slope: tuple[float, float]) -> CornerHeights:
    rows, columns = (np.arange(n, dtype=np.float32) * cell - (n - 1) * cell / 2 for n in shape)
    return (rows[:, None] * slope[1] + columns * slope[0]).astype(np.float32)


def _corners(size_m: float, cell: float) -> int:
    return round(size_m / cell) + 1


def _centre(height: CornerHeights, cell: float) -> tuple[float, float]:
    rows, columns = height.shape
    return -(columns - 1) * cell / 2, -(rows - 1) * cell / 2
