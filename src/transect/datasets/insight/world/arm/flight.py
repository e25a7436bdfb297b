"""The flight software of the simulated arm: the derived columns of SIS Table 12 from what its sensors say.

It knows readings and parameters, not what is true. Where the SIS leaves a reading open (spec, 4.10 to 4.14):

- velocities are differences of the encoders over the control loop, from the row before;
- the no-load current is ``c0 + c1 exp(-c2 T) + c3 |V| / mtr_volt_max``; it goes along with the current
  ("along", which is friction), or is subtracted as it stands ("subtracted");
- CM_r multiplies, as printed;
- the moments of gravity are the links', added to the torques; what is grappled shows as a force;
- F_T has the printed plus, so that it is off wherever the tool pushes outwards.

As the SIS has it, a current of at most `current_delta` counts means no torque. A motor whose friction holds
its load, as motor 2 does when it slowly starts to lower the arm, draws as little: for a sample or two its
torque is missing, and F_Z is off by its share, about 11 N.

Sag is that of first order, by unit loads: a link gives as much along a direction as its load does work on
the give of a unit force in that direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.simulation.randomness import generator

from .model import BODIES, PAYLOADS, Arm, Frames, Links, Load, Sets, Tool, cross, wrenches

NoLoad = Literal["along", "subtracted"]
TORQUE_SIGN = np.array([-1.0, 1.0, 1.0, 1.0])
"""mtr_torq_sign of SIS appendix D."""
_SINGULAR = 1e-6
"""Ratio of singular values below which levers count as parallel."""


@dataclass(frozen=True, eq=False)
class Readings:
    """What the motor controller reports, converted by RA_JOINT_PARAMS; rows are turns of the control loop."""

    # enc, pot, case, current, volt: (n, 4), rad, rad, degC, A, V
    enc: Floats
    pot: Floats
    case: Floats
    current: Floats
    volt: Floats
    power: NDArray[np.bool_]  # (n, 4) bool
    # tool, phase: (n,), SIS Tables 14 and 15
    tool: Ints
    phase: Ints

    def groups(self) -> Iterator[tuple[int, int, NDArray[np.bool_]]]:
        """Yield tool, phase and rows of each pair of both."""
        pairs = np.unique(np.column_stack([self.tool, self.phase]), axis=0)
        for tool, phase in pairs.tolist():
            yield tool, phase, (self.tool == tool) & (self.phase == phase)


@dataclass(frozen=True, eq=False)
class Derived:
    """What the flight software makes of the readings; SI, NaN where it has no answer."""

    # rotor, velocity, torque: (n, 4), degC, rad/s, N m
    rotor: Floats
    velocity: Floats
    torque: Floats
    poses: Mapping[str, Floats]  # x, y, z (m) and th (rad) by `enc`, `pot`, `enc_defl`, `pot_defl`
    forces: Floats  # (n, 3), F_R, F_T, F_Z in N


@dataclass(frozen=True, eq=False)
class Flight:
    """The flight software with its parameters."""

    sets: Sets
    arm: Arm
    no_load: NoLoad = "along"

    @classmethod
    def of(cls, sets: Sets, no_load: NoLoad = "along") -> Flight:
        """Return the flight software that runs with some parameter sets."""
        return cls(sets, Arm.of(sets), no_load)

    def numbers(self, name: str, key: str) -> Floats:
        """Return a parameter as an array."""
        return np.asarray(self.sets[name][key], dtype=np.float64)

    def derive(self, readings: Readings) -> Derived:
        """Compute all derived columns."""
        loop = float(self.numbers("RA_CTRL_PARAMS", "loop_time"))
        rotor = self.rotor_temperatures(readings, loop)
        velocity = np.diff(readings.enc, axis=0, prepend=readings.enc[:1]) / loop
        torque = self.torques(readings.current, readings.volt, rotor)
        poses = {name: np.empty(readings.enc.shape) for name in ("enc", "pot", "enc_defl", "pot_defl")}
        forces = np.empty((len(rotor), 3))
        for tool, phase, rows in readings.groups():
            for name, q in (("enc", readings.enc[rows]), ("pot", readings.pot[rows])):
                poses[name][rows], poses[f"{name}_defl"][rows] = self.poses(q, tool, phase)
            power = readings.power[rows].astype(np.float64)
            forces[rows] = self.forces(readings.enc[rows], torque[rows], power, tool, phase)
        return Derived(rotor, velocity, torque, poses, forces)

    # Motors

    def rotor_temperatures(self, readings: Readings, loop: float) -> Floats:
        """Rotor temperatures (n, 4) in degC by SIS 5.1.5, loop by loop, from the case's on."""
        keys = ("CM_r", "R_rtc", "I_nl", "R_cal", "T_cal", "alpha")
        out = np.empty(readings.case.shape)
        for joint in range(4):
            cm, rtc, i_nl, r_cal, t_cal, alpha = (float(self.numbers("RA_THERMAL", k)[joint]) for k in keys)
            columns = (readings.current[:, joint], np.abs(readings.volt[:, joint]), readings.case[:, joint])
            rotor = float(columns[2][0])
            for row, (i, v, case) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
                heat = i * i * r_cal * (1.0 + alpha * (rotor - t_cal)) + i_nl * v
                rotor += (heat - (rotor - case) * rtc) * loop * cm
                out[row, joint] = rotor
        return out

    def no_load_current(self, volt: Floats, rotor: Floats) -> Floats:
        """Currents (n, 4) in A that turn the motors alone, at voltages and rotor temperatures (n, 4)."""
        c = [self.numbers("RA_TAU_PARAMS", f"c_nl_{k}") for k in range(4)]
        part = np.abs(volt) / self.numbers("RA_TAU_PARAMS", "mtr_volt_max")
        return c[0] + c[1] * np.exp(-c[2] * rotor) + c[3] * part

    def torques(self, current: Floats, volt: Floats, rotor: Floats) -> Floats:
        """Torques (n, 4) in N m by appendix D; none within `current_delta` counts of zero current."""
        free = self.no_load_current(volt, rotor)
        free = np.copysign(free, current) if self.no_load == "along" else free
        tau = TORQUE_SIGN * (current - free) * self.numbers("RA_TAU_PARAMS2", "c_ka_0")
        counts = np.rint(np.abs(current) / self.numbers("RA_JOINT_PARAMS", "current.m"))
        return np.where(counts <= self.numbers("RA_TAU_PARAMS2", "current_delta"), 0.0, tau)

    def current_limits(self) -> Floats:
        """Currents (4,) in A at which a motor at rest is stopped (spec, 4.10)."""
        tau2 = self.sets["RA_TAU_PARAMS2"]
        limit, detent, ka = (np.asarray(tau2[k], dtype=np.float64) for k in _LIMITS)
        return limit + detent / ka

    # Places

    def poses(self, q: Floats, tool: int, phase: int) -> tuple[Floats, Floats]:
        """Poses (n, 4) of a tool, of the stiff arm and of the one that sags."""
        links, chosen = Links.of(self.sets, phase), self.arm.tools[tool]
        frames = self.arm.walk(q, None, links)
        stiff = np.column_stack([self.arm.place(frames, chosen), self.arm.elevation(frames, q, chosen)])
        return stiff, stiff + self._sag(frames, links, chosen, phase)

    def _sag(self, frames: Frames, links: Links, tool: Tool, phase: int) -> Floats:
        """What the weights change of x, y, z and th, (n, 4)."""
        n = frames.origin.shape[1]
        load = Load(
            np.tile(self.payload(phase) * self.arm.gravity * self.arm.down, (n, 1)), self.arm.tools[6]
        )
        give = np.einsum("bij,bnj->bni", links.compliance, wrenches(self.arm, frames, links, load))
        give = give[: 4 if tool.on_forearm else BODIES]
        weightless = Links(np.zeros(BODIES), links.centre, links.compliance)
        sag = np.zeros((n, 4))
        for axis in range(3):
            unit = Load(np.tile(np.eye(3)[axis], (n, 1)), tool)
            virtual = wrenches(self.arm, frames, weightless, unit)[: len(give)]
            sag[:, axis] = (virtual * give).sum(axis=(0, 2))
        if not tool.hangs:
            sag[:, 3] = self._turn(frames, give)
        return sag

    def _turn(self, frames: Frames, give: Floats) -> Floats:
        """By how much (n,) rad the gives of the links turn the tool about the axes of joints 2 to 4."""
        axis = np.einsum("bnij,ni->bnj", frames.rotation[: len(give)], frames.axis(2))
        return (axis * give[..., 3:]).sum(axis=(0, 2))

    def payload(self, phase: int) -> float:
        """Mass in kg that a grapple phase says is carried."""
        name = PAYLOADS.get(phase)
        return float(self.sets["RA_DEFL_GENERAL"][f"{name}_mass"]) if name else 0.0

    # Forces

    def forces(self, q: Floats, torque: Floats, power: Floats, tool: int, phase: int) -> Floats:
        """F_R, F_T and F_Z (n, 3) in N by appendix D, NaN where fewer than two pitch joints have power."""
        chosen, links = self.arm.tools[tool], Links.of(self.sets, phase)
        frames = self.arm.walk(q, None, links)
        moment = torque + self.gravity_moments(frames, links)
        out, down = self._levers(frames, q, chosen)
        weight = power[:, 1:] * ([1.0, 1.0, 0.0] if chosen.on_forearm else [1.0, 1.0, 1.0])
        pull = _weighted_fit(np.stack([-down, out], axis=-1), moment[:, 1:], weight)
        reach = self.arm.a[0] + out[:, 0]
        aside = self.arm.d[1] + chosen.offset[1]
        across = (pull[:, 0] * aside + moment[:, 0]) / reach
        return np.column_stack([pull[:, 0], across, pull[:, 1]])

    def gravity_moments(self, frames: Frames, links: Links) -> Floats:
        """Moments (n, 4) of the links' weights about the joints, N m; positive turns them forwards."""
        moments = np.zeros((frames.origin.shape[1], 4))
        for joint in range(4):
            axis, at = frames.axis(joint + 1), frames.origin[joint]
            for body in range(joint + 1, BODIES):
                pull = cross(axis, frames.centre[body] - at) @ self.arm.down
                moments[:, joint] += links.mass[body] * self.arm.gravity * pull
        return moments

    def _levers(self, frames: Frames, q: Floats, tool: Tool) -> tuple[Floats, Floats]:
        """How far (n, 3) outwards and down a tool is held from the axes of joints 2, 3 and 4."""
        from_axes = self.arm.held(frames, tool)[:, None] - frames.origin[1:4].transpose(1, 0, 2)
        c, s = np.cos(q[:, :1]), np.sin(q[:, :1])
        return from_axes[..., 0] * c + from_axes[..., 1] * s, from_axes[..., 2]


_LIMITS = ("current_limit", "tau_detent", "c_ka_0")


def _weighted_fit(levers: Floats, moments: Floats, weight: Floats) -> Floats:
    """Least squares (n, 2) of ``levers @ F = moments`` over rows that have weight; NaN if undetermined."""
    root = np.sqrt(weight)
    matrix = levers * root[..., None]
    size = np.linalg.svd(matrix, compute_uv=False)
    known = (weight.sum(axis=1) >= 2.0) & (size[:, 1] > _SINGULAR * size[:, 0])
    found = np.full((len(levers), 2), np.nan)
    inverse = np.linalg.pinv(matrix[known])
    found[known] = np.einsum("nij,nj->ni", inverse, (moments * root)[known])
    return found


POT_NOISE = 0.4
"""LSB."""
POT_BOW = 1.5e-3
"""rad by which a potentiometer is not linear; Table 12 of the SIS shows differences of 1 to 3 mrad."""
CURRENT_NOISE = 0.35
"""LSB; Table 12 shows currents of one LSB while the motors are off."""
TEMPERATURE_NOISE = 0.3
VOLT_STEP = 30.0 / 255.0
"""V, of a converter of 8 bits; the SIS does not say."""
HEATER_OFFSET, HEATER_NOISE, HEATER_STEP = 1.5e-3, 2e-4, 5e-4
"""A; Table 12 shows 0.0015 while no heater is on."""


@dataclass(frozen=True, eq=False)
class Sensors:
    """The converters by RA_JOINT_PARAMS and RA_TAU_PARAMS, and the seed of their noise."""

    sets: Sets
    seed: int

    def _numbers(self, name: str, key: str) -> Floats:
        return np.asarray(self.sets[name][key], dtype=np.float64)

    def _noise(self, purpose: str, shape: tuple[int, ...]) -> Floats:
        return generator(self.seed, "Arm", purpose).standard_normal(shape)

    def encoders(self, q: Floats) -> Floats:
        """Angles (n, 4) by the encoders, which count whole turns of the motors (spec, 4.7)."""
        per, gear, zero = (
            self._numbers("RA_JOINT_PARAMS", k) for k in ("rad_per_enc", "gear_ratio", "enc_offset")
        )
        counts = np.rint(gear * (q / per + zero))
        return per * (counts / gear - zero)

    def pots(self, q: Floats, slipped: Floats) -> Floats:
        """Angles (n, 4) by the potentiometers, whose wipers have slipped by (n, 4) rad (spec, 4.8)."""
        b, m = self._numbers("RA_JOINT_PARAMS", "pot.b"), self._numbers("RA_JOINT_PARAMS", "pot.m")
        bow = POT_BOW * np.sin(2.0 * q + np.array([0.3, 1.4, 2.2, 0.9]))
        counts = np.rint(b + m * (q + bow + slipped) + POT_NOISE * self._noise("pot", q.shape))
        return (counts - b) / m

    def currents(self, ampere: Floats) -> Floats:
        """Motor currents (n, 4), A."""
        m = self._numbers("RA_JOINT_PARAMS", "current.m")
        return m * np.rint(ampere / m + CURRENT_NOISE * self._noise("current", ampere.shape))

    def volts(self, volt: Floats) -> Floats:
        """Motor voltages (n, 4) as they were commanded, V."""
        return VOLT_STEP * np.rint(volt / VOLT_STEP)

    def temperatures(self, celsius: Floats) -> Floats:
        """Temperatures (n, 5) of the four cases and the grapple, degC (spec, 4.8)."""
        b, m = self._numbers("RA_TAU_PARAMS", "temp.b"), self._numbers("RA_TAU_PARAMS", "temp.m")
        counts = np.rint(celsius / m + b + TEMPERATURE_NOISE * self._noise("temperature", celsius.shape))
        return (counts - b) * m

    def references(self, rows: int, drift: Floats) -> Floats:
        """Reference voltages (rows, 2), V, which have drifted by (rows, 2)."""
        b, m = self._numbers("RA_JOINT_PARAMS", "vref.b"), self._numbers("RA_JOINT_PARAMS", "vref.m")
        nominal = self._numbers("RA_FAULT_DETECT", "vref_nominal") + drift
        return (np.rint(nominal / m + b + 0.5 * self._noise("vref", (rows, 2))) - b) * m

    def heater_current(self, ampere: Floats) -> Floats:
        """Sum of the heater currents (n,), A."""
        noisy = ampere + HEATER_OFFSET + HEATER_NOISE * self._noise("heater", ampere.shape)
        return HEATER_STEP * np.rint(noisy / HEATER_STEP)
