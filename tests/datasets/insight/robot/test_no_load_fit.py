"""Finding the current without load from torques: made here from known coefficients, without `motor`."""

from dataclasses import replace

import numpy as np
import pytest

from transect.datasets.insight.robot.motor import CurveForm, Motors, fit_no_load, torque
from transect.datasets.insight.robot.parameters import Parameters

PRINTED = Parameters.printed()
AMPERE_PER_COUNT = 0.00032143
"""SIS 5.1.3.2, current.m."""
TRUE = np.array([[0.012, 0.018, 0.014, 0.006], [0.003, 0.001, 0.0008, 0.007], [0.03, 0.05, 0.05, 0.008]])
"""c_nl_0 to c_nl_2 of the recording below; c_nl_3 is 0.009."""


def recording(sense: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Currents, torques, temperatures and voltages of arms that moved both ways."""
    rng = np.random.default_rng(7)
    t, v = rng.uniform(-70.0, 30.0, (3000, 4)), rng.uniform(-30.0, 30.0, (3000, 4))
    current = rng.choice([-1.0, 1.0], (3000, 4)) * rng.uniform(0.02, 0.2, (3000, 4))
    unloaded = TRUE[0] + TRUE[1] * np.exp(-TRUE[2] * t) + 0.009 * np.abs(v) / 30.0
    ka = np.array([468.72, 574.79, 371.6, 116.53])  # SIS 5.1.3.9, c_ka_0
    tau = [-1.0, 1.0, 1.0, 1.0] * (current - np.sign(current) ** sense * unloaded) * ka
    return current, np.round(tau, 4), t, v


@pytest.mark.parametrize(("sense", "power"), [("printed", 0), ("along", 1)])
def test_the_fit_finds_the_coefficients_and_the_sense(sense, power):
    fit = fit_no_load(*recording(power), PRINTED)
    assert fit.sense == sense
    np.testing.assert_allclose(fit.curve.coefficients[:3], TRUE, rtol=5e-3)
    np.testing.assert_allclose(fit.curve.coefficients[3], 0.009, rtol=1e-3)
    assert np.isnan(fit.curve.coefficients[4]).all()
    assert (fit.residual < 1e-6).all()
    assert (fit.rows == 3000).all()


def test_the_fit_tolerates_outliers():
    current, tau, t, v = recording(0)
    tau[::20] *= 3.0
    fit = fit_no_load(current, tau, t, v, PRINTED)
    x = np.array([[-55.0] * 4, [0.0] * 4]), np.array([[0.5] * 4, [0.0] * 4])
    truth = TRUE[0] + TRUE[1] * np.exp(-TRUE[2] * x[0]) + 0.009 * x[1]
    np.testing.assert_allclose(fit.curve(*x), truth, atol=AMPERE_PER_COUNT / 4)


def test_a_fitted_curve_makes_the_torques_again():
    current, tau, t, v = recording(0)
    motors = replace(Motors.of(PRINTED), no_load=fit_no_load(current, tau, t, v, PRINTED).curve)
    np.testing.assert_allclose(torque(motors, current, t, v), tau, atol=2e-3)


def test_a_joint_that_did_not_move_is_not_fitted():
    current, tau, t, v = recording(0)
    current[:, 2], tau[:, 2] = AMPERE_PER_COUNT, 0.0
    fit = fit_no_load(current, tau, t, v, PRINTED)
    assert fit.rows[2] == 0
    assert np.isnan(fit.curve.coefficients[:, 2]).all()
    assert np.isfinite(fit.curve.coefficients[:4, [0, 1, 3]]).all()


def test_one_temperature_and_voltage_do_not_determine_the_coefficients():
    current, _, t, v = recording(0)
    t[:], v[:] = -50.0, 20.0
    fit = fit_no_load(current, (current - 0.03) * 100.0, t, v, PRINTED)
    assert np.isinf(fit.deviations[:4]).all()


def test_a_form_of_ones_own_is_fitted():
    current, _, t, v = recording(0)
    tau = [-1.0, 1.0, 1.0, 1.0] * (current - 0.02 - 1e-4 * t) * [468.72, 574.79, 371.6, 116.53]
    fit = fit_no_load(current, tau, t, v, PRINTED, CurveForm(lambda c, t, v: c[0] + c[1] * t, terms=2))
    np.testing.assert_allclose(fit.curve.coefficients[:2], [[0.02] * 4, [1e-4] * 4], rtol=1e-6)


def test_currents_of_one_sign_leave_the_sense_as_printed():
    current, tau, t, v = recording(1)
    forwards = np.where(current > 0.0, tau, np.nan)
    fit = fit_no_load(current, forwards, t, v, PRINTED)
    assert fit.sense == "printed"
    np.testing.assert_array_equal(fit.rows, np.count_nonzero(current > 0.0, axis=0))
    np.testing.assert_allclose(fit.curve.coefficients[0], TRUE[0], rtol=5e-3)
