"""Knows places again by clouds: registration from a guess, or by the relief where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import rotations, se3
from transect.types.places import Observation

from ..odometry.lidar_sweep import ASLANT
from ..registration.coarse_to_fine import Levels, Scales, prepare_levels, quality_of, refine
from ..registration.gicp import meet
from .lidar_relief import Relief, find_in, see_relief
from .place_recognition import Guess, Loop

NEAREST = 2
"""Places that are tried as they come, nearest by the graph first; the others by what they look like."""
SURE, SURE_TURN = 0.7, 0.1
"""Sigma, m and rad, up to which a guess begins a registration; beyond, the relief is asked first."""
LOST_REACH = 6.0
"""Metres around a keyframe in which a body is looked for of which nothing is known."""
COARSE = 3.0
"""Voxels along one of the coarse level."""
ITERATIONS = 40
LEAST_POINTS = 100
"""Of each of two clouds."""
PREPARED = 8
"""Places whose clouds are kept ready."""
LEAST_FITNESS, LEAST_HOLD = 0.6, 0.003
"""Share of the points that must lie on the old ones; weakest over strongest motion that they hold."""
MOST_PULL, MOST_TWIST = 1.0, 0.12
"""Metres and rad by which a registration may leave where it began."""
FLOOR = (0.015, 0.002)
"""Sigma, m and rad: the few scans that each of two keyframes is made of tremble by so much."""


@dataclass(frozen=True, eq=False)
class Place:
    """What was seen from a keyframe: points (n, 3) that were not met aslant, and the relief of all."""

    points: Floats
    relief: Relief


class LidarRecogniser:
    """Keeps the clouds of all keyframes.

    Parameters
    ----------
    edge : float
        Of the voxels to which clouds are thinned, metres.
    """

    def __init__(self, edge: float) -> None:
        self.edge, self.scales = edge, Scales(COARSE * edge, edge)
        self.places: dict[int, Place] = {}
        self._last: tuple[Observation, Place] | None = None
        self._prepared: dict[Place, Levels] = {}

    def add(self, k: int, observation: Observation) -> None:
        """Remember what was seen from keyframe `k`."""
        self.places[k] = self._place(observation)

    def _place(self, observation: Observation) -> Place:
        """Return the place of an observation; one is asked for several times in turn."""
        if self._last is None or self._last[0] is not observation:
            points = np.asarray(observation["points"], np.float64)
            steep = points[meet(points) >= ASLANT]
            self._last = observation, Place(steep, see_relief(points, self.edge))
        return self._last[1]

    def _prepare(self, place: Place) -> Levels:
        """Return a place's points as they are registered; neighbours on the way ask for the same places."""
        found = self._prepared.pop(place, None) or prepare_levels(place.points, self.scales)
        self._prepared[place] = found
        if len(self._prepared) > PREPARED:
            del self._prepared[next(iter(self._prepared))]
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> LidarRecogniser:
        # The library's clouds cannot be copied; places never change.
        copy = LidarRecogniser(self.edge)
        copy.places, copy._last = dict(self.places), self._last
        return copy

    def candidates(self, observation: Observation, allowed: Ints) -> Sequence[int]:
        """Return the nearest places that are allowed, then those that look most alike."""
        looks = self._place(observation).relief.looks
        rest = allowed[NEAREST:].tolist()
        alike = sorted(rest, key=lambda k: float(np.linalg.norm(self.places[k].relief.looks - looks)))
        near = allowed[:NEAREST].tolist()
        return [*near[:1], *alike[:1], *near[1:], *alike[1:]]

    def verify(self, old: int, observation: Observation, guess: Guess | None) -> Loop | None:
        """Return how the cloud lies on that of an old keyframe; None if it does not, or slides."""
        place = self._place(observation)
        begin = guess.T_old_new if guess is not None and is_near(guess) else None
        if begin is None:
            begin = find_in(self.places[old].relief, place.relief, LOST_REACH)
        return None if begin is None else self._register(self.places[old], place, begin)

    def _register(self, old: Place, new: Place, begin: Floats) -> Loop | None:
        if min(len(old.points), len(new.points)) < LEAST_POINTS:
            return None
        clouds = self._prepare(new), self._prepare(old)
        refined = refine(*clouds, begin, "GICP", self.scales, ITERATIONS)
        found, quality = refined.aligned, quality_of(refined)
        pulled = se3.log(se3.invert(begin) @ found.T_target_source)
        if not found.converged or quality.fitness < LEAST_FITNESS or quality.covariance is None:
            return None
        if (quality.degeneracy or 0.0) < LEAST_HOLD or not np.isfinite(quality.covariance).all():
            return None
        if np.linalg.norm(pulled[:3]) > MOST_PULL or np.linalg.norm(pulled[3:]) > MOST_TWIST:
            return None
        turn = np.kron(np.eye(2), found.T_target_source[:3, :3].T)
        spread = turn @ quality.covariance @ turn.T + np.diag(np.repeat(np.square(FLOOR), 3))
        return Loop(_tidy(found.T_target_source), (spread + spread.T) / 2, quality.fitness)


def is_near(guess: Guess) -> bool:
    """Tell whether a guess is sure enough to begin a registration with."""
    spread = np.sqrt(np.maximum(np.diag(guess.covariance), 0.0))
    return bool(np.linalg.norm(spread[:3]) < SURE and np.linalg.norm(spread[3:]) < SURE_TURN)


def _tidy(transform: Floats) -> Floats:
    """Return a transform (4, 4) whose rotation is one to the last bit that matters."""
    return se3.from_matrix(rotations.nearest_rotation(transform[:3, :3]), transform[:3, 3])
