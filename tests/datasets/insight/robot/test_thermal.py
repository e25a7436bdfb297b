"""The rotor temperatures of SIS 5.1.5 against the spec's numbers and a plain loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.datasets.insight.robot.motor import Rotors, rotor_temperature
from transect.datasets.insight.robot.parameters import Parameters
from transect.errors import GeometryError, TimeError

ROTORS = Rotors.of(Parameters.printed())
ROWS_PER_MINUTE = 600
"""Rows at 10 Hz."""


def constant(
    rows: int, current: float, volt: float, case: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.full((rows, 4), current), np.full((rows, 4), volt), np.full((rows, 4), case)


def plain_loop(
    current: np.ndarray, volt: np.ndarray, case: np.ndarray, turns: np.ndarray, step: np.ndarray
) -> np.ndarray:
    """The equations of SIS 5.1.5 as they stand, for one joint; numbers of RA_THERMAL, 5.1.3.29."""
    rotor, out = case[0], [case[0]]
    for k in range(1, len(current)):
        for _ in range(int(turns[k])):
            resistance = 42.0 * (1.0 + 0.00393 * (rotor - 20.0))
            heat_in = current[k] ** 2 * resistance + 0.008 * volt[k]
            heat_out = (rotor - case[k]) * 0.0885
            rotor += (heat_in - heat_out) * step[k] * 0.1014
        out.append(rotor)
    return np.array(out)


@pytest.mark.parametrize("mode", ["multiply", "divide"])
def test_both_modes_end_at_the_steady_state(mode):
    after_20_minutes = rotor_temperature(
        ROTORS, *constant(20 * ROWS_PER_MINUTE, 0.15, 20.0, -55.0), mode=mode
    )[-1]
    # (0.8707 + 0.16 - 4.8675) W / 0.084786 W/degC for 0.15 A, 20 V and a case at -55 degC
    np.testing.assert_allclose(after_20_minutes, -45.25, atol=0.06)


@pytest.mark.parametrize(("mode", "seconds"), [("multiply", 111.4), ("divide", 1.146)])
def test_without_current_a_rotor_cools_with_the_time_constant_of_the_spec(mode, seconds):
    # spec 4.12: 111 s multiplied (1 / (0.0885 x 0.1014)), 1.15 s divided (0.1014 / 0.0885)
    period = seconds / 1000.0
    cooled = rotor_temperature(
        ROTORS, *constant(1001, 0.0, 0.0, -50.0), initial=[50.0] * 4, mode=mode, period=period
    )
    np.testing.assert_allclose(cooled[-1], -50.0 + 100.0 / np.e, atol=0.1)


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 130))
def test_the_recurrence_is_the_plain_loop(seed, rows):
    rng = np.random.default_rng(seed)
    current, volt = rng.normal(0.0, 0.2, (rows, 4)), rng.uniform(-30.0, 30.0, (rows, 4))
    case = rng.uniform(-80.0, 30.0, (rows, 4))
    steps_ns = rng.integers(50_000_000, 900_000_000, rows)
    turns = np.maximum(np.rint(steps_ns * 1e-8), 1)
    ours = rotor_temperature(ROTORS, current, volt, case, times_ns=10**18 + np.cumsum(steps_ns))
    for j in range(4):
        peer = plain_loop(current[:, j], np.abs(volt[:, j]), case[:, j], turns, steps_ns * 1e-9 / turns)
        np.testing.assert_allclose(ours[:, j], peer, rtol=0, atol=1e-9)


def test_without_times_the_rows_are_a_tenth_of_a_second_apart():
    numbers = constant(50, 0.1, 10.0, -40.0)
    stamped = rotor_temperature(ROTORS, *numbers, times_ns=np.arange(50) * 100_000_000)
    np.testing.assert_allclose(rotor_temperature(ROTORS, *numbers), stamped, atol=1e-12)


def test_after_a_gap_the_rotor_starts_from_its_case():
    times = np.arange(40) * 100_000_000
    times[20:] += 11_000_000_000
    warm = rotor_temperature(ROTORS, *constant(40, 0.3, 30.0, -40.0), times_ns=times)
    assert (warm[19] > -39.5).all()  # 3.13 W for 1.9 s
    np.testing.assert_array_equal(warm[20], -40.0)
    np.testing.assert_allclose(warm[20:], warm[:20], atol=1e-12)
    longer = rotor_temperature(ROTORS, *constant(40, 0.3, 30.0, -40.0), times_ns=times, gap=12.0)
    assert (longer[20] > warm[19]).all()


def test_a_row_that_was_not_measured_is_nan_and_its_time_is_made_up_for():
    current, volt, case = constant(30, 0.2, 20.0, -30.0)
    current[10:13, 1] = np.nan
    with_hole, whole = (
        rotor_temperature(ROTORS, current, volt, case),
        rotor_temperature(ROTORS, *constant(30, 0.2, 20.0, -30.0)),
    )
    assert np.isnan(with_hole[10:13, 1]).all()
    assert np.isnan(with_hole).sum() == 3
    np.testing.assert_allclose(with_hole[13:], whole[13:], atol=1e-12)


def test_a_joint_measured_late_starts_from_its_case_then():
    current, volt, case = constant(5, 0.2, 20.0, -30.0)
    case[:3, 2] = np.nan
    result = rotor_temperature(ROTORS, current, volt, case, initial=[-10.0] * 4)
    np.testing.assert_array_equal(result[0], [-10.0, -10.0, np.nan, -10.0])
    assert result[3, 2] == -10.0
    assert result[4, 2] != -10.0


def test_no_rows_give_no_temperatures():
    assert rotor_temperature(ROTORS, *constant(0, 0.0, 0.0, 0.0), times_ns=np.zeros(0, np.int64)).shape == (
        0,
        4,
    )


def test_times_that_do_not_fit_are_refused():
    numbers = constant(3, 0.1, 10.0, -40.0)
    with pytest.raises(GeometryError, match="time decreases"):
        rotor_temperature(ROTORS, *numbers, times_ns=np.array([0, 2, 1]))
    with pytest.raises(TimeError, match="2 times for 3 rows"):
        rotor_temperature(ROTORS, *numbers, times_ns=np.array([0, 2]))
    with pytest.raises(TimeError, match="period"):
        rotor_temperature(ROTORS, *numbers, period=0.0)
