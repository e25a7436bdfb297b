"""Satellite fixes: their place, their types, and errors of the size that is claimed."""

import numpy as np
import pytest

from transect.errors import UsageError
from transect.geometry import geodesy
from transect.simulation import instruments
from transect.simulation.instruments import FixSchedule
from transect.simulation.motion import Motion

ORIGIN = np.array([np.radians(37.72351), np.radians(15.00668), 2639.838])
"""AMEDS section 5.2."""


def antenna(seconds: float = 20.0, rate: float = 10.0) -> Motion:
    t_ns = (np.arange(round(seconds * rate)) * round(1e9 / rate)).astype(np.int64)
    position = np.outer(t_ns * 1e-9, [0.5, 0.2, 0.01]) + np.array([10.0, -20.0, 3.0])
    zeros = np.zeros_like(position)
    return Motion(t_ns, position, np.tile([0.0, 0, 0, 1], (len(t_ns), 1)), zeros, zeros, zeros)


def errors(seed: int, coverage: FixSchedule, motion: Motion) -> np.ndarray:
    """North, east, down (n, 3), m."""
    columns = instruments.fixes(motion, ORIGIN, coverage, seed)
    found = np.column_stack([columns[name] for name in ("lat", "lon", "alt")])
    ned = geodesy.local_from_geodetic(found, ORIGIN, "NED")
    return ned - geodesy.change_axes(motion.position, "ENU", "NED")


def test_rtk_errors_are_white_and_of_the_deviation_of_table_1() -> None:
    motion = antenna(30.0)
    scaled = np.concatenate([errors(s, FixSchedule(), motion) for s in range(3)]) / [0.008, 0.008, 0.015]
    # Chi-square with 3 x 300 x 3 = 2700 degrees, 99.9 %.
    assert 2464 < (scaled**2).sum() < 2948
    assert abs(np.corrcoef(scaled[:299, 0], scaled[1:300, 0])[0, 1]) < 0.2


def test_errors_of_single_fixes_wander() -> None:
    motion = antenna(20.0)
    runs = np.array([errors(s, FixSchedule("3d"), motion) for s in range(80)]) / [1.2, 1.2, 2.0]
    # At each end the errors of 80 days have the deviation of the type: chi-square with 240 degrees.
    for end in (0, -1):
        assert 172 < (runs[:, end] ** 2).sum() < 318
    within = runs - runs.mean(axis=1, keepdims=True)
    assert within.std() < 0.6 * runs.std()
    kept = np.exp(-(motion.t_ns[1] - motion.t_ns[0]) * 1e-9 / 60.0)
    assert np.corrcoef(runs[:, 0, 0], runs[:, 1, 0])[0, 1] == pytest.approx(kept, abs=0.02)


def test_outages_have_no_position_and_say_so() -> None:
    coverage = FixSchedule("rtk fixed", [(5.0, 8.0, "rtk float"), (10.0, 12.0, "none")])
    columns = instruments.fixes(antenna(), ORIGIN, coverage, seed=1)
    fix = np.array(columns["fix"])
    assert (fix[50:80] == "rtk float").all()
    assert (fix[100:120] == "none").all()
    assert (np.delete(fix, np.r_[50:80, 100:120]) == "rtk fixed").all()
    assert np.isnan(columns["lat"]).tolist() == (fix == "none").tolist()
    assert np.isnan(columns["std_north"]).tolist() == (fix == "none").tolist()
    assert columns["satellites"][100] == 0
    assert columns["satellites"][0] > 5
    assert columns["std_east"][55] > 10 * columns["std_east"][0]


def test_an_outage_does_not_change_the_fixes_around_it() -> None:
    whole = instruments.fixes(antenna(), ORIGIN, FixSchedule(), seed=1)
    broken = instruments.fixes(antenna(), ORIGIN, FixSchedule(except_in=[(5.0, 8.0, "none")]), seed=1)
    assert np.array_equal(whole["lat"][80:], broken["lat"][80:])


def test_an_unknown_fix_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="rtk fxed"):
        instruments.fixes(antenna(), ORIGIN, FixSchedule("rtk fxed"), seed=1)
