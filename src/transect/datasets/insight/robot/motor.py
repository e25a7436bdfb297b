"""From motor currents to joint torques: torque constants, currents without load, limits of the currents.

Signs (SIS appendix D): ``tau_i = sign_i (I_i - I_nl_i) Ka_i`` with sign = {-1, 1, 1, 1}. Currents are signed
(the offset is in the middle of the converter's range, and Table 12 shows a torque of -41 N m, more than
I_nl alone makes). I_nl is subtracted as it is, whichever way the current flows; friction would go along with
the current. `sense="printed"` does the first and is the default, `sense="along"` the second;
`fit_no_load` finds out which one a recording was made with. A torque is what the motor gives to
its joint; whether the motor had power (bits 0 to 3 of `stat`) weighs in `forces`, not here.
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
TERMS = 5
"""Coefficients that a curve can have: c_nl_0 to c_nl_4, c_ka_0 to c_ka_4."""


class Form(NamedTuple):
    """The form of a curve."""

    # ``evaluate(c, temperature, voltage)`` with c (terms,), temperatures (...) in degC and voltages (...)
    # as a part of `mtr_volt_max`; returns A, or N m/A, (...)
    evaluate: Callable[[Floats, Floats, Floats], Floats]
    terms: int = TERMS  # how many of the five coefficients it uses, from the first on


def _polynomial(c: Floats, temperature: Floats, voltage: Floats) -> Floats:
    return np.asarray(np.polynomial.polynomial.polyval(temperature, c), dtype=np.float64)


def _exponential(c: Floats, temperature: Floats, voltage: Floats) -> Floats:
    return c[0] + c[1] * np.exp(-c[2] * temperature)


def _exponential_with_voltage(c: Floats, temperature: Floats, voltage: Floats) -> Floats:
    # The SIS names the form and does not give it; this one makes currents of the right size.
    return _exponential(c, temperature, voltage) + c[3] * voltage


NO_LOAD_FORMS: dict[int, Form] = {
    0: Form(_polynomial),
    1: Form(_exponential, 3),
    2: Form(_exponential_with_voltage, 4),
}
"""By the code of `fit_nl`. A user who knows better puts a form here, or gives one to `Motors.of`."""
TORQUE_CONSTANT_FORMS: dict[int, Form] = {0: Form(_polynomial), 1: Form(_exponential, 3)}
"""By the code of `fit_ka`."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A number for each joint as a function of temperature and voltage."""

    forms: tuple[Form, ...]  # one a joint
    coefficients: Floats  # (5, 4), NaN where a form has no use for it

    def __call__(self, temperature: ArrayLike, voltage: ArrayLike) -> Floats:
        """Values (..., 4) at temperatures (..., 4) in degC and voltages (..., 4) as a part of the most."""
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
    """The four motors as RA_JOINT_PARAMS, RA_TAU_PARAMS and RA_TAU_PARAMS2 describe them."""

    sign: Floats  # (4,), of the torque of a positive current
    ampere_per_count: Floats  # (4,), A of one count of the converter
    dead_band: Floats  # (4,), counts from zero current up to which the torque is taken for zero
    volt_max: Floats  # (4,), voltage of which the curves take a part, V
    # no_load, torque_constant: current without load in A, and N m/A
    no_load: Curve
    torque_constant: Curve
    # current_limit, torque_limit, detent_torque, detent_speed, no_load_volt: (4,), A (negative: to be
    # computed), N m, N m, rad/s and V
    current_limit: Floats
    torque_limit: Floats
    detent_torque: Floats
    detent_speed: Floats
    no_load_volt: Floats

    @classmethod
    def of(cls, parameters: Parameters, *, no_load: Form | None = None) -> Motors:
        """Return the motors that a parameter file describes.

        Parameters
        ----------
        no_load : Form, optional
            Form of the current without load, instead of those that `fit_nl` names.

        Raises
        ------
        MissingParameterError
            If a form needs a coefficient that no source gives; the SIS lost c_nl_4.
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
    parameters: Parameters, set_name: str, short: str, forms: dict[int, Form], chosen: Form | None = None
) -> Curve:
    used = (
        (chosen,) * 4
        if chosen
        else tuple(
            _form(int(code), f"fit_{short}", forms) for code in parameters.numbers(set_name, f"fit_{short}")
        )
    )
    coefficients = np.full((TERMS, 4), np.nan)
    for k in range(max(form.terms for form in used)):
        coefficients[k] = parameters.numbers(set_name, f"c_{short}_{k}")
    return Curve(used, coefficients)


def _form(code: int, key: str, forms: dict[int, Form]) -> Form:
    if code not in forms:
        known = ", ".join(map(str, forms))
        raise TransectError(
            f"{key} is {code}", why=f"known forms are {known}", hint="give a Form to Motors.of"
        )
    return forms[code]


def torque_constant(motors: Motors, temperature: ArrayLike) -> Floats:
    """Torque constants Ka (..., 4) in N m/A at rotor temperatures (..., 4) in degC."""
    return motors.torque_constant(temperature, np.zeros(4))


def no_load_current(motors: Motors, temperature: ArrayLike, volt: ArrayLike) -> Floats:
    """Currents without load (..., 4) in A, never negative by their meaning.

    Parameters
    ----------
    temperature : (..., 4)
        Of the rotors, degC.
    volt : (..., 4)
        Motor voltages, V; the sign is the direction and does not count.
    """
    part = np.abs(floats("voltages", volt, (..., 4))) / motors.volt_max
    return motors.no_load(temperature, part)


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
    """Where currents (..., 4) in A are within `current_delta` counts of zero; in whole counts, as raw."""
    return np.rint(np.abs(current) / motors.ampere_per_count) <= motors.dead_band


def current_limits(motors: Motors, temperature: ArrayLike | None = None, speed: ArrayLike = 0.0) -> Floats:
    """Currents (..., 4) in A at which the motors are stopped.

    ``current_limit + tau_detent / Ka``, which makes `sys_status.curr_limit` of the SIS from its parameters. A
    negative `current_limit` asks for ``torque_limit / Ka + I_nl`` instead; the SIS only names these parts.

    Parameters
    ----------
    temperature : (..., 4), optional
        Of the rotors, degC; needed where the curves depend on it, else `T = 0` does.
    speed : float or (..., 4)
        Of the joints, rad/s; from `speed_detent` on the detent does not come into play.
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
    """Currents without load as a recording has them."""

    # the form with the coefficients found, (5, 4); NaN for a joint that did not move. For use:
    # ``dataclasses.replace(motors, no_load=fit.curve)``.
    curve: Curve
    # (5, 4), standard deviations of the coefficients; infinite where the rows do not determine them
    deviations: Floats
    residual: Floats  # (4,), what the curve leaves, A: scaled median absolute deviation
    rows: Ints  # (4,), how many rows were used
    # whether the torques were made by subtracting I_nl as printed or along the current; see the module
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


Mode = Literal["multiply", "divide"]

PERIOD_S = 0.1
"""Period of the control loop: "nominally 10Hz"."""
GAP_S = 10.0
"""After a longer silence a rotor is taken to be as warm as its case. The SIS does not say; ours."""


@dataclass(frozen=True, eq=False)
class Rotors:
    """What RA_THERMAL says of the four motors."""

    CM_r: Floats  # (4,), reciprocal of the thermal mass, degC/J, as the SIS uses it
    R_rtc: Floats  # (4,), heat that flows to the case, W/degC
    I_nl: Floats  # (4,), current without load, A
    # R_cal, T_cal: (4,), resistance (ohm) at the temperature of calibration (degC)
    R_cal: Floats
    T_cal: Floats
    alpha: Floats  # (4,), change of the resistance with temperature, 1/degC

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
    period: float = PERIOD_S,
    gap: float = GAP_S,
) -> Floats:
    """Temperature of the rotors after each row, degC.

    Parameters
    ----------
    current, volt, case : (n, 4)
        Motor currents (A), voltages (V, either sign) and case temperatures (degC). A row that lacks one of a
        joint's three numbers (NaN) gives NaN and leaves that rotor alone; the next row makes up for its time.
    times_ns : (n,), optional
        Times of the rows. Between rows further apart than `period` the loop is taken to have run with the
        numbers of the later row. Without times the rows are `period` apart.
    initial : (4,), optional
        Temperature at the first row, degC. Without it, the case's: the SIS does not say.
    mode : str
        `multiply` by CM_r as printed, or `divide`.
    period : float
        Of the control loop, s.
    gap : float
        After a longer silence, s, a rotor starts from its case again.

    Returns
    -------
    (n, 4)

    Raises
    ------
    TimeError
        If `period` is not a time.
    GeometryError
        If the shapes differ or time steps back.
    """
    if not period > 0.0:
        raise TimeError(f"the control loop cannot have a period of {period} s")
    i, v, t_case = (
        floats(name, values, ("n", 4))
        for name, values in (("currents", current), ("voltages", volt), ("case temperatures", case))
    )
    measured = np.isfinite(i) & np.isfinite(v) & np.isfinite(t_case)
    silence = _silence(_seconds(times_ns, len(i), period), measured)
    gain, offset = _steps(rotors, i, v, t_case, silence, period, mode)
    fresh = measured & ~(silence <= gap)
    gain[fresh], offset[fresh] = 0.0, t_case[fresh]
    if initial is not None:
        first = fresh & (np.cumsum(measured, axis=0) == 1)
        offset = np.where(first, floats("initial temperatures", initial, (4,)), offset)
    gain[~measured], offset[~measured] = 1.0, 0.0
    return np.where(measured, _recurrence(gain, offset), np.nan)


def steady_temperature(rotors: Rotors, current: ArrayLike, volt: ArrayLike, case: ArrayLike) -> Floats:
    """Temperatures (..., 4) in degC at which the rotors end, at constant currents, voltages and cases."""
    rate, heat = _balance(
        rotors,
        floats("currents", current, (..., 4)),
        floats("voltages", volt, (..., 4)),
        floats("case temperatures", case, (..., 4)),
    )
    return heat / -rate


def _balance(rotors: Rotors, current: Floats, volt: Floats, case: Floats) -> tuple[Floats, Floats]:
    """Heat flow in W as ``rate * T_r + heat``. Friction warms whichever way the motor turns: |V|."""
    copper = current**2 * rotors.R_cal
    rate = copper * rotors.alpha - rotors.R_rtc
    heat = copper * (1.0 - rotors.alpha * rotors.T_cal) + rotors.I_nl * np.abs(volt) + rotors.R_rtc * case
    return rate, heat


def _steps(
    rotors: Rotors, current: Floats, volt: Floats, case: Floats, silence: Floats, period: float, mode: Mode
) -> tuple[Floats, Floats]:
    """Gain and offset of each row, all turns of the loop in one: ``T[k] = gain[k] T[k - 1] + offset[k]``."""
    rate, heat = _balance(rotors, current, volt, case)
    elapsed = np.where(np.isfinite(silence), silence, 0.0)
    turns = np.maximum(np.rint(elapsed / period), 1.0)
    scale = elapsed / turns * (rotors.CM_r if mode == "multiply" else 1.0 / rotors.CM_r)
    gain, offset = 1.0 + rate * scale, heat * scale
    many = np.broadcast_to(turns > 1.0, gain.shape)
    if many.any():
        once, n = gain[many], np.broadcast_to(turns, gain.shape)[many]
        power = once**n
        different = once != 1.0
        offset[many] *= np.where(different, (1.0 - power) / np.where(different, 1.0 - once, 1.0), n)
        gain[many] = power
    return gain, offset


def _seconds(times_ns: ArrayLike | None, rows: int, period: float) -> Floats:
    if times_ns is None:
        return np.arange(rows, dtype=np.float64) * period
    axis = check_times_ns("times of the rows", times_ns)
    if len(axis) != rows:
        raise TimeError(f"{len(axis)} times for {rows} rows")
    return (axis - axis[:1]).astype(np.float64) * 1e-9


def _silence(seconds: Floats, measured: Mask) -> Floats:
    """Seconds (n, 4) since the joint's last measured row; infinite for its first. (n, 1) if none lacks."""
    if measured.all():
        return np.diff(seconds, prepend=-np.inf)[:, None]
    rows = np.arange(len(seconds))[:, None]
    latest = np.maximum.accumulate(np.where(measured, rows, -1), axis=0)
    before = np.concatenate([np.full((1, 4), -1), latest[:-1]])[: len(seconds)]
    return np.where(before < 0, np.inf, seconds[:, None] - seconds[before])


def _recurrence(gain: Floats, offset: Floats) -> Floats:
    """x[k] = gain[k] x[k - 1] + offset[k] from x[-1] = 0, for (n, m) numbers.

    The rows are cut into about sqrt(n) blocks that are walked side by side: first what each block does to
    what enters it, then what enters each, then the rows. So Python steps sqrt(n) times, not n.
    """
    n, columns = gain.shape
    width = max(int(np.ceil(np.sqrt(n))), 1)
    blocks = -(-n // width)
    a, b = np.ones((blocks * width, columns)), np.zeros((blocks * width, columns))
    a[:n], b[:n] = gain, offset
    a, b = a.reshape(blocks, width, columns), b.reshape(blocks, width, columns)
    through, added = np.ones((blocks, columns)), np.zeros((blocks, columns))
    for k in range(width):
        through, added = through * a[:, k], a[:, k] * added + b[:, k]
    entering = np.zeros((blocks, columns))
    for block in range(1, blocks):
        entering[block] = through[block - 1] * entering[block - 1] + added[block - 1]
    out, x = np.empty_like(b), entering
    for k in range(width):
        x = a[:, k] * x + b[:, k]
        out[:, k] = x
    return out.reshape(-1, columns)[:n]
