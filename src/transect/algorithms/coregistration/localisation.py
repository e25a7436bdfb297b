"""Where in a large map a small one fits: several places, each with a probability.

The residuals at the best place tell the noise of the maps, and how far it is alike. By that noise every other
place is more or less likely. A place that is not among the candidates has no probability; that none of them
is right is decided before, by how alike the maps are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry import robust
from transect.types import GridMap

from .alignment import SAME, Alignment, describe, doubt_alignment, find_fits, prepare
from .refinement import TUKEY, Fit, count_independent
from .search import Span

CANDIDATES, KEPT = 60, 20
"""Places of the search that are refined, and of these that are followed to the end.

Where ground repeats itself the search's cells, which are coarse, do not tell the right place from others.
"""
LEAST = 1e-3
"""Probability of a place that is still listed."""
SURE = 0.95
"""Probability from which on there is one place."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A place where the map may lie, and how probable that is, from 0 to 1."""

    alignment: Alignment
    probability: float


@dataclass(frozen=True, eq=False)
class Localisation:
    """Where a map may lie, most probable place first; `tried` places were looked at."""

    hypotheses: tuple[Hypothesis, ...]
    tried: int

    @property
    def is_sure(self) -> bool:
        """Whether one place has nearly all of the probability."""
        return self.hypotheses[0].probability >= SURE


def locate_map(
    reference: GridMap,
    moved: GridMap,
    *,
    at: ArrayLike | None = None,
    within: float = np.inf,
    turn: float = np.pi,
    tilt: bool = True,
    overlap: float = 0.6,
) -> Localisation:
    """Find where a map fits into a larger one.

    Parameters
    ----------
    reference : GridMap
        Of an orbiter or a drone.
    moved : GridMap
        The rover's own, z up; where its frame is need not be known.
    at : (2,), optional
        Where the middle of the map is believed to be, in the reference's coordinates; by default the middle
        of the reference.
    within : float
        Metres that this may be wrong; by default the whole reference.
    turn : float
        Rad by which its heading may be wrong.
    tilt : bool
        Whether it may lean.
    overlap : float
        Share of the map's known cells that must lie on the reference.

    Raises
    ------
    GeometryError
        If the map fits nowhere, or the ground is too flat to tell.
    """
    pair, begin = prepare(reference, moved, _middle_of(reference) if at is None else at)
    reach = within if np.isfinite(within) else _reach_of(reference, pair.plane.unit)
    fits, sweep = find_fits(pair, begin, Span(reach, turn, overlap), CANDIDATES, KEPT, tilt=tilt)
    apart = _keep_apart(fits, SAME * sweep.cell)
    share = _weigh_places(apart)
    listed = [
        Hypothesis(describe(apart[k], pair, begin), float(share[k]))
        for k in np.argsort(-share, kind="stable")
        if share[k] >= LEAST
    ]
    if (doubt := doubt_alignment(listed[0].alignment, sweep.tried)) is not None:
        raise doubt
    return Localisation(tuple(listed), sweep.tried)


def _middle_of(grid: GridMap) -> Floats:
    rows, cols = next(iter(grid.layers.values())).shape
    a, b, c, d, e, f = grid.transform
    return np.array([a * cols / 2 + b * rows / 2 + c, d * cols / 2 + e * rows / 2 + f])


def _reach_of(grid: GridMap, unit: Floats) -> float:
    """Return metres from the middle of a map to its corner."""
    rows, cols = next(iter(grid.layers.values())).shape
    a, b, _, d, e, _ = grid.transform
    return float(np.linalg.norm(unit * (abs(a) * cols + abs(b) * rows, abs(d) * cols + abs(e) * rows))) / 2


def _keep_apart(fits: list[Fit], distance: float) -> list[Fit]:
    """Return fits without those that came to the place of a better one."""
    kept: list[Fit] = []
    for fit in fits:
        places = (each.placement for each in kept)
        if not any(_is_same(fit, place.shift, place.heading, distance) for place in places):
            kept.append(fit)
    return kept


def _is_same(fit: Fit, shift: Floats, heading: float, distance: float) -> bool:
    turned = np.angle(np.exp(1j * (fit.placement.heading - heading)))
    near = np.linalg.norm((fit.placement.shift - shift)[:2]) < distance
    return bool(near and abs(turned) < np.radians(20.0))


def _weigh_places(fits: list[Fit]) -> Floats:
    """Return the probability (n,) of each place; the first is the best.

    Residuals are normal with one unknown variance: then the likelihood falls with the power of half of the
    independent residuals. Outliers count as much as the largest residual that is none.
    """
    best = fits[0]
    most = TUKEY * max(best.deviation, 1e-9)
    variance = np.array([_mean_square(fit.residual, most) for fit in fits])
    logs = -0.5 * count_independent(best) * np.log(variance / variance[0])
    share = np.exp(logs - logs.max())
    return share / share.sum()


def _mean_square(residual: Floats, most: float) -> float:
    known = residual[np.isfinite(residual)]
    off = np.minimum(np.abs(known - robust.median(known)), most)
    return max(float(np.mean(off**2)), 1e-18)
