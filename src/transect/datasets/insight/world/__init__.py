"""World `insight`: the arm on the lander deploys instruments, presses on soil and takes pictures.

Conditions:

- ``story``: `deploy`, `soil`, `imaging`, or `all` of them (default). A story takes 5 to 20 minutes; a shorter
  recording holds its most important acts, a longer one several rounds of it.
- ``fault``: one or more of `encoder-pot`, `stalled`, `grapple-overheat` and `vref`, separated by commas.
- ``no_load``: how the flight software removes friction from the current of a motor, which the SIS leaves
  open: `along` the current (default), or `subtracted` in any direction.

The simulated arm bends, heats up and touches the ground (`arm/`); its flight software sees only its sensors.
Pictures of the camera are the stream `IDC`, in files named as InSight's raw images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from transect import robots
from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.datasets.insight.products import names
from transect.geometry import rotations
from transect.recording import FrameTree, Recording, Robot, Stream, arrow
from transect.simulation.day import Day, Truth, WorldOptions

from .faults import fault_table
from .products import RING_SIZE, ProductRows, make_science_streams, make_status_streams
from .scene import CAMERA, ForearmCamera
from .site import invented_keys
from .state import ArmSimulation, simulate_arm


@dataclass(frozen=True)
class RecordingSettings:
    """Rows and files of the simulated products."""

    sol: int = 209  # that of the label in SIS appendix E
    scilo_cycles: int = 10  # control cycles between rows of SciLo
    status_cycles: int = 5  # control cycles between status rows
    max_gap_ns: int = 2 * NS  # a longer gap starts a new file


RECORDING = RecordingSettings()
LINKS = ("ArmBase", "Shoulder", "UpperArm", "Forearm", "Wrist")


def make_day(options: WorldOptions) -> Day:
    """Return a simulated recording of the arm with its ground truth."""
    simulation, robot = simulate_arm(options), robots.load("ida")
    camera = ForearmCamera.of(simulation, robot, options.scale, options.seed)

    made = [(stream, product) for stream, product in _telemetry(simulation) if options.wants(stream.name)]
    pictures = [camera.stream()] if camera.rows and options.wants(CAMERA) else []
    streams = (*(stream for stream, _ in made), *pictures)
    return Day(_recording(simulation, robot, camera, streams, options), collect_truth(simulation, made))


def _telemetry(simulation: ArmSimulation) -> Iterator[tuple[Stream, ProductRows]]:
    """Yield the streams of the IDA products, each with its rows."""
    t_ns, rows = simulation.seen.t_ns, simulation.recorded

    def product(chosen: Ints, apid: int, name: str) -> ProductRows:
        return ProductRows.of(chosen, t_ns, apid, name, RECORDING.sol, RECORDING.max_gap_ns)

    for device, apid, every in (("SciHi", 87, 1), ("SciLo", 88, RECORDING.scilo_cycles)):
        selected = product(
            rows[rows % every == 0] if (rows % every == 0).any() else rows[:1], apid, names.SCIENCE
        )
        yield from ((stream, selected) for stream in make_science_streams(device, simulation.seen, selected))
    status_rows = _choose_status_rows(simulation)
    now = np.intersect1d(rows, status_rows) if np.isin(rows, status_rows).any() else rows[:1]
    arm, system = product(now, 89, names.ARM_FLOAT), product(now, 89, names.SYSTEM_FLOAT)
    yield from make_status_streams(simulation, "", arm, system)
    ring = product(status_rows[status_rows <= rows[-1]][-RING_SIZE:], 85, names.SYSTEM_FLOAT)
    yield from make_status_streams(simulation, "History/", ring, ring)


def _choose_status_rows(simulation: ArmSimulation) -> Ints:
    """Rows (k,) in which the flight software records its status: regularly, and at the start of a command."""
    started = np.flatnonzero(np.diff(simulation.plan.step_of_row, prepend=-1))
    return np.union1d(np.arange(0, len(simulation.plan), RECORDING.status_cycles), started)


def _recording(
    simulation: ArmSimulation,
    robot: Robot,
    camera: ForearmCamera,
    streams: tuple[Stream, ...],
    options: WorldOptions,
) -> Recording:
    t_ns = int(simulation.seen.t_ns[simulation.recorded[0]])
    file = str(names.new_name(86, names.PARAMETERS, (t_ns, t_ns), RECORDING.sol))
    sets = simulation.flight.sets
    return Recording(
        name="insight",
        streams=streams,
        frames=_frames(simulation, robot),
        cameras={CAMERA: camera.model},
        robot=robot,
        conditions={
            "simulated": True,
            "seed": options.seed,
            **simulation.conditions,
            "sols": (RECORDING.sol,),
            "invented": invented_keys(),
            "parameters": sets,
            "parameter_files": {file: {"time_ns": t_ns, "parameters": sets}},
            "sc_coordinates": tuple(robot.frames.lookup("Payload", "Lander")[:3, 3].tolist()),
        },
        format="ida",
        notes=("simulated; parameters that the SIS lost are invented",),
    )


def _frames(simulation: ArmSimulation, robot: Robot) -> FrameTree:
    """Return the frames of the robot, moved by the encoders."""
    frames, rows = robot.frames.copy(), simulation.recorded
    t_ns, q = simulation.seen.t_ns[rows], simulation.seen.readings.enc[rows]
    arm = simulation.site.arm
    for joint in range(4):
        angle, a = q[:, joint], arm.a[joint]
        position = np.column_stack([a * np.cos(angle), a * np.sin(angle), np.full(len(q), arm.d[joint])])
        about_z = rotations.quaternion_from_axis_angle([0.0, 0.0, 1.0], angle)
        orientation = rotations.multiply(
            about_z, rotations.quaternion_from_axis_angle([1.0, 0.0, 0.0], arm.alpha[joint])
        )
        frames.add_moving(
            LINKS[joint],
            LINKS[joint + 1],
            t_ns,
            position,
            orientation,
            clock="sclk",
            source="Arm/SciHi/Encoders",
        )
    return frames


def collect_truth(simulation: ArmSimulation, products: Sequence[tuple[Stream, ProductRows]]) -> Truth:
    """Return the ground truth of the recorded rows.

    Tables: `joints` (true angles), `tool` (true tool pose), `sag` (elastic displacement of the tool),
    `contact` (forces and depth of the tool), `temperatures`, and `faults` if any.
    """
    rows = simulation.recorded
    tables = {name: make(simulation, rows) for name, make in _TABLES.items()}
    if simulation.fault_names:
        limit = float(simulation.flight.numbers("RA_GRAPPLE_PARAMS", "max_temperature"))
        hot = simulation.true.grapple.celsius > limit
        recorded = [
            (stream.name, product.rows, simulation.seen.t_ns[product.rows]) for stream, product in products
        ]
        tables["faults"] = fault_table(
            simulation.fault_names, simulation.plan, simulation.faults, hot, recorded
        )
    return Truth(tables=tables, maps={"dem": simulation.site.terrain.as_grid()})


def _joints(simulation: ArmSimulation, rows: Ints) -> pa.Table:
    moves = simulation.plan.timeline
    columns = {**_each("q", moves.q[rows]), **_each("v", moves.velocity[rows])}
    columns |= _each("tau", simulation.true.mechanics.torque[rows])
    units = {**_units("q", "rad"), **_units("v", "rad/s"), **_units("tau", "N m")}
    return arrow.table(simulation.seen.t_ns[rows], columns, units=units)


def _tool(simulation: ArmSimulation, rows: Ints) -> pa.Table:
    position = simulation.true.mechanics.position[rows]
    columns = {axis: position[:, k].copy() for k, axis in enumerate("xyz")}
    columns["th"] = simulation.true.mechanics.elevation[rows]
    return arrow.table(simulation.seen.t_ns[rows], columns, units={"x": "m", "y": "m", "z": "m", "th": "rad"})


def _sag(simulation: ArmSimulation, rows: Ints) -> pa.Table:
    mechanics = simulation.true.mechanics
    displacement = mechanics.position[rows] - mechanics.rigid_position[rows]
    columns = {f"d{axis}": displacement[:, k].copy() for k, axis in enumerate("xyz")}
    return arrow.table(simulation.seen.t_ns[rows], columns, units=dict.fromkeys(columns, "m"))


def _contact(simulation: ArmSimulation, rows: Ints) -> pa.Table:
    """Forces in the radial, transverse and vertical directions of SIS appendix D."""
    mechanics, azimuth = simulation.true.mechanics, simulation.plan.timeline.q[rows, 0]
    force, c, s = mechanics.force[rows], np.cos(azimuth), np.sin(azimuth)
    columns: dict[str, Any] = {
        "Fr": c * force[:, 0] + s * force[:, 1],
        "Ft": c * force[:, 1] - s * force[:, 0],
        "Fz": force[:, 2].copy(),
        "normal": mechanics.normal[rows],
        "depth": mechanics.depth[rows],
        "act": arrow.strings(
            [simulation.plan.steps[k].act for k in simulation.plan.step_of_row[rows].tolist()]
        ),
    }
    units = {**dict.fromkeys(("Fr", "Ft", "Fz", "normal"), "N"), "depth": "m"}
    return arrow.table(simulation.seen.t_ns[rows], columns, units=units)


def _temperatures(simulation: ArmSimulation, rows: Ints) -> pa.Table:
    motors = simulation.true.motors
    columns = {**_each("rotor", motors.rotor[rows]), **_each("case", motors.case[rows])}
    columns |= {"grapple": simulation.true.grapple.celsius[rows], "air": simulation.true.air[rows]}
    return arrow.table(simulation.seen.t_ns[rows], columns, units=dict.fromkeys(columns, "degC"))


_TABLES = {"joints": _joints, "tool": _tool, "sag": _sag, "contact": _contact, "temperatures": _temperatures}


def _each(name: str, values: Floats) -> dict[str, Floats]:
    return {f"{name}{joint + 1}": values[:, joint].copy() for joint in range(4)}


def _units(name: str, unit: str) -> dict[str, str]:
    return {f"{name}{joint + 1}": unit for joint in range(4)}
