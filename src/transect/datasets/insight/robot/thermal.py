"""How warm the rotors of the motors are: the model of SIS 5.1.5, Figure 8, at the control rate.

At each step of the control loop

    Q_in  = I^2 R + I_nl V         R = R_cal (1 + alpha (T_r - T_cal))
    Q_rtc = (T_r - T_c) R_rtc
    T_r  += (Q_in - Q_rtc) dt CM_r

which is linear in T_r, so that a whole recording is one linear recurrence. The SIS calls CM_r a thermal mass
in J/degC, by which one divides; multiplied as printed it gives a time constant of 111 s and a rotor of 26 g
of copper, divided 1.15 s and 0.26 g. So `mode="multiply"` is the default and CM_r a reciprocal, as R_rtc is.
The steady state is the same either way. I_nl is the constant of RA_THERMAL, not the curve of the torques.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.errors import TimeError
from transect.geometry.array_checks import check_times_ns, floats

from .parameters import Parameters

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
