"""Table and detection of all faults, and the counters of RA_MAX_FAULTS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..parameters import MissingParameterError, Parameters, units
from . import electronics, motion
from .rules import FaultEvent, FaultRule, Key, events_of
from .telemetry import COLUMNS, ArmTelemetry

FAULTS: tuple[FaultRule, ...] = (
    *motion.POSITION_FAULTS,
    *electronics.ELECTRICAL_FAULTS,
    *motion.MOTION_FAULTS,
    *electronics.THERMAL_FAULTS,
)
"""Every fault of RA_FAULT_DETECT, RA_THERMAL and RA_GRAPPLE_PARAMS, and the firmware's over-current.
RA_MAX_FAULTS counts them: see `ALLOWANCES`."""

OPERATOR_FAULTS: tuple[FaultRule, ...] = tuple(motion.pot_stuck if f is motion.pot else f for f in FAULTS)
"""The same with the intended meaning of the pot fault. As printed in the SIS, it occurs in every long move: a
healthy joint moves 1 to 5 LSB between samples, and less than pot_delta, 20 LSB, is an anomaly."""


@dataclass(frozen=True)
class UncheckedFault:
    """A fault that could not be tested, and the missing column or parameter."""

    fault: str
    reason: str


@dataclass(frozen=True)
class Findings:
    """Result of the detection."""

    events: tuple[FaultEvent, ...]  # by time
    checked: tuple[str, ...]  # names of the tested faults
    unchecked: tuple[UncheckedFault, ...]


def detect(telemetry: ArmTelemetry, parameters: Parameters, faults: Sequence[FaultRule] = FAULTS) -> Findings:
    """Detect faults.

    Parameters
    ----------
    telemetry : Telemetry
        Missing raw counts are computed (`ArmTelemetry.with_raw`).
    parameters : Parameters
        All thresholds and numbers of samples.
    faults : sequence of Fault
        Faults to test.
    """
    full = telemetry.with_raw(parameters)
    events: list[FaultEvent] = []
    unchecked: list[UncheckedFault] = []
    for fault in faults:
        reason = _missing_inputs(fault, full, parameters)
        if reason:
            unchecked.append(UncheckedFault(fault.name, reason))
            continue
        try:
            events += events_of(fault, full, parameters)
        except MissingParameterError as error:
            unchecked.append(UncheckedFault(fault.name, error.what))
    events.sort(key=lambda event: (event.t_ns, event.declared))
    skipped = {entry.fault for entry in unchecked}
    checked = tuple(fault.name for fault in faults if fault.name not in skipped)
    return Findings(tuple(events), checked, tuple(unchecked))


def _missing_inputs(fault: FaultRule, telemetry: ArmTelemetry, parameters: Parameters) -> str:
    """Return the missing columns and parameters, "" if there are none."""
    reasons = [
        f"no {name} ({telemetry.absent.get(name, COLUMNS[name].what)})"
        for name in fault.needs
        if name not in telemetry
    ]
    keys: tuple[Key, ...] = (*fault.parameters, *([fault.samples] if fault.samples else ()))
    origins = " or ".join(source for source, _ in parameters.sources)
    reasons += [f"{origins} does not give {key[0]} {key[1]}" for key in keys if not parameters.has(*key)]
    return "; ".join(reasons)


COUNTER_SET = "RA_MAX_FAULTS"


@dataclass(frozen=True)
class Allowance:
    """One counter of RA_MAX_FAULTS."""

    parameter: str  # allowed number
    what: str  # what is counted
    faults: tuple[str, ...] = ()  # counted faults; empty if only the flight software observes them


ALLOWANCES = (
    Allowance("max_fault.ace_reset", "resets of the micro-processor"),
    Allowance("max_fault.motion_impeded", "arm movement obstructed", ("impeded-torque", "impeded-current")),
    Allowance("max_fault.file_io", "reading or writing a file"),
    Allowance("max_fault.paci", "no communication with the controller"),
    Allowance("max_fault.tv_power", "30 V power supply", ("power-30v", "bus-30v")),
    Allowance("max_fault.stopped", "premature motion termination", ("stopped",)),
    Allowance("max_fault.stalled", "motor stalled", ("stalled",)),
    Allowance("max_fault.overheat", "actuator overheated", ("rotor-overheat", "case-overheat")),
)


@dataclass(frozen=True)
class CounterState:
    """State of one counter."""

    allowance: Allowance
    allowed: int
    counted: int | None  # None if not observable in the telemetry
    safed: FaultEvent | None  # the fault that safes the arm: the first above the allowed number


def count_faults(events: Iterable[FaultEvent], parameters: Parameters) -> list[CounterState]:
    """Count faults against RA_MAX_FAULTS.

    Simultaneous faults, for example of several joints, count once. The SIS does not describe when the
    counters are reset; they count all given events.
    """
    given = sorted(events, key=lambda event: event.t_ns)
    return [_count(allowance, given, parameters) for allowance in ALLOWANCES]


def _count(allowance: Allowance, events: list[FaultEvent], parameters: Parameters) -> CounterState:
    allowed = int(parameters.number(COUNTER_SET, allowance.parameter))
    if not allowance.faults:
        return CounterState(allowance, allowed, None, None)
    first: dict[int, FaultEvent] = {}
    for event in events:
        if event.fault in allowance.faults:
            first.setdefault(event.t_ns, event)
    counted = list(first.values())
    return CounterState(
        allowance, allowed, len(counted), counted[allowed] if len(counted) > allowed else None
    )


@dataclass(frozen=True)
class FaultGroup:
    """Faults of one kind and one part in all streams."""

    # fault, part, what: kind, joint or voltage, and condition of an anomaly
    fault: str
    part: str
    what: str
    times: int  # number of declarations in the stream with the most
    # first_ns, last_ns: first and last declaration
    first_ns: int
    last_ns: int
    samples: int  # anomalies of the longest run
    # value, limit: of the declaration with the largest excess, in `unit`
    value: float
    limit: float
    unit: str
    excess: float  # relative to the limit; 1 where the limit is 0
    safes: bool  # whether it is declared more often than RA_MAX_FAULTS allows
    streams: tuple[str, ...]


def group_faults(
    found: Mapping[str, Findings], parameters: Parameters, faults: Sequence[FaultRule] = FAULTS
) -> list[FaultGroup]:
    """Group the faults of several streams by kind and part, the worst first.

    The worst safe the arm, or exceed their limit by the largest ratio.
    """
    groups: dict[tuple[str, str], dict[str, list[FaultEvent]]] = {}
    for stream, findings in found.items():
        for event in findings.events:
            groups.setdefault((event.fault, event.part), {}).setdefault(stream, []).append(event)
    safing = {name for findings in found.values() for name in _safing_faults(findings.events, parameters)}
    what = {fault.name: fault.what for fault in faults}
    grouped = [_group(key, by_stream, what, safing) for key, by_stream in groups.items()]
    return sorted(grouped, key=lambda g: (not g.safes, -g.excess, g.first_ns, g.fault, g.part))


def _group(
    key: tuple[str, str], by_stream: Mapping[str, list[FaultEvent]], what: Mapping[str, str], safing: set[str]
) -> FaultGroup:
    events = [event for listed in by_stream.values() for event in listed]
    worst = max(events, key=_excess)
    return FaultGroup(
        *key,
        what=what.get(key[0], ""),
        times=max(map(len, by_stream.values())),
        first_ns=min(event.t_ns for event in events),
        last_ns=max(event.t_ns for event in events),
        samples=max(event.count for event in events),
        value=worst.value,
        limit=worst.limit,
        unit=worst.unit,
        excess=_excess(worst),
        safes=key[0] in safing,
        streams=tuple(by_stream),
    )


def _excess(event: FaultEvent) -> float:
    return abs(event.value - event.limit) / abs(event.limit) if event.limit else 1.0


def _safing_faults(events: Iterable[FaultEvent], parameters: Parameters) -> set[str]:
    """Return the kinds of faults that safe the arm."""
    available = [allowance for allowance in ALLOWANCES if parameters.has(COUNTER_SET, allowance.parameter)]
    given = sorted(events, key=lambda event: event.t_ns)
    counts = [_count(allowance, given, parameters) for allowance in available]
    return {count.safed.fault for count in counts if count.safed is not None}


NOT_GIVEN = "not given"


class FaultRow(NamedTuple):
    """One fault: name, meaning, parameters with values, declaration, section of the SIS, note."""

    name: str
    what: str
    parameters: str
    declared: str
    section: str
    note: str = ""


def table_of_faults(parameters: Parameters, faults: Sequence[FaultRule] = FAULTS) -> list[FaultRow]:
    """Return one row per fault, and one per counter of RA_MAX_FAULTS."""
    rows = [
        FaultRow(
            fault.name,
            fault.what,
            "; ".join(_value(key, parameters) for key in fault.parameters),
            _describe(fault, parameters),
            fault.section,
            fault.note,
        )
        for fault in faults
    ]
    return rows + [_counter(allowance, parameters) for allowance in ALLOWANCES]


def _counter(allowance: Allowance, parameters: Parameters) -> FaultRow:
    key = (COUNTER_SET, allowance.parameter)
    given = parameters.has(*key)
    return FaultRow(
        allowance.parameter,
        f"the arm is safed: {allowance.what}",
        _value(key, parameters),
        f"on fault number {parameters.number(*key) + 1:g}" if given else f"after {key[1]}: {NOT_GIVEN}",
        "5.1.3.16",
        f"counts {', '.join(allowance.faults)}" if allowance.faults else "seen by the flight software only",
    )


def _value(key: Key, parameters: Parameters) -> str:
    if not parameters.has(*key):
        return f"{key[0]} {key[1]}: {NOT_GIVEN}"
    unit = units(key[0]).get(key[1], "")
    numbers = np.atleast_1d(parameters.numbers(*key)).tolist()
    shown = numbers[:1] if len(set(numbers)) == 1 else numbers
    return f"{key[0]} {key[1]} = {' '.join(f'{number:g}' for number in shown)} {unit}".rstrip()


def _describe(fault: FaultRule, parameters: Parameters) -> str:
    if fault.samples is None:
        return "at once"
    if not parameters.has(*fault.samples):
        return f"after {fault.samples[1]} in a row: {NOT_GIVEN}"
    numbers = np.atleast_1d(fault.declared_on(parameters)).tolist()
    shown = numbers[:1] if len(set(numbers)) == 1 else numbers
    word = "more than" if fault.rule == "allowed" else "at least"
    return f"on number {' '.join(f'{n:g}' for n in shown)} in a row ({word} {fault.samples[1]})"
