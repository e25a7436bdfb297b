"""SciHi, SciLo and status streams of the simulated arm, as the reader makes them, rounded as printed.

Arm and system status are those of SIS 5.1.1, and the ring of the last 300 (5.1.2). What the SIS does not tell
and no table gives is invented: the numbers of the commands, and where the bits of the fault words are (they
stay 0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.datasets.insight.products import names
from transect.datasets.insight.products.columns import BY_NAME, FORCES, PHASES, decode_status, names_of_codes
from transect.datasets.insight.products.status import ARM, SYSTEM, StatusText
from transect.datasets.insight.products.writing import DECIMALS
from transect.datasets.insight.robot.arm import TOOLS
from transect.recording import Stream, arrow
from transect.types import JointState, Record

from .state import Life, Telemetry

_JOINT_UNITS = {"position": "rad", "velocity": "rad/s", "effort": "N m"}


@dataclass(frozen=True, eq=False)
class Product:
    """Rows that go into files of one kind."""

    rows: Ints  # (k,), of the telemetry
    files: list[str]  # the file of each; rows that follow each other closely are in one

    @classmethod
    def of(cls, rows: Ints, t_ns: Ints, apid: int, product: str, sol: int, gap_ns: int) -> Product:
        """Name the files of rows by SIS Table 8; a longer silence than `gap_ns` begins a new one."""
        edges = [0, *(np.flatnonzero(np.diff(t_ns[rows]) > gap_ns) + 1).tolist(), len(rows)]
        files: list[str] = []
        for a, b in pairwise(edges):
            span = int(t_ns[rows[a]]), int(t_ns[rows[b - 1]])
            files += [str(names.new_name(apid, product, span, sol))] * (b - a)
        return cls(rows, files)


def make_science_streams(device: str, telemetry: Telemetry, product: Product) -> Iterator[Stream]:
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


def _main(telemetry: Telemetry, product: Product) -> dict[str, Any]:
    """Return the columns of the table that no other stream has, and what its codes stand for."""
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
    """Return numbers as a table with four decimals of `scale` holds them."""
    return np.round(values / scale, DECIMALS) * scale


RING = 300
GUARDED, JOINT, HEAT, SEND = 17, 20, 22, 23
COMMANDS = {GUARDED: "RA_MOVE_GUARDED", JOINT: "RA_MOVE_JOINT", HEAT: "RA_GRAPPLE_OPEN", SEND: "RA_SEND_DATA"}
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
MASK = (0xF00F0F, 0x39FF7E7F)
"""fault_chk_mask as the SIS prints it."""


def make_status_streams(
    life: Life, prefix: str, arm: Product, system: Product
) -> Iterator[tuple[Stream, Product]]:
    """Yield the four streams of a status with their rows; `prefix` is "History/" for the ring."""
    seen, rows = life.seen, arm.rows
    ring = _ring(len(rows)) if prefix else {}

    def stream(
        name: str, kind: type, product: Product, columns: Mapping[str, Any], text: StatusText
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
        stream("System/Status", Record, system, _order(SYSTEM, _system(life, system.rows)), SYSTEM),
        system,
    )


def _ring(count: int) -> dict[str, Ints]:
    """How many points before the latest each is, and its place in the ring."""
    points = np.arange(count, dtype=np.int64)[::-1].copy()
    return {"points_before_latest": points, "ring_index": (RING - 1 - points) % RING}


def _order(kind: StatusText, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns in the order of the SIS, each code with its text after it."""
    wanted = [name for key in kind.keys for name in (key.column, f"{key.column}_text", f"{key.column}_name")]
    return {name: columns[name] for name in wanted if name in columns}


def _arm(seen: Telemetry, rows: Ints) -> dict[str, Any]:
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


def _system(life: Life, rows: Ints) -> dict[str, Any]:
    n, plan, seen = len(rows), life.plan, life.seen
    readings, step = seen.readings, plan.step[rows]
    code = np.where(plan.of_steps(lambda s: s.guarded)[rows] > 0, 2, 3)
    zeros, none = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    still = np.zeros((n, 4), dtype=np.int64)
    return {
        "curr_limit": np.tile(life.flight.current_limits().round(3), (n, 1)),
        "mtr_volt": readings.volt[rows].round(),
        "brake": np.ones((n, 4), dtype=np.int64),
        **dict.fromkeys(("use_pots", "htr_on", "mtr_volt_sign"), still),
        **dict.fromkeys(("cool_down", "actively_holding_position", "col_status_has_collisions"), zeros),
        "fault_chk_mask": np.tile(np.array(MASK, dtype=np.int64), (n, 1)),
        "fault_status": np.zeros((n, 2), dtype=np.int64),
        **dict.fromkeys(("col_status_link1", "col_status_link2", "col_status_obj1", "col_status_obj2"), none),
        **_commands(life, rows),
        "via_step": plan.timeline.via_step[rows],
        "rotation_cmd": np.where(plan.timeline.sense[rows] < 0, -1, 1).astype(np.int64),
        **dict.fromkeys(("delta_via_dq", "delta_via_dx"), np.zeros((n, 4))),
        **dict.fromkeys(
            ("delta_via_mag", "delta_tau", "energy_limit", "energy_value", "plane_angle"), np.zeros(n)
        ),
        **_encode("algo_code", code, ALGORITHMS),
        **_encode("algo_code_override", zeros, {0: "RA_ALGO_NO_OVERRIDE"}),
        **_encode("delta_via_code", zeros + 3, {3: "RA_DELTA_VIA_USER"}),
        "tau": seen.derived.torque[rows].round(1),
        **_encode("track_state", zeros, {0: "RA_NO_TRACKING"}),
        "time_limit_ns": _step_ends(life)[step],
        **_grapple(life, rows),
    }


def _commands(life: Life, rows: Ints) -> dict[str, Any]:
    """Return what was commanded last: the step's move, then the data that it made."""
    plan, tools = life.plan, life.seen.readings.tool[rows]
    step, resting = plan.step[rows], plan.resting[rows]
    heat = plan.of_steps(lambda s: s.heat)[rows] > 0
    guarded = plan.of_steps(lambda s: s.guarded)[rows] > 0
    act = np.where(guarded, GUARDED, JOINT)
    task = np.where(resting & heat, HEAT, SEND)
    begun = np.searchsorted(plan.step, np.arange(len(plan.steps)))
    return {
        **_encode("act_cmd", act, COMMANDS),
        "act_args": arrow.strings([str(k) for k in step.tolist()]),
        **_encode("task_cmd", task, COMMANDS),
        "task_args": arrow.strings(["220"] * len(rows)),
        "target_q": plan.goals[step].round(3),
        "target_x": _tool_poses(life, plan.goals[step], rows, sagging=True).round(3),
        "via_q": plan.timeline.via[rows].round(3),
        "via_x": _tool_poses(life, plan.timeline.via[rows], rows, sagging=False).round(3),
        "via_time_ns": life.seen.t_ns[begun][step],
        **_encode("tool", tools, {k: _tool_text(k) for k in range(len(TOOLS))}),
        "tool_name": arrow.strings([TOOLS[k] for k in tools.tolist()]),
    }


def _tool_poses(life: Life, q: Floats, rows: Ints, *, sagging: bool) -> Floats:
    """Poses (k, 4) that joint angles (k, 4) give the tools that were selected."""
    tools, phases = life.seen.readings.tool[rows], life.seen.readings.phase[rows]
    poses = np.empty((len(rows), 4))
    for tool, phase in np.unique(np.column_stack([tools, phases]), axis=0).tolist():
        chosen = (tools == tool) & (phases == phase)
        poses[chosen] = life.flight.poses(q[chosen], tool, phase)[int(sagging)]
    return poses


def _tool_text(code: int) -> str:
    """Return the flight software's word for a tool; the camera still has its name of Phoenix."""
    return "RA_" + ("RAC" if code == 3 else TOOLS[code].upper().replace(" ", "_").replace("-", "_"))


def _grapple(life: Life, rows: Ints) -> dict[str, Any]:
    grapple, phase = life.true.grapple, life.seen.readings.phase[rows]
    fingers = np.where(grapple.open[rows], 2, np.where(grapple.celsius[rows] > 0.0, 0, 1))
    stops = np.where(grapple.heated[rows], _step_ends(life)[life.plan.step[rows]], 0)
    return {
        **_encode("grapple_state", fingers, dict(zip((1, 2, 0), FINGERS, strict=True))),
        "grapple_temp": life.seen.grapple[rows].round(1),
        "grapple_exp_time_ns": stops,
        **_encode("grapple_phase", phase, dict(enumerate(PHASE_TEXTS))),
        "grapple_phase_name": arrow.strings([PHASES[k] for k in phase.tolist()]),
    }


def _step_ends(life: Life) -> Ints:
    """Time (k,) at which each step is over."""
    last = np.searchsorted(life.plan.step, np.arange(len(life.plan.steps)), side="right") - 1
    return life.seen.t_ns[last]


def _encode(name: str, codes: Ints, texts: Mapping[int, str]) -> dict[str, Any]:
    return {name: codes.astype(np.int64), f"{name}_text": arrow.strings([texts[c] for c in codes.tolist()])}
