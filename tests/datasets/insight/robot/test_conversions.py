"""Conversions between raw counts and SI units, with the numbers that the SIS prints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.datasets.insight.robot.conversions import (
    angle_from_encoder,
    encoder_from_angle,
    pot_from_angle,
    raw_from_current,
    raw_from_temperature,
)
from transect.datasets.insight.robot.parameters import Parameters
from transect.errors import GeometryError, ParseError

SIS = Parameters.printed()
NAN = np.nan


def test_a_count_of_1000_is_at_a_limit_of_every_joint() -> None:
    # ida.md 4.7; SIS 5.1.3.2: q_max of joint 1, whose gear ratio is negative, and q_min of the others.
    angle = angle_from_encoder([1000, 1000, 1000, 1000], SIS)
    np.testing.assert_allclose(angle, [1.4585, -2.3953, -0.4324, -0.1742], atol=5e-5)


def test_one_encoder_count_by_hand() -> None:
    # Half a turn of the motor a count, divided by the gear: 3.1416 / 10000 on joint 3.
    step = angle_from_encoder([1001, 1001, 1001, 1001], SIS) - angle_from_encoder([1000] * 4, SIS)
    np.testing.assert_allclose(step, [-2.51328e-4, 1.9635e-4, 3.1416e-4, 7.854e-4], rtol=1e-9)


def test_the_second_potentiometer_of_table_12_is_a_whole_reading() -> None:
    # ida.md 4.8: pot2 -1.9224 rad is 857.997; pot1 -2.8391 is 3335.62, of another pot.b.
    raw = pot_from_angle([-2.8391, -1.9224, NAN, NAN], SIS, rounded=False)
    np.testing.assert_allclose(raw[:2], [3335.62, 857.997], atol=0.005)
    assert pot_from_angle([0.0, -1.9224, 0.0, 0.0], SIS)[1] == 858


def test_the_temperatures_of_the_arm_status_are_whole_readings() -> None:
    # SIS 5.1.1, ra_status.jnt.temp: (2642 - 2525) * 0.2266 = 26.512, and so on.
    printed = [26.512, 26.656, 28.098, 28.538]
    raw = raw_from_temperature(printed, SIS, rounded=False)
    np.testing.assert_allclose(raw, [2642, 2643, 2649, 2650], atol=0.003)


def test_the_grapple_is_the_fifth_temperature() -> None:
    # ida.md 4.8: grapple 99.5 C is 835.97, with temp.b 613.327 and temp.m 0.4469.
    raw = raw_from_temperature([NAN, NAN, NAN, NAN, 99.5], SIS, rounded=False)
    assert raw[4] == pytest.approx(835.97, abs=0.005)
    assert np.isnan(raw[:4]).all()


def test_no_current_is_2048_counts_of_a_third_of_a_milliampere() -> None:
    # ida.md 4.9: I_M (I_H - I_B); the parameter file's LSB is 0.32143 mA.
    assert raw_from_current([0.032143, -0.032143, 0.0, NAN], SIS)[:3].tolist() == [2148, 1948, 2048]


ANGLES = st.lists(st.floats(-4.0, 4.0), min_size=4, max_size=4)


@given(angle=ANGLES)
def test_an_angle_survives_a_whole_count_to_half_of_it(angle: list[float]) -> None:
    counts = encoder_from_angle(angle, SIS)
    assert np.array_equal(counts, np.round(counts))
    error = np.abs(angle_from_encoder(counts, SIS) - angle)
    resolution = np.array(
        [2.51328e-4, 1.9635e-4, 3.1416e-4, 7.854e-4]
    )  # rad_per_enc / gear_ratio, SIS 5.1.3.2
    assert (error <= 0.5 * resolution + 1e-12).all()


@given(raw=st.lists(st.integers(0, 4095), min_size=4, max_size=4))
def test_encoder_counts_survive_the_conversion_to_angles(raw: list[int]) -> None:
    assert encoder_from_angle(angle_from_encoder(raw, SIS), SIS).tolist() == raw


def test_many_rows_and_missing_ones_go_through() -> None:
    counts = np.array([[[1000.0] * 4, [NAN, 1000, 1000, 1000]]])
    angle = angle_from_encoder(counts, SIS)
    assert angle.shape == (1, 2, 4)
    assert np.isnan(angle[0, 1, 0])
    assert np.isfinite(angle).sum() == 7


def test_a_slope_of_zero_in_a_file_is_refused_by_name() -> None:
    bad = Parameters.over_printed({"RA_JOINT_PARAMS": {"pot.m": (1.0, 0.0, 1.0, 1.0)}})
    with pytest.raises(ParseError, match="channel 2 of the potentiometers"):
        pot_from_angle([0, 0, 0, 0], bad)
    bad = Parameters.over_printed({"RA_JOINT_PARAMS": {"gear_ratio": (0, 16000, 10000, 4000)}})
    with pytest.raises(ParseError, match="channel 1 of the encoders"):
        encoder_from_angle([0, 0, 0, 0], bad)


def test_the_wrong_number_of_channels_is_refused() -> None:
    with pytest.raises(GeometryError, match=r"\(..., 4\)"):
        angle_from_encoder([1, 2, 3], SIS)
    with pytest.raises(GeometryError, match="without the grapple"):
        raw_from_temperature([1, 2, 3], SIS)
