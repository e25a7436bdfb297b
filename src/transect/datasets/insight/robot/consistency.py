"""Does an archive agree with itself? Each derived column of a SciHi table, recomputed from its raw ones.

Raw are encoders, potentiometers, case temperatures, currents, voltages, codes and times. A recomputed number
may differ from the printed one by half of its last digit, and by what half of the last digit of its inputs
does to it; more is a disagreement. How much a residual proves depends on what the SIS says of the column:

- `proved`: the equation reproduces numbers that the SIS prints elsewhere. Tool poses exactly; with sag to
  0.3 mm, so that a smaller difference stays undecided.
- `printed`: the SIS prints the equation, and no number to try it on. Rotor temperatures, forces, status.
  Where it leaves a sign or a unit open, all its readings are tried, and the one that fits is named.
- `assumed`: the SIS does not give the equation. Torques rest on the form of the no-load current, velocities
  on how the flight software differentiates. Such a column can be confirmed here, not refuted.
- `measured`: two measurements of one thing, potentiometer and encoder, which the flight software lets differ
  by `enc_pot_delta` of RA_FAULT_DETECT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product
from typing import Literal

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import TransectError
from transect.geometry import robust
from transect.recording import Recording

from .arm import TOOLS, Arm, Tool
from .kinematics import tool_pose
from .motor import NO_LOAD_FORMS, Mode, Motors, Rotors, rotor_temperature, torque
from .parameters import Parameters
from .science import FORCES, POSES, Science, devices
from .statics import Links, Sign, deflection, end_effector_forces, gravity_moments

Basis = Literal["proved", "printed", "assumed", "measured"]
Verdict = Literal["consistent", "disagrees", "undecided", "not computed"]
Function = Callable[..., Floats]

BASES: dict[Basis, str] = {
    "proved": "the equation makes numbers that the SIS prints; what disagrees is the file or its parameters",
    "printed": "the SIS prints the equation, without numbers; readings that it leaves open were all tried",
    "assumed": "the SIS does not give the equation; agreement confirms it, disagreement decides nothing",
    "measured": "two sensors of one angle, which may differ by enc_pot_delta",
}
ROUNDING = 1e-9
"""What computing in floating point may add to a tolerance."""


@dataclass(frozen=True)
class Residual:
    """Printed minus recomputed, of one column."""

    column: str
    unit: str
    tool: str  # the rows' selected tool, "" for columns that do not depend on it
    basis: Basis  # what the recomputation rests on; see the module
    # rows, outside: how many rows were compared, and how many differ by more than they may
    rows: int
    outside: int
    # max_abs, rms, bias: of the residuals, in `unit`; NaN where none was computed
    max_abs: float
    rms: float
    bias: float
    tolerance: float  # what the row that is worst compared with it may differ by
    verdict: Verdict  # `undecided`: it differs, but what it was recomputed with is assumed or substituted
    remark: str = ""


@dataclass(frozen=True, eq=False)
class Readings:
    """Ways in which the SIS can be read."""

    # each computes (n, k) values from the inputs; the one that fits best is taken
    functions: Mapping[str, Function]
    allowance: Floats | float = 0.0  # (k,) or, Added to the tolerance
    # excuse, excused: why a disagreement up to that size does not count; "" if it does
    excuse: str = ""
    excused: float = np.inf


@dataclass(frozen=True, eq=False)
class Check:
    """Columns that are recomputed together."""

    columns: tuple[str, ...]
    unit: str | tuple[str, ...]  # of all, or of each
    basis: Basis
    printed: Floats  # (n, k)
    # what they are computed from, each with half of its last digit
    inputs: tuple[tuple[Floats, float], ...]
    # returns the `Readings`, or raises the `TransectError` that says what is missing for them
    readings: Callable[[], Readings]
    tool: str = ""
    digit: float = 1.0  # how many of `unit` the table's unit is; twice that for a difference of two numbers
    coupled: bool = False  # whether a column depends on several columns of an input

    @property
    def units(self) -> tuple[str, ...]:
        """The unit of each column."""
        return (self.unit,) * len(self.columns) if isinstance(self.unit, str) else self.unit

    def judge(self, half: float) -> Iterator[Residual]:
        """Compare with the reading that fits best; `half` is half of the last digit printed."""
        try:
            readings = self.readings()
        except TransectError as error:
            for column, unit in zip(self.columns, self.units, strict=True):
                yield self._not_computed(column, unit, error.what)
            return
        arrays = [values for values, _ in self.inputs]
        found = {name: function(*arrays) for name, function in readings.functions.items()}
        best = self._best(found)
        allowed = self.digit * half + readings.allowance
        allowed = allowed + self._spread(readings.functions[best], found[best])
        off = self._off(found[best])
        for k, column in enumerate(self.columns):
            residual = self._residual(column, self.units[k], off[:, k], allowed[:, k], readings)
            notes = [f"fits best as: {best}"] if len(found) > 1 and residual.rows else []
            if lost := int((np.isnan(self.printed[:, k]) & np.isfinite(found[best][:, k])).sum()):
                notes.append(f"{lost} rows are marked invalid that can be recomputed")
            notes += [residual.remark] if residual.remark else []
            yield replace(residual, remark="; ".join(notes))

    def _best(self, found: Mapping[str, Floats]) -> str:
        """Return the reading with the smallest misfit, by the numbers in which the readings differ at all."""
        apart = np.ptp(np.stack(list(found.values())), axis=0) != 0.0
        return min(found, key=lambda name: self._misfit(np.where(apart, found[name], np.nan)))

    def _off(self, values: Floats) -> Floats:
        off = self.printed - values
        angles = [unit == "rad" for unit in self.units]
        return np.where(angles, np.remainder(off + np.pi, 2 * np.pi) - np.pi, off)

    def _misfit(self, values: Floats) -> float:
        return float(np.nan_to_num(robust.median(np.abs(self._off(values)), axis=0)).sum())

    def _spread(self, function: Function, base: Floats) -> Floats:
        """What half of the last digit of the inputs can do to each value, all of them together, (n, k)."""
        total = np.zeros(base.shape)
        arrays = [values for values, _ in self.inputs]
        for i, (values, half) in enumerate(self.inputs):
            width = values.shape[1]
            for step in np.eye(width) if self.coupled else np.ones((1, width)):
                moved = [*arrays[:i], values + half * step, *arrays[i + 1 :]]
                total += np.abs(np.nan_to_num(function(*moved) - base))
        return total

    def _residual(self, column: str, unit: str, off: Floats, allowed: Floats, readings: Readings) -> Residual:
        known = np.isfinite(off)
        if not known.any():
            return self._not_computed(column, unit, "no row has it and all that it is computed from")
        off, allowed = off[known], allowed[known] * (1 + ROUNDING) + ROUNDING
        size = np.abs(off)
        outside, largest = int((size > allowed).sum()), float(size.max())
        excused = bool(outside and readings.excuse and largest <= readings.excused)
        return Residual(
            column,
            unit,
            self.tool,
            self.basis,
            rows=len(off),
            outside=outside,
            max_abs=largest,
            rms=float(np.sqrt(np.mean(off**2))),
            bias=float(off.mean()),
            tolerance=float(allowed[(size / allowed).argmax()]),
            verdict="undecided" if excused else "disagrees" if outside else "consistent",
            remark=readings.excuse if excused else "",
        )

    def _not_computed(self, column: str, unit: str, reason: str) -> Residual:
        nan = float("nan")
        return Residual(column, unit, self.tool, self.basis, 0, 0, nan, nan, nan, nan, "not computed", reason)


SPARE_BIT = 20
"""First of the spare bits of `stat`, SIS Table 13."""
SAG = 3e-4
"""m and rad to which the deflection model is confirmed by the numbers that the SIS prints."""
MILLI = 1e-3
"""Currents are mA in the tables."""


def check_recording(
    recording: Recording, parameters: Parameters | None = None
) -> dict[str, tuple[Residual, ...]]:
    """Recompute the derived columns of a recording's SciHi and SciLo tables, each by itself.

    Parameters
    ----------
    parameters : Parameters, optional
        Default: those of the recording, over those that the SIS prints.
    """
    known = parameters or Parameters.of(recording)
    return {name: tuple(check_rows(Science.of(recording, name), known)) for name in devices(recording)}


def check_rows(rows: Science, parameters: Parameters) -> Iterator[Residual]:
    """Recompute the derived columns of a table: first those of all rows, then tool by tool."""
    for make in (_check_elapsed, _status, _potentiometers, _velocities, _rotors, _torques):
        yield from make(rows, parameters).judge(rows.half)
    for code in np.unique(rows.tool).tolist():
        chosen = rows.only(rows.tool == code)
        for suffix in POSES:
            yield from _poses(chosen, parameters, suffix, rows.half).judge(rows.half)
        yield from _forces(chosen, parameters, rows.half).judge(rows.half)


def _joints(name: str) -> tuple[str, ...]:
    return tuple(f"{name}{joint}" for joint in (1, 2, 3, 4))


def _tool_name(rows: Science) -> str:
    code = int(rows.tool[0])
    return TOOLS[code] if 0 <= code < len(TOOLS) else f"tool {code}"


def _check_elapsed(rows: Science, parameters: Parameters) -> Check:
    """`elapsed_time` counts hours from some start: it must run as fast as `time`, file by file."""
    first = np.unique(rows.file, return_index=True)[1][rows.file] if len(rows.file) else rows.file
    seconds = (rows.t_ns - rows.t_ns[first]) / NS
    return Check(
        ("elapsed_time",),
        "s",
        "printed",
        (rows.elapsed - rows.elapsed[first])[:, None],
        ((seconds[:, None], 2 * rows.half_time),),
        lambda: Readings({"time": lambda t: t}),
        digit=2 * 3600.0,
    )


def _status(rows: Science, parameters: Parameters) -> Check:
    spare = (rows.stat >> SPARE_BIT != 0).astype(np.float64)[:, None]
    return Check(
        ("stat bits 20-31",),
        "",
        "printed",
        spare,
        (),
        lambda: Readings(
            {"zero": lambda: np.zeros_like(spare)},
            excuse="spare bits are set; Table 13 gives them no meaning",
        ),
        digit=0.0,
    )


def _potentiometers(rows: Science, parameters: Parameters) -> Check:
    def readings() -> Readings:
        return Readings({"enc": lambda q: q}, parameters.numbers("RA_FAULT_DETECT", "enc_pot_delta"))

    return Check(_joints("pot"), "rad", "measured", rows.pot, ((rows.enc, rows.half),), readings)


def _velocities(rows: Science, parameters: Parameters) -> Check:
    """Differences of the encoders over the printed times, between rows of neighbouring control loops."""
    follows = rows.adjacent(parameters.number("RA_CTRL_PARAMS", "loop_time"))
    seconds = np.where(follows, np.diff(rows.t_ns, prepend=0) / NS, np.nan)[:, None]
    next_seconds = np.append(seconds[1:], np.full((1, 1), np.nan), axis=0)[: len(seconds)]
    before = np.where(follows[:, None], np.roll(rows.enc, 1, axis=0), np.nan)
    after = np.where(np.isfinite(next_seconds), np.roll(rows.enc, -1, axis=0), np.nan)
    functions: dict[str, Function] = {
        "difference from the row before": lambda b, q, a: (q - b) / seconds,
        "difference of the rows around it": lambda b, q, a: (a - b) / (seconds + next_seconds),
    }
    excuse = "the SIS does not say how the flight software differentiates"
    inputs = tuple((q, rows.half) for q in (before, rows.enc, after))
    return Check(
        _joints("v"), "rad/s", "assumed", rows.velocity, inputs, lambda: Readings(functions, excuse=excuse)
    )


def _rotors(rows: Science, parameters: Parameters) -> Check:
    """Rotor temperatures, loop by loop from the first of each unbroken stretch of rows."""
    period = parameters.number("RA_CTRL_PARAMS", "loop_time")
    edges = [*np.flatnonzero(~rows.adjacent(period)).tolist(), len(rows.t_ns)]
    stretches = [slice(a, b) for a, b in pairwise(edges)]

    def warmed(mode: Mode, current: Floats, volt: Floats, case: Floats, rotor: Floats) -> Floats:
        rotors = Rotors.of(parameters)
        out = np.full(rotor.shape, np.nan)
        for part in stretches:  # as many as there are gaps
            out[part] = rotor_temperature(
                rotors,
                current[part],
                volt[part],
                case[part],
                times_ns=rows.t_ns[part],
                initial=rotor[part][0],
                mode=mode,
                period=period,
            )
            out[part.start] = np.nan  # given, not computed
        return out

    def readings() -> Readings:
        Rotors.of(parameters)
        return Readings(
            {
                "CM_r multiplies, as printed": partial(warmed, "multiply"),
                "CM_r divides, as its unit says": partial(warmed, "divide"),
            }
        )

    inputs = (
        (rows.current, rows.half * MILLI),
        (rows.volt, rows.half),
        (rows.case, rows.half),
        (rows.rotor, rows.half),
    )
    return Check(_joints("trotor"), "degC", "printed", rows.rotor, inputs, readings)


def _torques(rows: Science, parameters: Parameters) -> Check:
    def readings() -> Readings:
        named = Motors.of(parameters)
        plain = Motors.of(parameters, no_load=NO_LOAD_FORMS[1])
        return Readings(
            {
                "no-load current by fit_nl, subtracted": partial(torque, named),
                "no-load current by fit_nl, along the current": partial(torque, named, sense="along"),
                "no-load current without voltage, subtracted": partial(torque, plain),
                "no-load current without voltage, along the current": partial(torque, plain, sense="along"),
            },
            excuse="the SIS does not give the form of the no-load current; `fit_no_load` finds it",
        )

    inputs = ((rows.current, rows.half * MILLI), (rows.rotor, rows.half), (rows.volt, rows.half))
    return Check(_joints("tau"), "N m", "assumed", rows.torque, inputs, readings)


def _poses(rows: Science, parameters: Parameters, suffix: str, half: float) -> Check:
    angles = rows.enc if suffix.startswith("enc") else rows.pot

    def readings() -> Readings:
        arm = Arm.of(parameters)
        tool = arm.tool(int(rows.tool[0]))
        if not suffix.endswith("defl"):
            return Readings({"stiff": lambda q: tool_pose(arm, q, tool)})
        links = _links(arm, rows.phase)
        functions = {"with sag": lambda q: _sagging(arm, tool, links, rows.phase, q)}
        lost = _substitutes(links)
        if lost:
            return Readings(functions, excuse=lost)
        return Readings(functions, excuse="the SIS confirms the sag to 0.3 mm only", excused=SAG)

    return Check(
        tuple(f"{x}_{suffix}" for x in ("x", "y", "z", "th")),
        ("m", "m", "m", "rad"),
        "proved",
        rows.poses[suffix],
        ((angles, half),),
        readings,
        tool=_tool_name(rows),
        coupled=True,
    )


def _links(arm: Arm, phases: Ints) -> dict[int, Links]:
    return {code: Links.of(arm, code) for code in np.unique(phases).tolist()}


def _substitutes(links: dict[int, Links]) -> str:
    lost = dict.fromkeys(note for each in links.values() for note in each.substitutes)
    return f"computed with substitutes: {', '.join(lost)}" if lost else ""


def _sagging(arm: Arm, tool: Tool, links: dict[int, Links], phases: Ints, q: Floats) -> Floats:
    out = np.empty(q.shape)
    for code, bodies in links.items():
        rows = phases == code
        out[rows] = deflection(arm, q[rows], tool, bodies).pose
    return out


def _forces(rows: Science, parameters: Parameters, half: float) -> Check:
    """Forces from the printed torques; the moments of gravity are the links' (SIS appendix D)."""

    def readings() -> Readings:
        arm = Arm.of(parameters)
        tool = arm.tool(int(rows.tool[0]))
        links = _links(arm, rows.phase)
        loaded = (False, True) if any(each.payload for each in links.values()) else (False,)
        functions: dict[str, Function] = {}
        for sign, gravity, payload in product(("sis", "geometric"), (1.0, -1.0), loaded):
            words = (
                "F_T as printed" if sign == "sis" else "F_T by statics",
                "gravity added" if gravity > 0 else "gravity taken off",
                *(("payload weighs",) if payload else ()),
            )
            functions[", ".join(words)] = partial(
                _pushing, arm, tool, links, rows, sign, gravity, with_payload=payload
            )
        loose = "" if tool.kind == "rigid" else f"the forces of appendix D are not those at {tool.name}"
        return Readings(functions, excuse=loose or _substitutes(links))

    inputs = ((rows.enc, half), (rows.torque, half))
    tool = _tool_name(rows)
    return Check(FORCES, "N", "printed", rows.forces, inputs, readings, tool=tool, coupled=True)


def _pushing(
    arm: Arm,
    tool: Tool,
    links: dict[int, Links],
    rows: Science,
    sign: Sign,
    gravity: float,
    q: Floats,
    tau: Floats,
    *,
    with_payload: bool,
) -> Floats:
    """Forces (n, 3) with the weights that each row's grapple phase has."""
    moment = tau.copy()
    for code, bodies in links.items():
        now = rows.phase == code
        moment[now] += gravity * gravity_moments(arm, q[now], bodies, with_payload=with_payload)
    return end_effector_forces(arm, q, moment, tool, rows.power, sign=sign).values
