"""Round numbers, labels of time, paths."""

import numpy as np
import pytest

from transect.base.clocks import NS
from transect.view.axes import TimeAxis
from transect.view.report.markup import path_of, round_ticks, tick_texts, time_ticks, value_range


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 10, [0, 5, 10]),
        (0, 1, [0, 0.5, 1.0]),
        (-3, 8, [0, 5]),
        (1e6, 1e6 + 1, [1e6, 1e6 + 0.5, 1e6 + 1]),
        (2, 2, []),
        (0, float("nan"), []),
    ],
)
def test_ticks_are_round_and_inside(low, high, ticks):
    assert round_ticks(low, high, 3) == pytest.approx(ticks)


def test_labels_have_as_many_digits_as_tell_them_apart():
    assert tick_texts([-0.57652, -0.57651]) == ["\u22120.57652", "\u22120.57651"]
    assert tick_texts([0.0, 0.5, 1.0]) == ["0.0", "0.5", "1.0"]
    assert tick_texts([0.0, 10.0, 20.0]) == ["0", "10", "20"]
    assert tick_texts([0.0, 2e9, 4e9]) == ["0e+00", "2e+09", "4e+09"]
    assert tick_texts([]) == []
    assert len(set(tick_texts(round_ticks(1e6, 1e6 + 0.01)))) == len(round_ticks(1e6, 1e6 + 0.01)) > 2


@pytest.mark.parametrize(
    ("low", "high"),
    [(1e16, 1e16 + 2), (1e16, 1e16 + 22), (-1.7e308, 1.7e308), (0.0, 5e-324), (0.0, 1e-310),
     (1.0, 1.0 + 4e-16), (-1e300, 1e300), (1e150, 1.1e150)],
)  # fmt: skip
def test_axes_of_any_numbers_have_different_ticks_or_none(low, high):
    ticks = round_ticks(low, high)
    assert ticks == sorted(set(ticks))
    assert all(low - abs(low) * 1e-9 <= tick <= high + abs(high) * 1e-9 for tick in ticks)
    assert len(set(tick_texts(ticks))) == len(ticks)


def axis(seconds: float, clock: str = "utc") -> TimeAxis:
    return TimeAxis("a", clock, 5 * NS, 5 * NS + round(seconds * NS))


def test_labels_of_time_are_seconds_minutes_hours_or_numbers_of_samples():
    assert time_ticks(axis(10.0))[1] == (2.0, "2 s")
    assert time_ticks(axis(1500.0))[1] == (300.0, "5 min")
    assert time_ticks(axis(36_000.0))[1] == (7200.0, "2 h")
    assert time_ticks(axis(100.0, "index"))[1] == (20.0, "20")
    assert time_ticks(axis(0.0)) == []


def test_what_is_not_known_interrupts_a_path():
    assert path_of([0, 1, np.nan, 3, 4], [0, 1, 2, 3, 4.25]) == "M0 0L1 1M3 3L4 4.2"
    assert path_of([], []) == ""


def test_the_spread_of_equal_or_unknown_values_is_not_nothing():
    assert value_range([np.array([2.0, 2.0])]) == (1.8, 2.2)
    assert value_range([np.array([np.nan])]) == (0.0, 1.0)
    assert value_range([np.array([1.0, np.nan]), np.array([-4.0])]) == (-4.0, 1.0)
