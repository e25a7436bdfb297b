"""What was promised of the checks, and whether it holds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.integrity.bases import SIMULATED
from benchmarks.integrity.scores import Score
from benchmarks.integrity.summary import GATE_SEVERITY, Summary, f1_of, find_human_share, ratio

TIMING = (
    "dropout", "late_start", "early_stop", "other_rate", "clock_jump", "clock_drift", "latency", "jitter",
    "disorder", "repeated_rows",
)  # fmt: skip
SIGNAL = ("stuck", "noise", "spikes", "bias_step", "bias_ramp", "saturation", "nan")
LIGHT = "light"
"""The recording that speed is promised for."""


@dataclass(frozen=True)
class Gate:
    """One promise.

    Attributes
    ----------
    what : str
    limit, found : float
        `found` is NaN if nothing tells.
    most : bool
        Whether the limit is the largest that is allowed, and not the smallest.
    cases : int
        On how much it was measured: cases, or recordings.
    """

    what: str
    limit: float
    found: float
    most: bool = False
    cases: int = 0

    @property
    def met(self) -> bool | None:
        """Whether it holds; None if nothing tells."""
        if math.isnan(self.found):
            return None
        return self.found <= self.limit if self.most else self.found >= self.limit


def list_gates(summary: Summary) -> list[Gate]:
    """Return all promises; faults are those of at least severity 0.5, if a promise names no other."""
    severe = [score for score in summary.scores if score.case.severity >= GATE_SEVERITY]
    cloud = [score for score in severe if score.case.fault in ("dust", "smoke")]
    jumps = [score for score in summary.scores if score.case.fault == "clock_jump"]
    slips = [s for s in summary.scores if s.case.fault == "wheel_slip" and s.case.severity >= 0.375]
    return [
        _f1("timing faults, F1", 0.98, (s for s in severe if s.case.fault in TIMING)),
        _f1("signal faults, F1", 0.98, (s for s in severe if s.case.fault in SIGNAL)),
        _f1("dust and smoke with radar, F1", 0.95, (s for s in cloud if s.case.base == "yard")),
        _f1("the same, driving, F1", 0.95, (s for s in cloud if s.case.base == "houses")),
        _f1("dust and smoke without radar, F1", 0.90, (s for s in cloud if s.case.base == "yard-laser")),
        _f1("rain, F1", 0.90, (s for s in severe if s.case.fault == "rain")),
        _human(summary),
        *_false_alarms(summary),
        _recall("clock jumps of 20 ms and more, found", 0.99, jumps),
        _recall("slip of 0.3 and more, found", 0.92, slips),
        _speed(summary),
    ]


def _f1(what: str, limit: float, scores: Iterable[Score]) -> Gate:
    chosen = list(scores)
    return Gate(what, limit, f1_of(chosen), cases=len(chosen))


def _recall(what: str, limit: float, scores: Iterable[Score]) -> Gate:
    chosen = list(scores)
    events = [event for score in chosen for event in score.events]
    return Gate(what, limit, ratio(sum(e.named for e in events), len(events)), cases=len(events))


def _human(summary: Summary) -> Gate:
    walked = {base.name for base in SIMULATED if base.human}
    results = [r for r in summary.clear.values() if r.case.base in walked]
    return Gate("somebody who walks, called dust", 0.02, find_human_share(results), True, len(results))


def _false_alarms(summary: Summary) -> list[Gate]:
    rows = summary.by_base()
    hours = sum(row.hours * row.sensors for row in rows)
    bad, suspect = ratio(sum(r.bad for r in rows), hours), ratio(sum(r.suspect for r in rows), hours)
    return [
        Gate("false alarms (BAD) per clear hour, sensor", 1.0, bad, True, len(rows)),
        Gate("the same, whatever is said counted", 1.0, suspect, True, len(rows)),
    ]


def _speed(summary: Summary) -> Gate:
    results = [r for r in summary.clear.values() if r.case.base == LIGHT]
    found = ratio(sum(r.seconds for r in results), sum(r.cpu for r in results))
    return Gate("laser, IMU and localisation, x real time", 20.0, found, cases=len(results))
