"""All faults that the flight software of the arm detects, as functions of its parameter file.

`FAULTS` lists the tests with their parameters, numbers of consecutive samples, and sections of the SIS.
`detect` finds the faults in `ArmTelemetry`, which `telemetry_of` extracts from a recording.
"""

from __future__ import annotations

from .detection import (
    ALLOWANCES,
    FAULTS,
    OPERATOR_FAULTS,
    Allowance,
    CounterState,
    FaultGroup,
    FaultRow,
    Findings,
    UncheckedFault,
    count_faults,
    detect,
    group_faults,
    table_of_faults,
)
from .electronics import Cooldown, find_cooldowns, is_fully_open, must_cool_down
from .rules import FaultEvent, FaultRule, Measure, consecutive
from .telemetry import COLUMNS, ArmTelemetry, streams_of, telemetry_of

__all__ = [
    "ALLOWANCES",
    "COLUMNS",
    "FAULTS",
    "OPERATOR_FAULTS",
    "Allowance",
    "ArmTelemetry",
    "Cooldown",
    "CounterState",
    "FaultEvent",
    "FaultGroup",
    "FaultRow",
    "FaultRule",
    "Findings",
    "Measure",
    "UncheckedFault",
    "consecutive",
    "count_faults",
    "detect",
    "find_cooldowns",
    "group_faults",
    "is_fully_open",
    "must_cool_down",
    "streams_of",
    "table_of_faults",
    "telemetry_of",
]
