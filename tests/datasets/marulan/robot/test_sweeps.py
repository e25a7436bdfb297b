"""Interleaved scans to sweeps, by hand; whole recordings are in `tests/datasets/marulan/test_logs.py`."""

import numpy as np

from transect.robots.beams import interleave, sweep_starts

DEGREE = np.radians(1.0)
NS_PER_MS = 1_000_000


def test_four_starts_a_quarter_of_a_degree_apart_begin_a_sweep():
    phase = np.array([2, 3, 0, 1, 2, 3, 0, 1, 3, 0, 1, 2, 3])  # cut in at the front, and one scan missing
    t_ns = np.arange(len(phase)) * 13 * NS_PER_MS
    starts = sweep_starts(t_ns, phase * DEGREE / 4, np.full(13, DEGREE), np.full(13, 180))
    assert starts.tolist() == [2, 9]


def test_beams_of_four_scans_alternate():
    # 3.2.2: 181 beams from 0 to 180 degrees, then 180 from each of the three other starts; here 3 and 2.
    flat = np.array([10.0, 11, 12, 20, 21, 30, 31, 40, 41])
    ranges, ends = interleave(flat, np.array([0, 3, 5, 7, 9]), np.array([0]))
    assert ranges.tolist() == [10, 20, 30, 40, 11, 21, 31, 41, 12]
    assert ends.tolist() == [0, 9]
