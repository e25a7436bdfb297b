"""Columns of a table against what they should be: residuals, tolerances and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.geometry import robust

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
    """Printed minus recomputed, of one column.

    Attributes
    ----------
    column, unit : str
    tool : str
        The rows' selected tool, "" for columns that do not depend on it.
    basis : str
        What the recomputation rests on; see `consistency`.
    rows, outside : int
        How many rows were compared, and how many differ by more than they may.
    max_abs, rms, bias : float
        Of the residuals, in `unit`; NaN where none was computed.
    tolerance : float
        What the row that is worst compared with it may differ by.
    verdict : str
        `undecided`: it differs, but what it was recomputed with is assumed or substituted.
    remark : str
    """

    column: str
    unit: str
    tool: str
    basis: Basis
    rows: int
    outside: int
    max_abs: float
    rms: float
    bias: float
    tolerance: float
    verdict: Verdict
    remark: str = ""


@dataclass(frozen=True, eq=False)
class Readings:
    """Ways in which the SIS can be read.

    Attributes
    ----------
    functions : mapping of str to callable
        Each computes (n, k) values from the inputs; the one that fits best is taken.
    allowance : (k,) or float
        Added to the tolerance.
    excuse, excused : str, float
        Why a disagreement up to that size does not count; "" if it does.
    """

    functions: Mapping[str, Function]
    allowance: Floats | float = 0.0
    excuse: str = ""
    excused: float = np.inf


@dataclass(frozen=True, eq=False)
class Check:
    """Columns that are recomputed together.

    Attributes
    ----------
    columns : tuple of str
    unit : str or tuple of str
        Of all, or of each.
    basis : str
    printed : (n, k)
    inputs : tuple of (array (n, m), float)
        What they are computed from, each with half of its last digit.
    readings : callable
        Returns the `Readings`, or raises the `TransectError` that says what is missing for them.
    digit : float
        How many of `unit` the table's unit is; twice that for a difference of two numbers.
    coupled : bool
        Whether a column depends on several columns of an input.
    """

    columns: tuple[str, ...]
    unit: str | tuple[str, ...]
    basis: Basis
    printed: Floats
    inputs: tuple[tuple[Floats, float], ...]
    readings: Callable[[], Readings]
    tool: str = ""
    digit: float = 1.0
    coupled: bool = False

    @property
    def units(self) -> tuple[str, ...]:
        """The unit of each column."""
        return (self.unit,) * len(self.columns) if isinstance(self.unit, str) else self.unit

    def judged(self, half: float) -> Iterator[Residual]:
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
