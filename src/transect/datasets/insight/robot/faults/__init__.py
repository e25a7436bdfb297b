"""Every fault that the flight software of the arm looks for, as functions of its parameter file.

`FAULTS` is the table: what is tested, by which parameters, on how many samples in a row, and where the SIS
says so. `detect` finds them in `Telemetry`, which `telemetry_of` makes of a recording.
"""

from __future__ import annotations

from .detection import (
    ALLOWANCES,
    FAULTS,
    OPERATOR_FAULTS,
    Allowance,
    Count,
    Findings,
    Group,
    Row,
    Unchecked,
    count_faults,
    detect,
    group_faults,
    table_of_faults,
)
from .electronics import Cooldown, cooldowns, cooling, fully_open
from .rules import Event, Fault, Measure, consecutive
from .telemetry import COLUMNS, Telemetry, streams_of, telemetry_of

__all__ = [
    "ALLOWANCES",
    "COLUMNS",
    "FAULTS",
    "OPERATOR_FAULTS",
    "Allowance",
    "Cooldown",
    "Count",
    "Event",
    "Fault",
    "Findings",
    "Group",
    "Measure",
    "Row",
    "Telemetry",
    "Unchecked",
    "consecutive",
    "cooldowns",
    "cooling",
    "count_faults",
    "detect",
    "fully_open",
    "group_faults",
    "streams_of",
    "table_of_faults",
    "telemetry_of",
]
