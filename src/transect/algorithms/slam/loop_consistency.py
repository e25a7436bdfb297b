"""Selection of consistent loops among the verified ones.

A wrong loop deforms the whole map, and geometric verification alone does not exclude it. A loop must agree
with the graph within its uncertainty, or with other loops (pairwise consistency, Mangelson et al., ICRA
2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import se3

from .place_recognition import Loop, LoopSettings, PosePrior
from .pose_graph import PoseGraph, RelativePoses

ZERO_MOTION = PosePrior(np.eye(4), np.zeros((6, 6)))


class LoopCandidate(NamedTuple):
    """A verified loop between two keyframes."""

    old: int
    new: int
    loop: Loop


def chi2_threshold(probability: float) -> float:
    """Return the quantile of the chi-squared distribution with six degrees of freedom."""
    from scipy.special import chdtri  # scipy.stats takes seconds to import

    return float(chdtri(6, 1.0 - probability))


def squared_mahalanobis(residual: Floats, covariance: Floats) -> float:
    """Return the squared Mahalanobis distance of a twist (6,)."""
    return float(residual @ np.linalg.solve(covariance, residual))


def prior_chi2(loop: Loop, prior: PosePrior) -> float:
    """Return the squared Mahalanobis distance of a loop from its predicted pose."""
    residual = se3.log(se3.invert(prior.T_old_new) @ loop.T_old_new)
    return squared_mahalanobis(residual, prior.covariance + loop.covariance)


def cycle_chi2(first: Loop, second: Loop, old: PosePrior, new: PosePrior) -> float:
    """Return the squared Mahalanobis distance of the error around the cycle of two loops.

    Parameters
    ----------
    first, second : Loop
        T_a1_b1 and T_a2_b2.
    old, new : PosePrior
        T_a1_a2 and T_b1_b2, by odometry or the graph.
    """
    around_old, around_new = old.T_old_new @ second.T_old_new, first.T_old_new @ new.T_old_new
    residual = se3.log(se3.invert(around_old) @ around_new)
    T_new_old = se3.invert(np.array([second.T_old_new, new.T_old_new]))
    covariances = se3.transform_covariance(T_new_old, np.array([old.covariance, first.covariance]))
    return squared_mahalanobis(residual, covariances.sum(axis=0) + second.covariance + new.covariance)


def select_hypothesis(
    candidates: Sequence[LoopCandidate],
    is_consistent: Callable[[LoopCandidate, LoopCandidate], bool],
    max_second_best_ratio: float,
) -> list[LoopCandidate]:
    """Return the loops of one keyframe that are consistent with the best; none if it is ambiguous.

    Parameters
    ----------
    is_consistent : callable
        Whether two loops imply the same pose of the keyframe.
    max_second_best_ratio : float
        See `LoopSettings`.
    """
    if not candidates:
        return []
    best = max(candidates, key=lambda each: each.loop.score)
    consistent = [each for each in candidates if each is best or is_consistent(each, best)]
    others = [each for each in candidates if each not in consistent]
    if any(each.loop.score >= max_second_best_ratio * best.loop.score for each in others):
        return []
    return [each for each in consistent if each.loop.sure]


@dataclass
class LoopSelector:
    """Accepts loops; others are pending until enough loops are consistent with them."""

    settings: LoopSettings = field(default_factory=LoopSettings)
    pending: list[LoopCandidate] = field(default_factory=list[LoopCandidate])
    rejected: int = 0  # loops that contradicted each other at one keyframe

    def __post_init__(self) -> None:
        self._threshold = chi2_threshold(self.settings.probability)

    def select(self, candidates: Sequence[LoopCandidate], graph: PoseGraph) -> list[LoopCandidate]:
        """Return the loops that are accepted now, given the candidates of one keyframe."""
        chosen = select_hypothesis(
            candidates, partial(self._is_consistent, graph), self.settings.max_second_best_ratio
        )
        self.rejected += len(candidates) - len(chosen)
        if not chosen:
            return []
        relative = graph.relative(chosen[0].new)
        accepted = [each for each in chosen if self._agrees_with_graph(each, relative)]
        for each in chosen:
            if each not in accepted and self._can_be_pending(each, relative):
                accepted += self._find_consistent(each, graph, relative)
        self.pending = [each for each in self.pending if each not in accepted][-self.settings.max_pending :]
        return list(dict.fromkeys(accepted))

    def _agrees_with_graph(self, candidate: LoopCandidate, relative: RelativePoses) -> bool:
        if not relative.connected[candidate.old]:
            return False
        prior = prior_of(relative, candidate.old)
        sigma = np.sqrt(np.linalg.eigvalsh(prior.covariance[:3, :3])[-1])
        return (
            bool(sigma <= self.settings.max_lone_sigma_m)
            and prior_chi2(candidate.loop, prior) <= self._threshold
        )

    def _can_be_pending(self, candidate: LoopCandidate, relative: RelativePoses) -> bool:
        if self.settings.accept_contradictions or not relative.connected[candidate.old]:
            return True
        return prior_chi2(candidate.loop, prior_of(relative, candidate.old)) <= self._threshold

    def _is_consistent(self, graph: PoseGraph, candidate: LoopCandidate, best: LoopCandidate) -> bool:
        """Return whether a loop implies the same pose of a keyframe as the best one, as far as is known."""
        from_old = graph.relative(best.old)
        if not from_old.connected[candidate.old]:
            return True
        return (
            cycle_chi2(candidate.loop, best.loop, prior_of(from_old, candidate.old), ZERO_MOTION)
            <= self._threshold
        )

    def _find_consistent(
        self, candidate: LoopCandidate, graph: PoseGraph, relative: RelativePoses
    ) -> list[LoopCandidate]:
        """Return a loop and those consistent with it, if they are enough; else make it pending."""
        from_old = graph.relative(candidate.old)
        consistent = [
            other
            for other in self.pending
            if other.new != candidate.new
            and from_old.connected[other.old]
            and relative.connected[other.new]
            and cycle_chi2(
                other.loop, candidate.loop, prior_of(from_old, other.old), prior_of(relative, other.new)
            )
            <= self._threshold
        ]
        if 1 + len({other.new for other in consistent}) >= self.settings.min_votes:
            return [*consistent, candidate]
        self.pending.append(candidate)
        return []


def prior_of(relative: RelativePoses, old: int) -> PosePrior:
    """Return the predicted pose of a keyframe in the frame of an old one."""
    return PosePrior(relative.T_i_k[old], relative.covariance[old])
