"""Definition of a fault: a test of each sample, and the number of consecutive anomalies.

Each sample of each part (a joint, a reference voltage, ...) is an anomaly or not. A sample that was not
measured (NaN) ends a run, as does a gap in time. The SIS specifies the number of consecutive anomalies in two
ways:

- `allowed`: "max allowable consecutive anomalies after which a fault is declared" (SIS 5.1.3.11). n are
  allowed, so the fault is declared on number n + 1. Without a number in the SIS n is 0.
- `required`: "number of consecutive times a temperature must exceed ... before a fault is declared"
  (5.1.3.30). The fault is declared on number n.

A run is one fault at any length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.geometry.robust import run_lengths

from ..parameters import Parameters
from .telemetry import ArmTelemetry

Rule = Literal["allowed", "required"]
Key = tuple[str, str]
"""Parameter set and parameter."""
JOINTS = ("joint 1", "joint 2", "joint 3", "joint 4")
DETECT = "RA_FAULT_DETECT"
LIMIT_TOLERANCE = 1e-9
"""Floating point error of a value that equals its limit: 4.53 - 4.5 > 0.03."""


@dataclass(frozen=True, eq=False)
class Measure:
    """Comparison of each sample with a limit."""

    value: Floats  # (n, k), or (n, 1) for all parts; NaN is no anomaly
    limit: Floats
    side: Literal["above", "below"] = "above"
    when: Mask | Literal[True] = True  # samples that are tested

    def anomalies(self) -> Mask:
        """Whether (n, k) the limit is exceeded."""
        margin = self.value - self.limit if self.side == "above" else self.limit - self.value
        return (margin > LIMIT_TOLERANCE * np.maximum(1.0, np.abs(self.limit))) & self.when


Test = Callable[[ArmTelemetry, Parameters], Measure]


@dataclass(frozen=True, eq=False)
class FaultRule:
    """One kind of fault."""

    name: str
    what: str  # condition of an anomaly, in words
    parameters: tuple[Key, ...]  # of the test
    needs: tuple[str, ...]  # required columns of the telemetry
    measure: Callable[[ArmTelemetry, Parameters], Measure]
    unit: str = ""  # of value and limit
    samples: Key | None = None  # (set, parameter), number of consecutive anomalies; None for the first
    rule: Rule = "allowed"  # meaning of that number; see the module
    parts: tuple[str, ...] = JOINTS  # of the columns of the measure; one empty name for a single column
    section: str = "5.1.3.11"  # of the SIS
    note: str = ""  # ambiguities of the SIS, and their interpretation

    def declared_on(self, parameters: Parameters) -> Floats:
        """Return the number of the consecutive anomaly that declares the fault, () or (k,)."""
        if self.samples is None:
            return np.ones(())
        count = parameters.numbers(*self.samples)
        return np.maximum(count + 1 if self.rule == "allowed" else count, 1)


def fault(
    name: str,
    by: str = "",
    needs: str = "",
    *,
    unit: str = "",
    samples: str = "",
    rule: Rule = "allowed",
    parts: tuple[str, ...] = JOINTS,
    section: str = "5.1.3.11",
    note: str = "",
) -> Callable[[Test], FaultRule]:
    """Define a fault by its test, whose docstring describes the condition of an anomaly.

    `by` and `samples` name parameters, `SET KEY, KEY, ...`, of RA_FAULT_DETECT where no set is named; `needs`
    names columns of the telemetry. The other parameters are those of `FaultRule`.
    """

    def make(test: Test) -> FaultRule:
        doc = (test.__doc__ or "").split("\n\n")[0]
        what = " ".join(doc.split()).rstrip(".")
        count = next(iter(_keys(samples)), None)
        columns = tuple(needs.split())
        what = what[:1].lower() + what[1:]
        return FaultRule(name, what, _keys(by), columns, test, unit, count, rule, parts, section, note)

    return make


def _keys(text: str) -> tuple[Key, ...]:
    words = [part.split() for part in text.split(",") if part]
    return tuple((set_name[0] if set_name else DETECT, key) for *set_name, key in words)


@dataclass(frozen=True)
class FaultEvent:
    """One declared fault."""

    fault: str  # name
    part: str  # `joint 2`, `vref 1`, ...; empty for a single part
    # first, declared: sample of the first anomaly of the run, and of the declaration
    first: int
    declared: int
    # first_ns, t_ns: their times
    first_ns: int
    t_ns: int
    count: int  # anomalies in the whole run
    # value, limit: on the sample of the declaration, in `unit`
    value: float
    limit: float
    unit: str


def consecutive(anomaly: ArrayLike, limit: ArrayLike, breaks: ArrayLike = False) -> Mask:
    """Whether (n,) or (n, k) the current run of anomalies is longer than `limit`, one number or (k,)."""
    return run_lengths(anomaly, breaks) > np.asarray(limit)


def events_of(fault: FaultRule, telemetry: ArmTelemetry, parameters: Parameters) -> Iterator[FaultEvent]:
    """Yield the faults of one kind, part by part; all inputs and parameters must be available."""
    measure = fault.measure(telemetry, parameters)
    lengths = run_lengths(measure.anomalies(), telemetry.breaks)
    on = np.broadcast_to(fault.declared_on(parameters), lengths.shape)
    values, limits = (np.broadcast_to(a, lengths.shape) for a in (measure.value, measure.limit))
    for j, part in enumerate(fault.parts):
        length = lengths[:, j]
        hits = np.flatnonzero(length == on[:, j])
        ends = np.flatnonzero((length > 0) & (np.append(length[1:], 0) != length + 1))
        counts = length[ends[np.searchsorted(ends, hits)]]
        firsts = hits - length[hits] + 1
        for i, first, count in zip(hits.tolist(), firsts.tolist(), counts.tolist(), strict=True):
            times = int(telemetry.t_ns[first]), int(telemetry.t_ns[i])
            size = float(values[i, j]), float(limits[i, j])
            yield FaultEvent(fault.name, part, first, i, *times, count, *size, fault.unit)
