"""SciHi and SciLo streams of the simulated arm, as the reader makes them, rounded as they are printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.formats.ida import names
from transect.formats.ida.columns import BY_NAME, FORCES, PHASES, decode_status, names_of_codes
from transect.formats.ida.writing import DECIMALS
from transect.recording import Stream, arrow
from transect.robots.ida.arm import TOOLS
from transect.types import JointState, Record

from .telemetry import Telemetry

_JOINT_UNITS = {"position": "rad", "velocity": "rad/s", "effort": "N m"}


@dataclass(frozen=True, eq=False)
class Product:
    """Rows that go into files of one kind.

    Attributes
    ----------
    rows : (k,) int array
        Of the telemetry.
    files : list of str
        The file of each; rows that follow each other closely are in one.
    """

    rows: Ints
    files: list[str]

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
