"""How the arm gets from pose to pose: coordinated trapezoids at the control rate, by via points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints, Mask

from .flight import TORQUE_SIGN
from .model import Sets

SLOWEST = 0.3
"""Part of its greatest speed below which no joint cruises: a motor that is on must turn its encoder by
`enc_delta` counts in every loop (SIS 5.1.3.11), which takes 0.24 of that speed in all four joints. A joint
with little to do arrives earlier instead."""
DEAD_BAND = 3
"""Counts that are not worth a move (deadband_strt)."""


@dataclass(frozen=True, eq=False)
class Limits:
    """What moves keep to, from RA_CTRL_PARAMS, RA_PATH_PARAMS and RA_JOINT_PARAMS."""

    # velocity, acceleration, count: (4,), rad/s, rad/s2, and rad of one encoder count
    velocity: Floats
    acceleration: Floats
    count: Floats
    loop: float  # period of the control loop, s
    joint_delta: float  # rad between via points

    @classmethod
    def of(cls, sets: Sets) -> Limits:
        """Return the limits of some parameter sets."""
        control, joints = sets["RA_CTRL_PARAMS"], sets["RA_JOINT_PARAMS"]
        return cls(
            velocity=np.asarray(control["vel_max"], dtype=np.float64),
            acceleration=np.asarray(control["acc_max"], dtype=np.float64),
            count=np.abs(np.asarray(joints["rad_per_enc"]) / np.asarray(joints["gear_ratio"])),
            loop=float(control["loop_time"]),
            joint_delta=float(sets["RA_PATH_PARAMS"]["path.joint_delta"]),
        )


@dataclass(frozen=True, eq=False)
class Timeline:
    """The joints over time, a row per turn of the control loop."""

    # q, velocity: (n, 4), rad, rad/s
    q: Floats
    velocity: Floats
    on: Mask  # (n, 4) bool, Whether the motor had power since the row before
    sense: Floats  # (n, 4), which way it was to turn, -1 or 1; 0 where it was off
    via: Floats  # (n, 4), the via point ahead, rad
    via_step: Ints  # (n,), its number in the move; 0 at rest

    def __len__(self) -> int:
        return len(self.q)

    @classmethod
    def join(cls, parts: Sequence[Timeline]) -> Timeline:
        """Return timelines one after the other."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in _NAMES))


_NAMES = ("q", "velocity", "on", "sense", "via", "via_step")


@dataclass(frozen=True)
class Trapezoid:
    """From rest to rest over a way of length 1: ramp time, duration (s) and the rate in between (1/s)."""

    ramp: float
    duration: float
    rate: float

    @classmethod
    def fastest(cls, way: float, speed: float, push: float) -> Trapezoid:
        """Return the profile over `way` (rad) that keeps to a speed (rad/s) and an acceleration (rad/s2)."""
        ramp = min(speed / push, float(np.sqrt(way / push)))
        reached = push * ramp
        return cls(ramp, way / reached + ramp, reached / way)

    def at(self, t: Floats) -> tuple[Floats, Floats]:
        """Part of the way (k,) and its rate (k,) in 1/s at times (k,)."""
        inside = np.clip(t, 0.0, self.duration)
        push = self.rate / self.ramp
        first = np.minimum(inside, self.ramp)
        last = np.maximum(inside - (self.duration - self.ramp), 0.0)
        part = push * (first**2 - last**2) / 2 + self.rate * (inside - first)
        return part, push * np.minimum(first, self.duration - inside)


def move(start: Floats, goal: Floats, limits: Limits, speed: float = 1.0) -> Timeline:
    """Move from rest to rest; the first row is one loop after the start, the last the first at rest.

    Parameters
    ----------
    start, goal : (4,) array
        rad. A joint that is within the dead band of its goal stays.
    speed : float
        Part of the greatest velocities.
    """
    way = np.where(np.abs(goal - start) > DEAD_BAND * limits.count, goal - start, 0.0)
    profiles = _profiles(np.abs(way), limits, speed)
    longest = max((profile.duration for profile in profiles if profile), default=0.0)
    t = limits.loop * np.arange(1, int(np.ceil(longest / limits.loop - 1e-9)) + 1, dtype=np.float64)
    n = len(t)
    part, rate, on = np.zeros((n, 4)), np.zeros((n, 4)), np.zeros((n, 4), dtype=bool)
    for joint, profile in enumerate(profiles):
        if profile:
            part[:, joint], rate[:, joint] = profile.at(t)
            on[:, joint] = t - limits.loop < profile.duration - 1e-9
    pieces = max(1, int(np.ceil(np.abs(way).max() / limits.joint_delta - 1e-9)))
    ahead = np.minimum(np.floor(part * pieces + 1e-9) + 1, pieces)
    return Timeline(
        q=start + part * way,
        velocity=rate * way,
        on=on,
        sense=np.where(on, np.sign(way), 0.0),
        via=start + ahead / pieces * way,
        via_step=ahead.max(axis=1, initial=0).astype(np.int64),
    )


def _profiles(way: Floats, limits: Limits, speed: float) -> list[Trapezoid | None]:
    """Return each joint's profile: that of the slowest for all, unless it would be too slow to be seen."""
    joints = list(zip(way.tolist(), limits.velocity.tolist(), limits.acceleration.tolist(), strict=True))
    part = max(speed, SLOWEST)
    own = [Trapezoid.fastest(w, part * v, a) for w, v, a in joints if w]
    slowest = max(own, key=lambda profile: profile.duration, default=Trapezoid(0.0, 0.0, 0.0))

    def profile(w: float, v: float, a: float) -> Trapezoid | None:
        if not w:
            return None
        return slowest if slowest.rate * w >= SLOWEST * v else Trapezoid.fastest(w, SLOWEST * v, a)

    return [profile(*joint) for joint in joints]


def rest(q: Floats, rows: int) -> Timeline:
    """Stay at joint angles (4,) for some rows, brakes on."""
    still, off = np.tile(q, (rows, 1)), np.zeros((rows, 4))
    return Timeline(still, off, off.astype(bool), off.copy(), still.copy(), np.zeros(rows, dtype=np.int64))


def jam(q: Floats, joint: int, sense: float, rows: int) -> Timeline:
    """Drive joint 1 to 4 for some rows without its moving: something holds it."""
    stuck = rest(q, rows)
    stuck.on[:, joint - 1], stuck.sense[:, joint - 1] = True, sense
    return stuck


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
