"""The imu's deg/s and milli-g in SI."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from transect.datasets.rosario.robot.geometry import si_from_raw

THREE = hnp.arrays(np.float64, (3,), elements=st.floats(-2000, 2000))


def test_half_a_turn_a_second_and_one_g_by_hand() -> None:
    gyro, acc = si_from_raw([180.0, 0.0, -90.0], [0.0, 500.0, 1000.0])
    np.testing.assert_allclose(gyro, [np.pi, 0, -np.pi / 2])
    np.testing.assert_allclose(acc, [0, 4.903325, 9.80665])  # standard gravity


def test_offsets_are_in_the_logs_own_units_and_subtracted() -> None:
    # rosario_sample: gyro 7.125 deg/s with an offset of 7.0, acc 1001.75 milli-g with one of 1.75
    gyro, acc = si_from_raw([[0.0, 0.0, 7.125]], [[0.0, 0.0, 1001.75]], (0.0, 0.0, 7.0), (0.0, 0.0, 1.75))
    np.testing.assert_allclose(gyro, [[0, 0, 0.125 * np.pi / 180]])
    np.testing.assert_allclose(acc, [[0, 0, 9.80665]])


@given(THREE, THREE, THREE)
def test_an_imu_that_reads_its_offsets_is_at_rest(
    offset: np.ndarray, gyro: np.ndarray, acc: np.ndarray
) -> None:
    for raw in (gyro, acc):
        turned, pushed = si_from_raw(raw + offset, raw + offset, offset, offset)
        np.testing.assert_allclose(np.degrees(turned), raw, atol=1e-9)
        np.testing.assert_allclose(pushed / 9.80665e-3, raw, atol=1e-9)


def test_what_was_not_measured_stays_so() -> None:
    gyro, _ = si_from_raw([np.nan, 1.0, 2.0], [0.0, 0.0, 0.0])
    assert np.isnan(gyro).tolist() == [True, False, False]
