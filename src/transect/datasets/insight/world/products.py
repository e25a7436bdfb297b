"""SciHi, SciLo and status streams of the simulated arm, as the reader returns them, rounded as printed.

Arm and system status are those of SIS 5.1.1, with the ring of the last 300 rows (5.1.2). The numbers of the
commands are invented, since the SIS does not list them; the fault words stay 0, since it does not give the
meaning of their bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.datasets.insight.products import names
from transect.datasets.insight.products.columns import BY_NAME, FORCES, PHASES, decode_status, names_of_codes
from transect.datasets.insight.products.status import ARM, SYSTEM, StatusText
from transect.datasets.insight.products.writing import RING_SIZE, TABLE_DECIMALS
from transect.datasets.insight.robot.arm import TOOLS
from transect.datasets.insight.robot.codes import ToolCode
from transect.recording import Stream, arrow
from transect.types import JointState, Record

from .state import ArmSimulation, SimulatedTelemetry

_JOINT_UNITS = {"position": "rad", "velocity": "rad/s", "effort": "N m"}


@dataclass(frozen=True, eq=False)
class ProductRows:
    """Rows of one kind of product file."""

    rows: Ints  # (k,), of the telemetry
    files: list[str]  # the file of each row; a file has no longer gaps

    @classmethod
    def of(cls, rows: Ints, t_ns: Ints, apid: int, product: str, sol: int, gap_ns: int) -> ProductRows:
        """Name the files of rows by SIS Table 8; a gap longer than `gap_ns` starts a new file."""
        edges = [0, *(np.flatnonzero(np.diff(t_ns[rows]) > gap_ns) + 1).tolist(), len(rows)]
        files: list[str] = []
        for a, b in pairwise(edges):
            span = int(t_ns[rows[a]]), int(t_ns[rows[b - 1]])
            files += [str(names.new_name(apid, product, span, sol))] * (b - a)
        return cls(rows, files)


def make_science_streams(
    device: str, telemetry: SimulatedTelemetry, product: ProductRows
) -> Iterator[Stream]:
    """Yield the five streams of `SciHi` or `SciLo`."""
    rows, t_ns = product.rows, telemetry.t_ns[product.rows]
    readings, derived = telemetry.readings, telemetry.derived
    file = arrow.strings(product.files)

    def stream(
        part: str, kind: type, columns: Mapping[str, Any], units: Mapping[str, str], **more: Any
    ) -> Stream:
        table = arrow.table(t_ns, {**columns, "file": file}, units=units)
        return Stream(f"Arm/{device}{part}", kind, table, clock="sclk", **more)

    main = _main(telemetry, product)
    yield stream("", Record, main, {name: BY_NAME[name].unit for name in main if name in BY_NAME})
    joints = {"position": readings.enc, "velocity": derived.velocity, "effort": derived.torque}
    encoders = {name: round_as_printed(values[rows]) for name, values in joints.items()}
    yield stream("/Encoders", JointState, encoders, _JOINT_UNITS, tag="encoder")
    pots = {"position": round_as_printed(readings.pot[rows])}
    yield stream("/Potentiometers", JointState, pots, _JOINT_UNITS, tag="potentiometer")
    poses = {
        f"{axis}_{suffix}": round_as_printed(values[rows, k])
        for suffix, values in derived.poses.items()
        for k, axis in enumerate(("x", "y", "z", "th"))
    }
    yield stream("/Tool", Record, poses, {n: BY_NAME[n].unit for n in poses}, role="derived", frame="Payload")
    forces = {name: round_as_printed(derived.forces[rows, k]) for k, name in enumerate(FORCES)}
    yield stream("/Forces", Record, forces, dict.fromkeys(FORCES, "N"), role="derived")


def _main(telemetry: SimulatedTelemetry, product: ProductRows) -> dict[str, Any]:
    """Return the columns of the table that no other stream has, and the names of its codes."""
    rows, readings = product.rows, telemetry.readings
    numbers = {
        **_joints("tcase", readings.case[rows]),
        **_joints("trotor", telemetry.derived.rotor[rows]),
        "tgrapple": telemetry.grapple[rows],
        **_joints("cur", readings.current[rows]),
        **_joints("volt", readings.volt[rows]),
    }
    elapsed = {"elapsed_time": round_as_printed(_elapsed(telemetry.t_ns[rows], product.files), 3600.0)}
    stat, tool, phase = telemetry.stat[rows], readings.tool[rows], readings.phase[rows]
    return {
        **elapsed,
        **{name: round_as_printed(values, BY_NAME[name].scale) for name, values in numbers.items()},
        "stat": stat,
        "tool": tool,
        "htr_cur": round_as_printed(telemetry.heaters[rows]),
        "grapple_phase": phase,
        **decode_status(stat),
        "tool_name": arrow.strings(names_of_codes(tool, TOOLS)),
        "grapple_phase_name": arrow.strings(names_of_codes(phase, PHASES)),
    }


def _joints(name: str, values: Floats) -> dict[str, Floats]:
    return {f"{name}{joint + 1}": values[:, joint] for joint in range(4)}


def _elapsed(t_ns: Ints, files: list[str]) -> Floats:
    """Seconds (k,) since the first row of each file."""
    first = {file: int(t) for file, t in reversed(list(zip(files, t_ns.tolist(), strict=True)))}
    return (t_ns - np.array([first[file] for file in files], dtype=np.int64)) / NS


def round_as_printed(values: Floats, scale: float = 1.0) -> Floats:
    """Round numbers to four decimals of `scale`."""
    return np.round(values / scale, TABLE_DECIMALS) * scale


class CommandCode(IntEnum):
    """Operation codes of the commands; invented, the SIS does not list them."""

    GUARDED = 17
    JOINT = 20
    HEAT = 22
    SEND = 23


COMMANDS: dict[int, str] = {
    CommandCode.GUARDED: "RA_MOVE_GUARDED",
    CommandCode.JOINT: "RA_MOVE_JOINT",
    CommandCode.HEAT: "RA_GRAPPLE_OPEN",
    CommandCode.SEND: "RA_SEND_DATA",
}
PHASE_TEXTS = (
    "RA_LAUNCH_LOCKED",
    "RA_STOWED",
    "RA_OK_TO_OPEN",
    "RA_SEIS_GRAPPLED",
    "RA_WTS_GRAPPLED",
    "RA_HP3_GRAPPLED",
)
ALGORITHMS = {2: "RA_ALGO_CONTACT", 3: "RA_ALGO_FREE_SPACE"}
FINGERS = ("Fingers-Closed", "Fingers-Open", "Fingers-In-Between")
FAULT_CHECK_MASK = (0xF00F0F, 0x39FF7E7F)
"""As the SIS prints it."""


def make_status_streams(
    simulation: ArmSimulation, prefix: str, arm: ProductRows, system: ProductRows
) -> Iterator[tuple[Stream, ProductRows]]:
    """Yield the four status streams with their rows; `prefix` is "History/" for the ring."""
    seen, rows = simulation.seen, arm.rows
    ring = _ring(len(rows)) if prefix else {}

    def stream(
        name: str, kind: type, product: ProductRows, columns: Mapping[str, Any], text: StatusText
    ) -> Stream:
        every = {**ring, **columns, "file": arrow.strings(product.files)}
        units = {**{key.column: key.si_unit for key in text.keys}, "position": "rad"}
        tag = {"Encoders": "encoder", "Potentiometers": "potentiometer"}.get(name.rpartition("/")[2], "")
        table = arrow.table(seen.t_ns[product.rows], every, units=units)
        return Stream(f"{prefix}{name}", kind, table, clock="sclk", tag=tag)

    yield stream("Arm/Status", Record, arm, _order(ARM, _arm(seen, rows)), ARM), arm
    for name, q in (("Encoders", seen.readings.enc), ("Potentiometers", seen.readings.pot)):
        yield stream(f"Arm/Status/{name}", JointState, arm, {"position": q[rows].round(3)}, ARM), arm
    yield (
        stream("System/Status", Record, system, _order(SYSTEM, _system(simulation, system.rows)), SYSTEM),
        system,
    )


def _ring(count: int) -> dict[str, Ints]:
    """Number of points before the latest one, and index in the ring."""
    points = np.arange(count, dtype=np.int64)[::-1].copy()
    return {"points_before_latest": points, "ring_index": (RING_SIZE - 1 - points) % RING_SIZE}


def _order(kind: StatusText, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns in the order of the SIS, each code followed by its text."""
    wanted = [name for key in kind.keys for name in (key.column, f"{key.column}_text", f"{key.column}_name")]
    return {name: columns[name] for name in wanted if name in columns}


def _arm(seen: SimulatedTelemetry, rows: Ints) -> dict[str, Any]:
    readings = seen.readings
    on = readings.power[rows]
    negative = (seen.stat[rows, None] >> np.arange(4, 8, dtype=np.uint32)) & np.uint32(1)
    over = (seen.stat[rows, None] >> np.arange(8, 12, dtype=np.uint32)) & np.uint32(1)
    nothing = np.zeros(len(rows), dtype=np.int64)
    return {
        "ace_calib_ok": np.ones(len(rows), dtype=np.int64),
        **dict.fromkeys(
            ("ace_bus30v_err", "ace_parity_err", "ace_msg_err", "ace_load_box", "ace_self_test"), nothing
        ),
        "mtr_pwr_on": on.astype(np.int64),
        "mtr_rotation": negative.astype(np.int64),
        "mtr_over_current": over.astype(np.int64),
        "mtr_brake_on": (~on).astype(np.int64),
        "mtr_current": readings.current[rows].round(3),
        "jnt_temp": readings.case[rows].round(3),
        "ref": seen.references[rows].round(3),
        "htr_crnt": seen.heaters[rows].round(3),
        "agnd": np.full(len(rows), 0.002),
    }


def _system(simulation: ArmSimulation, rows: Ints) -> dict[str, Any]:
    n, plan, seen = len(rows), simulation.plan, simulation.seen
    readings, step = seen.readings, plan.step_of_row[rows]
    code = np.where(plan.per_row(lambda s: s.guarded)[rows] > 0, 2, 3)
    zeros, none = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    still = np.zeros((n, 4), dtype=np.int64)
    return {
        "curr_limit": np.tile(simulation.flight.current_limits().round(3), (n, 1)),
        "mtr_volt": readings.volt[rows].round(),
        "brake": np.ones((n, 4), dtype=np.int64),
        **dict.fromkeys(("use_pots", "htr_on", "mtr_volt_sign"), still),
        **dict.fromkeys(("cool_down", "actively_holding_position", "col_status_has_collisions"), zeros),
        "fault_chk_mask": np.tile(np.array(FAULT_CHECK_MASK, dtype=np.int64), (n, 1)),
        "fault_status": np.zeros((n, 2), dtype=np.int64),
        **dict.fromkeys(("col_status_link1", "col_status_link2", "col_status_obj1", "col_status_obj2"), none),
        **_commands(simulation, rows),
        "via_step": plan.timeline.via_step[rows],
        "rotation_cmd": np.where(plan.timeline.direction[rows] < 0, -1, 1).astype(np.int64),
        **dict.fromkeys(("delta_via_dq", "delta_via_dx"), np.zeros((n, 4))),
        **dict.fromkeys(
            ("delta_via_mag", "delta_tau", "energy_limit", "energy_value", "plane_angle"), np.zeros(n)
        ),
        **_encode("algo_code", code, ALGORITHMS),
        **_encode("algo_code_override", zeros, {0: "RA_ALGO_NO_OVERRIDE"}),
        **_encode("delta_via_code", zeros + 3, {3: "RA_DELTA_VIA_USER"}),
        "tau": seen.derived.torque[rows].round(1),
        **_encode("track_state", zeros, {0: "RA_NO_TRACKING"}),
        "time_limit_ns": _step_ends(simulation)[step],
        **_grapple(simulation, rows),
    }


def _commands(simulation: ArmSimulation, rows: Ints) -> dict[str, Any]:
    """Return the latest commands: the move of the step, then the transmission of its data."""
    plan, tools = simulation.plan, simulation.seen.readings.tool[rows]
    step, resting = plan.step_of_row[rows], plan.resting[rows]
    heat = plan.per_row(lambda s: s.heat_grapple)[rows] > 0
    guarded = plan.per_row(lambda s: s.guarded)[rows] > 0
    act = np.where(guarded, CommandCode.GUARDED, CommandCode.JOINT)
    task = np.where(resting & heat, CommandCode.HEAT, CommandCode.SEND)
    started = np.searchsorted(plan.step_of_row, np.arange(len(plan.steps)))
    return {
        **_encode("act_cmd", act, COMMANDS),
        "act_args": arrow.strings([str(k) for k in step.tolist()]),
        **_encode("task_cmd", task, COMMANDS),
        "task_args": arrow.strings(["220"] * len(rows)),
        "target_q": plan.goals[step].round(3),
        "target_x": _tool_poses(simulation, plan.goals[step], rows, sagging=True).round(3),
        "via_q": plan.timeline.via[rows].round(3),
        "via_x": _tool_poses(simulation, plan.timeline.via[rows], rows, sagging=False).round(3),
        "via_time_ns": simulation.seen.t_ns[started][step],
        **_encode("tool", tools, {k: _tool_text(k) for k in range(len(TOOLS))}),
        "tool_name": arrow.strings([TOOLS[k] for k in tools.tolist()]),
    }


def _tool_poses(simulation: ArmSimulation, q: Floats, rows: Ints, *, sagging: bool) -> Floats:
    """Poses (k, 4) of the selected tools at joint angles (k, 4)."""
    tools, phases = simulation.seen.readings.tool[rows], simulation.seen.readings.phase[rows]
    poses = np.empty((len(rows), 4))
    for tool, phase in np.unique(np.column_stack([tools, phases]), axis=0).tolist():
        chosen = (tools == tool) & (phases == phase)
        poses[chosen] = simulation.flight.poses(q[chosen], tool, phase)[int(sagging)]
    return poses


def _tool_text(code: int) -> str:
    """Return the name of a tool in the flight software; that of the camera is from the Phoenix mission."""
    return "RA_" + (
        "RAC" if code == ToolCode.CAMERA else TOOLS[code].upper().replace(" ", "_").replace("-", "_")
    )


def _grapple(simulation: ArmSimulation, rows: Ints) -> dict[str, Any]:
    grapple, phase = simulation.true.grapple, simulation.seen.readings.phase[rows]
    fingers = np.where(grapple.open[rows], 2, np.where(grapple.celsius[rows] > 0.0, 0, 1))
    stops = np.where(grapple.heated[rows], _step_ends(simulation)[simulation.plan.step_of_row[rows]], 0)
    return {
        **_encode("grapple_state", fingers, dict(zip((1, 2, 0), FINGERS, strict=True))),
        "grapple_temp": simulation.seen.grapple[rows].round(1),
        "grapple_exp_time_ns": stops,
        **_encode("grapple_phase", phase, dict(enumerate(PHASE_TEXTS))),
        "grapple_phase_name": arrow.strings([PHASES[k] for k in phase.tolist()]),
    }


def _step_ends(simulation: ArmSimulation) -> Ints:
    """Time (k,) of the end of each step."""
    last = (
        np.searchsorted(simulation.plan.step_of_row, np.arange(len(simulation.plan.steps)), side="right") - 1
    )
    return simulation.seen.t_ns[last]


def _encode(name: str, codes: Ints, texts: Mapping[int, str]) -> dict[str, Any]:
    return {name: codes.astype(np.int64), f"{name}_text": arrow.strings([texts[c] for c in codes.tolist()])}
