"""Verdicts of integrity checks on streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from transect.base.arrays import Mask

State = Literal["OK", "SUSPECT", "BAD", "UNKNOWN"]
STATES: tuple[State, ...] = get_args(State)


def _no_numbers() -> dict[str, float]:
    return {}


@dataclass(frozen=True, eq=False)
class Verdict:
    """Result of a check: whether one stream can be trusted in the window [t0_ns, t1_ns), and why."""

    sensor: str  # The device
    stream: str  # Stream of the device that was checked
    t0_ns: int  # Start of the window, on the stream's clock
    t1_ns: int  # End of the window, on the stream's clock
    # Identifier of the check, such as `T02`; "" if the verdicts of several checks were combined
    check: str = ""
    version: int = 1  # Of the check
    state: State = "UNKNOWN"  # As declared, which requires several windows in a row
    raw: State = "UNKNOWN"  # Of this window alone; `UNKNOWN` means that the check could not decide
    # Of this window alone: 1 is fully trusted, 0 is not trusted, None is not known
    score: float | None = None
    # Code of the fault, such as `GAP` or `DUST`; for UNKNOWN what the check lacks; "" for OK
    reason: str = ""
    note: str = ""  # Further information for a person
    evidence: Mapping[str, float] = field(default_factory=_no_numbers)  # Measured values
    threshold: Mapping[str, float] = field(
        default_factory=_no_numbers
    )  # Their limits: `ratio.warn`, `ratio.fail`
    n: int = 0  # Number of samples used
    peers: tuple[str, ...] = ()  # Streams with which it was compared
    # What to drop: (k,) beams or (h, w) pixels, or (n, k) with a row for each of the window's samples
    region: Mask | None = None
    muted: str = ""  # Why a person excluded the verdict; "" if it counts
