"""Localisation of a small map in a large one: several places, each with a probability.

The residuals at the best place determine the noise of the maps and its correlation, and so the likelihood of
every other candidate. The probabilities assume that one of the candidates is right; whether any is right is
tested before, by the correlation of the maps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry import robust
from transect.types import GridMap

from .alignment import AlignmentSettings, GridAlignment, evaluate_fit, find_defect, find_fits, prepare_maps
from .placement import MapPlacement
from .refinement import DEFAULT_SETTINGS as REFINEMENT
from .refinement import PlacementFit, count_independent
from .search import SearchRange


@dataclass(frozen=True)
class LocalisationSettings:
    """Limits of the localisation of a map."""

    # More candidates than for an alignment: the coarse cells of the search do not separate similar places.
    alignment: AlignmentSettings = AlignmentSettings(candidates=60, kept=20)  # noqa: RUF009 - frozen
    min_probability: float = 1e-3  # places below it are not listed
    sure_probability: float = 0.95  # of the best place; above it the localisation is unambiguous
    same_heading_rad: float = float(np.radians(20.0))  # fits with nearer headings at one place are the same


DEFAULT_SETTINGS = LocalisationSettings()


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A possible placement of the map, and its probability from 0 to 1."""

    alignment: GridAlignment
    probability: float


@dataclass(frozen=True, eq=False)
class Localisation:
    """The possible placements of a map."""

    hypotheses: tuple[Hypothesis, ...]  # most probable first
    tried: int  # placements that the search evaluated
    settings: LocalisationSettings = DEFAULT_SETTINGS

    @property
    def is_sure(self) -> bool:
        """Whether the best place has nearly all of the probability."""
        return self.hypotheses[0].probability >= self.settings.sure_probability


def locate_map(
    reference: GridMap,
    moved: GridMap,
    *,
    at: ArrayLike | None = None,
    within: float = np.inf,
    turn: float = np.pi,
    tilt: bool = True,
    overlap: float = 0.6,
    settings: LocalisationSettings = DEFAULT_SETTINGS,
) -> Localisation:
    """Find where a map fits into a larger one.

    Parameters
    ----------
    reference : GridMap
        The large map, such as that of an orbiter or a drone.
    moved : GridMap
        The map of a rover, z up; the position of its frame need not be known.
    at : (2,), optional
        Initial position of the map's centre, in the reference's coordinates; by default the centre of the
        reference.
    within : float
        Largest error of that position in metres; by default the whole reference is searched.
    turn : float
        Largest error of its heading in rad.
    tilt : bool
        Whether to estimate its tilt.
    overlap : float
        Smallest ratio of the map's known cells that lie on the reference.

    Raises
    ------
    GeometryError
        If the map fits nowhere, or if the ground is too flat to determine the position.
    """
    pair, initial = prepare_maps(reference, moved, _centre_of(reference) if at is None else at)
    radius = within if np.isfinite(within) else _radius_of(reference, pair.plane.unit)
    fits, found = find_fits(pair, initial, SearchRange(radius, turn, overlap), settings.alignment, tilt=tilt)
    distinct = _drop_duplicates(fits, settings.alignment.same_place_cells * found.cell, settings)
    probability = _probabilities(distinct)
    listed = [
        Hypothesis(evaluate_fit(distinct[k], pair, initial), float(probability[k]))
        for k in np.argsort(-probability, kind="stable")
        if probability[k] >= settings.min_probability
    ]
    if (defect := find_defect(listed[0].alignment, found.tried, settings.alignment)) is not None:
        raise defect
    return Localisation(tuple(listed), found.tried, settings)


def _centre_of(grid: GridMap) -> Floats:
    rows, cols = next(iter(grid.layers.values())).shape
    a, b, c, d, e, f = grid.transform
    return np.array([a * cols / 2 + b * rows / 2 + c, d * cols / 2 + e * rows / 2 + f])


def _radius_of(grid: GridMap, unit: Floats) -> float:
    """Return the distance in metres from the centre of a map to its corner."""
    rows, cols = next(iter(grid.layers.values())).shape
    a, b, _, d, e, _ = grid.transform
    return float(np.linalg.norm(unit * (abs(a) * cols + abs(b) * rows, abs(d) * cols + abs(e) * rows))) / 2


def _drop_duplicates(
    fits: list[PlacementFit], distance: float, settings: LocalisationSettings
) -> list[PlacementFit]:
    """Return the sorted fits without those that converged to the place of a better one."""
    distinct: list[PlacementFit] = []
    for fit in fits:
        if not any(_is_same(fit.placement, each.placement, distance, settings) for each in distinct):
            distinct.append(fit)
    return distinct


def _is_same(a: MapPlacement, b: MapPlacement, distance: float, settings: LocalisationSettings) -> bool:
    heading_difference = np.angle(np.exp(1j * (a.heading - b.heading)))
    near = np.linalg.norm((a.shift - b.shift)[:2]) < distance
    return bool(near and abs(heading_difference) < settings.same_heading_rad)


def _probabilities(fits: list[PlacementFit]) -> Floats:
    """Return the probability (n,) of each place; the first is the best.

    Residuals are normal with one unknown variance, so the likelihood is its power of minus half the number of
    independent residuals. Residuals of outliers are clipped.
    """
    best = fits[0]
    limit = REFINEMENT.tukey_sigmas * max(best.residual_rms, 1e-9)
    variance = np.array([_mean_square(fit.residual, limit) for fit in fits])
    logs = -0.5 * count_independent(best) * np.log(variance / variance[0])
    likelihood = np.exp(logs - logs.max())
    return likelihood / likelihood.sum()


def _mean_square(residual: Floats, limit: float) -> float:
    known = residual[np.isfinite(residual)]
    deviation = np.minimum(np.abs(known - robust.median(known)), limit)
    return max(float(np.mean(deviation**2)), 1e-18)
