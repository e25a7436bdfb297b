"""The current without load, found from a recording: its form is not in the SIS, and c_nl_4 was lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.geometry import robust
from transect.geometry._arrays import floats

from .motor import TERMS, Curve, Form, Motors, Sense, is_idle, torque_constant
from .parameters import Parameters

__all__ = ["NoLoadFit", "fit_no_load"]


@dataclass(frozen=True, eq=False)
class NoLoadFit:
    """Currents without load as a recording has them.

    Attributes
    ----------
    curve : Curve
        The form with the coefficients found, (5, 4); NaN for a joint that did not move. For use:
        ``dataclasses.replace(motors, no_load=fit.curve)``.
    deviations : (5, 4)
        Standard deviations of the coefficients; infinite where the rows do not determine them.
    residual : (4,)
        What the curve leaves, A: scaled median absolute deviation.
    rows : (4,)
        How many rows were used.
    sense : str
        Whether the torques were made by subtracting I_nl as printed or along the current; see `motor`.
    """

    curve: Curve
    deviations: Floats
    residual: Floats
    rows: Ints
    sense: Sense


def fit_no_load(
    current: ArrayLike,
    tau: ArrayLike,
    temperature: ArrayLike,
    volt: ArrayLike,
    parameters: Parameters,
    form: Form | None = None,
) -> NoLoadFit:
    """Find the current without load from torques that the flight software computed.

    Each row gives it, ``I_nl = I - tau / (sign Ka)``; a form is fitted to it by least squares with a loss
    (soft L1 from one count on) that a few wild rows cannot spoil. Rows without torque tell nothing.

    Parameters
    ----------
    current, tau, temperature, volt : (n, 4)
        Motor currents (A), torques (N m), rotor temperatures (degC) and motor voltages (V).
    parameters : Parameters
        Torque constants, and where to start.
    form : Form, optional
        What to fit, instead of the forms that `fit_nl` names.
    """
    motors = Motors.of(parameters)
    i, torques, t, v = (floats("rows", values, ("n", 4)) for values in (current, tau, temperature, volt))
    unloaded = i - torques / (motors.sign * torque_constant(motors, t))
    known = np.isfinite(unloaded + v) & (torques != 0.0) & ~is_idle(motors, i)
    sense: Sense = "along" if robust.median(unloaded[known & (i < 0.0)]) < 0.0 else "printed"
    if sense == "along":
        unloaded = unloaded * np.sign(i)
    forms = (form,) * 4 if form else motors.no_load.forms
    found, deviations = np.full((TERMS, 4), np.nan), np.full((TERMS, 4), np.inf)
    residual = np.full(4, np.nan)
    for j, each in enumerate(forms):
        rows = known[:, j]
        if np.count_nonzero(rows) < each.terms:
            continue
        x, y = (t[rows, j], np.abs(v[rows, j]) / motors.volt_max[j]), unloaded[rows, j]
        start = np.nan_to_num(motors.no_load.coefficients[: each.terms, j])
        best, deviation, left = _regression(each, start, x, y, motors.ampere_per_count[j])
        found[: each.terms, j], deviations[: each.terms, j], residual[j] = best, deviation, left
    return NoLoadFit(Curve(forms, found), deviations, residual, np.count_nonzero(known, axis=0), sense)


def _regression(
    form: Form, start: Floats, x: tuple[Floats, Floats], y: Floats, count: float
) -> tuple[Floats, Floats, float]:
    """Coefficients, their deviations, and what they leave of `y`; all in A."""
    from scipy.optimize import least_squares

    def misfit(c: Floats) -> Floats:
        return form.evaluate(c, *x) - y

    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # steps to where an exponential overflows are taken back
        result = least_squares(
            misfit, start, loss="soft_l1", f_scale=count, x_scale="jac", xtol=1e-12, ftol=1e-12
        )
    best = np.asarray(result.x, dtype=np.float64)
    left = float(robust.nmad(misfit(best)))
    return best, _deviations(np.asarray(result.jac, dtype=np.float64), left), left


def _deviations(jacobian: Floats, noise: float) -> Floats:
    """Standard deviations of coefficients; all infinite if some are not determined."""
    size = np.linalg.norm(jacobian, axis=0)
    if not (size > 0.0).all() or np.linalg.cond(jacobian / size) > 1e6:
        return np.full(len(size), np.inf)
    normal = jacobian / size
    return noise * np.sqrt(np.diag(np.linalg.inv(normal.T @ normal))) / size
