"""Exhaustive search of the placement of a map in another by Fourier transforms.

For each turn, at all shifts at once, a plane is fitted to the differences of both maps, and the variance of
the residuals is the score; so neither the height nor the tilt of the map needs to be known. Holes of both
maps are masks, whose products are transformed as well, so that sums run over cells that both maps know.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Mask
from transect.geometry.rasters import HeightRaster

from .placement import MapPlacement, place_at_centre
from .spectra import Spectrum, pad_sizes, transform, transform_back


@dataclass(frozen=True)
class SearchSettings:
    """Resolution of the search, in cells of the search, and the rejection of spikes before it."""

    max_cells_across: int = 48  # along the longer side of the moved map; sets the size of the cells
    min_cells_across: int = 8  # also where the reference is very large
    max_reference_cells: int = 1536  # along a side of the reference; sets the size of the cells, too
    max_turn_step_rad: float = float(np.radians(6.0))
    min_turn_step_rad: float = float(np.radians(0.5))
    separation_cells: int = 3  # only the best of all placements within this distance is a candidate


DEFAULT_SETTINGS = SearchSettings()
MIN_OVERLAP_CELLS = 6
"""Smallest number of common cells for the fit of a plane, which has three parameters."""


@dataclass(frozen=True)
class SearchRange:
    """The range of placements that is searched around the initial one."""

    radius: float  # m, of the position of the map's centre; inf for the whole reference
    turn: float  # rad, to both sides; pi for all headings
    overlap: float = 0.5  # smallest ratio of the map's known cells that lie on the reference


@dataclass(frozen=True)
class Candidate:
    """A placement that is better than those around it."""

    placement: MapPlacement
    variance: float  # m^2, of the differences of both maps after the fit of a plane


@dataclass(frozen=True, eq=False)
class PlacementSearch:
    """The result of a search."""

    candidates: tuple[Candidate, ...]  # best first
    cell: float  # m
    tried: int  # placements


@dataclass(frozen=True, eq=False)
class _ReferenceSpectra:
    """Spectra of the reference's mask, heights and squared heights."""

    mask: Spectrum
    heights: Spectrum
    squares: Spectrum
    corner: Floats  # (2,) m, centre of its first cell
    shape: tuple[int, int]
    padded: tuple[int, ...]


def remove_spikes(heights: HeightRaster, max_sigmas: float = 8.0) -> HeightRaster:
    """Remove single cells that differ from the median of their neighbours: birds, masts, wrong matches."""
    from scipy.ndimage import distance_transform_edt, median_filter

    known = np.isfinite(heights.values)
    if not known.any():
        return heights
    nearest = distance_transform_edt(~known, return_distances=False, return_indices=True)
    filled = heights.values[tuple(np.asarray(nearest))]
    deviation = np.abs(heights.values - median_filter(filled, 3, mode="nearest"))
    # The median would be 0 for terraces, and for heights in whole metres.
    typical = float(np.sqrt(np.mean(np.minimum(deviation[known], np.percentile(deviation[known], 90)) ** 2)))
    return HeightRaster(
        np.where(deviation > max_sigmas * max(typical, 1e-9), np.nan, heights.values),
        heights.cells_from_plane,
    )


def search_placements(
    reference: HeightRaster,
    moved: HeightRaster,
    area: SearchRange,
    count: int,
    initial: MapPlacement | None = None,
    settings: SearchSettings = DEFAULT_SETTINGS,
) -> PlacementSearch:
    """Evaluate every shift and turn within a range, and return the best `count` candidates.

    Parameters
    ----------
    reference, moved : HeightRaster
        In metres of one plane.
    initial : MapPlacement, optional
        The centre of the range; by default that of the map's own coordinates.
    """
    start = initial or place_at_centre(moved)
    cell = _choose_cell(reference, moved, area, settings)
    template = moved.reduce(int(cell / moved.cell))
    radius = _radius(template)
    spectra = _grid_reference(reference, start, cell, area.radius + radius, 2 * radius)
    if spectra is None:
        return PlacementSearch((), cell, 0)
    turns = _list_turns(area.turn, cell / max(radius, cell), settings)
    best = np.full(spectra.padded, np.inf)
    best_turn = np.zeros(spectra.padded, np.int64)
    for k, turn in enumerate(turns):
        variance = _score(spectra, _grid_moved(template, start, cell, radius, turn), area.overlap)
        better = variance < best
        best[better], best_turn[better] = variance[better], k
    return _pick_candidates(best, best_turn, turns, spectra, start, cell, radius, area, count, settings)


def _choose_cell(
    reference: HeightRaster, moved: HeightRaster, area: SearchRange, settings: SearchSettings
) -> float:
    """Return the edge (m) of the cells of the search."""
    size = _extent(moved)
    searched_extent = min(_extent(reference), 2 * (area.radius + size))
    cell = max(size / settings.max_cells_across, searched_extent / settings.max_reference_cells)
    return max(reference.cell, moved.cell, min(cell, size / settings.min_cells_across))


def _extent(heights: HeightRaster) -> float:
    return max(heights.values.shape) * heights.cell


def _radius(heights: HeightRaster) -> float:
    x, y = heights.centres
    known = np.isfinite(heights.values)
    return float(np.hypot(x[known] - x[known].mean(), y[known] - y[known].mean()).max())


def _list_turns(limit: float, step: float, settings: SearchSettings) -> Floats:
    """Return turns (n,) in rad from -limit to limit; pi and -pi are listed once."""
    step = float(np.clip(step, settings.min_turn_step_rad, settings.max_turn_step_rad))
    count = int(np.ceil(limit / step))
    turns = np.asarray(np.arange(-count, count + 1) * (limit / max(count, 1)), np.float64)
    return turns[:-1] if limit >= np.pi else turns


def _grid_reference(
    reference: HeightRaster, start: MapPlacement, cell: float, distance: float, size: float
) -> _ReferenceSpectra | None:
    """Return the part of the reference that may lie under the map, on a grid of cells along x and y."""
    coarse = reference.reduce(int(cell / reference.cell))
    x, y = coarse.centres
    middle = (start.middle + start.shift)[:2]
    known = (
        np.isfinite(coarse.values) & (np.abs(x - middle[0]) <= distance) & (np.abs(y - middle[1]) <= distance)
    )
    if not known.any():
        return None
    low = np.array([each[known].min() for each in (x, y)])
    high = np.array([each[known].max() for each in (x, y)])
    columns, rows = (np.floor((high - low) / cell) + 1).astype(int).tolist()
    gx, gy = np.meshgrid(low[0] + cell * np.arange(columns), low[1] + cell * np.arange(rows))
    values = coarse.at(gx, gy)
    is_known = np.isfinite(values)
    if not is_known.any():
        return None
    z = np.where(is_known, values - values[is_known].mean(), 0.0)
    template = 2 * int(np.ceil(size / 2 / cell)) + 1
    padded = pad_sizes(rows + template - 1, columns + template - 1)
    mask, heights, squares = (transform(each, padded) for each in (is_known.astype(np.float64), z, z * z))
    return _ReferenceSpectra(mask, heights, squares, low, (rows, columns), padded)


def _grid_moved(
    template: HeightRaster, start: MapPlacement, cell: float, radius: float, turn: float
) -> Floats:
    """Return the map (n, n), turned about its centre, on a grid of cells; NaN where unknown."""
    half = int(np.ceil(radius / cell))
    offset = cell * np.arange(-half, half + 1)
    x, y = np.meshgrid(offset, offset)
    angle = start.heading + turn
    cos, sin = np.cos(angle), np.sin(angle)
    return template.at(start.middle[0] + cos * x + sin * y, start.middle[1] - sin * x + cos * y)


def _score(spectra: _ReferenceSpectra, heights: Floats, overlap: float) -> Floats:
    """Return the variance (rows, cols) of the differences at every shift; inf if the overlap is too small."""
    known = np.isfinite(heights)
    m = known.astype(np.float64)
    z = np.where(known, heights - heights[known].mean(), 0.0) if known.any() else m
    v, u = (each / max(heights.shape) for each in np.indices(heights.shape, dtype=np.float64))
    u, v = u - u.mean(), v - v.mean()

    def conjugate_spectrum(part: Floats) -> Spectrum:
        return np.conj(transform(part, spectra.padded))

    def restore(spectrum: Spectrum) -> Floats:
        return transform_back(spectrum, spectra.padded)

    n, su, sv, suu, suv, svv = (
        restore(spectra.mask * conjugate_spectrum(m * w)) for w in (1.0, u, v, u * u, u * v, v * v)
    )
    d, du, dv = (
        restore(spectra.heights * conjugate_spectrum(m * w) - spectra.mask * conjugate_spectrum(z * w))
        for w in (np.ones_like(u), u, v)
    )
    dd = restore(
        spectra.squares * conjugate_spectrum(m)
        - 2 * spectra.heights * conjugate_spectrum(z)
        + spectra.mask * conjugate_spectrum(z * z)
    )
    overlaps = n >= max(overlap * m.sum(), MIN_OVERLAP_CELLS)
    return np.where(
        overlaps, _residual_variance(np.where(overlaps, n, 1.0), su, sv, suu, suv, svv, d, du, dv, dd), np.inf
    )


def _residual_variance(
    n: Floats, su: Floats, sv: Floats, suu: Floats, suv: Floats, svv: Floats,
    d: Floats, du: Floats, dv: Floats, dd: Floats,
) -> Floats:  # fmt: skip
    """Return the variance of differences d after the fit of a plane, from sums over n cells at u, v."""
    uu, uv, vv = suu - su * su / n, suv - su * sv / n, svv - sv * sv / n
    ud, vd, rest = du - su * d / n, dv - sv * d / n, dd - d * d / n
    floor = 1e-6 * n  # avoids a division by zero for cells in a line
    determinant = np.maximum(uu * vv - uv * uv, floor**2)
    explained = (vv * ud * ud - 2 * uv * ud * vd + uu * vd * vd) / determinant
    return np.maximum(rest - np.maximum(explained, 0.0), 0.0) / n


def _pick_candidates(
    best: Floats, best_turn: NDArray[np.int64], turns: Floats, spectra: _ReferenceSpectra,
    start: MapPlacement, cell: float, radius: float, area: SearchRange, count: int, settings: SearchSettings,
) -> PlacementSearch:  # fmt: skip
    """Return the lowest local minima of the variance."""
    from scipy.ndimage import minimum_filter

    half = int(np.ceil(radius / cell))
    rows, columns = ([(k if k < size else k - padded) for k in range(padded)]
                     for size, padded in zip(spectra.shape, spectra.padded, strict=True))  # fmt: skip
    x = spectra.corner[0] + cell * (np.array(columns) + half)
    y = spectra.corner[1] + cell * (np.array(rows) + half)
    middle = (start.middle + start.shift)[:2]
    distance = np.hypot(*np.meshgrid(x - middle[0], y - middle[1]))
    tried: Mask = np.isfinite(best) & (distance <= area.radius)
    inside = np.where(tried, best, np.inf)
    lowest = tried & (inside <= minimum_filter(inside, 2 * settings.separation_cells + 1, mode="wrap"))
    order = np.argsort(inside[lowest], kind="stable")[:count]
    cells_of_minima = np.argwhere(lowest)[order]
    found = [
        Candidate(shift_and_turn(start, x[j], y[i], float(turns[best_turn[i, j]])), float(inside[i, j]))
        for i, j in cells_of_minima
    ]
    return PlacementSearch(tuple(found), cell, int(tried.sum()) * len(turns))


def shift_and_turn(start: MapPlacement, x: float, y: float, turn: float) -> MapPlacement:
    """Return a placement with its centre moved to x, y and an additional turn; the height does not change."""
    moved = start.step(np.array([0.0, 0.0, 0.0, 0.0, 0.0, turn]))
    shift = np.array([x - start.middle[0], y - start.middle[1], start.shift[2]])
    return MapPlacement(moved.middle, shift, moved.rotation, moved.scale)
