"""Heights that no ground explains."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transect.algorithms.fusion.height_noise import Height, Heights

NS = 1_000_000_000


def drive(
    heights: np.ndarray, *, std: float, pitch: float | None = 0.0, mounted: bool = True
) -> list[Height]:
    """Drive a metre in a second for each height (n,), tilted by `pitch` (rad; None without an IMU)."""
    watch, said = Heights(), []
    force = 9.8 * np.array([-np.sin(pitch or 0.0), 0.0, np.cos(pitch or 0.0)])
    for i, height in enumerate(heights):
        for k in range(5):
            if pitch is not None:
                watch.lean((5 * i + k) * NS // 5, force, mounted=mounted)
        watch.move("wheels", 1.0)
        said.append(watch.judge("fix", float(height), std))
    return said


def test_a_receiver_that_falls_on_level_ground_is_not_believed_from_then_on():
    """As the Husky's: 20 m within 20 m of way, of which it says that they are right within 1.7 m."""
    fall = np.concatenate([np.zeros(30), -np.arange(20.0), np.full(50, -20.0)])
    for mounted in (True, False):
        told = drive(fall, std=1.7, mounted=mounted)
        first = next(i for i, each in enumerate(told) if each.doubt)
        assert 30 < first < 52
        assert told[first].note.startswith("fix: heights are not believable: they change by ")
        assert all(each.std == 1.7 for each in told[:first])
        assert told[-1].std > 10


def test_a_slope_that_the_imu_feels_is_believed_and_the_same_heights_on_level_ground_are_not():
    climb = np.arange(60.0) * np.tan(0.4)
    assert not any(each.doubt for each in drive(climb, std=0.05, pitch=0.4))
    assert any(each.doubt for each in drive(climb, std=0.05, pitch=0.0))


def test_without_an_imu_a_steep_road_is_believed_and_a_wall_is_not():
    assert not any(each.doubt for each in drive(np.arange(60.0) * 0.5, std=0.05, pitch=None))
    assert any(each.doubt for each in drive(np.arange(60.0) * 1.5, std=0.05, pitch=None))


def test_an_outlier_is_left_to_the_gate():
    heights = np.zeros(60)
    heights[[20, 21, 40]] = 30.0
    assert not any(each.doubt for each in drive(heights, std=0.5))


@given(st.lists(st.floats(-0.09, 0.09), min_size=10, max_size=60), st.integers(0, 9))
def test_ground_that_is_less_steep_than_allowed_is_never_doubted(slopes: list[float], seed: int):
    noise = np.random.default_rng(seed).uniform(-1.5, 1.5, len(slopes))
    told = drive(np.cumsum(slopes) + noise, std=1.0)
    assert not any(each.doubt for each in told)
    assert all(each.std == 1.0 for each in told)
