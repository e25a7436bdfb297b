"""Heights that are inconsistent with the terrain."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transect.algorithms.fusion.height_noise import HeightConsistency, HeightTest

NS = 1_000_000_000


def drive(
    heights: np.ndarray, *, std: float, pitch: float | None = 0.0, mounted: bool = True
) -> list[HeightTest]:
    """Drive a metre in a second for each height (n,), tilted by `pitch` (rad; None without an IMU)."""
    consistency, tests = HeightConsistency(), []
    force = 9.8 * np.array([-np.sin(pitch or 0.0), 0.0, np.cos(pitch or 0.0)])
    for i, height in enumerate(heights):
        for k in range(5):
            if pitch is not None:
                consistency.add_force((5 * i + k) * NS // 5, force, mounted=mounted)
        consistency.add_distance("wheels", 1.0)
        tests.append(consistency.test("fix", float(height), std))
    return tests


def test_falling_heights_on_level_ground_are_inconsistent():
    """As the Husky's receiver: 20 m within 20 m of driving, with a stated sigma of 1.7 m."""
    heights = np.concatenate([np.zeros(30), -np.arange(20.0), np.full(50, -20.0)])
    for mounted in (True, False):
        tests = drive(heights, std=1.7, mounted=mounted)
        first = next(i for i, each in enumerate(tests) if each.discrepancy)
        assert 30 < first < 52
        assert tests[first].note.startswith("fix: heights are implausible: they change by ")
        assert all(each.std == 1.7 for each in tests[:first])
        assert tests[-1].std > 10


def test_a_slope_is_consistent_only_if_the_imu_measures_the_tilt():
    climb = np.arange(60.0) * np.tan(0.4)
    assert not any(each.discrepancy for each in drive(climb, std=0.05, pitch=0.4))
    assert any(each.discrepancy for each in drive(climb, std=0.05, pitch=0.0))


def test_without_an_imu_a_steep_road_is_consistent_and_a_wall_is_not():
    assert not any(each.discrepancy for each in drive(np.arange(60.0) * 0.5, std=0.05, pitch=None))
    assert any(each.discrepancy for each in drive(np.arange(60.0) * 1.5, std=0.05, pitch=None))


def test_single_outliers_are_left_to_the_gate():
    heights = np.zeros(60)
    heights[[20, 21, 40]] = 30.0
    assert not any(each.discrepancy for each in drive(heights, std=0.5))


@given(st.lists(st.floats(-0.09, 0.09), min_size=10, max_size=60), st.integers(0, 9))
def test_slopes_below_the_limit_are_always_consistent(slopes: list[float], seed: int):
    noise = np.random.default_rng(seed).uniform(-1.5, 1.5, len(slopes))
    tests = drive(np.cumsum(slopes) + noise, std=1.0)
    assert not any(each.discrepancy for each in tests)
    assert all(each.std == 1.0 for each in tests)
