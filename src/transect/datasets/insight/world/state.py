"""One simulation of the arm: the plan, the true state, and the telemetry of its flight software."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.datasets.insight.products.columns import STATUS_GROUPS, encode_status
from transect.simulation.day import WorldOptions
from transect.simulation.randomness import generator

from .arm.flight import DerivedColumns, FlightSoftware, NoLoad, SensorModel, SensorReadings
from .arm.model import (
    Contact,
    ElasticArm,
    ElasticLinks,
    Equilibrium,
    ExternalLoad,
    PressedDepths,
    Sets,
    SoilPatch,
    ToolGeometry,
    find_equilibrium,
    holding_torques,
    solve_contact,
)
from .arm.motion import MotorStates, ThermalInputs, simulate_motors
from .faults import SensorFaults, choose_faults, insert_faults
from .site import LandingSite, parameter_sets
from .story import STORIES, ArmPlan, ArmStep, list_steps, make_plan

START_NS = 615_088_547 * NS
"""Spacecraft clock at the start of every story: that of the label in SIS appendix E."""
CONDITIONS = {"story": STORIES, "no_load": ("along", "subtracted")}
"""Conditions and their values, the default first; `fault` names any of the faults."""


@dataclass(frozen=True, eq=False)
class ArmSimulation:
    """Plan, true state and telemetry."""

    site: LandingSite
    flight: FlightSoftware
    plan: ArmPlan
    true: TrueState
    seen: SimulatedTelemetry
    fault_names: tuple[str, ...]
    faults: SensorFaults
    conditions: Mapping[str, str]  # as requested

    @property
    def recorded(self) -> NDArray[np.int64]:
        """Rows (k,) that are in the recording."""
        return np.flatnonzero(self.plan.recorded)


def simulate_arm(options: WorldOptions) -> ArmSimulation:
    """Simulate the arm with the conditions of some options."""
    asked = options.choose("insight", CONDITIONS, free=("fault",))
    sets = parameter_sets()
    flight = FlightSoftware.of(sets, cast("NoLoad", asked["no_load"]))
    site = LandingSite(flight.arm, sets, options.seed)
    names = choose_faults(asked["fault"])

    def rounds(turn: int) -> list[ArmStep]:
        steps = list(list_steps(asked["story"], site, turn))
        return steps if turn else insert_faults(steps, names)

    planned = make_plan(rounds, flight, options.seconds)
    true = compute_state(planned, sets, options.seed, overheat="grapple-overheat" in names)
    faults = SensorFaults.of(names, planned)
    seen = measure(planned, true, flight, options.seed, START_NS, faults)
    return ArmSimulation(site, flight, planned, true, seen, names, faults, asked)


@dataclass(frozen=True)
class WorldSettings:
    """Properties of the environment and the grapple; invented where no source is named."""

    sol_s: float = 88_775.244
    start_hour: float = 12.5  # local time
    # air temperature: about the range that InSight measured
    max_air_degc: float = -18.0
    min_air_degc: float = -92.0
    warmest_hour: float = 14.0
    solar_heating: tuple[float, ...] = (3.0, 1.5, 0.0, -1.0)  # of each joint by sun and deck, K
    compliance_sigma: float = 0.02  # relative error of the compliances that the flight software uses
    full_friction_speed: float = 2e-3  # m/s, of a tool that is drawn over the ground
    # paraffin actuator of the grapple, and its thermostat
    grapple_heat_capacity: float = 7.0  # J/K
    grapple_conductance: float = 1.0 / 14.0  # W/K
    heater_off_degc: float = 100.0
    heater_on_degc: float = 96.0
    fingers_open_degc: float = 88.0
    fingers_close_degc: float = 45.0
    bus_volt: float = 30.0


WORLD = WorldSettings()


@dataclass(frozen=True, eq=False)
class GrappleState:
    """The grapple over time, (n,) each: degC, whether its heater is on, and whether its fingers are open."""

    celsius: Floats
    heated: Mask
    open: Mask


@dataclass(frozen=True, eq=False)
class Mechanics:
    """The bent arm over time."""

    # position, rigid_position: (n, 3), of the tool, and of the tool on a rigid arm, m
    position: Floats
    rigid_position: Floats
    elevation: Floats  # (n,), true th, rad
    force: Floats  # (n, 3), of the tool on its environment, or of the arm on a payload, IDA frame, N
    # normal, depth: (n,), of a contact, N and m along gravity; NaN without contact
    normal: Floats
    depth: Floats
    torque: Floats  # (n, 4), holding torques of the motors, N m
    forearm: (
        Floats  # (n, 3, 4), rotation and origin of the distal end of the forearm, which carries the camera
    )

    @classmethod
    def empty(cls, n: int) -> Mechanics:
        """Return n rows of NaN."""
        shapes = ((3,), (3,), (), (3,), (), (), (4,), (3, 4))
        arrays = [np.full((n, *shape), np.nan) for shape in shapes]
        return cls(*arrays)

    def at(self, rows: NDArray[np.intp]) -> Mechanics:
        """Return some rows, in any order."""
        return Mechanics(*(values[rows] for values in vars(self).values()))


@dataclass(frozen=True, eq=False)
class TrueState:
    """Ground truth."""

    mechanics: Mechanics
    motors: MotorStates
    grapple: GrappleState
    air: Floats


def compute_state(plan: ArmPlan, sets: Sets, seed: int, *, overheat: bool = False) -> TrueState:
    """Return the true state of the arm during a plan.

    Parameters
    ----------
    overheat : bool
        Whether the thermostat of the grapple fails to switch its heater off.
    """
    mechanics = solve_mechanics(plan, ElasticArm.of(sets), sets, seed)
    loop = float(sets["RA_CTRL_PARAMS"]["loop_time"])
    air = air_temperature(loop * np.arange(len(plan), dtype=np.float64))
    heat = ThermalInputs(air[:, None] + np.array(WORLD.solar_heating), np.zeros((len(plan), 4)))
    ripple = generator(seed, "Arm", "ripple").uniform(0.0, 2 * np.pi, 4)
    motors = simulate_motors(sets, plan.timeline, mechanics.torque, heat, ripple)
    return TrueState(mechanics, motors, heat_grapple(plan, sets, air, loop, overheat), air)


def air_temperature(seconds: Floats) -> Floats:
    """Temperature of the air in degC, seconds after the start of the story."""
    hour = WORLD.start_hour + 24.0 * seconds / WORLD.sol_s
    mean = (WORLD.max_air_degc + WORLD.min_air_degc) / 2
    amplitude = (WORLD.max_air_degc - WORLD.min_air_degc) / 2
    return mean + amplitude * np.cos(2 * np.pi * (hour - WORLD.warmest_hour) / 24.0)


def solve_mechanics(plan: ArmPlan, arm: ElasticArm, sets: Sets, seed: int) -> Mechanics:
    """Compute the equilibrium of the arm under its weight and its contacts, row by row."""
    changed, latest = _changes(plan)
    found = Mechanics.empty(len(changed))
    factors = 1.0 + WORLD.compliance_sigma * generator(seed, "Arm", "softness").standard_normal(5)
    pressed = PressedDepths()
    for rows, tool, phase, contact in _group_rows(plan, changed):
        links, q = ElasticLinks.of(sets, phase).scale_compliance(factors), plan.timeline.q[changed[rows]]
        chosen = arm.tools[tool]
        if contact is None:
            load = ExternalLoad(np.zeros((len(q), 3)), chosen)
            _fill(found, rows, arm, links, q, find_equilibrium(arm, links, q, load), load)
            continue
        contact_state = solve_contact(
            arm, links, q, chosen, contact, pressed, _friction_direction(arm, q, chosen, contact, sets)
        )
        _fill(
            found, rows, arm, links, q, contact_state.equilibrium, ExternalLoad(contact_state.force, chosen)
        )
        found.normal[rows], found.depth[rows] = contact_state.normal, contact_state.depth
    return found.at(latest)


def _changes(plan: ArmPlan) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows (k,) in which the arm moves or a step starts, and for each row (n,) the latest of them.

    The equilibrium of a resting arm, as during minutes of heating, is computed once.
    """
    moved = np.abs(np.diff(plan.timeline.q, axis=0)).max(axis=1, initial=0.0) > 0.0
    new = np.concatenate([[True], moved | (np.diff(plan.step_of_row) != 0)])
    return np.flatnonzero(new), np.cumsum(new) - 1


def _group_rows(
    plan: ArmPlan, changed: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.intp], int, int, Contact | None]]:
    """Yield rows of `changed` with one tool, phase and contact.

    Rows without contact are grouped together; contacts are yielded in their order, since indentations
    persist.
    """
    keys = [(step.tool, step.phase, step.contact) for step in plan.steps]
    number = np.array([keys.index(key) for key in keys])[plan.step_of_row[changed]]
    for key in dict.fromkeys(key for key in keys if key[2] is None):
        yield np.flatnonzero(number == keys.index(key)), *key
    edges = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(number)]
    for a, b in pairwise(edges):
        key = keys[int(number[a])]
        if key[2] is not None:
            yield np.arange(a, b), *key


def _friction_direction(
    arm: ElasticArm, q: Floats, tool: ToolGeometry, contact: Contact, sets: Sets
) -> Floats:
    """Direction (n, 3) of the friction on a tool: against its motion over the ground, shorter when slow."""
    if not isinstance(contact, SoilPatch) or len(q) < 2:
        return np.zeros((len(q), 3))
    loop = float(sets["RA_CTRL_PARAMS"]["loop_time"])
    velocity = np.gradient(arm.tool_position(arm.forward_frames(q), tool), loop, axis=0)
    velocity -= (velocity @ arm.down)[:, None] * arm.down
    speed = np.linalg.norm(velocity, axis=1, keepdims=True)
    return -velocity / np.sqrt(speed**2 + WORLD.full_friction_speed**2)


def _fill(
    found: Mechanics,
    rows: NDArray[np.intp],
    arm: ElasticArm,
    links: ElasticLinks,
    q: Floats,
    equilibrium: Equilibrium,
    load: ExternalLoad,
) -> None:
    frames, tool = equilibrium.frames, load.tool
    found.position[rows] = arm.tool_position(frames, tool)
    found.rigid_position[rows] = arm.tool_position(arm.forward_frames(q), tool)
    found.elevation[rows] = arm.elevation(frames, q, tool)
    found.force[rows] = -load.force
    found.torque[rows] = holding_torques(arm, links, q, equilibrium, load)
    found.forearm[rows] = np.concatenate([frames.rotation[3], frames.origin[3][..., None]], axis=2)


def heat_grapple(plan: ArmPlan, sets: Sets, air: Floats, loop: float, overheat: bool) -> GrappleState:
    """Simulate the thermal actuator: the fingers open when its wax melts, and close as it cools."""
    watt = float(sets["RA_JOINT_PARAMS"]["htr_power"][2])
    wanted = (plan.per_row(lambda step: step.heat_grapple) > 0) & plan.resting
    celsius, heated, fingers = (
        np.empty(len(plan)),
        np.zeros(len(plan), dtype=bool),
        np.zeros(len(plan), dtype=bool),
    )
    now, on, is_open = float(air[0]), False, False
    for row, (ask, outside) in enumerate(zip(wanted.tolist(), air.tolist(), strict=True)):
        on = ask and (overheat or now < (WORLD.heater_off_degc if on else WORLD.heater_on_degc))
        gain = (watt if on else 0.0) - (now - outside) * WORLD.grapple_conductance
        now += loop * gain / WORLD.grapple_heat_capacity
        is_open = now > (WORLD.fingers_close_degc if is_open else WORLD.fingers_open_degc)
        celsius[row], heated[row], fingers[row] = now, on, is_open
    return GrappleState(celsius, heated, fingers)


@dataclass(frozen=True, eq=False)
class SimulatedTelemetry:
    """Telemetry of the flight software, one row per control cycle."""

    t_ns: Ints  # (n,), spacecraft clock
    readings: SensorReadings
    derived: DerivedColumns
    grapple: Floats  # (n,), degC
    heaters: Floats  # (n,), sum of the heater currents, A
    references: Floats  # (n, 2), V
    stat: NDArray[np.uint32]  # (n,) uint32, SIS Table 13


def measure(
    plan: ArmPlan, true: TrueState, flight: FlightSoftware, seed: int, start_ns: int, faults: SensorFaults
) -> SimulatedTelemetry:
    """Measure the true state and compute the derived columns of the flight software."""
    sensors, timeline = SensorModel(flight.sets, seed), plan.timeline
    n = len(plan)
    measured = sensors.temperatures(np.column_stack([true.motors.case, true.grapple.celsius]))
    readings = SensorReadings(
        enc=sensors.encoders(timeline.q),
        pot=sensors.pots(timeline.q, faults.slipped),
        case=measured[:, :4],
        current=sensors.currents(true.motors.current),
        volt=sensors.volts(true.motors.volt),
        power=timeline.on,
        tool=plan.per_row(lambda step: step.tool).astype(np.int64),
        phase=plan.per_row(lambda step: step.phase).astype(np.int64),
    )
    watt = float(flight.sets["RA_JOINT_PARAMS"]["htr_power"][2])
    loop_ns = round(1e9 * float(flight.sets["RA_CTRL_PARAMS"]["loop_time"]))
    return SimulatedTelemetry(
        t_ns=start_ns + loop_ns * np.arange(n, dtype=np.int64),
        readings=readings,
        derived=flight.derive(readings),
        grapple=measured[:, 4],
        heaters=sensors.heater_current(np.where(true.grapple.heated, watt / WORLD.bus_volt, 0.0)),
        references=sensors.references(n, faults.drift),
        stat=_status(plan, readings, flight),
    )


def _status(plan: ArmPlan, readings: SensorReadings, flight: FlightSoftware) -> NDArray[np.uint32]:
    """Status words (n,): brakes are off while the motors are on; the joints are not heated by day."""
    nothing = np.zeros(plan.timeline.on.shape, dtype=bool)
    groups = {
        "motor_on": plan.timeline.on,
        "rotation_negative": plan.timeline.direction < 0,
        "over_current": np.abs(readings.current) > flight.current_limits(),
        "brake_off": plan.timeline.on,
        "heater_on": nothing,
    }
    bits = {f"{group}_{joint + 1}": groups[group][:, joint] for group in STATUS_GROUPS for joint in range(4)}
    return encode_status(bits)
