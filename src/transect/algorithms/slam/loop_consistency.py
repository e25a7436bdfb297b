"""Which verified loops are believed: those that the graph, or other loops, bear out.

A loop that is wrong bends the whole map, so that one that only looks right is not enough. It must fit the
graph within its uncertainty, or agree with another loop (pairwise consistency, Mangelson et al., ICRA 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import se3

from .place_recognition import Guess, Loop
from .pose_graph import PoseGraph, Relative

STILL = Guess(np.eye(4), np.zeros((6, 6)))
"""The motion from a keyframe to itself."""
MOST_WAITING = 100
"""Loops that may wait for another that agrees."""


class Found(NamedTuple):
    """A verified loop between two keyframes."""

    old: int
    new: int
    loop: Loop


@dataclass(frozen=True)
class LoopRules:
    """When a loop is believed.

    Attributes
    ----------
    probability : float
        Part of true loops that pass a test.
    lone : float
        Metres: where the graph is surer than this sigma, a loop that fits it needs no second one.
    votes : int
        Loops of different keyframes that must agree where the graph alone does not bear one out.
    beyond : bool
        Whether loops that contradict the graph are believed if enough of them agree.
    rival : float
        Part of the best loop's score from which on one of another place makes all of a keyframe doubtful.
    """

    probability: float = 0.999
    lone: float = 10.0
    votes: int = 2
    beyond: bool = True
    rival: float = 0.0


def limit_of(probability: float) -> float:
    """Return the squared sigmas that a motion's error stays below: chi-squared of six degrees of freedom."""
    from scipy.special import chdtri  # scipy.stats takes seconds to import

    return float(chdtri(6, 1.0 - probability))


def distance(residual: Floats, covariance: Floats) -> float:
    """Return the squared sigmas of a twist (6,)."""
    return float(residual @ np.linalg.solve(covariance, residual))


def misfit(loop: Loop, guess: Guess) -> float:
    """Return by how many squared sigmas a loop is off where the graph believes it to be."""
    residual = se3.log(se3.invert(guess.T_old_new) @ loop.T_old_new)
    return distance(residual, guess.covariance + loop.covariance)


def disagreement(first: Loop, second: Loop, old: Guess, new: Guess) -> float:
    """Return by how many squared sigmas two loops disagree, around the circle that they make.

    Parameters
    ----------
    first, second : Loop
        T_a1_b1 and T_a2_b2.
    old, new : Guess
        T_a1_a2 and T_b1_b2, as odometry or graph say.
    """
    one, other = old.T_old_new @ second.T_old_new, first.T_old_new @ new.T_old_new
    residual = se3.log(se3.invert(one) @ other)
    back = se3.invert(np.array([second.T_old_new, new.T_old_new]))
    moved = se3.transform_covariance(back, np.array([old.covariance, first.covariance]))
    return distance(residual, moved.sum(axis=0) + second.covariance + new.covariance)


def choose_place(found: Sequence[Found], agree: Callable[[Found, Found], bool], rival: float) -> list[Found]:
    """Return the loops of one keyframe that agree with the best of them; none if another place fits as well.

    Parameters
    ----------
    agree : callable
        Tells whether two loops say the same of where the keyframe is.
    rival : float
        See `LoopRules`.
    """
    if not found:
        return []
    best = max(found, key=lambda each: each.loop.score)
    agreeing = [each for each in found if each is best or agree(each, best)]
    others = [each for each in found if each not in agreeing]
    if any(each.loop.score >= rival * best.loop.score for each in others):
        return []
    return [each for each in agreeing if each.loop.sure]


@dataclass
class Judge:
    """Believes loops, or lets them wait for others that agree.

    Attributes
    ----------
    waiting : list of Found
    refused : int
        Loops that contradicted each other at one keyframe.
    """

    rules: LoopRules = field(default_factory=LoopRules)
    waiting: list[Found] = field(default_factory=list[Found])
    refused: int = 0

    def __post_init__(self) -> None:
        self._limit = limit_of(self.rules.probability)

    def judge(self, found: Sequence[Found], graph: PoseGraph) -> list[Found]:
        """Return the loops that are believed now: of those found at one keyframe, and those that waited."""
        chosen = choose_place(found, partial(self._agree, graph), self.rules.rival)
        self.refused += len(found) - len(chosen)
        if not chosen:
            return []
        relative = graph.relative(chosen[0].new)
        believed = [each for each in chosen if self._fits(each, relative)]
        for each in chosen:
            if each not in believed and self._may_wait(each, relative):
                believed += self._find_agreeing(each, graph, relative)
        self.waiting = [each for each in self.waiting if each not in believed][-MOST_WAITING:]
        return list(dict.fromkeys(believed))

    def _fits(self, found: Found, relative: Relative) -> bool:
        if not relative.known[found.old]:
            return False
        guess = guess_of(relative, found.old)
        sigma = np.sqrt(np.linalg.eigvalsh(guess.covariance[:3, :3])[-1])
        return bool(sigma <= self.rules.lone) and misfit(found.loop, guess) <= self._limit

    def _may_wait(self, found: Found, relative: Relative) -> bool:
        if self.rules.beyond or not relative.known[found.old]:
            return True
        return misfit(found.loop, guess_of(relative, found.old)) <= self._limit

    def _agree(self, graph: PoseGraph, found: Found, best: Found) -> bool:
        """Tell whether a loop says the same of where a keyframe is as the best one; as far as is known."""
        seen = graph.relative(best.old)
        if not seen.known[found.old]:
            return True
        return disagreement(found.loop, best.loop, guess_of(seen, found.old), STILL) <= self._limit

    def _find_agreeing(self, found: Found, graph: PoseGraph, relative: Relative) -> list[Found]:
        """Return a loop and those that agree with it, if they are enough; else let it wait."""
        seen = graph.relative(found.old)
        agreeing = [
            other
            for other in self.waiting
            if other.new != found.new
            and seen.known[other.old]
            and relative.known[other.new]
            and disagreement(other.loop, found.loop, guess_of(seen, other.old), guess_of(relative, other.new))
            <= self._limit
        ]
        if 1 + len({other.new for other in agreeing}) >= self.rules.votes:
            return [*agreeing, found]
        self.waiting.append(found)
        return []


def guess_of(relative: Relative, old: int) -> Guess:
    """Return where a keyframe is, seen from an old one."""
    return Guess(relative.T_i_k[old], relative.covariance[old])
