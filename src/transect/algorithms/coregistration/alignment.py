"""Alignment of one height map to another: search, coarse-to-fine refinement, tests and covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry.rasters import ELEVATION, Heights, cut_to_known, heights_of
from transect.types import GridMap

from .placement import MapPair, MetricPlane, Placement, begin_at, bring_together
from .refinement import LEAST_CELLS, Fit, Likeness, compare_slopes, measure_covariance, refine
from .search import Span, Sweep, drop_spikes, search

CANDIDATES, KEPT = 5, 6
"""Places of the search that are refined, and of these that are followed to the end."""
REACH = 0.25
"""Of the moved map's size: how far it may be off, unless somebody says it."""
TURN = np.radians(15.0)
HELD = 1.0
"""Cells that the deviation of the place may be at most, along any direction."""
SAME = 2.0
"""Cells of the search within which two fits are one place."""
ENOUGH_CELLS = 150
"""Of a map that is averaged to be refined from coarse to fine."""
WORSE = 2.0
"""Times the residuals of the best place with which others are still followed."""
RIVAL = 1.1
"""A place elsewhere whose residuals are less than this times as large fits as well."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """Where a map lies in a reference.

    Attributes
    ----------
    placement : Placement
        In metres of `plane`.
    covariance : (6, 6) or (7, 7) float64
        Of the place of the map's middle, m, its turn in the reference's axes, rad, and the logarithm of its
        scale where that was found; 0 for a turn or tilt that was not asked for.
    plane : MetricPlane
        Of the reference.
    fit : Fit
        On the cells of `map`: residuals are heights of the map less the reference's.
    reference, map : Heights
        What was compared: in metres of the plane, the finer one averaged to the cells of the other.
    overlap : float
        Share of the map's known cells that lie on known ground of the reference.
    likeness : Likeness
    before : float
        Deviation of the differences in metres where the map was believed to be, but for the height; NaN
        without overlap.
    """

    placement: Placement
    covariance: Floats
    plane: MetricPlane
    fit: Fit
    reference: Heights
    map: Heights
    overlap: float
    likeness: Likeness
    before: float

    @cached_property
    def T_reference_map(self) -> Floats:
        """(4, 4): takes points of the map to the reference, in metres of the plane; with its scale."""
        return self.placement.matrix

    @property
    def deviations(self) -> Floats:
        """Standard deviations (6,) or (7,): m, rad, and of the scale."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def horizontal_deviation(self) -> float:
        """Largest standard deviation of the place along any horizontal direction, m."""
        if not np.isfinite(self.covariance).all():
            return np.inf
        return float(np.sqrt(max(np.linalg.eigvalsh(self.covariance[:2, :2])[-1], 0.0)))

    def covariance_at(self, point: ArrayLike) -> Floats:
        """Return the covariance of the place of another point (3,) of the map, and of the turn: m, rad."""
        arm = self.placement.turn(np.asarray(point, np.float64) - self.placement.middle)
        moves = np.eye(len(self.covariance))
        moves[:3, 3:6] = -np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
        if len(moves) > 6:
            moves[:3, 6] = arm
        return moves @ self.covariance @ moves.T


def align_maps(
    reference: GridMap,
    moved: GridMap,
    *,
    reach: float | None = None,
    turn: float = TURN,
    scale: bool = False,
    tilt: bool = True,
    at: ArrayLike | None = None,
    overlap: float = 0.3,
) -> Alignment:
    """Lay a height map on another one of the same ground.

    Parameters
    ----------
    reference : GridMap
        The map that stays.
    moved : GridMap
        The map that is laid on it.
    reach : float, optional
        Metres that it may be off; by default a quarter of its size.
    turn : float
        Rad that it may be turned about the vertical; 0 for not at all.
    scale : bool
        Whether its lengths may be wrong by a factor.
    tilt : bool
        Whether it may lean.
    at : (2,), optional
        Where the middle of the map is believed to be, in the reference's coordinates; by default where its
        own say.
    overlap : float
        Share of the map's known cells that must lie on the reference.

    Raises
    ------
    GeometryError
        If the maps do not overlap, are not alike, or if the ground is too flat to hold one on the other.
    UsageError
        If their reference systems cannot be brought together.
    """
    pair, begin = prepare(reference, moved, at)
    size = max(pair.moved.values.shape) * pair.moved.cell
    span = Span(REACH * size if reach is None else reach, turn, overlap)
    fits, sweep = find_fits(pair, begin, span, CANDIDATES, scale=scale, tilt=tilt)
    found = describe(fits[0], pair, begin)
    doubt = doubt_alignment(found, sweep.tried) or doubt_place(fits, sweep.cell)
    if doubt is not None:
        raise doubt
    return found


def prepare(reference: GridMap, moved: GridMap, at: ArrayLike | None) -> tuple[MapPair, Placement]:
    """Return both maps with cells alike and without spikes, and where the moved one is believed to be."""
    pair = bring_together(reference, moved, placed=at is not None)
    # A cell that is missing alone would take those around it with it wherever heights are interpolated.
    ground = drop_spikes(pair.reference).close_holes()
    pair = match_cells(MapPair(ground, drop_spikes(pair.moved), pair.plane))
    refuse_empty(pair)
    begin = begin_at(pair.moved)
    if at is None:
        return pair, begin
    shift = pair.plane.place(np.asarray(at, np.float64)) - begin.middle[:2]
    return pair, begin_at(pair.moved, np.array([*shift, 0.0]))


def find_fits(
    pair: MapPair,
    begin: Placement,
    span: Span,
    most: int,
    kept: int = KEPT,
    *,
    scale: bool = False,
    tilt: bool = True,
) -> tuple[list[Fit], Sweep]:
    """Return fits at the best places within a span, the one with the smallest residuals first.

    `most` places are refined with coarse cells, `kept` of them with all.

    Raises
    ------
    GeometryError
        If the maps do not overlap.
    """
    sweep = search(pair.reference, pair.moved, span, most, begin)
    begins = [each.placement for each in sweep.candidates]
    if span.reach < sweep.cell:
        begins.append(begin)  # the search's cells may have left nothing so near
    fits = descend(pair, begins, sweep.cell, span, kept, scale=scale, tilt=tilt)
    if not fits:
        raise GeometryError(
            "the maps do not overlap",
            why=f"nowhere within {span.reach:.3g} m lies {span.overlap:.0%} of the map on known ground",
            hint="check frames and reference systems; say where it is, or allow a larger reach",
        )
    return fits, sweep


def known_cells(heights: Heights) -> int:
    """Return how many cells have a height."""
    return int(np.isfinite(heights.values).sum())


def refuse_empty(pair: MapPair) -> None:
    """Raise if a map has too few cells to be compared."""
    for name, heights in (("reference", pair.reference), ("map", pair.moved)):
        if min(heights.values.shape) < 3 or known_cells(heights) < LEAST_CELLS:
            raise GeometryError(
                f"the {name} is too small to be compared",
                why=f"it has {known_cells(heights)} known cells of {heights.cell:.3g} m",
                hint="maps of the other's resolution or finer, and of more ground",
            )


def match_cells(pair: MapPair) -> MapPair:
    """Return both maps with cells of about the same size: the finer one is averaged."""
    coarse = max(pair.reference.cell, pair.moved.cell)
    ours, theirs = (each.reduce(round(coarse / each.cell)) for each in (pair.reference, pair.moved))
    return MapPair(ours, theirs, pair.plane)


def descend(
    pair: MapPair,
    begins: Sequence[Placement],
    cell: float,
    span: Span,
    kept: int,
    *,
    scale: bool,
    tilt: bool,
) -> list[Fit]:
    """Refine placements from cells of the search, `cell` metres, down to those of the maps, the best first.

    On the way those are left behind that fit much worse than the best one.
    """
    factor = 2 ** int(np.log2(max(cell / pair.moved.cell, 1.0)))
    fits: list[Fit] = []
    while factor >= 1 and begins:
        reference, moved = pair.reference.reduce(factor), pair.moved.reduce(factor)
        if factor == 1 or (min(reference.values.shape) >= 3 and known_cells(moved) >= ENOUGH_CELLS):
            free = {"scale": scale and factor == 1, "tilt": tilt, "turn": span.turn > 0}
            starts = (_on_ground(reference, moved, each) for each in begins)
            least = span.overlap * known_cells(moved)
            fits = [
                fit
                for fit in (refine(reference, moved, each, **free) for each in starts)
                if fit.count >= least
            ]
            fits = _keep_good(fits, kept)
            begins = [fit.placement for fit in fits]
        factor //= 2
    return fits


def _keep_good(fits: list[Fit], most: int) -> list[Fit]:
    """Return fits, the best first, without those that are much worse than it."""
    ordered = sorted(fits, key=lambda fit: fit.deviation)
    return [fit for fit in ordered[:most] if fit.deviation <= WORSE * ordered[0].deviation + 1e-9]


def _on_ground(reference: Heights, moved: Heights, placement: Placement) -> Placement:
    """Return a placement at the height of the reference: a step may not see ground that is far below."""
    x, y = moved.centres
    places = placement.carry(np.stack([x, y, moved.values], axis=-1) - placement.middle)
    rise = reference.at(places[..., 0], places[..., 1]) - places[..., 2]
    known = np.isfinite(rise)
    up = float(np.median(rise[known])) if known.any() else 0.0
    return placement.step(np.array([0.0, 0.0, up, 0.0, 0.0, 0.0]))


def doubt_place(fits: list[Fit], cell: float) -> GeometryError | None:
    """Return the doubt that another place is as good as the first of fits (in order); None if none is.

    `cell` is the edge of the search's cells in metres.
    """
    best = fits[0]
    for other in fits[1:]:
        away = float(np.linalg.norm((other.placement.shift - best.placement.shift)[:2]))
        if away > SAME * cell and other.deviation < RIVAL * best.deviation:
            return GeometryError(
                "the maps fit at several places equally well",
                why=f"{best.deviation:.3g} m are left here, {other.deviation:.3g} m {away:.3g} m away",
                hint="a smaller reach, larger maps, or AbsoluteLocalisation, which lists the places",
            )
    return None


def describe(fit: Fit, pair: MapPair, begin: Placement) -> Alignment:
    """Return an alignment: a fit with its covariance and how alike the maps are."""
    return Alignment(
        fit.placement,
        measure_covariance(fit),
        pair.plane,
        fit,
        pair.reference,
        pair.moved,
        fit.count / known_cells(pair.moved),
        compare_slopes(fit, pair.moved),
        _measure_before(pair, begin),
    )


def doubt_alignment(found: Alignment, tried: int) -> GeometryError | None:
    """Return why an alignment is not believed; None if it is.

    `tried` is the number of places of which it is the best.
    """
    cell, sigma = found.map.cell, found.horizontal_deviation
    if not np.isfinite(sigma) or sigma > HELD * cell:
        known = f"its place would be known to {sigma:.3g} m, cells are {cell:.3g} m"
        return GeometryError(
            "the ground is too flat to tell where the map lies",
            why=known if np.isfinite(sigma) else "slopes of both maps have nothing in common",
            hint="maps with relief: rocks, slopes that change, edges",
        )
    likeness = found.likeness
    if likeness.correlation <= (limit := likeness.limit(tried)):
        return GeometryError(
            "the maps are not alike",
            why=f"correlation of their slopes {likeness.correlation:.2f}, by chance up to {limit:.2f}",
            hint="are they of the same ground? A larger reach or turn, if they may be further off",
        )
    return None


def _measure_before(pair: MapPair, begin: Placement) -> float:
    x, y = pair.moved.centres
    places = begin.carry(np.stack([x, y, pair.moved.values], axis=-1) - begin.middle)
    off = places[..., 2] - pair.reference.at(places[..., 0], places[..., 1])
    known = off[np.isfinite(off)]
    return float(known.std()) if len(known) else float("nan")


STEPS = 4
"""Rounds in which the height of a leaning map and the place that is asked for find each other."""


def lay_map(reference: GridMap, moved: GridMap, found: Alignment) -> GridMap:
    """Return a map where it belongs: its elevation on cells of the reference, cut to where it is known.

    Layer `difference` is its elevation less the reference's, in metres.
    """
    pair = bring_together(reference, moved, placed=True)
    x, y = pair.reference.centres
    heights = sample_placed(pair.moved, found.placement, x, y)
    layers = {
        ELEVATION: heights.astype(np.float32),
        "difference": (heights - heights_of(reference).values).astype(np.float32),
    }
    laid = GridMap(layers, reference.transform, reference.crs, reference.frame, reference.t_ns)
    return cut_to_known(laid, np.isfinite(heights))


def sample_placed(moved: Heights, placement: Placement, x: Floats, y: Floats) -> Floats:
    """Return heights (...) of a placed map at x, y (...) in metres of the plane; NaN beside it."""
    goal = np.stack([x, y], axis=-1) - (placement.middle + placement.shift)[:2]
    up, heights = np.zeros(x.shape), np.full(x.shape, np.nan)
    for _ in range(STEPS):
        offset = np.concatenate([goal, up[..., None]], axis=-1) @ placement.rotation / placement.scale
        heights = moved.at(offset[..., 0] + placement.middle[0], offset[..., 1] + placement.middle[1])
        offset[..., 2] = heights - placement.middle[2]
        up = np.nan_to_num(placement.turn(offset)[..., 2])
    return np.where(np.isfinite(heights), up + (placement.middle + placement.shift)[2], np.nan)
