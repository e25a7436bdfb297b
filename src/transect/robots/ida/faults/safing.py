"""How often a fault may come back before the arm is safed (RA_MAX_FAULTS, SIS 5.1.3.16)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..parameters import Parameters
from .rules import Event

MAX_FAULTS = "RA_MAX_FAULTS"


@dataclass(frozen=True)
class Allowance:
    """One counter.

    Attributes
    ----------
    parameter : str
        Of RA_MAX_FAULTS: how many are allowed.
    what : str
        What it counts.
    faults : tuple of str
        The faults counted; none for what only the flight software sees.
    """

    parameter: str
    what: str
    faults: tuple[str, ...] = ()


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
    """What one counter reached.

    Attributes
    ----------
    allowance : Allowance
    allowed : int
    counted : int or None
        None where the telemetry cannot show it.
    safed : Event or None
        The fault that safes the arm: the first one more than allowed.
    """

    allowance: Allowance
    allowed: int
    counted: int | None
    safed: Event | None


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
