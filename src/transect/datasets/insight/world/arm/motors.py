"""The motors of the simulated arm: torque, friction, current, voltage, and the heat they make.

Forward, from what a motor must hold to the current it draws: ``I = sign (tau / Ka + direction I_nl)``, since
friction opposes the motion. Rotor and case warm up by a thermal network that is integrated loop by loop
(Heun); the friction depends on the rotor's temperature, so both are repeated until they agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats

from .flight import TORQUE_SIGN
from .model import Sets
from .moves import Timeline

ROUNDS = 2
"""How often temperatures and currents are computed in turn; heating changes friction by percents only."""
RIPPLE = 0.02
"""Part by which friction comes and goes while a gear turns."""
RIPPLE_TURNS = 40.0
"""Ripples per rad of the joint."""
CASE_MASS, CASE_LOSS = 160.0, 0.22
"""J/K and W/K to the air of a motor's case."""
STALL_VOLT = 4.2
"""What the controller has wound up to when a joint is held fast, V: under the limits of the currents."""


@dataclass(frozen=True, eq=False)
class Heat:
    """What warms the arm from outside, (n, 4): air around each joint in degC, and heaters in W."""

    air: Floats
    heater: Floats


@dataclass(frozen=True, eq=False)
class Drive:
    """The motors over time, (n, 4) each: A, V, degC, degC."""

    current: Floats
    volt: Floats
    rotor: Floats
    case: Floats


def drive(sets: Sets, timeline: Timeline, torque: Floats, heat: Heat, phase: Floats) -> Drive:
    """Return what the motors draw and how warm they get.

    Parameters
    ----------
    torque : (n, 4) array
        Which the motors must give to hold the arm, N m.
    phase : (4,) array
        Where the ripple of each gear begins, rad.
    """
    rotor, case = heat.air.copy(), heat.air.copy()
    current, volt = np.zeros(rotor.shape), np.zeros(rotor.shape)
    loop = float(sets["RA_CTRL_PARAMS"]["loop_time"])
    for _ in range(ROUNDS):
        current, volt = electric(sets, timeline, torque, rotor, volt, phase)
        rotor, case = warm(sets, current, volt, heat, loop)
    return Drive(current, volt, rotor, case)


def electric(
    sets: Sets, timeline: Timeline, torque: Floats, rotor: Floats, volt: Floats, phase: Floats
) -> tuple[Floats, Floats]:
    """Return currents and voltages (n, 4) of motors at rotor temperatures (n, 4) in degC."""
    ka = np.asarray(sets["RA_TAU_PARAMS2"]["c_ka_0"], dtype=np.float64)
    most = np.asarray(sets["RA_TAU_PARAMS"]["mtr_volt_max"], dtype=np.float64)
    thermal = {
        key: np.asarray(sets["RA_THERMAL"][key], dtype=np.float64) for key in ("R_cal", "alpha", "T_cal")
    }
    ohm = thermal["R_cal"] * (1.0 + thermal["alpha"] * (rotor - thermal["T_cal"]))
    ripple = 1.0 + RIPPLE * np.sin(RIPPLE_TURNS * timeline.q + phase)
    stuck = timeline.on & (timeline.velocity == 0.0) & (timeline.via_step == 0)[:, None]
    current = np.zeros(rotor.shape)
    for _ in range(3):  # friction depends a little on the voltage, which depends on the current
        friction = ripple * _no_load(sets, rotor, np.abs(volt) / most)
        current = TORQUE_SIGN * (torque / ka + timeline.sense * friction)
        current = np.where(stuck, TORQUE_SIGN * timeline.sense * STALL_VOLT / ohm, current)
        current = np.where(timeline.on, current, 0.0)
        volt = np.clip(ohm * current + TORQUE_SIGN * ka * timeline.velocity, -most, most)
        volt = np.where(timeline.on, volt, 0.0)
    return current, volt


def _no_load(sets: Sets, rotor: Floats, part: Floats) -> Floats:
    """Friction of motor and gear as a current (n, 4), A: less when warm, more when fast."""
    c0, c1, c2, c3 = (np.asarray(sets["RA_TAU_PARAMS"][f"c_nl_{k}"], dtype=np.float64) for k in range(4))
    return c0 + c1 / np.exp(c2 * rotor) + c3 * part


@dataclass(frozen=True)
class Winding:
    """What RA_THERMAL says of one motor; `per_joule` is CM_r, degC/J."""

    per_joule: float
    to_case: float
    no_load: float
    ohm: float
    at: float
    alpha: float

    @classmethod
    def of(cls, sets: Sets, joint: int) -> Winding:
        """Return the winding of joint 0 to 3."""
        names = ("CM_r", "R_rtc", "I_nl", "R_cal", "T_cal", "alpha")
        return cls(*(float(sets["RA_THERMAL"][name][joint]) for name in names))

    def rates(
        self, rotor: float, case: float, ampere: float, volt: float, outside: float
    ) -> tuple[float, float]:
        """Return degC/s of rotor and case; `outside` is what the case gains at 0 degC, W."""
        made = ampere * ampere * self.ohm * (1.0 + self.alpha * (rotor - self.at)) + self.no_load * volt
        flow = (rotor - case) * self.to_case
        return (made - flow) * self.per_joule, (flow + outside - case * CASE_LOSS) / CASE_MASS


def warm(sets: Sets, current: Floats, volt: Floats, heat: Heat, loop: float) -> tuple[Floats, Floats]:
    """Return temperatures (n, 4) of rotors and cases in degC, both as warm as the air at first."""
    rotor, case = np.empty(current.shape), np.empty(current.shape)
    inputs = (current, np.abs(volt), heat.heater + heat.air * CASE_LOSS)
    for joint in range(4):
        winding = Winding.of(sets, joint)
        hot = warm = float(heat.air[0, joint])
        rows = zip(*(column[:, joint].tolist() for column in inputs), strict=True)
        for row, now in enumerate(rows):
            up, out = winding.rates(hot, warm, *now)
            up_then, out_then = winding.rates(hot + loop * up, warm + loop * out, *now)
            hot += loop * (up + up_then) / 2
            warm += loop * (out + out_then) / 2
            rotor[row, joint], case[row, joint] = hot, warm
    return rotor, case
