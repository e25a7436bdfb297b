"""Where a map might lie in another: every shift and turn is tried, by Fourier transforms.

For each turn, at every shift at once, the plane that fits the differences best is taken out, and the variance
of what is left is the score: so neither height nor lean of the map need to be known. Holes of both maps are
masks, whose products are transformed too, so that sums run over what both know and over nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Mask
from transect.geometry.rasters import Heights

from .placement import Placement, begin_at
from .spectra import Spectrum, pad_sizes, transform, transform_back

ACROSS = 48
"""Cells of the search along the longer side of the moved map, at most."""
LEAST_ACROSS = 8
WIDEST = 1536
"""Cells of the reference along a side, at most: what is larger is searched with larger cells."""
MOST_STEP, LEAST_STEP = np.radians(6.0), np.radians(0.5)
"""Between two turns that are tried."""
SPIKE = 8.0
"""Deviations by which no single cell differs from those around it."""
APART = 3
"""Cells between two places of which not only the better one is kept."""


@dataclass(frozen=True)
class Span:
    """What is searched.

    Attributes
    ----------
    reach : float
        Metres that the middle of the map may be away from where it is believed; inf for the whole reference.
    turn : float
        Rad that it may be turned; pi for any.
    overlap : float
        Share of the map's known cells that must lie on the reference.
    """

    reach: float
    turn: float
    overlap: float = 0.5


@dataclass(frozen=True)
class Candidate:
    """A place that is better than those around it: where, and the variance of the differences in m^2."""

    placement: Placement
    variance: float


@dataclass(frozen=True, eq=False)
class Sweep:
    """What a search saw: its best places, the cell that it used in metres, and how many places it tried."""

    candidates: tuple[Candidate, ...]
    cell: float
    tried: int


@dataclass(frozen=True, eq=False)
class _Side:
    """Transforms of the reference's mask, heights and squares; `corner` (2,) is its first cell's place."""

    mask: Spectrum
    heights: Spectrum
    squares: Spectrum
    corner: Floats
    shape: tuple[int, int]
    padded: tuple[int, ...]


def drop_spikes(heights: Heights) -> Heights:
    """Return heights without cells that stand out of those around them: birds, masts, wrong matches."""
    from scipy.ndimage import distance_transform_edt, median_filter

    known = np.isfinite(heights.values)
    if not known.any():
        return heights
    nearest = distance_transform_edt(~known, return_distances=False, return_indices=True)
    filled = heights.values[tuple(np.asarray(nearest))]
    off = np.abs(heights.values - median_filter(filled, 3, mode="nearest"))
    # Not the median of all: terraces and whole metres make it 0.
    usual = float(np.sqrt(np.mean(np.minimum(off[known], np.percentile(off[known], 90)) ** 2)))
    return Heights(np.where(off > SPIKE * max(usual, 1e-9), np.nan, heights.values), heights.cells_from_plane)


def search(
    reference: Heights, moved: Heights, span: Span, most: int, begin: Placement | None = None
) -> Sweep:
    """Try every shift and turn within a span; return the best places, best first.

    Parameters
    ----------
    reference, moved : Heights
        In metres of one plane.
    most : int
        Candidates that are returned.
    begin : Placement, optional
        Where the map is believed to be; by default where its coordinates say.
    """
    begin = begin or begin_at(moved)
    cell = _choose_cell(reference, moved, span)
    template = moved.reduce(int(cell / moved.cell))
    radius = _radius(template)
    ground = _grid_reference(reference, begin, cell, span.reach + radius, 2 * radius)
    if ground is None:
        return Sweep((), cell, 0)
    turns = _list_turns(span.turn, cell / max(radius, cell))
    best = np.full(ground.padded, np.inf)
    which = np.zeros(ground.padded, np.int64)
    for k, turn in enumerate(turns):
        variance = _score(ground, _grid_moved(template, begin, cell, radius, turn), span.overlap)
        better = variance < best
        best[better], which[better] = variance[better], k
    return _pick(best, which, turns, ground, begin, cell, radius, span, most)


def _choose_cell(reference: Heights, moved: Heights, span: Span) -> float:
    """Return the edge (m) of the cells of the search: coarse, while the moved map still has some across."""
    size = _extent(moved)
    wide = min(_extent(reference), 2 * (span.reach + size))
    return max(reference.cell, moved.cell, min(max(size / ACROSS, wide / WIDEST), size / LEAST_ACROSS))


def _extent(heights: Heights) -> float:
    return max(heights.values.shape) * heights.cell


def _radius(heights: Heights) -> float:
    x, y = heights.centres
    known = np.isfinite(heights.values)
    return float(np.hypot(x[known] - x[known].mean(), y[known] - y[known].mean()).max())


def _list_turns(most: float, step: float) -> Floats:
    """Return turns (n,) in rad from -most to most; all around without the first one again."""
    step = float(np.clip(step, LEAST_STEP, MOST_STEP))
    count = int(np.ceil(most / step))
    turns = np.asarray(np.arange(-count, count + 1) * (most / max(count, 1)), np.float64)
    return turns[:-1] if most >= np.pi else turns


def _grid_reference(
    reference: Heights, begin: Placement, cell: float, reach: float, size: float
) -> _Side | None:
    """Return the part of the reference that may lie under the map, on a grid of cells along x and y."""
    coarse = reference.reduce(int(cell / reference.cell))
    x, y = coarse.centres
    middle = (begin.middle + begin.shift)[:2]
    known = np.isfinite(coarse.values) & (np.abs(x - middle[0]) <= reach) & (np.abs(y - middle[1]) <= reach)
    if not known.any():
        return None
    low = np.array([each[known].min() for each in (x, y)])
    high = np.array([each[known].max() for each in (x, y)])
    columns, rows = (np.floor((high - low) / cell) + 1).astype(int).tolist()
    gx, gy = np.meshgrid(low[0] + cell * np.arange(columns), low[1] + cell * np.arange(rows))
    values = coarse.at(gx, gy)
    there = np.isfinite(values)
    if not there.any():
        return None
    z = np.where(there, values - values[there].mean(), 0.0)
    template = 2 * int(np.ceil(size / 2 / cell)) + 1
    padded = pad_sizes(rows + template - 1, columns + template - 1)
    mask, heights, squares = (transform(each, padded) for each in (there.astype(np.float64), z, z * z))
    return _Side(mask, heights, squares, low, (rows, columns), padded)


def _grid_moved(template: Heights, begin: Placement, cell: float, radius: float, turn: float) -> Floats:
    """Return the map (n, n), turned about its middle, on a grid of cells around it; NaN where not known."""
    half = int(np.ceil(radius / cell))
    offset = cell * np.arange(-half, half + 1)
    x, y = np.meshgrid(offset, offset)
    angle = begin.heading + turn
    cos, sin = np.cos(angle), np.sin(angle)
    return template.at(begin.middle[0] + cos * x + sin * y, begin.middle[1] - sin * x + cos * y)


def _score(ground: _Side, heights: Floats, overlap: float) -> Floats:
    """Return the variance (rows, cols) of the differences at every shift; inf where too little overlaps."""
    there = np.isfinite(heights)
    m = there.astype(np.float64)
    z = np.where(there, heights - heights[there].mean(), 0.0) if there.any() else m
    v, u = (each / max(heights.shape) for each in np.indices(heights.shape, dtype=np.float64))
    u, v = u - u.mean(), v - v.mean()

    def reverse(part: Floats) -> Spectrum:
        return np.conj(transform(part, ground.padded))

    def restore(spectrum: Spectrum) -> Floats:
        return transform_back(spectrum, ground.padded)

    n, su, sv, suu, suv, svv = (
        restore(ground.mask * reverse(m * w)) for w in (1.0, u, v, u * u, u * v, v * v)
    )
    d, du, dv = (
        restore(ground.heights * reverse(m * w) - ground.mask * reverse(z * w))
        for w in (np.ones_like(u), u, v)
    )
    dd = restore(ground.squares * reverse(m) - 2 * ground.heights * reverse(z) + ground.mask * reverse(z * z))
    enough = n >= max(overlap * m.sum(), 6)
    return np.where(
        enough, _take_plane_out(np.where(enough, n, 1.0), su, sv, suu, suv, svv, d, du, dv, dd), np.inf
    )


def _take_plane_out(
    n: Floats, su: Floats, sv: Floats, suu: Floats, suv: Floats, svv: Floats,
    d: Floats, du: Floats, dv: Floats, dd: Floats,
) -> Floats:  # fmt: skip
    """Return what variance a plane leaves of differences d, from sums over n cells at u, v."""
    uu, uv, vv = suu - su * su / n, suv - su * sv / n, svv - sv * sv / n
    ud, vd, rest = du - su * d / n, dv - sv * d / n, dd - d * d / n
    least = 1e-6 * n
    determinant = np.maximum(uu * vv - uv * uv, least**2)
    explained = (vv * ud * ud - 2 * uv * ud * vd + uu * vd * vd) / determinant
    return np.maximum(rest - np.maximum(explained, 0.0), 0.0) / n


def _pick(
    best: Floats, which: NDArray[np.int64], turns: Floats, ground: _Side, begin: Placement, cell: float,
    radius: float, span: Span, most: int,
) -> Sweep:  # fmt: skip
    """Return the lowest of all places that are lower than those around them."""
    from scipy.ndimage import minimum_filter

    half = int(np.ceil(radius / cell))
    rows, columns = ([(k if k < size else k - padded) for k in range(padded)]
                     for size, padded in zip(ground.shape, ground.padded, strict=True))  # fmt: skip
    x = ground.corner[0] + cell * (np.array(columns) + half)
    y = ground.corner[1] + cell * (np.array(rows) + half)
    middle = (begin.middle + begin.shift)[:2]
    away = np.hypot(*np.meshgrid(x - middle[0], y - middle[1]))
    tried: Mask = np.isfinite(best) & (away <= span.reach)
    inside = np.where(tried, best, np.inf)
    lowest = tried & (inside <= minimum_filter(inside, 2 * APART + 1, mode="wrap"))
    order = np.argsort(inside[lowest], kind="stable")[:most]
    places = np.argwhere(lowest)[order]
    found = [
        Candidate(begin_again(begin, x[j], y[i], float(turns[which[i, j]])), float(inside[i, j]))
        for i, j in places
    ]
    return Sweep(tuple(found), cell, int(tried.sum()) * len(turns))


def begin_again(begin: Placement, x: float, y: float, turn: float) -> Placement:
    """Return a placement whose middle is at x, y, turned further; its height stays."""
    moved = begin.step(np.array([0.0, 0.0, 0.0, 0.0, 0.0, turn]))
    shift = np.array([x - begin.middle[0], y - begin.middle[1], begin.shift[2]])
    return Placement(moved.middle, shift, moved.rotation, moved.scale)
