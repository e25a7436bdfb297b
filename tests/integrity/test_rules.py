"""The rules of verdicts, each as a property (the letters are those of the verdict model)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transect.integrity.rules import Declaration, declare, roll_up, score_of, state_of, tile, unite, worst
from transect.integrity.table import _region_of as region_of  # pyright: ignore[reportPrivateUsage]
from transect.integrity.table import region_text

NUMBERS = st.floats(-1e6, 1e6)
SCORES = st.one_of(st.none(), st.floats(0, 1))
STATES = st.sampled_from(["OK", "SUSPECT", "BAD", "UNKNOWN"])


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**6), st.integers(1, 10**5))
def test_windows_tile_the_session(start: int, length: int, window: int) -> None:
    edges = tile(start, start + length, window)
    assert (edges[0], edges[-1]) == (start, start + length)
    steps = np.diff(edges)
    assert (steps[:-1] == window).all()
    assert 0 < steps[-1] <= window


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
@example(1.0, 2.0, 0.0, 0.0)
def test_scores_fall_as_statistics_get_worse(a: float, b: float, warn: float, fail: float) -> None:
    low, high = sorted((a, b))
    better, worse = (low, high) if warn <= fail else (high, low)
    first, second = score_of(better, warn, fail), score_of(worse, warn, fail)
    assert first is not None
    assert second is not None
    assert 1.0 >= first >= second >= 0.0


@pytest.mark.parametrize(
    ("value", "score", "state"),
    [
        (3, 1.0, "OK"), (3.0001, 0.5, "SUSPECT"), (6.5, 0.25, "SUSPECT"),
        (8.7, 0.0929, "BAD"), (10, 0.0, "BAD"), (99, 0.0, "BAD"),
    ],
)  # fmt: skip
def test_a_score_is_one_up_to_warn_then_a_half_and_nothing_at_fail(
    value: float, score: float, state: str
) -> None:
    # integrity.md 2.1 (c): s = clip(1 - 0.5 * (1 + (x - w) / (f - w)), 0, 0.5) with w = 3, f = 10
    found = score_of(value, 3, 10)
    assert found == pytest.approx(score, abs=1e-4)
    assert state_of(found) == state
    assert score_of(-value, -3, -10) == found  # where little is bad, as for the bits of an image


def test_what_cannot_be_told_is_unknown_and_never_ok() -> None:
    assert score_of(math.nan, 1, 2) is None
    assert state_of(None) == "UNKNOWN"
    assert roll_up(["timing"], [None], ["UNKNOWN"], ["UNKNOWN"]).state == "UNKNOWN"
    assert roll_up([], [], [], []).state == "UNKNOWN"


@given(st.lists(STATES, max_size=30), st.integers(1, 4), st.integers(1, 4))
def test_bad_is_declared_after_windows_in_a_row_and_cleared_after_others(
    raws: list[str], k_on: int, k_off: int
) -> None:
    declared = declare(raws, k_on, k_off)  # pyright: ignore[reportArgumentType]
    known = [(raw, said) for raw, said in zip(raws, declared, strict=True) if raw != "UNKNOWN"]
    assert [index for index, each in enumerate(declared) if each == "UNKNOWN"] == [
        index for index, each in enumerate(raws) if each == "UNKNOWN"
    ]
    for at, (raw, said) in enumerate(known):
        before = [each for each, _ in known[: at + 1]]
        if before[-k_on:] == ["BAD"] * k_on:
            assert said == "BAD"
        elif len(before) >= k_off and "BAD" not in before[-k_off:]:
            assert said == raw
        elif said == "BAD" and at:  # it was declared before, and is not yet cleared
            assert known[at - 1][1] == "BAD"
        else:
            assert said == ("SUSPECT" if raw == "BAD" else raw)


def test_a_single_bad_window_is_suspect() -> None:
    assert declare(["OK", "BAD", "OK", "BAD", "BAD", "OK", "OK", "OK"]) == (
        ["OK", "SUSPECT", "OK", "SUSPECT", "BAD", "BAD", "BAD", "OK"]
    )
    counting = Declaration(k_on=1, k_off=1)
    assert [counting.declare("BAD"), counting.declare("OK")] == ["BAD", "OK"]


@given(st.lists(st.tuples(st.sampled_from(["timing", "signal", "cross"]), SCORES), max_size=8))
def test_a_roll_up_is_the_product_of_each_groups_smallest(checks: list[tuple[str, float | None]]) -> None:
    groups, scores = [group for group, _ in checks], [score for _, score in checks]
    states = [state_of(score) for score in scores]
    whole = roll_up(groups, scores, states, states)
    known = [(group, score) for group, score in checks if score is not None]
    if not known:
        assert (whole.score, whole.state) == (None, "UNKNOWN")
        return
    least = [min(s for g, s in known if g == group) for group in {g for g, _ in known}]
    assert whole.score == pytest.approx(math.prod(least))
    assert whole.state == worst(states)
    assert whole.at is None or scores[whole.at] == min(s for _, s in known)


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 3))
def test_regions_survive_as_text(flags: list[bool], rows: int) -> None:
    mask = np.tile(np.array(flags, np.bool_), (rows, 1))
    np.testing.assert_array_equal(region_of(region_text(mask)), mask)
    united = unite([mask, ~mask])
    assert united is not None
    assert united.all()
