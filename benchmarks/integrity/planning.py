"""Selection of the faults of each recording and of the streams with them."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.integrity.bases import AIR, Base
from benchmarks.integrity.cases import Case, namers_of, reasons_of
from benchmarks.integrity.results import Result
from transect.recording import Recording
from transect.simulation.faults import FAULTS, descriptions, find_able
from transect.simulation.randomness import generator

FAULT_SEVERITIES = (0.25, 0.5, 1.0)
_LASTING = "share of the window"
SEVERITIES_OF: Mapping[str, tuple[float, ...]] = {
    **{fault.name: (1.0,) for fault in descriptions.FAULTS if fault.unit == _LASTING},
    "clock_jump": (0.02, 0.05, 0.2, 0.5),
    "wheel_slip": (0.2, 0.375, 0.75),
}
"""Of faults with a promise in their own unit: jumps of 20 ms and more, slip of 0.3 (of 0.8) and more; and of
mistakes of descriptions that have no size: who makes one makes it for the whole recording."""


def severities_of(fault: str, wanted: Sequence[float] = ()) -> Sequence[float]:
    """Return the severities in which a fault is tried; `wanted` is for faults that have none of their own."""
    return SEVERITIES_OF.get(fault, wanted or FAULT_SEVERITIES)


def plan(
    base: Base, recording: Recording, clear: Result, faults: Sequence[str], severities: Sequence[float] = ()
) -> Iterator[Case]:
    """Yield the cases of one recording: each fault that can happen to it, in each severity.

    A fault of the air happens to all streams. Any other happens to one, which the seed chooses of those
    that a check with a word for it judges in the clear recording, and that do not have the same defect
    anyway; without such a stream there is no case.

    Parameters
    ----------
    clear : Result
        Of the recording without a fault.
    """
    for fault in faults:
        if not any(fnmatch.fnmatchcase(fault, pattern) for pattern in base.faults):
            continue
        stream = "*" if fault in AIR else _choose_stream(recording, clear, fault, base.known)
        if not stream or (stream == "*" and not find_able(recording, FAULTS[fault])):
            continue
        for severity in severities_of(fault, severities):
            yield Case(clear.case.base, clear.case.seed, fault, severity, stream)


def _choose_stream(
    recording: Recording, clear: Result, fault: str, known: Mapping[str, tuple[str, ...]]
) -> str:
    able = find_able(recording, FAULTS[fault])
    free = [name for name in able if reasons_of(fault).isdisjoint(known.get(name, ()))]
    judged = [name for name in free if clear.judged(name, namers_of(fault, recording[name].type.__name__))]
    if not judged:
        return ""
    draw = generator(clear.case.seed, "benchmark", clear.case.base, fault)
    return judged[int(draw.integers(len(judged)))]


def list_unnamed(recording: Recording, clear: Result, faults: Sequence[str]) -> dict[str, list[str]]:
    """Return by fault the types of streams that it can happen to and that no check would name it for."""
    found: dict[str, list[str]] = {}
    for fault in faults:
        names = [
            name
            for name in find_able(recording, FAULTS[fault])
            if not clear.judged(name, namers_of(fault, recording[name].type.__name__))
        ]
        if kinds := sorted({recording[name].type.__name__ for name in names}):
            found[fault] = kinds
    return found
