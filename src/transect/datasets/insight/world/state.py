"""One life of the simulated arm: what it was to do, what was true, and what its flight software saw of it."""

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
from transect.simulation.day import Options
from transect.simulation.randomness import generator

from .arm.flight import Derived, Flight, NoLoad, Readings, Sensors
from .arm.model import (
    Arm,
    Contact,
    Dents,
    Links,
    Load,
    Sets,
    Settled,
    Soil,
    Tool,
    holding_torques,
    settle,
    touch,
)
from .arm.motion import Drive, Heat, drive
from .faults import Faults, choose_faults, insert_faults
from .site import Site, parameter_sets
from .story import STORIES, Plan, Step, list_steps, make_plan

START_NS = 615_088_547 * NS
"""Spacecraft clock at the start of every story: that of the label in SIS appendix E."""
KNOWN = {"story": STORIES, "no_load": ("along", "subtracted")}
"""Conditions and their values, the usual one first; `fault` names any of the faults."""


@dataclass(frozen=True, eq=False)
class Life:
    """What happened."""

    site: Site
    flight: Flight
    plan: Plan
    true: State
    seen: Telemetry
    fault_names: tuple[str, ...]
    faults: Faults
    conditions: Mapping[str, str]  # what was asked for

    @property
    def recorded(self) -> NDArray[np.int64]:
        """Rows (k,) that are in the recording."""
        return np.flatnonzero(self.plan.recorded)


def live(options: Options) -> Life:
    """Let the arm do what the options ask for."""
    asked = options.choose("insight", KNOWN, free=("fault",))
    sets = parameter_sets()
    flight = Flight.of(sets, cast("NoLoad", asked["no_load"]))
    site = Site(flight.arm, sets, options.seed)
    names = choose_faults(asked["fault"])

    def rounds(turn: int) -> list[Step]:
        steps = list(list_steps(asked["story"], site, turn))
        return steps if turn else insert_faults(steps, names)

    planned = make_plan(rounds, flight, options.seconds)
    true = compute_state(planned, sets, options.seed, overheat="grapple-overheat" in names)
    faults = Faults.of(names, planned)
    seen = measure(planned, true, flight, options.seed, START_NS, faults)
    return Life(site, flight, planned, true, seen, names, faults, asked)


SOL = 88_775.244
"""s of a day on Mars."""
NOON_AIR, NIGHT_AIR, WARMEST = -18.0, -92.0, 14.0
"""degC, degC and the local hour of the greatest warmth; about what InSight measured, invented in detail."""
START_HOUR = 12.5
SUNNY = np.array([3.0, 1.5, 0.0, -1.0])
"""K by which sun and deck warm each joint."""
SOFTNESS = 0.02
"""Relative spread of the true compliances around the model's."""
GRAPPLE_MASS, GRAPPLE_LOSS = 7.0, 1.0 / 14.0
"""J/K and W/K of the paraffin actuator."""
HEATER_OFF, HEATER_AGAIN = 100.0, 96.0
"""degC between which the open fingers are kept."""
FINGERS_OPEN, FINGERS_CLOSED = 88.0, 45.0
SLIPPING = 2e-3
"""m/s from which friction of a tool that is drawn over the ground is complete."""


@dataclass(frozen=True, eq=False)
class Grapple:
    """The grapple over time, (n,) each: degC, whether its heater is on, and whether its fingers are open."""

    celsius: Floats
    heated: Mask
    open: Mask


@dataclass(frozen=True, eq=False)
class Mechanics:
    """The bent arm over time."""

    # place, stiff: (n, 3), where the tool is, and where it would be on a stiff arm, m
    place: Floats
    stiff: Floats
    elevation: Floats  # (n,), true th, rad
    force: Floats  # (n, 3), which the tool exerts (of a payload: which the arm exerts on it), IDA frame, N
    # normal, depth: (n,), of a contact, N and m along gravity; NaN where nothing is near
    normal: Floats
    depth: Floats
    torque: Floats  # (n, 4), which the motors must hold, N m
    forearm: Floats  # (n, 3, 4), rotation and origin of the forearm's far end, which carries the camera

    @classmethod
    def empty(cls, n: int) -> Mechanics:
        """Return n rows without contact, to be filled in."""
        shapes = ((3,), (3,), (), (3,), (), (), (4,), (3, 4))
        arrays = [np.full((n, *shape), np.nan) for shape in shapes]
        return cls(*arrays)

    def at(self, rows: NDArray[np.intp]) -> Mechanics:
        """Return some rows, in any order."""
        return Mechanics(*(values[rows] for values in vars(self).values()))


@dataclass(frozen=True, eq=False)
class State:
    """All that is true."""

    mechanics: Mechanics
    motors: Drive
    grapple: Grapple
    air: Floats


def compute_state(plan: Plan, sets: Sets, seed: int, *, overheat: bool = False) -> State:
    """Return what is true while the arm does what is planned.

    Parameters
    ----------
    overheat : bool
        Whether the grapple's heater is not switched off when it should be.
    """
    mechanics = bend(plan, Arm.of(sets), sets, seed)
    loop = float(sets["RA_CTRL_PARAMS"]["loop_time"])
    air = air_temperature(loop * np.arange(len(plan), dtype=np.float64))
    heat = Heat(air[:, None] + SUNNY, np.zeros((len(plan), 4)))
    ripple = generator(seed, "Arm", "ripple").uniform(0.0, 2 * np.pi, 4)
    motors = drive(sets, plan.timeline, mechanics.torque, heat, ripple)
    return State(mechanics, motors, heat_grapple(plan, sets, air, loop, overheat), air)


def air_temperature(seconds: Floats) -> Floats:
    """Temperature of the air in degC, seconds after the start of the story."""
    hour = START_HOUR + 24.0 * seconds / SOL
    middle, swing = (NOON_AIR + NIGHT_AIR) / 2, (NOON_AIR - NIGHT_AIR) / 2
    return middle + swing * np.cos(2 * np.pi * (hour - WARMEST) / 24.0)


def bend(plan: Plan, arm: Arm, sets: Sets, seed: int) -> Mechanics:
    """Bend the arm under its weight and what it touches."""
    fresh, latest = _changes(plan)
    found = Mechanics.empty(len(fresh))
    softer = 1.0 + SOFTNESS * generator(seed, "Arm", "softness").standard_normal(5)
    dents = Dents()
    for rows, tool, phase, contact in _stretches(plan, fresh):
        links, q = Links.of(sets, phase).softer(softer), plan.timeline.q[fresh[rows]]
        chosen = arm.tools[tool]
        if contact is None:
            load = Load(np.zeros((len(q), 3)), chosen)
            _fill(found, rows, arm, links, q, settle(arm, links, q, load), load)
            continue
        met = touch(arm, links, q, chosen, contact, dents, _against(arm, q, chosen, contact, sets))
        _fill(found, rows, arm, links, q, met.settled, Load(met.force, chosen))
        found.normal[rows], found.depth[rows] = met.normal, met.depth
    return found.at(latest)


def _changes(plan: Plan) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows (k,) in which something moves or changes, and for each row (n,) the latest of them.

    An arm that rests, as it does for minutes while the grapple is heated, is bent once.
    """
    moved = np.abs(np.diff(plan.timeline.q, axis=0)).max(axis=1, initial=0.0) > 0.0
    changed = np.concatenate([[True], moved | (np.diff(plan.step) != 0)])
    return np.flatnonzero(changed), np.cumsum(changed) - 1


def _stretches(
    plan: Plan, fresh: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.intp], int, int, Contact | None]]:
    """Yield rows of `fresh` with one tool, phase and contact; free ones together, others in their order."""
    keys = [(step.tool, step.phase, step.contact) for step in plan.steps]
    number = np.array([keys.index(key) for key in keys])[plan.step[fresh]]
    for key in dict.fromkeys(key for key in keys if key[2] is None):
        yield np.flatnonzero(number == keys.index(key)), *key
    edges = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(number)]
    for a, b in pairwise(edges):
        key = keys[int(number[a])]
        if key[2] is not None:
            yield np.arange(a, b), *key


def _against(arm: Arm, q: Floats, tool: Tool, contact: Contact, sets: Sets) -> Floats:
    """Where friction acts on a tool, (n, 3): against its motion over the ground, less if that is slow."""
    if not isinstance(contact, Soil) or len(q) < 2:
        return np.zeros((len(q), 3))
    loop = float(sets["RA_CTRL_PARAMS"]["loop_time"])
    velocity = np.gradient(arm.place(arm.walk(q), tool), loop, axis=0)
    velocity -= (velocity @ arm.down)[:, None] * arm.down
    speed = np.linalg.norm(velocity, axis=1, keepdims=True)
    return -velocity / np.sqrt(speed**2 + SLIPPING**2)


def _fill(
    found: Mechanics, rows: NDArray[np.intp], arm: Arm, links: Links, q: Floats, settled: Settled, load: Load
) -> None:
    frames, tool = settled.frames, load.tool
    found.place[rows] = arm.place(frames, tool)
    found.stiff[rows] = arm.place(arm.walk(q), tool)
    found.elevation[rows] = arm.elevation(frames, q, tool)
    found.force[rows] = -load.force
    found.torque[rows] = holding_torques(arm, links, q, settled, load)
    found.forearm[rows] = np.concatenate([frames.rotation[3], frames.origin[3][..., None]], axis=2)


def heat_grapple(plan: Plan, sets: Sets, air: Floats, loop: float, overheat: bool) -> Grapple:
    """Heat the grapple when it is to open: it opens when its wax has melted, and closes as it cools."""
    watt = float(sets["RA_JOINT_PARAMS"]["htr_power"][2])
    wanted = (plan.of_steps(lambda step: step.heat) > 0) & plan.resting
    celsius, heated, fingers = (
        np.empty(len(plan)),
        np.zeros(len(plan), dtype=bool),
        np.zeros(len(plan), dtype=bool),
    )
    now, on, is_open = float(air[0]), False, False
    for row, (ask, outside) in enumerate(zip(wanted.tolist(), air.tolist(), strict=True)):
        on = ask and (overheat or now < (HEATER_OFF if on else HEATER_AGAIN))
        gain = (watt if on else 0.0) - (now - outside) * GRAPPLE_LOSS
        now += loop * gain / GRAPPLE_MASS
        is_open = now > (FINGERS_CLOSED if is_open else FINGERS_OPEN)
        celsius[row], heated[row], fingers[row] = now, on, is_open
    return Grapple(celsius, heated, fingers)


BUS_VOLT = 30.0


@dataclass(frozen=True, eq=False)
class Telemetry:
    """Rows of the control loop as the flight software sees them."""

    t_ns: Ints  # (n,), spacecraft clock
    readings: Readings
    derived: Derived
    grapple: Floats  # (n,), degC
    heaters: Floats  # (n,), sum of the heater currents, A
    references: Floats  # (n, 2), V
    stat: NDArray[np.uint32]  # (n,) uint32, SIS Table 13


def measure(plan: Plan, true: State, flight: Flight, seed: int, start_ns: int, faults: Faults) -> Telemetry:
    """Measure the state of the world and let the flight software make of it what it can."""
    sensors, timeline = Sensors(flight.sets, seed), plan.timeline
    n = len(plan)
    warm = sensors.temperatures(np.column_stack([true.motors.case, true.grapple.celsius]))
    readings = Readings(
        enc=sensors.encoders(timeline.q),
        pot=sensors.pots(timeline.q, faults.slipped),
        case=warm[:, :4],
        current=sensors.currents(true.motors.current),
        volt=sensors.volts(true.motors.volt),
        power=timeline.on,
        tool=plan.of_steps(lambda step: step.tool).astype(np.int64),
        phase=plan.of_steps(lambda step: step.phase).astype(np.int64),
    )
    watt = float(flight.sets["RA_JOINT_PARAMS"]["htr_power"][2])
    loop_ns = round(1e9 * float(flight.sets["RA_CTRL_PARAMS"]["loop_time"]))
    return Telemetry(
        t_ns=start_ns + loop_ns * np.arange(n, dtype=np.int64),
        readings=readings,
        derived=flight.derive(readings),
        grapple=warm[:, 4],
        heaters=sensors.heater_current(np.where(true.grapple.heated, watt / BUS_VOLT, 0.0)),
        references=sensors.references(n, faults.drift),
        stat=_status(plan, readings, flight),
    )


def _status(plan: Plan, readings: Readings, flight: Flight) -> NDArray[np.uint32]:
    """Status words (n,): brakes are off while their motors are on; the joints need no heater by day."""
    nothing = np.zeros(plan.timeline.on.shape, dtype=bool)
    groups = {
        "motor_on": plan.timeline.on,
        "rotation_negative": plan.timeline.sense < 0,
        "over_current": np.abs(readings.current) > flight.current_limits(),
        "brake_off": plan.timeline.on,
        "heater_on": nothing,
    }
    bits = {f"{group}_{joint + 1}": groups[group][:, joint] for group in STATUS_GROUPS for joint in range(4)}
    return encode_status(bits)
