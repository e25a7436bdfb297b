"""InSight: an arm on a lander deploys instruments, presses on the soil and looks around (IDA products).

Conditions that it knows:

- ``story``: `deploy`, `soil`, `imaging`, or `all` of them (default). A story takes 5 to 20 minutes; a shorter
  recording holds its most telling acts, a longer one several rounds of it.
- ``fault``: one or more of `encoder-pot`, `stalled`, `grapple-overheat` and `vref`, separated by commas.
- ``no_load``: how the flight software takes friction off a motor's current, which the SIS leaves open:
  `along` the current (default), or `subtracted` whatever its direction.

The arm bends, heats and touches things as it would (`arm/`); its flight software knows
only what its sensors say. Pictures of the camera are the stream `IDC`, in files that are named
as InSight's raw pictures are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from transect import robots
from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.datasets.insight.products import names
from transect.geometry import rotations
from transect.recording import FrameTree, Recording, Robot, Stream, arrow
from transect.simulation.day import Day, Options, Truth

from .faults import fault_table
from .products import RING, Product, make_science_streams, make_status_streams
from .scene import NAME, Camera
from .site import invented_keys
from .state import Life, live

SOL = 209
"""Of the label in SIS appendix E."""
SCILO_EVERY, STATUS_EVERY = 10, 5
"""Turns of the control loop between rows."""
GAP_NS = 2 * NS
"""A longer silence begins a new file."""
LINKS = ("ArmBase", "Shoulder", "UpperArm", "Forearm", "Wrist")


def make_day(options: Options) -> Day:
    """Return a day of the arm."""
    life, robot = live(options), robots.load("ida")
    camera = Camera.of(life, robot, options.scale, options.seed)

    made = [(stream, product) for stream, product in _telemetry(life) if options.wants(stream.name)]
    pictures = [camera.stream()] if camera.rows and options.wants(NAME) else []
    streams = (*(stream for stream, _ in made), *pictures)
    return Day(_recording(life, robot, camera, streams, options), collect_truth(life, made))


def _telemetry(life: Life) -> Iterator[tuple[Stream, Product]]:
    """Yield the streams that IDA products hold, each with the rows it is made of."""
    t_ns, rows = life.seen.t_ns, life.recorded

    def product(chosen: Ints, apid: int, name: str) -> Product:
        return Product.of(chosen, t_ns, apid, name, SOL, GAP_NS)

    for device, apid, every in (("SciHi", 87, 1), ("SciLo", 88, SCILO_EVERY)):
        some = product(
            rows[rows % every == 0] if (rows % every == 0).any() else rows[:1], apid, names.SCIENCE
        )
        yield from ((stream, some) for stream in make_science_streams(device, life.seen, some))
    told = _choose_status_rows(life)
    now = np.intersect1d(rows, told) if np.isin(rows, told).any() else rows[:1]
    arm, system = product(now, 89, names.ARM_FLOAT), product(now, 89, names.SYSTEM_FLOAT)
    yield from make_status_streams(life, "", arm, system)
    ring = product(told[told <= rows[-1]][-RING:], 85, names.SYSTEM_FLOAT)
    yield from make_status_streams(life, "History/", ring, ring)


def _choose_status_rows(life: Life) -> Ints:
    """Rows (k,) in which the flight software puts down its status: regularly, and when a command begins."""
    begun = np.flatnonzero(np.diff(life.plan.step, prepend=-1))
    return np.union1d(np.arange(0, len(life.plan), STATUS_EVERY), begun)


def _recording(
    life: Life, robot: Robot, camera: Camera, streams: tuple[Stream, ...], options: Options
) -> Recording:
    t_ns = int(life.seen.t_ns[life.recorded[0]])
    file = str(names.new_name(86, names.PARAMETERS, (t_ns, t_ns), SOL))
    sets = life.flight.sets
    return Recording(
        name="insight",
        streams=streams,
        frames=_frames(life, robot),
        cameras={NAME: camera.model},
        robot=robot,
        conditions={
            "simulated": True,
            "seed": options.seed,
            **life.conditions,
            "sols": (SOL,),
            "invented": invented_keys(),
            "parameters": sets,
            "parameter_files": {file: {"time_ns": t_ns, "parameters": sets}},
            "sc_coordinates": tuple(robot.frames.lookup("Payload", "Lander")[:3, 3].tolist()),
        },
        format="ida",
        notes=("simulated; parameters that the SIS lost are invented",),
    )


def _frames(life: Life, robot: Robot) -> FrameTree:
    """Return the frames of the robot, moved as the encoders say."""
    frames, rows = robot.frames.copy(), life.recorded
    t_ns, q = life.seen.t_ns[rows], life.seen.readings.enc[rows]
    arm = life.site.arm
    for joint in range(4):
        angle, a = q[:, joint], arm.a[joint]
        place = np.column_stack([a * np.cos(angle), a * np.sin(angle), np.full(len(q), arm.d[joint])])
        about_z = rotations.quaternion_from_axis_angle([0.0, 0.0, 1.0], angle)
        turned = rotations.multiply(
            about_z, rotations.quaternion_from_axis_angle([1.0, 0.0, 0.0], arm.alpha[joint])
        )
        frames.add_moving(
            LINKS[joint], LINKS[joint + 1], t_ns, place, turned, clock="sclk", source="Arm/SciHi/Encoders"
        )
    return frames


def collect_truth(life: Life, products: Sequence[tuple[Stream, Product]]) -> Truth:
    """Return the truth of what was recorded, on its own times.

    Tables: `joints` (true angles), `tool` (where the tool is), `sag` (by how much the arm gives way there),
    `contact` (forces that the tool exerts, and how deep it is), `temperatures`, and `faults` if any.
    """
    rows = life.recorded
    tables = {name: make(life, rows) for name, make in _TABLES.items()}
    if life.fault_names:
        limit = float(life.flight.numbers("RA_GRAPPLE_PARAMS", "max_temperature"))
        hot = life.true.grapple.celsius > limit
        spoilt = [(stream.name, product.rows, life.seen.t_ns[product.rows]) for stream, product in products]
        tables["faults"] = fault_table(life.fault_names, life.plan, life.faults, hot, spoilt)
    return Truth(tables=tables, maps={"dem": life.site.terrain.as_grid()})


def _joints(life: Life, rows: Ints) -> pa.Table:
    moves = life.plan.timeline
    columns = {**_each("q", moves.q[rows]), **_each("v", moves.velocity[rows])}
    columns |= _each("tau", life.true.mechanics.torque[rows])
    units = {**_units("q", "rad"), **_units("v", "rad/s"), **_units("tau", "N m")}
    return arrow.table(life.seen.t_ns[rows], columns, units=units)


def _tool(life: Life, rows: Ints) -> pa.Table:
    place = life.true.mechanics.place[rows]
    columns = {axis: place[:, k].copy() for k, axis in enumerate("xyz")}
    columns["th"] = life.true.mechanics.elevation[rows]
    return arrow.table(life.seen.t_ns[rows], columns, units={"x": "m", "y": "m", "z": "m", "th": "rad"})


def _sag(life: Life, rows: Ints) -> pa.Table:
    mechanics = life.true.mechanics
    given = mechanics.place[rows] - mechanics.stiff[rows]
    columns = {f"d{axis}": given[:, k].copy() for k, axis in enumerate("xyz")}
    return arrow.table(life.seen.t_ns[rows], columns, units=dict.fromkeys(columns, "m"))


def _contact(life: Life, rows: Ints) -> pa.Table:
    """Forces outwards, across and down, as SIS appendix D names them; of the arm, not of the tool."""
    mechanics, azimuth = life.true.mechanics, life.plan.timeline.q[rows, 0]
    force, c, s = mechanics.force[rows], np.cos(azimuth), np.sin(azimuth)
    columns: dict[str, Any] = {
        "Fr": c * force[:, 0] + s * force[:, 1],
        "Ft": c * force[:, 1] - s * force[:, 0],
        "Fz": force[:, 2].copy(),
        "normal": mechanics.normal[rows],
        "depth": mechanics.depth[rows],
        "act": arrow.strings([life.plan.steps[k].act for k in life.plan.step[rows].tolist()]),
    }
    units = {**dict.fromkeys(("Fr", "Ft", "Fz", "normal"), "N"), "depth": "m"}
    return arrow.table(life.seen.t_ns[rows], columns, units=units)


def _temperatures(life: Life, rows: Ints) -> pa.Table:
    motors = life.true.motors
    columns = {**_each("rotor", motors.rotor[rows]), **_each("case", motors.case[rows])}
    columns |= {"grapple": life.true.grapple.celsius[rows], "air": life.true.air[rows]}
    return arrow.table(life.seen.t_ns[rows], columns, units=dict.fromkeys(columns, "degC"))


_TABLES = {"joints": _joints, "tool": _tool, "sag": _sag, "contact": _contact, "temperatures": _temperatures}


def _each(name: str, values: Floats) -> dict[str, Floats]:
    return {f"{name}{joint + 1}": values[:, joint].copy() for joint in range(4)}


def _units(name: str, unit: str) -> dict[str, str]:
    return {f"{name}{joint + 1}": unit for joint in range(4)}
