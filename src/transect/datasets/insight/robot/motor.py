"""Motors: joint torques from currents, no-load currents, current limits and rotor temperatures.

Signs (SIS appendix D): ``tau_i = sign_i (I_i - I_nl_i) Ka_i`` with sign = {-1, 1, 1, 1}. Currents are signed
(the offset is in the middle of the converter's range, and Table 12 shows a torque of -41 N m, more than that
of I_nl alone). As printed, I_nl is subtracted without a sign; friction would have the sign of the current.
`sense="printed"` is the former and the default, `sense="along"` the latter; `fit_no_load` determines which of
them a recording was made with. Torques act on the joint; the power of the motor (bits 0 to 3 of `stat`) is
used only in `statics.end_effector_forces`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import TimeError, TransectError
from transect.geometry import robust
from transect.geometry.array_checks import check_times_ns, floats
from transect.robots import load

from .parameters import Parameters

Sense = Literal["printed", "along"]
MAX_COEFFICIENTS = 5
"""Coefficients of a curve: c_nl_0 to c_nl_4, c_ka_0 to c_ka_4."""


class CurveForm(NamedTuple):
    """Functional form of a curve."""

    # ``evaluate(c, temperature, voltage)`` with c (terms,), temperatures (...) in degC and voltages (...)
    # relative to `mtr_volt_max`; returns A, or N m/A, (...)
    evaluate: Callable[[Floats, Floats, Floats], Floats]
    terms: int = MAX_COEFFICIENTS  # number of coefficients, from the first on


def _polynomial(c: Floats, temperature: Floats, voltage: Floats) -> Floats:
    return np.asarray(np.polynomial.polynomial.polyval(temperature, c), dtype=np.float64)


def _exponential(c: Floats, temperature: Floats, voltage: Floats) -> Floats:
    return c[0] + c[1] * np.exp(-c[2] * temperature)


def _exponential_with_voltage(c: Floats, temperature: Floats, voltage: Floats) -> Floats:
    # The SIS names the form without an equation; this one gives currents of the right magnitude.
    return _exponential(c, temperature, voltage) + c[3] * voltage


NO_LOAD_FORMS: dict[int, CurveForm] = {
    0: CurveForm(_polynomial),
    1: CurveForm(_exponential, 3),
    2: CurveForm(_exponential_with_voltage, 4),
}
"""By the code of `fit_nl`. `Motors.of` accepts another form."""
TORQUE_CONSTANT_FORMS: dict[int, CurveForm] = {0: CurveForm(_polynomial), 1: CurveForm(_exponential, 3)}
"""By the code of `fit_ka`."""


@dataclass(frozen=True, eq=False)
class MotorCurve:
    """A quantity of each joint as a function of temperature and voltage."""

    forms: tuple[CurveForm, ...]  # one per joint
    coefficients: Floats  # (5, 4), NaN beyond those of a form

    def __call__(self, temperature: ArrayLike, voltage: ArrayLike) -> Floats:
        """Values (..., 4) at temperatures (..., 4) in degC and relative voltages (..., 4)."""
        t, v = np.broadcast_arrays(
            floats("temperatures", temperature, (..., 4)), floats("voltages", voltage, (..., 4))
        )
        columns = (
            np.broadcast_to(
                form.evaluate(self.coefficients[: form.terms, j], t[..., j], v[..., j]), t.shape[:-1]
            )
            for j, form in enumerate(self.forms)
        )
        return np.stack(list(columns), axis=-1)


@dataclass(frozen=True, eq=False)
class Motors:
    """Parameters of the four motors (RA_JOINT_PARAMS, RA_TAU_PARAMS and RA_TAU_PARAMS2)."""

    sign: Floats  # (4,), of the torque of a positive current
    ampere_per_count: Floats  # (4,), A of one count of the converter
    dead_band: Floats  # (4,), counts of current up to which the torque is zero
    volt_max: Floats  # (4,), reference of relative voltages, V
    # no_load, torque_constant: no-load current in A, and N m/A
    no_load: MotorCurve
    torque_constant: MotorCurve
    # current_limit, torque_limit, detent_torque, detent_speed, no_load_volt: (4,), A (negative: to be
    # computed), N m, N m, rad/s and V
    current_limit: Floats
    torque_limit: Floats
    detent_torque: Floats
    detent_speed: Floats
    no_load_volt: Floats

    @classmethod
    def of(cls, parameters: Parameters, *, no_load: CurveForm | None = None) -> Motors:
        """Return the motors that a parameter file describes.

        Parameters
        ----------
        no_load : CurveForm, optional
            Form of the no-load current, instead of those that `fit_nl` names.

        Raises
        ------
        MissingParameterError
            If a form needs a coefficient that no source gives; the SIS omits c_nl_4.
        """

        def limits(key: str) -> Floats:
            return parameters.numbers("RA_TAU_PARAMS2", key)

        return cls(
            sign=np.asarray(load("ida").constants["motor_torque_sign"], dtype=np.float64),
            ampere_per_count=parameters.numbers("RA_JOINT_PARAMS", "current.m"),
            dead_band=limits("current_delta"),
            volt_max=parameters.numbers("RA_TAU_PARAMS", "mtr_volt_max"),
            no_load=_curve(parameters, "RA_TAU_PARAMS", "nl", NO_LOAD_FORMS, no_load),
            torque_constant=_curve(parameters, "RA_TAU_PARAMS2", "ka", TORQUE_CONSTANT_FORMS),
            current_limit=limits("current_limit"),
            torque_limit=limits("torque_limit"),
            detent_torque=limits("tau_detent"),
            detent_speed=limits("speed_detent"),
            no_load_volt=limits("no_load_volt"),
        )


def _curve(
    parameters: Parameters,
    set_name: str,
    short: str,
    forms: dict[int, CurveForm],
    chosen: CurveForm | None = None,
) -> MotorCurve:
    selected = (
        (chosen,) * 4
        if chosen
        else tuple(
            _form(int(code), f"fit_{short}", forms) for code in parameters.numbers(set_name, f"fit_{short}")
        )
    )
    coefficients = np.full((MAX_COEFFICIENTS, 4), np.nan)
    for k in range(max(form.terms for form in selected)):
        coefficients[k] = parameters.numbers(set_name, f"c_{short}_{k}")
    return MotorCurve(selected, coefficients)


def _form(code: int, key: str, forms: dict[int, CurveForm]) -> CurveForm:
    if code not in forms:
        listed = ", ".join(map(str, forms))
        raise TransectError(
            f"{key} is {code}", why=f"known forms are {listed}", hint="give a CurveForm to Motors.of"
        )
    return forms[code]


def torque_constant(motors: Motors, temperature: ArrayLike) -> Floats:
    """Torque constants Ka (..., 4) in N m/A at rotor temperatures (..., 4) in degC."""
    return motors.torque_constant(temperature, np.zeros(4))


def no_load_current(motors: Motors, temperature: ArrayLike, volt: ArrayLike) -> Floats:
    """No-load currents (..., 4) in A, not negative.

    Parameters
    ----------
    temperature : (..., 4)
        Of the rotors, degC.
    volt : (..., 4)
        Motor voltages, V; the sign is ignored.
    """
    relative = np.abs(floats("voltages", volt, (..., 4))) / motors.volt_max
    return motors.no_load(temperature, relative)


def torque(
    motors: Motors, current: ArrayLike, temperature: ArrayLike, volt: ArrayLike, sense: Sense = "printed"
) -> Floats:
    """Torques (..., 4) of the joints in N m; see the module for the signs.

    Parameters
    ----------
    current : (..., 4)
        Motor currents, A.
    temperature : (..., 4)
        Of the rotors, degC.
    volt : (..., 4)
        Motor voltages, V.
    sense : str
        `printed`: ``I - I_nl``; `along`: I_nl has the sign of the current.
    """
    i = floats("currents", current, (..., 4))
    unloaded = no_load_current(motors, temperature, volt)
    if sense == "along":
        unloaded = np.copysign(unloaded, i)
    tau = motors.sign * (i - unloaded) * torque_constant(motors, temperature)
    return np.where(is_idle(motors, i), 0.0, tau)


def is_idle(motors: Motors, current: Floats) -> Mask:
    """Whether currents (..., 4) in A are within `current_delta` whole counts of zero."""
    return np.rint(np.abs(current) / motors.ampere_per_count) <= motors.dead_band


def current_limits(motors: Motors, temperature: ArrayLike | None = None, speed: ArrayLike = 0.0) -> Floats:
    """Currents (..., 4) in A at which the motors are stopped.

    ``current_limit + tau_detent / Ka``, which reproduces `sys_status.curr_limit` of the SIS. With a negative
    `current_limit` it is ``torque_limit / Ka + I_nl`` instead; the SIS only names these terms.

    Parameters
    ----------
    temperature : (..., 4), optional
        Of the rotors, degC; default 0, for curves that do not depend on it.
    speed : float or (..., 4)
        Of the joints, rad/s; the detent term applies below `speed_detent`.
    """
    t = np.zeros(4) if temperature is None else floats("temperatures", temperature, (..., 4))
    if temperature is None and (motors.current_limit < 0.0).any():
        raise TransectError(
            "the current limits depend on the temperature of the rotors",
            why="current_limit is negative: the flight software computes it",
            hint="give temperatures",
        )
    ka = torque_constant(motors, t)
    computed = motors.torque_limit / ka + no_load_current(motors, t, motors.no_load_volt)
    base = np.where(motors.current_limit < 0.0, computed, motors.current_limit)
    slow = np.abs(np.asarray(speed, dtype=np.float64)) < motors.detent_speed
    return base + np.where(slow, motors.detent_torque / ka, 0.0)


@dataclass(frozen=True, eq=False)
class NoLoadFit:
    """Fitted no-load currents."""

    # with NaN coefficients for a joint that did not move; use it as ``dataclasses.replace(motors,
    # no_load=fit.curve)``
    curve: MotorCurve
    # (5, 4), standard deviations of the coefficients; infinite where undetermined
    deviations: Floats
    residual: Floats  # (4,), scaled median absolute deviation from the curve, A
    rows: Ints  # (4,), number of rows used
    # whether I_nl was subtracted as printed or along the current; see the module
    sense: Sense


def fit_no_load(
    current: ArrayLike,
    tau: ArrayLike,
    temperature: ArrayLike,
    volt: ArrayLike,
    parameters: Parameters,
    form: CurveForm | None = None,
) -> NoLoadFit:
    """Fit the no-load current to torques of the flight software.

    Each row with a torque gives ``I_nl = I - tau / (sign Ka)``, to which the curve is fitted by least squares
    with a soft L1 loss at the scale of one count.

    Parameters
    ----------
    current, tau, temperature, volt : (n, 4)
        Motor currents (A), torques (N m), rotor temperatures (degC) and motor voltages (V).
    parameters : Parameters
        Torque constants and initial coefficients.
    form : CurveForm, optional
        Default: the forms of `fit_nl`.
    """
    motors = Motors.of(parameters)
    i, torques, t, v = (floats("rows", values, ("n", 4)) for values in (current, tau, temperature, volt))
    no_load = i - torques / (motors.sign * torque_constant(motors, t))
    valid = np.isfinite(no_load + v) & (torques != 0.0) & ~is_idle(motors, i)
    sense: Sense = "along" if robust.median(no_load[valid & (i < 0.0)]) < 0.0 else "printed"
    if sense == "along":
        no_load = no_load * np.sign(i)
    forms = (form,) * 4 if form else motors.no_load.forms
    found, deviations = np.full((MAX_COEFFICIENTS, 4), np.nan), np.full((MAX_COEFFICIENTS, 4), np.inf)
    residual = np.full(4, np.nan)
    for j, each in enumerate(forms):
        rows = valid[:, j]
        if np.count_nonzero(rows) < each.terms:
            continue
        x, y = (t[rows, j], np.abs(v[rows, j]) / motors.volt_max[j]), no_load[rows, j]
        start = np.nan_to_num(motors.no_load.coefficients[: each.terms, j])
        best, sigma, remaining = _regression(each, start, x, y, motors.ampere_per_count[j])
        found[: each.terms, j], deviations[: each.terms, j], residual[j] = best, sigma, remaining
    return NoLoadFit(MotorCurve(forms, found), deviations, residual, np.count_nonzero(valid, axis=0), sense)


def _regression(
    form: CurveForm, start: Floats, x: tuple[Floats, Floats], y: Floats, count: float
) -> tuple[Floats, Floats, float]:
    """Coefficients, their standard deviations, and the scaled median absolute residual in A."""
    from scipy.optimize import least_squares

    def misfit(c: Floats) -> Floats:
        return form.evaluate(c, *x) - y

    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # the optimiser rejects steps at which an exponential overflows
        result = least_squares(
            misfit, start, loss="soft_l1", f_scale=count, x_scale="jac", xtol=1e-12, ftol=1e-12
        )
    best = np.asarray(result.x, dtype=np.float64)
    residual = float(robust.nmad(misfit(best)))
    return best, _standard_deviations(np.asarray(result.jac, dtype=np.float64), residual), residual


def _standard_deviations(jacobian: Floats, noise: float) -> Floats:
    """Standard deviations of coefficients; all infinite if the problem is singular."""
    size = np.linalg.norm(jacobian, axis=0)
    if not (size > 0.0).all() or np.linalg.cond(jacobian / size) > 1e6:
        return np.full(len(size), np.inf)
    normal = jacobian / size
    return noise * np.sqrt(np.diag(np.linalg.inv(normal.T @ normal))) / size


Mode = Literal["multiply", "divide"]


@dataclass(frozen=True, eq=False)
class Rotors:
    """Thermal parameters of the four motors (RA_THERMAL)."""

    CM_r: Floats  # (4,), reciprocal of the thermal mass as the SIS uses it, degC/J
    R_rtc: Floats  # (4,), thermal conductance to the case, W/degC
    I_nl: Floats  # (4,), no-load current, A
    # R_cal, T_cal: (4,), resistance (ohm) at the temperature of calibration (degC)
    R_cal: Floats
    T_cal: Floats
    alpha: Floats  # (4,), temperature coefficient of the resistance, 1/degC

    @classmethod
    def of(cls, parameters: Parameters) -> Rotors:
        """Return the rotors that a parameter file describes."""
        keys = ("CM_r", "R_rtc", "I_nl", "R_cal", "T_cal", "alpha")
        return cls(*(parameters.numbers("RA_THERMAL", key) for key in keys))


def rotor_temperature(
    rotors: Rotors,
    current: ArrayLike,
    volt: ArrayLike,
    case: ArrayLike,
    *,
    times_ns: ArrayLike | None = None,
    initial: ArrayLike | None = None,
    mode: Mode = "multiply",
    period: float = 0.1,
    gap: float = 10.0,
) -> Floats:
    """Temperature of the rotors after each row, degC.

    Parameters
    ----------
    current, volt, case : (n, 4)
        Motor currents (A), voltages (V, either sign) and case temperatures (degC). A row with a NaN in one of
        the three gives NaN; the next row integrates over its time, too.
    times_ns : (n,), optional
        Times of the rows. Rows further apart than `period` are integrated in several cycles with the values
        of the later row. Without times the rows are `period` apart.
    initial : (4,), optional
        Temperature at the first row, degC; default: that of the case (not given by the SIS).
    mode : str
        `multiply` by CM_r as printed, or `divide`.
    period : float
        Of the control loop, s; "nominally 10Hz" in the SIS.
    gap : float
        After a longer gap (s) a rotor starts at the temperature of its case again; not given by the SIS.

    Returns
    -------
    (n, 4)

    Raises
    ------
    TimeError
        If `period` is not positive.
    GeometryError
        If the shapes differ or the times decrease.
    """
    if not period > 0.0:
        raise TimeError(f"the control loop cannot have a period of {period} s")
    i, v, t_case = (
        floats(name, values, ("n", 4))
        for name, values in (("currents", current), ("voltages", volt), ("case temperatures", case))
    )
    measured = np.isfinite(i) & np.isfinite(v) & np.isfinite(t_case)
    gaps = _gaps(_seconds(times_ns, len(i), period), measured)
    gain, offset = _steps(rotors, i, v, t_case, gaps, period, mode)
    restart = measured & ~(gaps <= gap)
    gain[restart], offset[restart] = 0.0, t_case[restart]
    if initial is not None:
        first = restart & (np.cumsum(measured, axis=0) == 1)
        offset = np.where(first, floats("initial temperatures", initial, (4,)), offset)
    gain[~measured], offset[~measured] = 1.0, 0.0
    return np.where(measured, _recurrence(gain, offset), np.nan)


def _balance(rotors: Rotors, current: Floats, volt: Floats, case: Floats) -> tuple[Floats, Floats]:
    """Heat flow in W as ``rate * T_r + heat``. Friction heats in both directions: |V|."""
    copper = current**2 * rotors.R_cal
    rate = copper * rotors.alpha - rotors.R_rtc
    heat = copper * (1.0 - rotors.alpha * rotors.T_cal) + rotors.I_nl * np.abs(volt) + rotors.R_rtc * case
    return rate, heat


def _steps(
    rotors: Rotors, current: Floats, volt: Floats, case: Floats, gaps: Floats, period: float, mode: Mode
) -> tuple[Floats, Floats]:
    """Gain and offset of each row over all its control cycles: ``T[k] = gain[k] T[k - 1] + offset[k]``."""
    rate, heat = _balance(rotors, current, volt, case)
    elapsed = np.where(np.isfinite(gaps), gaps, 0.0)
    cycles = np.maximum(np.rint(elapsed / period), 1.0)
    scale = elapsed / cycles * (rotors.CM_r if mode == "multiply" else 1.0 / rotors.CM_r)
    gain, offset = 1.0 + rate * scale, heat * scale
    several = np.broadcast_to(cycles > 1.0, gain.shape)
    if several.any():
        once, n = gain[several], np.broadcast_to(cycles, gain.shape)[several]
        power = once**n
        different = once != 1.0
        offset[several] *= np.where(different, (1.0 - power) / np.where(different, 1.0 - once, 1.0), n)
        gain[several] = power
    return gain, offset


def _seconds(times_ns: ArrayLike | None, rows: int, period: float) -> Floats:
    if times_ns is None:
        return np.arange(rows, dtype=np.float64) * period
    axis = check_times_ns("times of the rows", times_ns)
    if len(axis) != rows:
        raise TimeError(f"{len(axis)} times for {rows} rows")
    return (axis - axis[:1]).astype(np.float64) * 1e-9


def _gaps(seconds: Floats, measured: Mask) -> Floats:
    """Seconds since the previous measured row, (n, 4) per joint or (n, 1) for all; inf for the first."""
    if measured.all():
        return np.diff(seconds, prepend=-np.inf)[:, None]
    rows = np.arange(len(seconds))[:, None]
    latest = np.maximum.accumulate(np.where(measured, rows, -1), axis=0)
    before = np.concatenate([np.full((1, 4), -1), latest[:-1]])[: len(seconds)]
    return np.where(before < 0, np.inf, seconds[:, None] - seconds[before])


def _recurrence(gain: Floats, offset: Floats) -> Floats:
    """x[k] = gain[k] x[k - 1] + offset[k] from x[-1] = 0, for (n, m) numbers.

    The rows are divided into about sqrt(n) blocks that are evaluated in parallel: first the gain and offset
    of each block, then its initial value, then its rows. The Python loops have sqrt(n) instead of n
    iterations.
    """
    n, columns = gain.shape
    width = max(int(np.ceil(np.sqrt(n))), 1)
    blocks = -(-n // width)
    a, b = np.ones((blocks * width, columns)), np.zeros((blocks * width, columns))
    a[:n], b[:n] = gain, offset
    a, b = a.reshape(blocks, width, columns), b.reshape(blocks, width, columns)
    block_gain, block_offset = np.ones((blocks, columns)), np.zeros((blocks, columns))
    for k in range(width):
        block_gain, block_offset = block_gain * a[:, k], a[:, k] * block_offset + b[:, k]
    initial = np.zeros((blocks, columns))
    for block in range(1, blocks):
        initial[block] = block_gain[block - 1] * initial[block - 1] + block_offset[block - 1]
    out, x = np.empty_like(b), initial
    for k in range(width):
        x = a[:, k] * x + b[:, k]
        out[:, k] = x
    return out.reshape(-1, columns)[:n]
