"""Times without samples, found block by block."""

import numpy as np

from transect.recording.time_axis import find_gaps

NS_PER_MS = 1_000_000


def test_steps_longer_than_five_usual_ones_are_gaps_and_the_longest_are_told_in_order():
    times = np.cumsum([0, 10, 10, 200, 10, 10, 60, 10, 49, 10]) * NS_PER_MS
    found = find_gaps(times)
    assert found.number == 2
    assert found.longest == ((20 * NS_PER_MS, 200 * NS_PER_MS), (240 * NS_PER_MS, 60 * NS_PER_MS))
    assert find_gaps(times, most=1).longest == ((20 * NS_PER_MS, 200 * NS_PER_MS),)


def test_steps_back_and_across_a_seam_are_no_gaps():
    times = np.array([0, 10, 20, 30, 5000, 5010, 5020, 40, 50, 60]) * NS_PER_MS
    assert find_gaps(times).number == 1
    assert find_gaps(times, seams=(4,)).number == 0


def test_a_gap_between_two_blocks_is_found(monkeypatch):
    monkeypatch.setattr("transect.recording.arrow.BLOCK_ROWS", 4)
    times = np.concatenate([np.arange(9), 100 + np.arange(9)]) * NS_PER_MS
    assert find_gaps(times).longest == ((8 * NS_PER_MS, 92 * NS_PER_MS),)


def test_one_sample_or_equal_stamps_have_no_gaps():
    assert find_gaps(np.zeros(0, np.int64)).number == 0
    assert find_gaps(np.array([5])).number == 0
    assert find_gaps(np.full(50, 7)).number == 0
