"""The flight software of the simulated arm: the derived columns of SIS Table 12 from its sensors.

It uses sensor readings and parameters, not the true state. Where the SIS is ambiguous:

- velocities are backward differences of the encoders over the control loop;
- the no-load current is ``c0 + c1 exp(-c2 T) + c3 |V| / mtr_volt_max``; it has the sign of the current
  ("along", which is friction), or is subtracted without a sign ("subtracted");
- CM_r multiplies, as printed;
- the moments of gravity are those of the links, added to the torques; a payload appears as a force;
- F_T has the printed plus, so that it is wrong wherever the tool pushes outwards.

A current of at most `current_delta` counts means no torque (SIS appendix D). A motor whose friction holds its
load, as motor 2 does when it slowly starts to lower the arm, draws no more than that: for a sample or two its
torque is missing, and F_Z is off by about 11 N.

The sag is that of first order by the method of unit loads: the displacement of a point along a direction is
the work of the link deformations on the wrenches of a unit force in that direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.datasets.insight.robot.codes import ToolCode
from transect.simulation.randomness import generator

from .model import (
    BODY_COUNT,
    PAYLOADS,
    BentFrames,
    ElasticArm,
    ElasticLinks,
    ExternalLoad,
    Sets,
    ToolGeometry,
    cross,
    wrenches,
)

NoLoad = Literal["along", "subtracted"]
TORQUE_SIGN = np.array([-1.0, 1.0, 1.0, 1.0])
"""mtr_torq_sign of SIS appendix D, of joints 1 to 4."""
_MIN_SINGULAR_RATIO = 1e-6
"""Smallest ratio of the singular values of the levers at which the forces are determined."""


@dataclass(frozen=True, eq=False)
class SensorReadings:
    """Output of the motor controller converted by RA_JOINT_PARAMS; one row per control cycle."""

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
class DerivedColumns:
    """Columns that the flight software computes; SI, NaN where undetermined."""

    # rotor, velocity, torque: (n, 4), degC, rad/s, N m
    rotor: Floats
    velocity: Floats
    torque: Floats
    poses: Mapping[str, Floats]  # x, y, z (m) and th (rad) by `enc`, `pot`, `enc_defl`, `pot_defl`
    forces: Floats  # (n, 3), F_R, F_T, F_Z in N


@dataclass(frozen=True, eq=False)
class FlightSoftware:
    """The flight software with its parameters."""

    sets: Sets
    arm: ElasticArm
    no_load: NoLoad = "along"

    @classmethod
    def of(cls, sets: Sets, no_load: NoLoad = "along") -> FlightSoftware:
        """Return the flight software that runs with some parameter sets."""
        return cls(sets, ElasticArm.of(sets), no_load)

    def numbers(self, name: str, key: str) -> Floats:
        """Return a parameter as an array."""
        return np.asarray(self.sets[name][key], dtype=np.float64)

    def derive(self, readings: SensorReadings) -> DerivedColumns:
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
        return DerivedColumns(rotor, velocity, torque, poses, forces)

    def rotor_temperatures(self, readings: SensorReadings, loop: float) -> Floats:
        """Integrate rotor temperatures (n, 4) in degC by SIS 5.1.5, starting from the case temperature."""
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
        """No-load currents (n, 4) in A at voltages and rotor temperatures (n, 4)."""
        c = [self.numbers("RA_TAU_PARAMS", f"c_nl_{k}") for k in range(4)]
        volt_ratio = np.abs(volt) / self.numbers("RA_TAU_PARAMS", "mtr_volt_max")
        return c[0] + c[1] * np.exp(-c[2] * rotor) + c[3] * volt_ratio

    def torques(self, current: Floats, volt: Floats, rotor: Floats) -> Floats:
        """Torques (n, 4) in N m by appendix D; zero within `current_delta` counts of zero current."""
        free = self.no_load_current(volt, rotor)
        free = np.copysign(free, current) if self.no_load == "along" else free
        tau = TORQUE_SIGN * (current - free) * self.numbers("RA_TAU_PARAMS2", "c_ka_0")
        counts = np.rint(np.abs(current) / self.numbers("RA_JOINT_PARAMS", "current.m"))
        return np.where(counts <= self.numbers("RA_TAU_PARAMS2", "current_delta"), 0.0, tau)

    def current_limits(self) -> Floats:
        """Currents (4,) in A at which a motor at rest is stopped: current_limit + tau_detent / Ka."""
        keys = ("current_limit", "tau_detent", "c_ka_0")
        limit, detent, ka = (self.numbers("RA_TAU_PARAMS2", key) for key in keys)
        return limit + detent / ka

    def poses(self, q: Floats, tool: int, phase: int) -> tuple[Floats, Floats]:
        """Poses (n, 4) of a tool on the rigid arm and on the sagging arm."""
        links, chosen = ElasticLinks.of(self.sets, phase), self.arm.tools[tool]
        frames = self.arm.forward_frames(q, None, links)
        rigid = np.column_stack(
            [self.arm.tool_position(frames, chosen), self.arm.elevation(frames, q, chosen)]
        )
        return rigid, rigid + self._sag(frames, links, chosen, phase)

    def _sag(self, frames: BentFrames, links: ElasticLinks, tool: ToolGeometry, phase: int) -> Floats:
        """Change of x, y, z and th (n, 4) by the weights."""
        n = frames.origin.shape[1]
        load = ExternalLoad(
            np.tile(self.payload(phase) * self.arm.gravity * self.arm.down, (n, 1)),
            self.arm.tools[ToolCode.GRAPPLE_ATTACH],
        )
        deformation = np.einsum("bij,bnj->bni", links.compliance, wrenches(self.arm, frames, links, load))
        deformation = deformation[: 4 if tool.on_forearm else BODY_COUNT]
        weightless = ElasticLinks(np.zeros(BODY_COUNT), links.centre, links.compliance)
        sag = np.zeros((n, 4))
        for axis in range(3):
            unit = ExternalLoad(np.tile(np.eye(3)[axis], (n, 1)), tool)
            virtual = wrenches(self.arm, frames, weightless, unit)[: len(deformation)]
            sag[:, axis] = (virtual * deformation).sum(axis=(0, 2))
        if not tool.hangs:
            # rotation of the tool about the axes of joints 2 to 4, which are parallel
            axis = np.einsum("bnij,ni->bnj", frames.rotation[: len(deformation)], frames.axis(2))
            sag[:, 3] = (axis * deformation[..., 3:]).sum(axis=(0, 2))
        return sag

    def payload(self, phase: int) -> float:
        """Mass in kg of the payload that is carried in a grapple phase."""
        name = PAYLOADS.get(phase)
        return float(self.sets["RA_DEFL_GENERAL"][f"{name}_mass"]) if name else 0.0

    def forces(self, q: Floats, torque: Floats, power: Floats, tool: int, phase: int) -> Floats:
        """F_R, F_T and F_Z (n, 3) in N by appendix D, NaN where fewer than two pitch joints have power."""
        chosen, links = self.arm.tools[tool], ElasticLinks.of(self.sets, phase)
        frames = self.arm.forward_frames(q, None, links)
        moment = torque + self.gravity_moments(frames, links)
        out, down = self._levers(frames, q, chosen)
        weight = power[:, 1:] * ([1.0, 1.0, 0.0] if chosen.on_forearm else [1.0, 1.0, 1.0])
        force = _weighted_fit(np.stack([-down, out], axis=-1), moment[:, 1:], weight)
        radius = self.arm.a[0] + out[:, 0]
        lateral = self.arm.d[1] + chosen.offset[1]
        transverse = (force[:, 0] * lateral + moment[:, 0]) / radius
        return np.column_stack([force[:, 0], transverse, force[:, 1]])

    def gravity_moments(self, frames: BentFrames, links: ElasticLinks) -> Floats:
        """Moments (n, 4) of the link weights about the joint axes, N m."""
        moments = np.zeros((frames.origin.shape[1], 4))
        for joint in range(4):
            axis, origin = frames.axis(joint + 1), frames.origin[joint]
            for body in range(joint + 1, BODY_COUNT):
                lever = cross(axis, frames.centre[body] - origin) @ self.arm.down
                moments[:, joint] += links.mass[body] * self.arm.gravity * lever
        return moments

    def _levers(self, frames: BentFrames, q: Floats, tool: ToolGeometry) -> tuple[Floats, Floats]:
        """Distances (n, 3) of a tool's attachment from the axes of joints 2 to 4, outwards and down."""
        from_axes = self.arm.attachment(frames, tool)[:, None] - frames.origin[1:4].transpose(1, 0, 2)
        c, s = np.cos(q[:, :1]), np.sin(q[:, :1])
        return from_axes[..., 0] * c + from_axes[..., 1] * s, from_axes[..., 2]


def _weighted_fit(levers: Floats, moments: Floats, weight: Floats) -> Floats:
    """Weighted least squares (n, 2) of ``levers @ F = moments``; NaN if undetermined."""
    root = np.sqrt(weight)
    matrix = levers * root[..., None]
    size = np.linalg.svd(matrix, compute_uv=False)
    determined = (weight.sum(axis=1) >= 2.0) & (size[:, 1] > _MIN_SINGULAR_RATIO * size[:, 0])
    found = np.full((len(levers), 2), np.nan)
    inverse = np.linalg.pinv(matrix[determined])
    found[determined] = np.einsum("nij,nj->ni", inverse, (moments * root)[determined])
    return found


@dataclass(frozen=True)
class SensorErrors:
    """Errors and resolutions of the converters that RA_JOINT_PARAMS and RA_TAU_PARAMS do not give."""

    pot_noise_lsb: float = 0.4
    # amplitude of the nonlinearity; Table 12 of the SIS shows differences of 1 to 3 mrad from the encoders
    pot_nonlinearity_rad: float = 1.5e-3
    pot_phase_rad: tuple[float, ...] = (0.3, 1.4, 2.2, 0.9)  # of the nonlinearity of each joint
    # Table 12 shows currents of one LSB without power
    current_noise_lsb: float = 0.35
    temperature_noise_lsb: float = 0.3
    vref_noise_lsb: float = 0.5
    volt_step: float = 30.0 / 255.0  # V; a converter of 8 bits is assumed
    # of the heater current; Table 12 shows 0.0015 A while no heater is on
    heater_offset_a: float = 1.5e-3
    heater_noise_a: float = 2e-4
    heater_step_a: float = 5e-4


ERRORS = SensorErrors()


@dataclass(frozen=True, eq=False)
class SensorModel:
    """The converters of RA_JOINT_PARAMS and RA_TAU_PARAMS, with noise."""

    sets: Sets
    seed: int

    def _numbers(self, name: str, key: str) -> Floats:
        return np.asarray(self.sets[name][key], dtype=np.float64)

    def _noise(self, purpose: str, shape: tuple[int, ...]) -> Floats:
        return generator(self.seed, "Arm", purpose).standard_normal(shape)

    def encoders(self, q: Floats) -> Floats:
        """Angles (n, 4) of the encoders, which count whole steps of the motors."""
        per, gear, zero = (
            self._numbers("RA_JOINT_PARAMS", k) for k in ("rad_per_enc", "gear_ratio", "enc_offset")
        )
        counts = np.rint(gear * (q / per + zero))
        return per * (counts / gear - zero)

    def pots(self, q: Floats, slipped: Floats) -> Floats:
        """Angles (n, 4) of the potentiometers, whose wipers have slipped by (n, 4) rad."""
        b, m = self._numbers("RA_JOINT_PARAMS", "pot.b"), self._numbers("RA_JOINT_PARAMS", "pot.m")
        nonlinearity = ERRORS.pot_nonlinearity_rad * np.sin(2.0 * q + np.array(ERRORS.pot_phase_rad))
        counts = np.rint(
            b + m * (q + nonlinearity + slipped) + ERRORS.pot_noise_lsb * self._noise("pot", q.shape)
        )
        return (counts - b) / m

    def currents(self, ampere: Floats) -> Floats:
        """Motor currents (n, 4), A."""
        m = self._numbers("RA_JOINT_PARAMS", "current.m")
        return m * np.rint(ampere / m + ERRORS.current_noise_lsb * self._noise("current", ampere.shape))

    def volts(self, volt: Floats) -> Floats:
        """Commanded motor voltages (n, 4), V."""
        return ERRORS.volt_step * np.rint(volt / ERRORS.volt_step)

    def temperatures(self, celsius: Floats) -> Floats:
        """Temperatures (n, 5) of the four cases and the grapple, degC."""
        b, m = self._numbers("RA_TAU_PARAMS", "temp.b"), self._numbers("RA_TAU_PARAMS", "temp.m")
        noise = ERRORS.temperature_noise_lsb * self._noise("temperature", celsius.shape)
        counts = np.rint(celsius / m + b + noise)
        return (counts - b) * m

    def references(self, rows: int, drift: Floats) -> Floats:
        """Reference voltages (rows, 2) in V with a drift of (rows, 2)."""
        b, m = self._numbers("RA_JOINT_PARAMS", "vref.b"), self._numbers("RA_JOINT_PARAMS", "vref.m")
        nominal = self._numbers("RA_FAULT_DETECT", "vref_nominal") + drift
        return (np.rint(nominal / m + b + ERRORS.vref_noise_lsb * self._noise("vref", (rows, 2))) - b) * m

    def heater_current(self, ampere: Floats) -> Floats:
        """Sum of the heater currents (n,), A."""
        noisy = ampere + ERRORS.heater_offset_a + ERRORS.heater_noise_a * self._noise("heater", ampere.shape)
        return ERRORS.heater_step_a * np.rint(noisy / ERRORS.heater_step_a)
