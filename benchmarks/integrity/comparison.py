"""What each tool found of the same cases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.integrity.cases import SAME, reasons_of
from benchmarks.integrity.results import Event, Flag, Result, Said
from benchmarks.integrity.summary import Summary, count_alarms, ratio
from transect.integrity.rules import RULES

OURS = "transect"
MIN_SAME_TIME_RATIO = 0.5
"""Intersection over union in time from which two findings of a peer are one."""
CLEAR = "(clear)"
"""Name of the row of false alarms, instead of a fault."""


@dataclass(frozen=True)
class PeerRow:
    """What one tool found of one fault.

    Attributes
    ----------
    recall : float
        Fraction of cases with a finding on a faulty stream during the fault or at the end of the recording;
        in the row `(clear)` false alarms an hour of recording.
    latency : float
        Median seconds until it could say so; a tool that reads a whole recording first can say so at its end.
    named : float
        Part of these that were given a right name.
    """

    peer: str
    fault: str
    cases: int
    recall: float
    latency: float
    named: float


def compare(summary: Summary) -> list[PeerRow]:
    """Return what each tool found of the cases that all of them were asked about."""
    asked = [r for r in summary.results if r.peers]
    names = sorted({name for result in asked for name in result.peers})
    rows: list[PeerRow] = []
    for peer in (OURS, *names):
        clear = [r for r in asked if not r.case.fault]
        rows += [_clear_row(summary, peer, clear)] if clear else []
        for fault in dict.fromkeys(r.case.fault for r in asked if r.case.fault and r.events):
            cases = [r for r in asked if r.case.fault == fault and r.events]
            rows.append(_fault_row(peer, fault, cases, summary))
    return rows


def _clear_row(summary: Summary, peer: str, results: Sequence[Result]) -> PeerRow:
    hours = sum(result.seconds for result in results) / 3600
    if peer == OURS:
        alarms = sum(count_alarms(summary.unexplained(result))[0] for result in results)
    else:
        alarms = sum(len(result.peers.get(peer, ())) for result in results)
    return PeerRow(peer, CLEAR, len(results), ratio(alarms, hours), math.nan, math.nan)


def _fault_row(peer: str, fault: str, results: Sequence[Result], summary: Summary) -> PeerRow:
    found: list[tuple[float, bool]] = []
    for result in results:
        clear = summary.clear[result.case.base, result.case.seed]
        said = list(_said_by(peer, result, clear))
        if hit := _first(said, result.events):
            right = any(SAME.get(s.reason, s.reason) in reasons_of(fault) for s in hit)
            start = min(event.start for event in result.events)
            found.append((max(0.0, min(s.known for s in hit) - start), right))
    latency = median(late for late, _ in found) if found else math.nan
    named = ratio(sum(right for _, right in found), len(found))
    return PeerRow(peer, fault, len(results), len(found) / len(results), latency, named)


def _said_by(peer: str, result: Result, clear: Result) -> Iterable[Said]:
    """Return what a tool said, but for what it says of the recording without the fault, too."""
    if peer == OURS:
        return _ours(result.said, clear.said, result.window)
    before = clear.peers.get(peer, ())
    return [said for said in result.peers.get(peer, ()) if not any(_is_same(said, each) for each in before)]


def _is_same(said: Said, other: Said) -> bool:
    """Whether two findings have the same stream and reason, and mostly the same time."""
    both = min(said.end, other.end) - max(said.start, other.start)
    either = max(said.end, other.end) - min(said.start, other.start)
    return (said.stream, said.reason) == (other.stream, other.reason) and both > MIN_SAME_TIME_RATIO * either


def _ours(flags: Iterable[Flag], before: Iterable[Flag], window: float) -> Iterable[Said]:
    known = {(f.stream, f.check, n) for f in before for n in f.windows}
    for flag in flags:
        for n in flag.windows:
            if (flag.stream, flag.check, n) not in known:
                yield Said(flag.stream, n * window, (n + 1) * window, flag.reason, (n + 1) * window)


def _first(said: Iterable[Said], events: Iterable[Event]) -> list[Said]:
    """Return what was said of the streams of some events while they lasted, or just after."""
    return [
        each
        for each in said
        if any(
            e.stream == each.stream and each.start <= e.end + RULES.k_off and each.end >= e.start
            for e in events
        )
    ]
