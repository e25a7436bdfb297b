"""The table of all faults, and the search for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..parameters import MissingParameterError, Parameters, units
from . import electronics, motion
from .rules import Event, Fault, Key, events_of
from .telemetry import COLUMNS, Telemetry

FAULTS: tuple[Fault, ...] = (
    *motion.POSITION_FAULTS,
    *electronics.ELECTRICAL_FAULTS,
    *motion.MOTION_FAULTS,
    *electronics.THERMAL_FAULTS,
)
"""Every fault of RA_FAULT_DETECT, RA_THERMAL and RA_GRAPPLE_PARAMS, and the firmware's over-current.
RA_MAX_FAULTS counts them: see `ALLOWANCES`."""

OPERATOR_FAULTS: tuple[Fault, ...] = tuple(motion.pot_stuck if f is motion.pot else f for f in FAULTS)
"""The same as an operator means them. By the letter of the SIS every long move of a healthy arm is a pot
fault: a joint moves 1 to 5 LSB from sample to sample, and less than pot_delta, 20 LSB, is an anomaly."""


@dataclass(frozen=True)
class Unchecked:
    """A fault that could not be looked for, and why: the column or the parameter that is missing."""

    fault: str
    reason: str


@dataclass(frozen=True)
class Findings:
    """What a search found."""

    events: tuple[Event, ...]  # by time
    checked: tuple[str, ...]  # names of the faults that were looked for
    unchecked: tuple[Unchecked, ...]  # those that could not be


def detect(telemetry: Telemetry, parameters: Parameters, faults: Sequence[Fault] = FAULTS) -> Findings:
    """Look for faults.

    Parameters
    ----------
    telemetry : Telemetry
        Raw numbers that it lacks are computed (`Telemetry.with_raw`).
    parameters : Parameters
        All thresholds and numbers of samples.
    faults : sequence of Fault
        Those to look for.
    """
    full = telemetry.with_raw(parameters)
    events: list[Event] = []
    unchecked: list[Unchecked] = []
    for fault in faults:
        reason = _hindrance(fault, full, parameters)
        if reason:
            unchecked.append(Unchecked(fault.name, reason))
            continue
        try:
            events += events_of(fault, full, parameters)
        except MissingParameterError as error:
            unchecked.append(Unchecked(fault.name, error.what))
    events.sort(key=lambda event: (event.t_ns, event.declared))
    skipped = {entry.fault for entry in unchecked}
    checked = tuple(fault.name for fault in faults if fault.name not in skipped)
    return Findings(tuple(events), checked, tuple(unchecked))


def _hindrance(fault: Fault, telemetry: Telemetry, parameters: Parameters) -> str:
    """Return what is missing, "" if nothing is."""
    reasons = [
        f"no {name} ({telemetry.absent.get(name, COLUMNS[name].what)})"
        for name in fault.needs
        if name not in telemetry
    ]
    keys: tuple[Key, ...] = (*fault.parameters, *([fault.samples] if fault.samples else ()))
    who = " or ".join(source for source, _ in parameters.sources)
    reasons += [f"{who} does not give {key[0]} {key[1]}" for key in keys if not parameters.has(*key)]
    return "; ".join(reasons)


MAX_FAULTS = "RA_MAX_FAULTS"


@dataclass(frozen=True)
class Allowance:
    """One counter."""

    parameter: str  # of RA_MAX_FAULTS: how many are allowed
    what: str  # what it counts
    faults: tuple[str, ...] = ()  # the faults counted; none for what only the flight software sees


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
class Count:
    """What one counter reached."""

    allowance: Allowance
    allowed: int
    counted: int | None  # none where the telemetry cannot show it
    safed: Event | None  # the fault that safes the arm: the first one more than allowed


def count_faults(events: Iterable[Event], parameters: Parameters) -> list[Count]:
    """Count faults against RA_MAX_FAULTS.

    Faults declared at one time, of several joints, say, are one. The SIS does not say when the counters start
    again; they count all that is given.
    """
    given = sorted(events, key=lambda event: event.t_ns)
    return [_count(allowance, given, parameters) for allowance in ALLOWANCES]


def _count(allowance: Allowance, events: list[Event], parameters: Parameters) -> Count:
    allowed = int(parameters.number(MAX_FAULTS, allowance.parameter))
    if not allowance.faults:
        return Count(allowance, allowed, None, None)
    first: dict[int, Event] = {}
    for event in events:
        if event.fault in allowance.faults:
            first.setdefault(event.t_ns, event)
    counted = list(first.values())
    return Count(allowance, allowed, len(counted), counted[allowed] if len(counted) > allowed else None)


@dataclass(frozen=True)
class Group:
    """Faults of one kind and one part, in all streams that show them."""

    # fault, part, what: the kind, the joint or voltage, and when a sample is an anomaly
    fault: str
    part: str
    what: str
    times: int  # how often it was declared, in the stream that has it most often
    # first_ns, last_ns: when it was declared first and last
    first_ns: int
    last_ns: int
    samples: int  # anomalies of the longest run
    # value, limit: of the declaration that passed its limit most, in `unit`
    value: float
    limit: float
    unit: str
    excess: float  # how far that is beyond the limit, as a share of it; 1 where the limit is 0
    safes: bool  # whether it is declared more often than RA_MAX_FAULTS allows, which safes the arm
    streams: tuple[str, ...]


def group_faults(
    found: Mapping[str, Findings], parameters: Parameters, faults: Sequence[Fault] = FAULTS
) -> list[Group]:
    """Group what was found in several streams by kind and part, the worst first.

    Worst is what safes the arm, then what passes its limit by the largest share.
    """
    groups: dict[tuple[str, str], dict[str, list[Event]]] = {}
    for stream, findings in found.items():
        for event in findings.events:
            groups.setdefault((event.fault, event.part), {}).setdefault(stream, []).append(event)
    safing = {name for findings in found.values() for name in _safing(findings.events, parameters)}
    what = {fault.name: fault.what for fault in faults}
    grouped = [_group(key, by_stream, what, safing) for key, by_stream in groups.items()]
    return sorted(grouped, key=lambda g: (not g.safes, -g.excess, g.first_ns, g.fault, g.part))


def _group(
    key: tuple[str, str], by_stream: Mapping[str, list[Event]], what: Mapping[str, str], safing: set[str]
) -> Group:
    events = [event for listed in by_stream.values() for event in listed]
    worst = max(events, key=_excess)
    return Group(
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


def _excess(event: Event) -> float:
    return abs(event.value - event.limit) / abs(event.limit) if event.limit else 1.0


def _safing(events: Iterable[Event], parameters: Parameters) -> set[str]:
    """Return the kinds of faults that safe the arm."""
    known = [allowance for allowance in ALLOWANCES if parameters.has(MAX_FAULTS, allowance.parameter)]
    given = sorted(events, key=lambda event: event.t_ns)
    counts = [_count(allowance, given, parameters) for allowance in known]
    return {count.safed.fault for count in counts if count.safed is not None}


LOST = "not given"


class Row(NamedTuple):
    """One fault: name, meaning, parameters with values, when it is declared, section of the SIS, note."""

    name: str
    what: str
    parameters: str
    declared: str
    section: str
    note: str = ""


def table_of_faults(parameters: Parameters, faults: Sequence[Fault] = FAULTS) -> list[Row]:
    """Return one row a fault, and one for each counter of RA_MAX_FAULTS."""
    rows = [
        Row(
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


def _counter(allowance: Allowance, parameters: Parameters) -> Row:
    key = (MAX_FAULTS, allowance.parameter)
    given = parameters.has(*key)
    return Row(
        allowance.parameter,
        f"the arm is safed: {allowance.what}",
        _value(key, parameters),
        f"on fault number {parameters.number(*key) + 1:g}" if given else f"after {key[1]}: {LOST}",
        "5.1.3.16",
        f"counts {', '.join(allowance.faults)}" if allowance.faults else "seen by the flight software only",
    )


def _value(key: Key, parameters: Parameters) -> str:
    if not parameters.has(*key):
        return f"{key[0]} {key[1]}: {LOST}"
    unit = units(key[0]).get(key[1], "")
    numbers = np.atleast_1d(parameters.numbers(*key)).tolist()
    shown = numbers[:1] if len(set(numbers)) == 1 else numbers
    return f"{key[0]} {key[1]} = {' '.join(f'{number:g}' for number in shown)} {unit}".rstrip()


def _describe(fault: Fault, parameters: Parameters) -> str:
    if fault.samples is None:
        return "at once"
    if not parameters.has(*fault.samples):
        return f"after {fault.samples[1]} in a row: {LOST}"
    numbers = np.atleast_1d(fault.declared_on(parameters)).tolist()
    shown = numbers[:1] if len(set(numbers)) == 1 else numbers
    word = "more than" if fault.rule == "allowed" else "at least"
    return f"on number {' '.join(f'{n:g}' for n in shown)} in a row ({word} {fault.samples[1]})"
