"""Consistency of an archive: each derived column of a SciHi table is recomputed from its raw columns.

Raw columns are encoders, potentiometers, case temperatures, currents, voltages, codes and times. A recomputed
number may differ from the printed one by half of its last digit, plus the propagated half of the last digit
of its inputs; more is a disagreement. The significance of a residual depends on the basis of the equation:

- `proved`: the equation reproduces numbers that the SIS prints elsewhere. Tool poses exactly; with sag to 0.3
  mm, so that a smaller difference is undecided.
- `printed`: the SIS prints the equation without numbers to verify it: rotor temperatures, forces, status.
  Where a sign or a unit is ambiguous, all interpretations are evaluated, and the best one is reported.
- `assumed`: the SIS does not give the equation. Torques depend on the form of the no-load current, velocities
  on the differentiation of the flight software. Such a column can be confirmed, but not refuted.
- `measured`: two measurements of one quantity, potentiometer and encoder, which may differ by `enc_pot_delta`
  of RA_FAULT_DETECT.
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

from .arm import TOOLS, ArmTool, DeploymentArm
from .kinematics import tool_pose
from .motor import NO_LOAD_FORMS, Mode, Motors, Rotors, rotor_temperature, torque
from .parameters import Parameters
from .science import FORCES, POSES, ScienceRows, devices
from .statics import LinkProperties, Sign, deflection, end_effector_forces, gravity_moments

Basis = Literal["proved", "printed", "assumed", "measured"]
Verdict = Literal["consistent", "disagrees", "undecided", "not computed"]
Function = Callable[..., Floats]

BASES: dict[Basis, str] = {
    "proved": "the equation makes numbers that the SIS prints; what disagrees is the file or its parameters",
    "printed": "the SIS prints the equation, without numbers; readings that it leaves open were all tried",
    "assumed": "the SIS does not give the equation; agreement confirms it, disagreement decides nothing",
    "measured": "two sensors of one angle, which may differ by enc_pot_delta",
}
FLOAT_TOLERANCE = 1e-9
"""Floating point error, absolute and relative to a tolerance."""


@dataclass(frozen=True)
class ColumnResidual:
    """Printed minus recomputed, of one column."""

    column: str
    unit: str
    tool: str  # selected tool of the rows, "" for columns that do not depend on it
    basis: Basis  # see the module
    # rows, outside: numbers of compared rows, and of those that differ by more than their tolerance
    rows: int
    outside: int
    # max_abs, rms, bias: of the residuals, in `unit`; NaN if none was computed
    max_abs: float
    rms: float
    bias: float
    tolerance: float  # of the row with the largest residual relative to its tolerance
    verdict: Verdict  # `undecided`: it differs, but the equation is assumed or parameters are substituted
    remark: str = ""


@dataclass(frozen=True, eq=False)
class Interpretations:
    """Interpretations of an ambiguous equation of the SIS."""

    # each computes (n, k) values from the inputs; the one with the smallest misfit is used
    functions: Mapping[str, Function]
    allowance: Floats | float = 0.0  # (k,) or scalar, added to the tolerance
    # excuse, excused: reason why a disagreement up to that size is undecided; "" if it is not
    excuse: str = ""
    excused: float = np.inf


@dataclass(frozen=True, eq=False)
class ColumnCheck:
    """Columns that are recomputed together."""

    columns: tuple[str, ...]
    unit: str | tuple[str, ...]  # of all, or of each
    basis: Basis
    printed: Floats  # (n, k)
    # each with half of its last digit
    inputs: tuple[tuple[Floats, float], ...]
    # returns the interpretations, or raises a `TransectError` if an input is missing
    interpretations: Callable[[], Interpretations]
    tool: str = ""
    digit: float = 1.0  # unit of the table in `unit`; twice that for a difference of two numbers
    coupled: bool = False  # whether a column depends on several columns of an input

    @property
    def units(self) -> tuple[str, ...]:
        """The unit of each column."""
        return (self.unit,) * len(self.columns) if isinstance(self.unit, str) else self.unit

    def judge(self, half: float) -> Iterator[ColumnResidual]:
        """Compare with the best interpretation; `half` is half of the last printed digit."""
        try:
            interpretations = self.interpretations()
        except TransectError as error:
            for column, unit in zip(self.columns, self.units, strict=True):
                yield self._not_computed(column, unit, error.what)
            return
        arrays = [values for values, _ in self.inputs]
        found = {name: function(*arrays) for name, function in interpretations.functions.items()}
        best = self._best(found)
        allowed = self.digit * half + interpretations.allowance
        allowed = allowed + self._propagate_rounding(interpretations.functions[best], found[best])
        off = self._difference(found[best])
        for k, column in enumerate(self.columns):
            residual = self._residual(column, self.units[k], off[:, k], allowed[:, k], interpretations)
            notes = [f"fits best as: {best}"] if len(found) > 1 and residual.rows else []
            if invalid := int((np.isnan(self.printed[:, k]) & np.isfinite(found[best][:, k])).sum()):
                notes.append(f"{invalid} rows are marked invalid that can be recomputed")
            notes += [residual.remark] if residual.remark else []
            yield replace(residual, remark="; ".join(notes))

    def _best(self, found: Mapping[str, Floats]) -> str:
        """Return the interpretation with the smallest misfit over the values in which they differ."""
        differs = np.ptp(np.stack(list(found.values())), axis=0) != 0.0
        return min(found, key=lambda name: self._misfit(np.where(differs, found[name], np.nan)))

    def _difference(self, values: Floats) -> Floats:
        off = self.printed - values
        angles = [unit == "rad" for unit in self.units]
        return np.where(angles, np.remainder(off + np.pi, 2 * np.pi) - np.pi, off)

    def _misfit(self, values: Floats) -> float:
        return float(np.nan_to_num(robust.median(np.abs(self._difference(values)), axis=0)).sum())

    def _propagate_rounding(self, function: Function, base: Floats) -> Floats:
        """Propagated half of the last digit of all inputs, (n, k)."""
        total = np.zeros(base.shape)
        arrays = [values for values, _ in self.inputs]
        for i, (values, half) in enumerate(self.inputs):
            width = values.shape[1]
            for step in np.eye(width) if self.coupled else np.ones((1, width)):
                moved = [*arrays[:i], values + half * step, *arrays[i + 1 :]]
                total += np.abs(np.nan_to_num(function(*moved) - base))
        return total

    def _residual(
        self, column: str, unit: str, off: Floats, allowed: Floats, interpretations: Interpretations
    ) -> ColumnResidual:
        valid = np.isfinite(off)
        if not valid.any():
            return self._not_computed(column, unit, "no row has it and all its inputs")
        off, allowed = off[valid], allowed[valid] * (1 + FLOAT_TOLERANCE) + FLOAT_TOLERANCE
        size = np.abs(off)
        outside, largest = int((size > allowed).sum()), float(size.max())
        excused = bool(outside and interpretations.excuse and largest <= interpretations.excused)
        return ColumnResidual(
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
            remark=interpretations.excuse if excused else "",
        )

    def _not_computed(self, column: str, unit: str, reason: str) -> ColumnResidual:
        nan = float("nan")
        return ColumnResidual(
            column, unit, self.tool, self.basis, 0, 0, nan, nan, nan, nan, "not computed", reason
        )


FIRST_SPARE_BIT = 20
"""First spare bit of `stat`, SIS Table 13."""
SAG_TOLERANCE = 3e-4
"""m and rad, agreement of the deflection model with the numbers that the SIS prints."""
AMPERE_PER_TABLE_UNIT = 1e-3
"""Currents are mA in the tables."""


def check_recording(
    recording: Recording, parameters: Parameters | None = None
) -> dict[str, tuple[ColumnResidual, ...]]:
    """Recompute the derived columns of the SciHi and SciLo tables of a recording.

    Parameters
    ----------
    parameters : Parameters, optional
        Default: those of the recording over those that the SIS prints.
    """
    known = parameters or Parameters.of(recording)
    return {name: tuple(check_rows(ScienceRows.of(recording, name), known)) for name in devices(recording)}


def check_rows(rows: ScienceRows, parameters: Parameters) -> Iterator[ColumnResidual]:
    """Recompute the derived columns of a table: first those of all rows, then those of each tool."""
    for make in (_check_elapsed, _status, _potentiometers, _velocities, _rotors, _torques):
        yield from make(rows, parameters).judge(rows.half)
    for code in np.unique(rows.tool).tolist():
        chosen = rows.only(rows.tool == code)
        for suffix in POSES:
            yield from _poses(chosen, parameters, suffix, rows.half).judge(rows.half)
        yield from _forces(chosen, parameters, rows.half).judge(rows.half)


def _joints(name: str) -> tuple[str, ...]:
    return tuple(f"{name}{joint}" for joint in (1, 2, 3, 4))


def _tool_name(rows: ScienceRows) -> str:
    code = int(rows.tool[0])
    return TOOLS[code] if 0 <= code < len(TOOLS) else f"tool {code}"


def _check_elapsed(rows: ScienceRows, parameters: Parameters) -> ColumnCheck:
    """`elapsed_time` counts hours from an unknown start: within a file it must run at the rate of `time`."""
    first = np.unique(rows.file, return_index=True)[1][rows.file] if len(rows.file) else rows.file
    seconds = (rows.t_ns - rows.t_ns[first]) / NS
    return ColumnCheck(
        ("elapsed_time",),
        "s",
        "printed",
        (rows.elapsed - rows.elapsed[first])[:, None],
        ((seconds[:, None], 2 * rows.half_time),),
        lambda: Interpretations({"time": lambda t: t}),
        digit=2 * 3600.0,
    )


def _status(rows: ScienceRows, parameters: Parameters) -> ColumnCheck:
    spare = (rows.stat >> FIRST_SPARE_BIT != 0).astype(np.float64)[:, None]
    return ColumnCheck(
        ("stat bits 20-31",),
        "",
        "printed",
        spare,
        (),
        lambda: Interpretations(
            {"zero": lambda: np.zeros_like(spare)},
            excuse="spare bits are set; Table 13 gives them no meaning",
        ),
        digit=0.0,
    )


def _potentiometers(rows: ScienceRows, parameters: Parameters) -> ColumnCheck:
    def interpretations() -> Interpretations:
        return Interpretations({"enc": lambda q: q}, parameters.numbers("RA_FAULT_DETECT", "enc_pot_delta"))

    return ColumnCheck(_joints("pot"), "rad", "measured", rows.pot, ((rows.enc, rows.half),), interpretations)


def _velocities(rows: ScienceRows, parameters: Parameters) -> ColumnCheck:
    """Differences of the encoders over the printed times, between rows of consecutive control cycles."""
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
    return ColumnCheck(
        _joints("v"),
        "rad/s",
        "assumed",
        rows.velocity,
        inputs,
        lambda: Interpretations(functions, excuse=excuse),
    )


def _rotors(rows: ScienceRows, parameters: Parameters) -> ColumnCheck:
    """Rotor temperatures, integrated from the first row of each contiguous section."""
    period = parameters.number("RA_CTRL_PARAMS", "loop_time")
    edges = [*np.flatnonzero(~rows.adjacent(period)).tolist(), len(rows.t_ns)]
    sections = [slice(a, b) for a, b in pairwise(edges)]

    def integrate_rotors(mode: Mode, current: Floats, volt: Floats, case: Floats, rotor: Floats) -> Floats:
        rotors = Rotors.of(parameters)
        out = np.full(rotor.shape, np.nan)
        for part in sections:
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
            out[part.start] = np.nan  # initial value
        return out

    def interpretations() -> Interpretations:
        Rotors.of(parameters)
        return Interpretations(
            {
                "CM_r multiplies, as printed": partial(integrate_rotors, "multiply"),
                "CM_r divides, as its unit says": partial(integrate_rotors, "divide"),
            }
        )

    inputs = (
        (rows.current, rows.half * AMPERE_PER_TABLE_UNIT),
        (rows.volt, rows.half),
        (rows.case, rows.half),
        (rows.rotor, rows.half),
    )
    return ColumnCheck(_joints("trotor"), "degC", "printed", rows.rotor, inputs, interpretations)


def _torques(rows: ScienceRows, parameters: Parameters) -> ColumnCheck:
    def interpretations() -> Interpretations:
        by_code = Motors.of(parameters)
        without_voltage = Motors.of(parameters, no_load=NO_LOAD_FORMS[1])
        return Interpretations(
            {
                "no-load current by fit_nl, subtracted": partial(torque, by_code),
                "no-load current by fit_nl, along the current": partial(torque, by_code, sense="along"),
                "no-load current without voltage, subtracted": partial(torque, without_voltage),
                "no-load current without voltage, along the current": partial(
                    torque, without_voltage, sense="along"
                ),
            },
            excuse="the SIS does not give the form of the no-load current; `fit_no_load` finds it",
        )

    inputs = (
        (rows.current, rows.half * AMPERE_PER_TABLE_UNIT),
        (rows.rotor, rows.half),
        (rows.volt, rows.half),
    )
    return ColumnCheck(_joints("tau"), "N m", "assumed", rows.torque, inputs, interpretations)


def _poses(rows: ScienceRows, parameters: Parameters, suffix: str, half: float) -> ColumnCheck:
    angles = rows.enc if suffix.startswith("enc") else rows.pot

    def interpretations() -> Interpretations:
        arm = DeploymentArm.of(parameters)
        tool = arm.tool(int(rows.tool[0]))
        if not suffix.endswith("defl"):
            return Interpretations({"stiff": lambda q: tool_pose(arm, q, tool)})
        links = _links(arm, rows.phase)
        functions = {"with sag": lambda q: _sagging(arm, tool, links, rows.phase, q)}
        if substituted := _substitutes(links):
            return Interpretations(functions, excuse=substituted)
        return Interpretations(
            functions, excuse="the SIS confirms the sag to 0.3 mm only", excused=SAG_TOLERANCE
        )

    return ColumnCheck(
        tuple(f"{x}_{suffix}" for x in ("x", "y", "z", "th")),
        ("m", "m", "m", "rad"),
        "proved",
        rows.poses[suffix],
        ((angles, half),),
        interpretations,
        tool=_tool_name(rows),
        coupled=True,
    )


def _links(arm: DeploymentArm, phases: Ints) -> dict[int, LinkProperties]:
    return {code: LinkProperties.of(arm, code) for code in np.unique(phases).tolist()}


def _substitutes(links: dict[int, LinkProperties]) -> str:
    notes = dict.fromkeys(note for each in links.values() for note in each.substitutes)
    return f"computed with substitutes: {', '.join(notes)}" if notes else ""


def _sagging(
    arm: DeploymentArm, tool: ArmTool, links: dict[int, LinkProperties], phases: Ints, q: Floats
) -> Floats:
    out = np.empty(q.shape)
    for code, bodies in links.items():
        rows = phases == code
        out[rows] = deflection(arm, q[rows], tool, bodies).pose
    return out


def _forces(rows: ScienceRows, parameters: Parameters, half: float) -> ColumnCheck:
    """Forces from the printed torques; the moments of gravity are the links' (SIS appendix D)."""

    def interpretations() -> Interpretations:
        arm = DeploymentArm.of(parameters)
        tool = arm.tool(int(rows.tool[0]))
        links = _links(arm, rows.phase)
        loaded = (False, True) if any(each.payload for each in links.values()) else (False,)
        functions: dict[str, Function] = {}
        for sign, gravity, payload in product(("sis", "geometric"), (1.0, -1.0), loaded):
            description = (
                "F_T as printed" if sign == "sis" else "F_T by statics",
                "gravity added" if gravity > 0 else "gravity taken off",
                *(("payload weighs",) if payload else ()),
            )
            functions[", ".join(description)] = partial(
                _compute_forces, arm, tool, links, rows, sign, gravity, with_payload=payload
            )
        not_at_tool = "" if tool.kind == "rigid" else f"the forces of appendix D are not those at {tool.name}"
        return Interpretations(functions, excuse=not_at_tool or _substitutes(links))

    inputs = ((rows.enc, half), (rows.torque, half))
    tool = _tool_name(rows)
    return ColumnCheck(FORCES, "N", "printed", rows.forces, inputs, interpretations, tool=tool, coupled=True)


def _compute_forces(
    arm: DeploymentArm,
    tool: ArmTool,
    links: dict[int, LinkProperties],
    rows: ScienceRows,
    sign: Sign,
    gravity: float,
    q: Floats,
    tau: Floats,
    *,
    with_payload: bool,
) -> Floats:
    """Forces (n, 3) with the link weights of the grapple phase of each row."""
    moment = tau.copy()
    for code, bodies in links.items():
        chosen = rows.phase == code
        moment[chosen] += gravity * gravity_moments(arm, q[chosen], bodies, with_payload=with_payload)
    return end_effector_forces(arm, q, moment, tool, rows.power, sign=sign).values
