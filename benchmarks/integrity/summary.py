"""What was found of all cases: by fault, by reason, by check; and what was said of clear recordings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.integrity.cases import SAME, namers_of, reasons_of
from benchmarks.integrity.results import Flag, Result, runs_of
from benchmarks.integrity.scores import Score, score_case
from transect.integrity import catalogue
from transect.integrity.rules import RULES
from transect.simulation.faults import FAULTS

MIN_FOUND_RATIO = 0.9
"""Fraction of events that must be found for a severity to be detectable."""
GATE_SEVERITY = 0.5
"""Minimum severity of events that count for gates without their own."""


@dataclass(frozen=True)
class FaultRow:
    """What was found of one fault, over all its cases.

    Attributes
    ----------
    precision, recall, f1 : float
        Of windows; NaN where there were none.
    event_recall, matched : float
        Part of the events that were named, and that were named over most of their time.
    latency, latency_95 : float
        Median and 95th percentile of the seconds until an event was named.
    named : float
        Fraction of the reported events that have the right reason.
    right_sensor : float
        Fraction of the windows flagged during events that are of a faulty stream.
    least : float
        Smallest severity from which on nine of ten events were named; NaN without one.
    judged : float
        Fraction of its windows that are judged by a check with a reason for it.
    """

    fault: str
    cases: int
    events: int
    precision: float
    recall: float
    f1: float
    event_recall: float
    matched: float
    latency: float
    latency_95: float
    named: float
    right_sensor: float
    least: float
    judged: float


@dataclass(frozen=True)
class ReasonRow:
    """How often a reason was said of streams with a fault, and how often rightly."""

    reason: str
    windows: int
    precision: float
    recall: float


@dataclass(frozen=True)
class CheckRow:
    """A check, the fault that it names best, and how long it was silent on clear recordings.

    Attributes
    ----------
    fault : str
        The fault, of those with a reason of this check, with the highest recall; "" without any.
    events, recall
        Events and recall of that fault, where this check could judge.
    hours : float
        Of streams that it judged on clear recordings.
    bad, suspect : int
        False alarms there: times that it declared BAD, and that it was beyond its limit `warn`.
    """

    check: str
    name: str
    fault: str
    events: int
    recall: float
    hours: float
    bad: int
    suspect: int

    @property
    def counts(self) -> bool:
        """Whether it named a fault, and was silent in all clear time that it judged."""
        return self.recall > 0 and self.hours > 0 and not self.bad


@dataclass(frozen=True)
class ClearRow:
    """False alarms on one clear recording, over all its streams."""

    base: str
    hours: float
    sensors: int
    bad: int
    suspect: int
    speed: float


def ratio(part: float, whole: float) -> float:
    """Return a part of a whole; NaN if there is no whole."""
    return part / whole if whole else math.nan


class Summary:
    """All results of a benchmark, and what they say.

    Parameters
    ----------
    results : iterable of Result
    known : mapping of str to mapping of str to tuple of str
        By base and stream, reasons of real defects of a recording: no false alarms.
    """

    def __init__(
        self, results: Iterable[Result], known: Mapping[str, Mapping[str, Sequence[str]]] | None = None
    ) -> None:
        self.results = list(results)
        self.known = known or {}
        self.clear = {(r.case.base, r.case.seed): r for r in self.results if not r.case.fault}
        self.scores = [
            score_case(r, self.clear[r.case.base, r.case.seed])
            for r in self.results
            if r.case.fault and r.events
        ]

    def by_fault(self) -> list[FaultRow]:
        """Return a row for each fault that happened, in the order of `FAULTS`."""
        return [
            row_of(name, chosen)
            for name in FAULTS
            if (chosen := [score for score in self.scores if score.case.fault == name])
        ]

    def by_reason(self) -> list[ReasonRow]:
        """Return a row for each reason that was said of streams with a fault, or should have been."""
        right = sum((score.said_right for score in self.scores), Counter[str]())
        wrong = sum((score.said_wrong for score in self.scores), Counter[str]())
        rows: list[ReasonRow] = []
        for reason in sorted(right | wrong):
            wanted = [s for s in self.scores if reason in reasons_of(s.case.fault)]
            found, missed = (sum(getattr(s, what) for s in wanted) for what in ("right", "missed"))
            said = right[reason] + wrong[reason]
            rows.append(ReasonRow(reason, said, ratio(right[reason], said), ratio(found, found + missed)))
        return rows

    def by_check(self) -> list[CheckRow]:
        """Return a row for each check."""
        return [self._check_row(check.id, name) for name, check in catalogue.load_all().items()]

    def _check_row(self, check: str, name: str) -> CheckRow:
        judged, named = Counter[str](), Counter[str]()
        for score in self.scores:
            judged[score.case.fault] += score.judged_by[check]
            named[score.case.fault] += score.named_by[check]
        best = max(
            (f for f in judged if judged[f]), key=lambda f: (named[f] / judged[f], named[f]), default=""
        )
        windows = sum(len(r.judged(s, [check])) * r.window for r in self.clear.values() for s in r.types)
        alarms = [count_alarms(self.unexplained(r), check) for r in self.clear.values()]
        bad, suspect = (sum(each) for each in zip(*alarms, strict=True)) if alarms else (0, 0)
        recall = ratio(named[best], judged[best])
        return CheckRow(check, name, best, judged[best], recall, windows / 3600, bad, suspect)

    def unexplained(self, result: Result) -> list[Flag]:
        """Return what was said of a clear recording, but for its real defects."""
        known = self.known.get(result.case.base, {})
        return [f for f in result.said if f.reason not in known.get(f.stream, ())]

    def by_base(self) -> list[ClearRow]:
        """Return false alarms and speed on each clear recording; parts of an hour are one."""
        groups: dict[str, list[Result]] = {}
        for result in self.clear.values():
            base = result.case.base
            groups.setdefault(base.rpartition("-")[0] if base.startswith("hour-") else base, []).append(
                result
            )
        return [self._clear_row(name, results) for name, results in sorted(groups.items())]

    def _clear_row(self, name: str, results: Sequence[Result]) -> ClearRow:
        alarms = [count_alarms(self.unexplained(result)) for result in results]
        bad, suspect = (sum(each) for each in zip(*alarms, strict=True))
        seconds = sum(result.seconds for result in results)
        speed = ratio(seconds, sum(result.cpu for result in results))
        return ClearRow(name, seconds / 3600, len(results[0].types), bad, suspect, speed)

    def unnamed(self) -> dict[str, list[str]]:
        """Return by fault the types of streams that it can happen to, and that no check names it for."""
        named = {(r.case.fault, r.types.get(r.case.stream, "")) for r in self.results if r.case.fault}
        found: dict[str, set[str]] = {}
        for result in self.clear.values():
            for fault, kinds in result.unnamed.items():
                found.setdefault(fault, set()).update(kind for kind in kinds if (fault, kind) not in named)
        return {fault: sorted(found[fault]) for fault in FAULTS if found.get(fault)}


def row_of(fault: str, scores: Sequence[Score]) -> FaultRow:
    """Return what was found of a fault."""
    right, wrong, missed, unjudged, elsewhere = (
        sum(getattr(score, name) for score in scores)
        for name in ("right", "wrong", "missed", "unjudged", "elsewhere")
    )
    events = [event for score in scores for event in score.events]
    latencies = sorted(event.latency for event in events if event.latency is not None)
    flagged = sum(event.flagged for event in events)
    here = sum(sum(score.said_right.values()) for score in scores)
    return FaultRow(
        fault, len(scores), len(events),
        precision=ratio(right, right + wrong), recall=ratio(right, right + missed),
        f1=f1_of(scores),
        event_recall=ratio(sum(event.named for event in events), len(events)),
        matched=ratio(sum(event.matched for event in events), len(events)),
        latency=median(latencies) if latencies else math.nan,
        latency_95=latencies[math.ceil(0.95 * len(latencies)) - 1] if latencies else math.nan,
        named=ratio(sum(event.named for event in events), flagged),
        right_sensor=ratio(here, here + elsewhere),
        least=_least_severity(scores),
        judged=ratio(right + missed, right + missed + unjudged),
    )  # fmt: skip


def f1_of(scores: Iterable[Score]) -> float:
    """Return the F1 of windows, over all of some cases."""
    right = wrong = missed = 0
    for score in scores:
        right, wrong, missed = right + score.right, wrong + score.wrong, missed + score.missed
    return ratio(2 * right, 2 * right + wrong + missed)


def _least_severity(scores: Sequence[Score]) -> float:
    least = math.nan
    for severity in sorted({score.case.severity for score in scores}, reverse=True):
        events = [e for score in scores if score.case.severity == severity for e in score.events]
        if not events or sum(event.named for event in events) < MIN_FOUND_RATIO * len(events):
            break
        least = severity
    return least


def count_alarms(flags: Iterable[Flag], check: str = "") -> tuple[int, int]:
    """Return how often BAD was declared, and how often a limit `warn` was exceeded.

    Windows of one stream that are at most `k_off` apart are one alarm, for any checks and reasons.

    Parameters
    ----------
    check : str
        Only what this check said; default what all said.
    """
    chosen = [flag for flag in flags if check in ("", flag.check)]
    counts = [0, 0]
    for stream in {flag.stream for flag in chosen}:
        for k, what in enumerate(("declared", "windows")):
            numbers = sorted({n for f in chosen if f.stream == stream for n in getattr(f, what)})
            counts[k] += len(runs_of(numbers, RULES.k_off))
    return counts[0], counts[1]


def find_human_share(results: Iterable[Result]) -> float:
    """Return the part of the windows of lasers in which somebody who walks was called a cloud."""
    called = whole = 0
    clouds = namers_of("dust")
    for result in results:
        for stream, kind in result.types.items():
            if kind == "LaserScan":
                judged = result.judged(stream, clouds)
                said = {
                    n for f in result.said
                    if f.stream == stream and SAME.get(f.reason, f.reason) == "OBSCURANT" for n in f.windows
                }  # fmt: skip
                called, whole = called + len(judged & said), whole + len(judged)
    return ratio(called, whole)
