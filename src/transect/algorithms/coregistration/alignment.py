"""Alignment of one height map to another: search, coarse-to-fine refinement, tests and covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry.rasters import ELEVATION, HeightRaster, cut_to_known, heights_of
from transect.types import GridMap

from .placement import MapPair, MapPlacement, MetricPlane, place_at_centre, to_common_plane
from .refinement import (
    MIN_CELLS,
    PlacementFit,
    SlopeCorrelation,
    correlate_slopes,
    estimate_covariance,
    refine_placement,
)
from .search import PlacementSearch, SearchRange, remove_spikes, search_placements

DEFAULT_MAX_TURN_RAD = np.radians(15.0)


@dataclass(frozen=True)
class AlignmentSettings:
    """Limits of the alignment of two height maps."""

    # Candidates
    candidates: int = 5  # best placements of the search, which are refined
    kept: int = 6  # of these, how many are refined down to the finest cells
    default_radius_ratio: float = 0.25  # search radius where none is given, relative to the moved map's size

    # Refinement from coarse to fine cells
    min_coarse_cells: int = 150  # known cells of the moved map below which a resolution is skipped
    # Candidates with a larger residual RMS, relative to the best, are dropped.
    max_residual_ratio: float = 2.0

    # Tests of the result
    max_sigma_cells: float = 1.0  # largest standard deviation of the position along any horizontal direction
    # Fits nearer to each other than this, in cells of the search, are one place.
    same_place_cells: float = 2.0
    ambiguity_ratio: float = 1.1  # a fit elsewhere with a smaller residual RMS than this ratio is as good


DEFAULT_SETTINGS = AlignmentSettings()


@dataclass(frozen=True, eq=False)
class GridAlignment:
    """The placement of a height map in a reference, its covariance, and how well both agree."""

    placement: MapPlacement  # in metres of `plane`
    # (6, 6) or (7, 7): position of the map's centre (m), rotation about the reference's axes (rad), and the
    # logarithm of the scale if that was estimated; 0 for a turn or tilt that was not.
    covariance: Floats
    plane: MetricPlane  # of the reference
    fit: PlacementFit  # on the cells of `moved`; residuals are heights of the map minus the reference's
    reference: HeightRaster  # in metres of the plane; the finer map was averaged to the cells of the coarser
    moved: HeightRaster  # the aligned map on the same cells
    overlap: float  # ratio of the map's known cells that lie on known ground of the reference
    slope_correlation: SlopeCorrelation
    initial_residual_sigma: float  # m, of the differences at the initial placement; NaN without overlap

    @cached_property
    def T_reference_map(self) -> Floats:
        """(4, 4), in metres of the plane; the scale is contained in its rotation."""
        return self.placement.matrix

    @property
    def sigmas(self) -> Floats:
        """Standard deviations (6,) or (7,): m, rad, and of the scale."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def horizontal_sigma(self) -> float:
        """Largest standard deviation of the position along any horizontal direction, m."""
        if not np.isfinite(self.covariance).all():
            return np.inf
        return float(np.sqrt(max(np.linalg.eigvalsh(self.covariance[:2, :2])[-1], 0.0)))

    def covariance_at(self, point: ArrayLike) -> Floats:
        """Return the covariance of the position of another point (3,) of the map, and of the rotation."""
        arm = self.placement.rotate_and_scale(np.asarray(point, np.float64) - self.placement.middle)
        moves = np.eye(len(self.covariance))
        moves[:3, 3:6] = -np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
        if len(moves) > 6:
            moves[:3, 6] = arm
        return moves @ self.covariance @ moves.T


def align_maps(
    reference: GridMap,
    moved: GridMap,
    *,
    search_radius: float | None = None,
    turn: float = DEFAULT_MAX_TURN_RAD,
    scale: bool = False,
    tilt: bool = True,
    at: ArrayLike | None = None,
    overlap: float = 0.3,
    settings: AlignmentSettings = DEFAULT_SETTINGS,
) -> GridAlignment:
    """Align a height map to another one of the same ground.

    Parameters
    ----------
    reference, moved : GridMap
        The fixed map, and the one that is aligned to it.
    search_radius : float, optional
        Largest error of the map's position in metres; by default a quarter of its size.
    turn : float
        Largest error of its heading in rad.
    scale : bool
        Whether to estimate a scale of its lengths.
    tilt : bool
        Whether to estimate its tilt.
    at : (2,), optional
        Initial position of the map's centre, in the reference's coordinates; by default that of its own
        coordinates.
    overlap : float
        Smallest ratio of the map's known cells that lie on the reference.

    Raises
    ------
    GeometryError
        If the maps do not overlap or do not match, or if the ground is too flat to determine the position.
    UsageError
        If their reference systems cannot be transformed into each other.
    """
    pair, initial = prepare_maps(reference, moved, at)
    size = max(pair.moved.values.shape) * pair.moved.cell
    radius = settings.default_radius_ratio * size if search_radius is None else search_radius
    area = SearchRange(radius, turn, overlap)
    fits, found = find_fits(pair, initial, area, settings, scale=scale, tilt=tilt)
    alignment = evaluate_fit(fits[0], pair, initial)
    defect = find_defect(alignment, found.tried, settings) or find_ambiguity(fits, found.cell, settings)
    if defect is not None:
        raise defect
    return alignment


def prepare_maps(reference: GridMap, moved: GridMap, at: ArrayLike | None) -> tuple[MapPair, MapPlacement]:
    """Return both maps with cells of the same size and without spikes, and the initial placement."""
    pair = to_common_plane(reference, moved, placed=at is not None)
    # Interpolation spreads a single missing cell to its neighbours.
    ground = remove_spikes(pair.reference).close_holes()
    pair = match_cells(MapPair(ground, remove_spikes(pair.moved), pair.plane))
    require_enough_cells(pair)
    begin = place_at_centre(pair.moved)
    if at is None:
        return pair, begin
    shift = pair.plane.to_metres(np.asarray(at, np.float64)) - begin.middle[:2]
    return pair, place_at_centre(pair.moved, np.array([*shift, 0.0]))


def find_fits(
    pair: MapPair,
    initial: MapPlacement,
    area: SearchRange,
    settings: AlignmentSettings = DEFAULT_SETTINGS,
    *,
    scale: bool = False,
    tilt: bool = True,
) -> tuple[list[PlacementFit], PlacementSearch]:
    """Return the fits at the best candidates within a range, sorted by residual RMS.

    Raises
    ------
    GeometryError
        If the maps do not overlap.
    """
    found = search_placements(pair.reference, pair.moved, area, settings.candidates, initial)
    starts = [each.placement for each in found.candidates]
    if area.radius < found.cell:
        starts.append(initial)  # the cells of the search may be too coarse for so small a range
    fits = refine_coarse_to_fine(pair, starts, found.cell, area, settings, scale=scale, tilt=tilt)
    if not fits:
        raise GeometryError(
            "the maps do not overlap",
            why=f"nowhere within {area.radius:.3g} m lies {area.overlap:.0%} of the map on known ground",
            hint="check frames and reference systems; give its position, or a larger search radius",
        )
    return fits, found


def count_known_cells(heights: HeightRaster) -> int:
    """Return how many cells have a height."""
    return int(np.isfinite(heights.values).sum())


def require_enough_cells(pair: MapPair) -> None:
    """Raise if a map has too few known cells for a comparison."""
    for name, heights in (("reference", pair.reference), ("map", pair.moved)):
        if min(heights.values.shape) < 3 or count_known_cells(heights) < MIN_CELLS:
            raise GeometryError(
                f"the {name} is too small to be compared",
                why=f"it has {count_known_cells(heights)} known cells of {heights.cell:.3g} m",
                hint="maps of the other's resolution or finer, and of more ground",
            )


def match_cells(pair: MapPair) -> MapPair:
    """Return both maps with cells of about the same size: the finer one is averaged."""
    coarse = max(pair.reference.cell, pair.moved.cell)
    reference, moved = (each.reduce(round(coarse / each.cell)) for each in (pair.reference, pair.moved))
    return MapPair(reference, moved, pair.plane)


def refine_coarse_to_fine(
    pair: MapPair,
    starts: Sequence[MapPlacement],
    cell: float,
    area: SearchRange,
    settings: AlignmentSettings,
    *,
    scale: bool,
    tilt: bool,
) -> list[PlacementFit]:
    """Refine placements from cells of `cell` metres down to those of the maps; sort them by residual RMS.

    At each resolution candidates that fit much worse than the best one are dropped.
    """
    factor = 2 ** int(np.log2(max(cell / pair.moved.cell, 1.0)))
    fits: list[PlacementFit] = []
    while factor >= 1 and starts:
        reference, moved = pair.reference.reduce(factor), pair.moved.reduce(factor)
        if factor == 1 or (
            min(reference.values.shape) >= 3 and count_known_cells(moved) >= settings.min_coarse_cells
        ):
            min_count = area.overlap * count_known_cells(moved)
            estimates_scale, estimates_turn = scale and factor == 1, area.turn > 0
            fits = [
                refine_placement(
                    reference,
                    moved,
                    _match_height(reference, moved, each),
                    scale=estimates_scale,
                    tilt=tilt,
                    turn=estimates_turn,
                )
                for each in starts
            ]
            fits = _drop_worst([fit for fit in fits if fit.count >= min_count], settings)
            starts = [fit.placement for fit in fits]
        factor //= 2
    return fits


def _drop_worst(fits: list[PlacementFit], settings: AlignmentSettings) -> list[PlacementFit]:
    ordered = sorted(fits, key=lambda fit: fit.residual_rms)
    limit = settings.max_residual_ratio * ordered[0].residual_rms + 1e-9 if ordered else 0.0
    return [fit for fit in ordered[: settings.kept] if fit.residual_rms <= limit]


def _match_height(reference: HeightRaster, moved: HeightRaster, placement: MapPlacement) -> MapPlacement:
    """Return a placement with the median height of the reference: robust weights reject ground far below."""
    x, y = moved.centres
    positions = placement.transform_offsets(np.stack([x, y, moved.values], axis=-1) - placement.middle)
    rise = reference.at(positions[..., 0], positions[..., 1]) - positions[..., 2]
    known = np.isfinite(rise)
    up = float(np.median(rise[known])) if known.any() else 0.0
    return placement.step(np.array([0.0, 0.0, up, 0.0, 0.0, 0.0]))


def find_ambiguity(
    fits: list[PlacementFit], cell: float, settings: AlignmentSettings = DEFAULT_SETTINGS
) -> GeometryError | None:
    """Return an error if another place fits as well as the first of the sorted fits.

    `cell` is the cell size of the search in metres.
    """
    best = fits[0]
    for other in fits[1:]:
        distance = float(np.linalg.norm((other.placement.shift - best.placement.shift)[:2]))
        is_as_good = other.residual_rms < settings.ambiguity_ratio * best.residual_rms
        if distance > settings.same_place_cells * cell and is_as_good:
            return GeometryError(
                "the maps fit at several places equally well",
                why=f"the residual RMS is {best.residual_rms:.3g} m here, {other.residual_rms:.3g} m at a "
                f"distance of {distance:.3g} m",
                hint="use a smaller search radius, larger maps, or AbsoluteLocalisation, which lists all",
            )
    return None


def evaluate_fit(fit: PlacementFit, pair: MapPair, initial: MapPlacement) -> GridAlignment:
    """Return a fit with its covariance and the correlation of the maps."""
    return GridAlignment(
        fit.placement,
        estimate_covariance(fit),
        pair.plane,
        fit,
        pair.reference,
        pair.moved,
        fit.count / count_known_cells(pair.moved),
        correlate_slopes(fit, pair.moved),
        _initial_residual_sigma(pair, initial),
    )


def find_defect(
    found: GridAlignment, tried: int, settings: AlignmentSettings = DEFAULT_SETTINGS
) -> GeometryError | None:
    """Return why an alignment is rejected, None if it is accepted.

    `tried` is the number of placements that were compared.
    """
    cell, sigma = found.moved.cell, found.horizontal_sigma
    if not np.isfinite(sigma) or sigma > settings.max_sigma_cells * cell:
        known = f"the standard deviation of its position is {sigma:.3g} m, cells are {cell:.3g} m"
        return GeometryError(
            "the ground is too flat to determine where the map lies",
            why=known if np.isfinite(sigma) else "the slopes of both maps are not correlated",
            hint="maps with relief: rocks, slopes that change, edges",
        )
    slopes = found.slope_correlation
    if slopes.correlation <= (limit := slopes.chance_limit(tried)):
        return GeometryError(
            "the maps are not alike",
            why=f"correlation of their slopes {slopes.correlation:.2f}, by chance up to {limit:.2f}",
            hint="are they of the same ground? Use a larger search radius or turn if they may be further off",
        )
    return None


def _initial_residual_sigma(pair: MapPair, initial: MapPlacement) -> float:
    x, y = pair.moved.centres
    positions = initial.transform_offsets(np.stack([x, y, pair.moved.values], axis=-1) - initial.middle)
    residual = positions[..., 2] - pair.reference.at(positions[..., 0], positions[..., 1])
    known = residual[np.isfinite(residual)]
    return float(known.std()) if len(known) else float("nan")


def resample_aligned(reference: GridMap, moved: GridMap, found: GridAlignment) -> GridMap:
    """Return the elevation of an aligned map on cells of the reference, cropped to where it is known.

    The layer `difference` is its elevation minus the reference's, in metres.
    """
    pair = to_common_plane(reference, moved, placed=True)
    x, y = pair.reference.centres
    heights = sample_placed(pair.moved, found.placement, x, y)
    layers = {
        ELEVATION: heights.astype(np.float32),
        "difference": (heights - heights_of(reference).values).astype(np.float32),
    }
    resampled = GridMap(layers, reference.transform, reference.crs, reference.frame, reference.t_ns)
    return cut_to_known(resampled, np.isfinite(heights))


def sample_placed(moved: HeightRaster, placement: MapPlacement, x: Floats, y: Floats) -> Floats:
    """Return heights (...) of a placed map at x, y (...) in metres of the plane; NaN outside it."""
    goal = np.stack([x, y], axis=-1) - (placement.middle + placement.shift)[:2]
    up, heights = np.zeros(x.shape), np.full(x.shape, np.nan)
    for _ in range(4):  # fixed-point iterations for the point of a tilted map below a horizontal position
        offset = np.concatenate([goal, up[..., None]], axis=-1) @ placement.rotation / placement.scale
        heights = moved.at(offset[..., 0] + placement.middle[0], offset[..., 1] + placement.middle[1])
        offset[..., 2] = heights - placement.middle[2]
        up = np.nan_to_num(placement.rotate_and_scale(offset)[..., 2])
    return np.where(np.isfinite(heights), up + (placement.middle + placement.shift)[2], np.nan)
