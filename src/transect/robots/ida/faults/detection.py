"""The table of all faults, and the search for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..parameters import MissingParameterError, Parameters
from . import electrical, motion, position, thermal
from .rules import Event, Fault, Key, events_of
from .telemetry import COLUMNS, Telemetry

FAULTS: tuple[Fault, ...] = (*position.FAULTS, *electrical.FAULTS, *motion.FAULTS, *thermal.FAULTS)
"""Every fault of RA_FAULT_DETECT, RA_THERMAL and RA_GRAPPLE_PARAMS, and the firmware's over-current.
RA_MAX_FAULTS counts them: see `safing`."""


@dataclass(frozen=True)
class Unchecked:
    """A fault that could not be looked for, and why: the column or the parameter that is missing."""

    fault: str
    reason: str


@dataclass(frozen=True)
class Findings:
    """What a search found.

    Attributes
    ----------
    events : tuple of Event
        By time.
    checked : tuple of str
        Names of the faults that were looked for.
    unchecked : tuple of Unchecked
        Those that could not be.
    """

    events: tuple[Event, ...]
    checked: tuple[str, ...]
    unchecked: tuple[Unchecked, ...]


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
