"""What is true of a simulated day of the arm, as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Ints
from transect.recording import Stream, arrow

from ...day import Truth
from .faults import fault_table
from .life import Life
from .products import Product


def collect_truth(
    life: Life, products: Sequence[tuple[Stream, Product]], files: Mapping[str, Callable[[], bytes]]
) -> Truth:
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
    return Truth(tables=tables, maps={"dem": life.site.terrain.as_grid()}, files=files)


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
