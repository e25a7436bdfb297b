"""Torques, limits and currents without load against the spec's numbers (ida.md 4.9 to 4.11)."""

from dataclasses import replace

import numpy as np
import pytest

from transect.datasets.insight.robot.motor import (
    CurveForm,
    Motors,
    current_limits,
    no_load_current,
    torque,
    torque_constant,
)
from transect.datasets.insight.robot.parameters import MissingParameterError, Parameters
from transect.errors import TransectError

PRINTED = Parameters.printed()
MOTORS = Motors.of(PRINTED)
AMPERE_PER_COUNT = 0.00032143
"""SIS 5.1.3.2, current.m."""
WARM, COLD = np.full(4, 20.0), np.full(4, -55.0)


def test_the_current_limits_are_those_of_the_system_status():
    # SIS 5.1.1: sys_status.curr_limit = [ 172 325 273 190 ] mA; spec 4.10
    np.testing.assert_array_equal(np.rint(1e3 * current_limits(MOTORS)), [172, 325, 273, 190])


def test_the_torque_limits_leave_the_allowance_of_the_spec():
    # spec 4.10: current_limit - 1000 torque_limit / Ka = [35.3 51.2 35.1 19.9] mA
    allowance = 1e3 * (MOTORS.current_limit - MOTORS.torque_limit / torque_constant(MOTORS, COLD))
    np.testing.assert_allclose(allowance, [35.3, 51.2, 35.1, 19.9], atol=0.05)


def test_above_the_speed_of_the_detent_only_the_default_limit_holds():
    limits = current_limits(MOTORS, speed=[0.0, 0.01, -0.02, 0.01])
    np.testing.assert_allclose(limits, [0.1721, 0.26, 0.21, 0.19], atol=1e-4)


def test_a_negative_limit_is_computed_from_the_torque_limit_at_the_temperature():
    motors = replace(MOTORS, current_limit=np.array([-1e-3, 0.26, 0.21, 0.11]))
    with pytest.raises(TransectError, match="temperature"):
        current_limits(motors)
    # joint 1 at 20 C: (35 + 29.125) / 468.72 A and c_nl_0 + c_nl_1 exp(-c_nl_2 20) = 15.35 mA
    assert current_limits(motors, WARM)[0] == pytest.approx(0.13681 + 0.01535, abs=1e-5)
    assert current_limits(motors, WARM)[1] == current_limits(MOTORS)[1]


def test_currents_without_load_have_the_sizes_of_the_spec():
    # spec 4.11: 15/16/14/12 mA at +20 C and 25/31/28/18 mA at -55 C; c3 8/12/10/4 mA at full voltage
    np.testing.assert_allclose(1e3 * no_load_current(MOTORS, WARM, np.zeros(4)), [15, 16, 14, 12], atol=0.5)
    np.testing.assert_allclose(1e3 * no_load_current(MOTORS, COLD, np.zeros(4)), [25, 31, 28, 18], atol=0.5)
    full = no_load_current(MOTORS, COLD, np.full(4, -30.0)) - no_load_current(MOTORS, COLD, np.zeros(4))
    np.testing.assert_allclose(1e3 * full, [8, 12, 10, 4], atol=0.5)


def test_a_torque_worked_by_hand():
    # joint 2 at 20 C, 15 V: I_nl = 16.033 + 0.8571 exp(-1.04378) + 11.5545 / 2 = 22.1120 mA;
    # tau = (100 - 22.1120) mA x 574.79 N m/A = 44.7692 N m; joint 1 has the sign -1
    tau = torque(MOTORS, [0.1] * 4, WARM, [15.0] * 4)
    assert tau[1] == pytest.approx(44.7692, abs=1e-3)
    assert tau[0] < 0.0 < tau[2]


def test_currents_within_one_count_give_no_torque():
    tau = torque(
        MOTORS,
        np.array(
            [
                [0.0, AMPERE_PER_COUNT, -AMPERE_PER_COUNT, 2 * AMPERE_PER_COUNT],
                [-0.0003125, 0.0003214, 2 * AMPERE_PER_COUNT, -2 * AMPERE_PER_COUNT],
            ]
        ),
        COLD,
        COLD,
    )
    np.testing.assert_array_equal(tau == 0.0, [[True, True, True, False], [True, True, False, False]])


def test_the_current_without_load_is_subtracted_as_printed_or_along_the_current():
    printed = torque(MOTORS, [-0.1] * 4, WARM, [15.0] * 4)
    along = torque(MOTORS, [-0.1] * 4, WARM, [15.0] * 4, sense="along")
    assert printed[1] == pytest.approx(-(100 + 22.1120) * 0.57479, abs=1e-3)
    np.testing.assert_allclose(along, -torque(MOTORS, [0.1] * 4, WARM, [15.0] * 4))


def test_a_form_of_ones_own_is_used():
    motors = Motors.of(PRINTED, no_load=CurveForm(lambda c, t, v: c[0] * v, terms=1))
    np.testing.assert_allclose(
        no_load_current(motors, WARM, [30.0, 15.0, 0.0, -30.0]), [0.014134, 0.0080165, 0.0, 0.0054075]
    )


def test_a_form_that_needs_the_lost_coefficient_says_so():
    with pytest.raises(MissingParameterError, match="RA_TAU_PARAMS lacks c_nl_4"):
        Motors.of(PRINTED, no_load=CurveForm(lambda c, t, v: c[4] * t))


def test_a_polynomial_is_used_for_code_0_and_an_unknown_code_is_refused():
    sets = {"RA_TAU_PARAMS2": {"fit_ka": [0, 0, 1, 1], "c_ka_1": [2.0, 0.0, 0.0, 0.0]}}
    motors = Motors.of(Parameters.over_printed(sets))
    np.testing.assert_allclose(torque_constant(motors, WARM), [508.72, 574.79, 371.6, 116.53])
    with pytest.raises(TransectError, match="fit_nl is 7"):
        Motors.of(Parameters.over_printed({"RA_TAU_PARAMS": {"fit_nl": [2, 2, 7, 2]}}))
