"""Moves between joint angles, motor currents and motor temperatures of the simulated arm.

A move is a trapezoidal velocity profile of each joint, synchronised and sampled at the control rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from transect.base.arrays import Floats, Ints, Mask

from .flight import TORQUE_SIGN
from .model import Sets


@dataclass(frozen=True)
class MotionSettings:
    """Properties of the moves and drives that the SIS does not give; invented where no source is named."""

    # Fraction of its maximum velocity below which no joint cruises. A powered motor must turn its encoder by
    # `enc_delta` counts in every loop (SIS 5.1.3.11), which takes 0.24 of that velocity in all joints. A
    # joint with a short distance arrives earlier instead.
    min_speed_ratio: float = 0.3
    dead_band_counts: int = 3  # shorter moves are omitted (deadband_strt)
    rounding: float = 1e-9  # relative rounding error of times and distances
    # alternating solutions of temperatures and currents: heat changes friction by percents only
    thermal_iterations: int = 2
    # currents and voltages: friction depends weakly on the voltage, which depends on the current
    electric_iterations: int = 3
    ripple_ratio: float = 0.02  # amplitude of the periodic friction of a gear
    ripple_per_rad: float = 40.0  # periods per rad of the joint
    case_heat_capacity: float = 160.0  # J/K
    case_conductance: float = 0.22  # W/K, from the case to the air
    # integrated controller output while a joint is blocked, below the current limits
    stall_volt: float = 4.2


MOTION = MotionSettings()


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Limits of the moves, from RA_CTRL_PARAMS, RA_PATH_PARAMS and RA_JOINT_PARAMS."""

    # velocity, acceleration, count: (4,), rad/s, rad/s2, and rad of one encoder count
    velocity: Floats
    acceleration: Floats
    count: Floats
    loop: float  # period of the control loop, s
    joint_delta: float  # maximum distance between via points, rad

    @classmethod
    def of(cls, sets: Sets) -> MotionLimits:
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
class JointTimeline:
    """The joints over time, one row per cycle of the control loop."""

    # q, velocity: (n, 4), rad, rad/s
    q: Floats
    velocity: Floats
    on: Mask  # (n, 4) bool, whether the motor had power since the previous row
    direction: Floats  # (n, 4), commanded direction, -1 or 1; 0 without power
    via: Floats  # (n, 4), the next via point, rad
    via_step: Ints  # (n,), its number in the move; 0 at rest

    def __len__(self) -> int:
        return len(self.q)

    @classmethod
    def join(cls, parts: Sequence[JointTimeline]) -> JointTimeline:
        """Concatenate timelines."""
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))


@dataclass(frozen=True)
class Trapezoid:
    """Velocity profile from rest to rest over a unit distance."""

    ramp: float  # s
    duration: float  # s
    rate: float  # velocity between the ramps, 1/s

    @classmethod
    def fastest(cls, distance: float, speed: float, acceleration: float) -> Trapezoid:
        """Return the fastest profile over `distance` (rad), with limits in rad/s and rad/s2."""
        ramp = min(speed / acceleration, float(np.sqrt(distance / acceleration)))
        peak = acceleration * ramp
        return cls(ramp, distance / peak + ramp, peak / distance)

    def at(self, t: Floats) -> tuple[Floats, Floats]:
        """Fraction of the distance (k,) and its rate (k,) in 1/s at times (k,)."""
        inside = np.clip(t, 0.0, self.duration)
        acceleration = self.rate / self.ramp
        first = np.minimum(inside, self.ramp)
        last = np.maximum(inside - (self.duration - self.ramp), 0.0)
        fraction = acceleration * (first**2 - last**2) / 2 + self.rate * (inside - first)
        return fraction, acceleration * np.minimum(first, self.duration - inside)


def move(start: Floats, goal: Floats, limits: MotionLimits, speed_ratio: float = 1.0) -> JointTimeline:
    """Move from rest to rest; the first row is one loop after the start, the last row the first at rest.

    Parameters
    ----------
    start, goal : (4,) array
        rad. A joint within the dead band of its goal stays.
    speed_ratio : float
        Fraction of the maximum velocities.
    """
    tolerance = MOTION.rounding
    distance = np.where(np.abs(goal - start) > MOTION.dead_band_counts * limits.count, goal - start, 0.0)
    profiles = _profiles(np.abs(distance), limits, speed_ratio)
    longest = max((profile.duration for profile in profiles if profile), default=0.0)
    t = limits.loop * np.arange(1, int(np.ceil(longest / limits.loop - tolerance)) + 1, dtype=np.float64)
    n = len(t)
    fraction, rate, on = np.zeros((n, 4)), np.zeros((n, 4)), np.zeros((n, 4), dtype=bool)
    for joint, profile in enumerate(profiles):
        if profile:
            fraction[:, joint], rate[:, joint] = profile.at(t)
            on[:, joint] = t - limits.loop < profile.duration - tolerance
    pieces = max(1, int(np.ceil(np.abs(distance).max() / limits.joint_delta - tolerance)))
    next_via = np.minimum(np.floor(fraction * pieces + tolerance) + 1, pieces)
    return JointTimeline(
        q=start + fraction * distance,
        velocity=rate * distance,
        on=on,
        direction=np.where(on, np.sign(distance), 0.0),
        via=start + next_via / pieces * distance,
        via_step=next_via.max(axis=1, initial=0).astype(np.int64),
    )


def _profiles(distance: Floats, limits: MotionLimits, speed_ratio: float) -> list[Trapezoid | None]:
    """Return each joint's profile: that of the slowest for all joints whose cruise speed then suffices."""
    joints = list(zip(distance.tolist(), limits.velocity.tolist(), limits.acceleration.tolist(), strict=True))
    least = MOTION.min_speed_ratio
    ratio = max(speed_ratio, least)
    own = [Trapezoid.fastest(d, ratio * v, a) for d, v, a in joints if d]
    slowest = max(own, key=lambda profile: profile.duration, default=Trapezoid(0.0, 0.0, 0.0))

    def profile(d: float, v: float, a: float) -> Trapezoid | None:
        if not d:
            return None
        return slowest if slowest.rate * d >= least * v else Trapezoid.fastest(d, least * v, a)

    return [profile(*joint) for joint in joints]


def rest(q: Floats, rows: int) -> JointTimeline:
    """Stay at joint angles (4,) for some rows, with the brakes on."""
    still, off = np.tile(q, (rows, 1)), np.zeros((rows, 4))
    return JointTimeline(
        still, off, off.astype(bool), off.copy(), still.copy(), np.zeros(rows, dtype=np.int64)
    )


def jam(q: Floats, joint: int, direction: float, rows: int) -> JointTimeline:
    """Power joint 1 to 4 for some rows while something blocks it."""
    blocked = rest(q, rows)
    blocked.on[:, joint - 1], blocked.direction[:, joint - 1] = True, direction
    return blocked


@dataclass(frozen=True, eq=False)
class ThermalInputs:
    """External heat, (n, 4): air temperature around each joint in degC, and heaters in W."""

    air: Floats
    heater: Floats


@dataclass(frozen=True, eq=False)
class MotorStates:
    """The motors over time, (n, 4) each: A, V, degC, degC."""

    current: Floats
    volt: Floats
    rotor: Floats
    case: Floats


def simulate_motors(
    sets: Sets, timeline: JointTimeline, torque: Floats, heat: ThermalInputs, phase: Floats
) -> MotorStates:
    """Return currents, voltages and temperatures of the motors.

    Parameters
    ----------
    torque : (n, 4) array
        Torque that holds the arm, N m.
    phase : (4,) array
        Phase of the friction ripple of each gear, rad.
    """
    rotor, case = heat.air.copy(), heat.air.copy()
    current, volt = np.zeros(rotor.shape), np.zeros(rotor.shape)
    loop = float(sets["RA_CTRL_PARAMS"]["loop_time"])
    for _ in range(MOTION.thermal_iterations):
        current, volt = compute_currents(sets, timeline, torque, rotor, volt, phase)
        rotor, case = compute_temperatures(sets, current, volt, heat, loop)
    return MotorStates(current, volt, rotor, case)


def compute_currents(
    sets: Sets, timeline: JointTimeline, torque: Floats, rotor: Floats, volt: Floats, phase: Floats
) -> tuple[Floats, Floats]:
    """Return currents and voltages (n, 4) of motors at rotor temperatures (n, 4) in degC."""
    ka = np.asarray(sets["RA_TAU_PARAMS2"]["c_ka_0"], dtype=np.float64)
    volt_max = np.asarray(sets["RA_TAU_PARAMS"]["mtr_volt_max"], dtype=np.float64)
    thermal = {
        key: np.asarray(sets["RA_THERMAL"][key], dtype=np.float64) for key in ("R_cal", "alpha", "T_cal")
    }
    ohm = thermal["R_cal"] * (1.0 + thermal["alpha"] * (rotor - thermal["T_cal"]))
    ripple = 1.0 + MOTION.ripple_ratio * np.sin(MOTION.ripple_per_rad * timeline.q + phase)
    stalled = timeline.on & (timeline.velocity == 0.0) & (timeline.via_step == 0)[:, None]
    current = np.zeros(rotor.shape)
    for _ in range(MOTION.electric_iterations):
        friction = ripple * _no_load_current(sets, rotor, np.abs(volt) / volt_max)
        current = TORQUE_SIGN * (torque / ka + timeline.direction * friction)
        current = np.where(stalled, TORQUE_SIGN * timeline.direction * MOTION.stall_volt / ohm, current)
        current = np.where(timeline.on, current, 0.0)
        volt = np.clip(ohm * current + TORQUE_SIGN * ka * timeline.velocity, -volt_max, volt_max)
        volt = np.where(timeline.on, volt, 0.0)
    return current, volt


def _no_load_current(sets: Sets, rotor: Floats, volt_ratio: Floats) -> Floats:
    """Friction of motor and gear as a current (n, 4), A: it falls with temperature and rises with speed."""
    c0, c1, c2, c3 = (np.asarray(sets["RA_TAU_PARAMS"][f"c_nl_{k}"], dtype=np.float64) for k in range(4))
    return c0 + c1 / np.exp(c2 * rotor) + c3 * volt_ratio


@dataclass(frozen=True)
class MotorThermalModel:
    """RA_THERMAL of one motor: two thermal masses, the rotor and the case."""

    degc_per_joule: float  # CM_r, of the rotor
    rotor_to_case: float  # R_rtc, W/K
    no_load: float  # I_nl, A
    resistance: float  # R_cal, ohm at `calibration_degc`
    calibration_degc: float  # T_cal
    alpha: float  # relative change of the resistance, 1/K

    @classmethod
    def of(cls, sets: Sets, joint: int) -> MotorThermalModel:
        """Return the model of joint 0 to 3."""
        names = ("CM_r", "R_rtc", "I_nl", "R_cal", "T_cal", "alpha")
        return cls(*(float(sets["RA_THERMAL"][name][joint]) for name in names))

    def rates(
        self, rotor: float, case: float, ampere: float, volt: float, case_inflow: float
    ) -> tuple[float, float]:
        """Return degC/s of rotor and case; `case_inflow` is the external heat of a case at 0 degC, W."""
        copper = ampere * ampere * self.resistance * (1.0 + self.alpha * (rotor - self.calibration_degc))
        heat = copper + self.no_load * volt
        flow = (rotor - case) * self.rotor_to_case
        case_heat = flow + case_inflow - case * MOTION.case_conductance
        return (heat - flow) * self.degc_per_joule, case_heat / MOTION.case_heat_capacity


def compute_temperatures(
    sets: Sets, current: Floats, volt: Floats, heat: ThermalInputs, loop: float
) -> tuple[Floats, Floats]:
    """Integrate temperatures (n, 4) of rotors and cases in degC (Heun's method), from that of the air."""
    rotors, cases = np.empty(current.shape), np.empty(current.shape)
    inputs = (current, np.abs(volt), heat.heater + heat.air * MOTION.case_conductance)
    for joint in range(4):
        model = MotorThermalModel.of(sets, joint)
        rotor = case = float(heat.air[0, joint])
        rows = zip(*(column[:, joint].tolist() for column in inputs), strict=True)
        for row, now in enumerate(rows):
            rotor_rate, case_rate = model.rates(rotor, case, *now)
            end = model.rates(rotor + loop * rotor_rate, case + loop * case_rate, *now)
            rotor += loop * (rotor_rate + end[0]) / 2
            case += loop * (case_rate + end[1]) / 2
            rotors[row, joint], cases[row, joint] = rotor, case
    return rotors, cases
