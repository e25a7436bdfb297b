"""What a front end has to offer so that a `Mapper` can make a map of what it sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from transect.base.arrays import Floats, Ints
from transect.types.places import Observation


@dataclass(frozen=True, eq=False)
class Guess:
    """Where the graph believes a new place to be, seen from an old keyframe.

    Attributes
    ----------
    T_old_new : (4, 4) array
    covariance : (6, 6) array
        Of a small motion in the axes of the new body: m, then rad.
    """

    T_old_new: Floats
    covariance: Floats


@dataclass(frozen=True, eq=False)
class Loop:
    """A place that was seen before, verified by its geometry.

    Attributes
    ----------
    T_old_new : (4, 4) array
        Pose of the new body in the old one.
    covariance : (6, 6) array
        Of a small motion in the axes of the new body: m, then rad.
    score : float
        How well they fit, from 0 to 1; for people and for the choice among several.
    sure : bool
        Whether it may be believed. One that is not only tells that a keyframe fits there, too.
    """

    T_old_new: Floats
    covariance: Floats
    score: float
    sure: bool = True


class Recogniser(Protocol):
    """Knows places again. It sees bodies, not sensors: every transform is of the body."""

    def add(self, k: int, observation: Observation) -> None:
        """Remember what was seen from keyframe `k`; numbers grow, and places that were known are left out."""
        ...

    def candidates(self, observation: Observation, allowed: Ints) -> Sequence[int]:
        """Return keyframes that may show the same place, the best first.

        Parameters
        ----------
        allowed : (m,) int array
            Keyframes among which to look; those that are nearest by the graph come first.
        """
        ...

    def verify(self, old: int, observation: Observation, guess: Guess | None) -> Loop | None:
        """Return the motion from an old keyframe to what is seen now; None if the geometry does not bear it.

        Parameters
        ----------
        guess : Guess or None
            None if nothing is known, as in another session or for a robot that is lost.
        """
        ...
