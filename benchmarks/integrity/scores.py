"""Scores of one case of the benchmark: detected events, precision and recall of windows.

A window is *flagged* if a check exceeds its limit `warn` (SUSPECT, BAD, or a finding such as RAIN that leaves
a sensor usable), and does not give the same verdict on that window of the recording without the fault.

- The first `DETECTION_WINDOWS` windows of an event are not counted, as a check may need them, nor are the
  `CLEARING_WINDOWS` windows after it. A shorter event counts as one window, which is found if it or one of
  the next `DETECTION_WINDOWS` is flagged.
- A window of an event counts if it contains a sample that the fault changed: between bursts some do not.
- Windows that no check with a reason for the fault judges in the clear recording are excluded, as UNKNOWN is
  not OK. Their number is reported.
- A window is *found* if it is flagged with a correct reason. A flag elsewhere in the same stream is a false
  alarm, for any reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from benchmarks.integrity.cases import SAME, Case, namers_of, reasons_of
from benchmarks.integrity.results import Event, Flag, Result
from transect.integrity.rules import RULES

DETECTION_WINDOWS, CLEARING_WINDOWS = RULES.k_on, RULES.k_off
MIN_MATCH_IOU = 0.3
"""Intersection over union from which flagged windows match an event."""
INSTANT_FAULTS = ("clock_jump",)
"""Faults of one instant, although they change all later samples."""
MIN_LAST_WINDOW_RATIO = 0.5
"""Fraction of its last window that an event must cover for the window to count."""


@dataclass(frozen=True)
class FoundEvent:
    """One event, and what became of it.

    Attributes
    ----------
    stream : str
    flagged, named : bool
        Whether any check said something of it; whether with a right reason.
    matched : bool
        Whether the windows that are named overlap it by `MIN_MATCH_IOU`.
    latency : float or None
        Seconds from its begin to the end of the first window that is named.
    checks : frozenset of str
        Those that named it.
    """

    stream: str
    flagged: bool
    named: bool
    matched: bool
    latency: float | None
    checks: frozenset[str]


@dataclass
class Score:
    """What was found of one case.

    Attributes
    ----------
    right, wrong, missed : int
        Windows: found, flagged where nothing was, and not found.
    unjudged : int
        Windows of events that no check with a word for it judges.
    events : list of FoundEvent
    elsewhere : int
        Windows of streams that the fault did not happen to, flagged while it lasted.
    said_right, said_wrong : Counter
        By reason, windows of touched streams that were flagged with it, rightly or not.
    judged_by, named_by : Counter
        By check, events that it judged and that it named.
    """

    case: Case
    right: int = 0
    wrong: int = 0
    missed: int = 0
    unjudged: int = 0
    elsewhere: int = 0
    events: list[FoundEvent] = field(default_factory=list[FoundEvent])
    said_right: Counter[str] = field(default_factory=Counter[str])
    said_wrong: Counter[str] = field(default_factory=Counter[str])
    judged_by: Counter[str] = field(default_factory=Counter[str])
    named_by: Counter[str] = field(default_factory=Counter[str])


Flagged = Mapping[int, frozenset[tuple[str, str]]]
"""By window the checks and reasons that flagged it."""


def score_case(result: Result, clear: Result) -> Score:
    """Return what was found of a case.

    Parameters
    ----------
    clear : Result
        Of the same recording without the fault.
    """
    score = Score(result.case)
    lasting = {name: [e for e in result.events if e.stream == name] for name in _streams(result.events)}
    during = {n for e in result.events for n in _near(e, result.window)}
    for name in result.types:
        flagged = flagged_of(name, result.said, clear.said)
        if name in lasting:
            _score_stream(score, lasting[name], flagged, result, clear)
        else:
            score.elsewhere += len(flagged.keys() & during)
    return score


def _streams(events: Iterable[Event]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(event.stream for event in events))


def flagged_of(stream: str, flags: Iterable[Flag], known: Iterable[Flag] = ()) -> Flagged:
    """Return what is said of the windows of a stream, but for what a check says without the fault, too."""
    before = {(f.check, number) for f in known if f.stream == stream for number in f.windows}
    said: dict[int, set[tuple[str, str]]] = {}
    for flag in flags:
        if flag.stream == stream:
            for number in flag.windows:
                if (flag.check, number) not in before:
                    said.setdefault(number, set()).add((flag.check, SAME.get(flag.reason, flag.reason)))
    return {number: frozenset(each) for number, each in said.items()}


def _span(event: Event, window: float) -> range:
    return range(int(event.start / window), int(event.end / window) + 1)


def _near(event: Event, window: float) -> range:
    span = _span(event, window)
    return range(span.start - 1, span.stop + CLEARING_WINDOWS)


def _score_stream(
    score: Score, events: Iterable[Event], flagged: Flagged, result: Result, clear: Result
) -> None:
    stream, right = next(iter(events)).stream, reasons_of(score.case.fault)
    namers = namers_of(score.case.fault, result.types[stream])
    judged = clear.judged(stream, namers)
    if not judged:
        return
    near = {n for event in events for n in _near(event, result.window)}
    score.wrong += len(flagged.keys() - near)
    for event in events:
        whole = _span(event, result.window)
        span = (
            range(whole.start, min(whole.stop, whole.start + 2))
            if score.case.fault in INSTANT_FAULTS
            else whole
        )
        if not judged.intersection(span):
            score.unjudged += len(span)
            continue
        words = right | set(event.also)
        named = {n for n, said in flagged.items() if any(reason in words for _, reason in said)}
        _count_windows(score, event, span, named, judged, result.window)
        score.events.append(_find_event(event, span, flagged, words, result.window))
        _count_checks(score, namers, span, score.events[-1], clear)
    for number, said in flagged.items():
        for _, reason in said:
            (score.said_right if reason in right and number in near else score.said_wrong)[reason] += 1


def _count_windows(
    score: Score, event: Event, span: range, named: set[int], judged: set[int], window: float
) -> None:
    if len(span) <= DETECTION_WINDOWS:
        found = any(n in named for n in range(span.start, span.stop + DETECTION_WINDOWS))
        score.right, score.missed = score.right + found, score.missed + (not found)
        return
    short = event.end / window - (span.stop - 1) < MIN_LAST_WINDOW_RATIO
    touched = event.windows or span
    body = [n for n in range(span.start + DETECTION_WINDOWS, span.stop - short) if n in touched]
    known = [n for n in body if n in judged]
    found = sum(n in named for n in known)
    score.right += found
    score.missed += len(known) - found
    score.unjudged += len(body) - len(known)


def _find_event(
    event: Event, span: range, flagged: Flagged, right: frozenset[str], window: float
) -> FoundEvent:
    reach = [n for n in range(span.start, span.stop + DETECTION_WINDOWS) if n in flagged]
    named = [n for n in reach if any(reason in right for _, reason in flagged[n])]
    around = {n for n in range(span.start - 1, span.stop + CLEARING_WINDOWS) if n in flagged} & set(named)
    overlap = len(around & set(span)) / len(around | set(span))
    latency = (named[0] + 1) * window - event.start if named else None
    checks = frozenset(check for n in named for check, reason in flagged[n] if reason in right)
    return FoundEvent(event.stream, bool(reach), bool(named), overlap >= MIN_MATCH_IOU, latency, checks)


def _count_checks(
    score: Score, namers: frozenset[str], span: range, event: FoundEvent, clear: Result
) -> None:
    for check in namers:
        if clear.judged(event.stream, [check]).intersection(span):
            score.judged_by[check] += 1
            score.named_by[check] += check in event.checks
