"""When a run of anomalies is a fault, and what a fault is.

Each sample of each part (a joint, a reference voltage, ...) is an anomaly or not. A sample that was not
measured (NaN) is none, so it ends a run; so does a gap in time. How many in a row make a fault is said in two
ways:

- `allowed`: "max allowable consecutive anomalies after which a fault is declared" (SIS 5.1.3.11). n are
  allowed, so the fault is declared on number n + 1. Where the SIS gives no number of samples n is 0.
- `required`: "number of consecutive times a temperature must exceed ... before a fault is declared"
  (5.1.3.30). The fault is declared on number n.

A run is one fault, however long it lasts.
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
from .telemetry import Telemetry

Rule = Literal["allowed", "required"]
Key = tuple[str, str]
"""Parameter set and parameter."""
JOINTS = ("joint 1", "joint 2", "joint 3", "joint 4")
DETECT = "RA_FAULT_DETECT"
ROUNDING = 1e-9
"""A value printed equal to its limit has not passed it because of binary fractions: 4.53 - 4.5 > 0.03."""


@dataclass(frozen=True, eq=False)
class Measure:
    """What a fault compares, sample by sample."""

    value: Floats  # (n, k) or (n, 1) for all parts, The measured; NaN is no anomaly
    limit: Floats  # an anomaly is above it, or below it
    side: Literal["above", "below"] = "above"
    when: Mask | Literal[True] = True  # where the test is made at all

    def anomalies(self) -> Mask:
        """Return where (n, k) the limit is passed."""
        margin = self.value - self.limit if self.side == "above" else self.limit - self.value
        return (margin > ROUNDING * np.maximum(1.0, np.abs(self.limit))) & self.when


Test = Callable[[Telemetry, Parameters], Measure]


@dataclass(frozen=True, eq=False)
class Fault:
    """One kind of fault."""

    name: str
    what: str  # when a sample is an anomaly, in words
    parameters: tuple[Key, ...]  # what the test depends on
    needs: tuple[str, ...]  # columns of the telemetry that it needs
    measure: Callable[[Telemetry, Parameters], Measure]  # the test, of telemetry and parameters
    unit: str = ""  # of value and limit
    samples: Key | None = None  # (set, parameter), how many anomalies in a row; None for the first
    rule: Rule = "allowed"  # how that number is meant; see the module
    parts: tuple[str, ...] = JOINTS  # what the columns of the measure are; one empty name if there is one
    section: str = "5.1.3.11"  # of the SIS
    note: str = ""  # what the SIS leaves open, and what was chosen

    def declared_on(self, parameters: Parameters) -> Floats:
        """Return which anomaly in a row is the fault, () or (k,): 3 is the third."""
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
) -> Callable[[Test], Fault]:
    """Make a fault of its test, whose docstring says in words when a sample is an anomaly.

    `by` and `samples` name parameters, `SET KEY, KEY, ...`, of RA_FAULT_DETECT where no set is named; `needs`
    names columns of the telemetry. The rest is as in `Fault`.
    """

    def make(test: Test) -> Fault:
        doc = (test.__doc__ or "").split("\n\n")[0]
        what = " ".join(doc.split()).rstrip(".")
        count = next(iter(_keys(samples)), None)
        columns = tuple(needs.split())
        what = what[:1].lower() + what[1:]
        return Fault(name, what, _keys(by), columns, test, unit, count, rule, parts, section, note)

    return make


def _keys(text: str) -> tuple[Key, ...]:
    words = [part.split() for part in text.split(",") if part]
    return tuple((set_name[0] if set_name else DETECT, key) for *set_name, key in words)


@dataclass(frozen=True)
class Event:
    """One fault that was declared."""

    fault: str  # its name
    part: str  # `joint 2`, `vref 1`, ...; empty where there is one only
    # first, declared: samples: the first anomaly of the run, and the one on which the fault is declared
    first: int
    declared: int
    # first_ns, t_ns: their times
    first_ns: int
    t_ns: int
    count: int  # anomalies in the whole run
    # value, limit: on the sample on which it is declared, in `unit`
    value: float
    limit: float
    unit: str


def consecutive(anomaly: ArrayLike, limit: ArrayLike, breaks: ArrayLike = False) -> Mask:
    """Return where (n,) or (n, k) a run of anomalies has become longer than `limit`, one number or (k,)."""
    return run_lengths(anomaly, breaks) > np.asarray(limit)


def events_of(fault: Fault, telemetry: Telemetry, parameters: Parameters) -> Iterator[Event]:
    """Yield the faults of one kind, part by part; inputs and parameters must be there."""
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
            yield Event(fault.name, part, first, i, *times, count, *size, fault.unit)
