"""Loops of one keyframe that name several places."""

from __future__ import annotations

import numpy as np
import pytest

from transect.algorithms.slam.loop_consistency import Found, choose_place
from transect.algorithms.slam.place_recognition import Loop


def found(place: float, score: float, sure: bool = True) -> Found:
    T = np.eye(4)
    T[0, 3] = place
    return Found(0, 9, Loop(T, np.eye(6), score, sure))


def agree(one: Found, other: Found) -> bool:
    return abs(one.loop.T_old_new[0, 3] - other.loop.T_old_new[0, 3]) < 1.0


@pytest.mark.parametrize(("rival", "kept"), [(0.0, 0), (0.9, 2)])
def test_a_place_that_fits_far_worse_is_no_rival_where_the_rules_say_so(rival: float, kept: int) -> None:
    loops = [found(0.0, 0.8), found(6.0, 0.65), found(0.2, 0.95)]
    assert len(choose_place(loops, agree, rival)) == kept


def test_of_two_places_that_fit_alike_none_is_believed() -> None:
    assert choose_place([found(0.0, 0.9), found(6.0, 0.88)], agree, 0.9) == []
    assert choose_place([], agree, 0.9) == []


def test_a_loop_that_is_not_sure_contradicts_and_is_not_believed() -> None:
    sure = found(0.0, 0.9)
    assert choose_place([sure, found(6.0, 0.9, sure=False)], agree, 0.9) == []
    assert choose_place([sure, found(0.1, 0.95, sure=False)], agree, 0.9) == [sure]
