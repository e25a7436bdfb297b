"""Selection among loop closures of one keyframe to several places."""

from __future__ import annotations

import numpy as np
import pytest

from transect.algorithms.slam.loop_consistency import LoopCandidate, select_hypothesis
from transect.algorithms.slam.place_recognition import Loop


def candidate(x: float, score: float, sure: bool = True) -> LoopCandidate:
    T = np.eye(4)
    T[0, 3] = x
    return LoopCandidate(0, 9, Loop(T, np.eye(6), score, sure))


def is_consistent(first: LoopCandidate, second: LoopCandidate) -> bool:
    return abs(first.loop.T_old_new[0, 3] - second.loop.T_old_new[0, 3]) < 1.0


@pytest.mark.parametrize(("max_second_best_ratio", "count"), [(0.0, 0), (0.9, 2)])
def test_a_much_worse_place_is_no_contradiction_if_allowed(max_second_best_ratio: float, count: int) -> None:
    loops = [candidate(0.0, 0.8), candidate(6.0, 0.65), candidate(0.2, 0.95)]
    assert len(select_hypothesis(loops, is_consistent, max_second_best_ratio)) == count


def test_of_two_similar_places_none_is_accepted() -> None:
    assert select_hypothesis([candidate(0.0, 0.9), candidate(6.0, 0.88)], is_consistent, 0.9) == []
    assert select_hypothesis([], is_consistent, 0.9) == []


def test_an_unsure_loop_contradicts_and_is_not_accepted() -> None:
    best = candidate(0.0, 0.9)
    assert select_hypothesis([best, candidate(6.0, 0.9, sure=False)], is_consistent, 0.9) == []
    assert select_hypothesis([best, candidate(0.1, 0.95, sure=False)], is_consistent, 0.9) == [best]
