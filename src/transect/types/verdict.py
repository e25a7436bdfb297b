"""How far a sensor can be trusted."""

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
    """How far one stream can be trusted in the window [t0_ns, t1_ns), and why.

    Attributes
    ----------
    sensor, stream : str
        The device, and the stream of it that was judged.
    t0_ns, t1_ns : int
        The window, on the stream's clock.
    check : str
        Identifier of the check, such as `T02`; "" where the verdicts of several checks were rolled up.
    version : int
        Of the check.
    state, raw : str
        `OK`, `SUSPECT`, `BAD` or `UNKNOWN`: as declared, which needs several windows in a row, and of this
        window alone. `UNKNOWN` is not `OK`: the check could not tell.
    score : float or None
        Of this window alone: 1 is fully trusted, 0 is not at all, None is not known.
    reason : str
        Code of what is wrong, such as `GAP` or `DUST`; of an UNKNOWN what the check lacks; "" of an OK.
    note : str
        What else a person should know.
    evidence, threshold : mapping of str to float
        What was measured, and the limits that it was held against: `ratio.warn`, `ratio.fail`.
    n : int
        Samples that were used.
    peers : tuple of str
        Streams that it was compared with.
    region : bool array or None
        What to drop: (k,) beams or (h, w) pixels, or (n, k) with a row for each of the window's samples.
    muted : str
        Why a person wants the verdict not to count; "" if it counts.
    """

    sensor: str
    stream: str
    t0_ns: int
    t1_ns: int
    check: str = ""
    version: int = 1
    state: State = "UNKNOWN"
    raw: State = "UNKNOWN"
    score: float | None = None
    reason: str = ""
    note: str = ""
    evidence: Mapping[str, float] = field(default_factory=_no_numbers)
    threshold: Mapping[str, float] = field(default_factory=_no_numbers)
    n: int = 0
    peers: tuple[str, ...] = ()
    region: Mask | None = None
    muted: str = ""
