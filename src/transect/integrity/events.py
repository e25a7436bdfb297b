"""Events: problems of several sensors with the same cause at the same time, described in one sentence.

Also the conditions of a recording (dust, smoke, rain, fog), by its labels or by its verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from transect.recording import Recording
from transect.recording.arrow import texts
from transect.types import State, Verdict

from .config import conditions_of
from .report import MAX_SPAN_GAP_NS, SensorReport, badness, find_runs, reason_of, span_text
from .rules import worst
from .table import VerdictTable

CLOUD = ("OBSCURANT", "DUST", "SMOKE", "HAZE")
"""Reasons with one cause: lasers cannot distinguish dust from smoke, and both look like haze to a camera."""
RAIN = "RAIN"


@dataclass(frozen=True)
class EventSettings:
    """Numbers of the detection and description of events."""

    # Consecutive windows with drops that are rain: the edge of a cloud looks like drops in one window.
    min_rain_windows: int = 3
    # OK windows of a sensor that the event does not affect, as a ratio: a radar has more noise in dust.
    min_ok_ratio: float = 0.75
    max_names: int = 6  # Sensors that a sentence lists by name.


SETTINGS = EventSettings()


def cause_of(reason: str) -> str:
    """Return the cause of a reason: the same for all effects of a cloud."""
    return CLOUD[0] if reason in CLOUD else reason


@dataclass(frozen=True)
class SensorEvent:
    """A problem of several sensors at the same time."""

    cause: str  # see `cause_of`
    t0_ns: int  # start of the first problem
    t1_ns: int  # end of the last problem
    sensors: tuple[str, ...]  # sensors that were BAD; for rain, those that detected it and stayed OK
    suspect: tuple[str, ...]  # sensors that were SUSPECT, but not BAD
    unharmed: tuple[str, ...]  # sensors with content checks that were mostly OK, and never BAD or UNKNOWN
    reasons: frozenset[str]

    def sentence(self, start_ns: int) -> str:
        """Return cause, time (relative to `start_ns`), affected sensors, and usable ones as a sentence."""
        when = span_text(self.t0_ns, self.t1_ns, start_ns)
        when = f"from {when}" if " to " in when else f"at {when}"
        if self.cause == RAIN:
            return f"Rain {when}: {_join(self.sensors)} saw drops, and can be used all the same."
        if self.cause not in CLOUD:
            return f"Each of {_join(self.sensors + self.suspect)} {reason_of(self.cause).words} {when}."
        what = "Haze" if self.reasons == frozenset({"HAZE"}) else "A cloud"
        seen = [f"seen by {_join(self.sensors)}"] if self.sensors else []
        seen += [f"a little by {_join(self.suspect)}"] if self.suspect else []
        use = "it" if len(self.unharmed) == 1 else "them"
        clear = f"; {_join(self.unharmed)} did not see it: use {use} there" if self.unharmed else ""
        return f"{what} {when}: {', '.join(seen)}{clear}."

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain values."""
        return {
            "cause": self.cause, "t0_ns": self.t0_ns, "t1_ns": self.t1_ns, "sensors": list(self.sensors),
            "suspect": list(self.suspect), "unharmed": list(self.unharmed), "reasons": sorted(self.reasons),
        }  # fmt: skip


class _Sighting(NamedTuple):
    """Time span of a problem of one sensor."""

    t0_ns: int
    t1_ns: int
    sensor: str
    state: State
    reason: str


def find_events(reports: Sequence[SensorReport], table: VerdictTable) -> list[SensorEvent]:
    """Return problems of several sensors, and clouds that other sensors saw through, the largest first.

    Problems with one cause that overlap, or are less than `MAX_SPAN_GAP_NS` apart, are one event.
    """
    sightings = [
        _Sighting(*span, report.sensor, problem.state, problem.reason)
        for report in reports
        for problem in report.problems
        for span in problem.spans
    ]
    groups: dict[str, list[_Sighting]] = {}
    for sighting in sorted([*sightings, *_find_rain(table)]):
        groups.setdefault(cause_of(sighting.reason), []).append(sighting)
    content = table.select(group="content", muted="")
    judged = list(zip(*(content.column(name) for name in ("t0_ns", "t1_ns", "sensor", "state")), strict=True))
    events = [_make_event(part, judged) for group in groups.values() for part in _split(group)]
    events = [event for event in events if _is_informative(event)]
    return sorted(events, key=lambda e: (-len(e.sensors), e.t0_ns - e.t1_ns, e.t0_ns, e.cause))


def _is_informative(event: SensorEvent) -> bool:
    """Return whether an event adds information to the problems of single sensors."""
    if not event.sensors:
        return False
    several = len(event.sensors + event.suspect) > 1
    return several or event.cause == RAIN or (event.cause in CLOUD and bool(event.unharmed))


def _find_rain(table: VerdictTable) -> Iterator[_Sighting]:
    """Yield the time spans with rain, which leaves a laser OK and is therefore not among its problems."""
    rows: dict[str, list[Verdict]] = {}
    for verdict in table.select(reason=RAIN, state="OK", muted=""):
        rows.setdefault(verdict.sensor, []).append(verdict)
    for sensor, verdicts in rows.items():
        for run in find_runs(verdicts):
            if len(run) >= SETTINGS.min_rain_windows:
                yield _Sighting(run[0].t0_ns, run[-1].t1_ns, sensor, "OK", RAIN)


def _split(sightings: Sequence[_Sighting]) -> Iterator[list[_Sighting]]:
    """Yield groups of overlapping or nearly overlapping sightings; the input is sorted by start time."""
    part: list[_Sighting] = []
    end = 0
    for sighting in sightings:
        if part and sighting.t0_ns > end + MAX_SPAN_GAP_NS:
            yield part
            part = []
        end = max(end, sighting.t1_ns) if part else sighting.t1_ns
        part.append(sighting)
    yield part


def _make_event(sightings: Sequence[_Sighting], judged: Iterable[tuple[int, int, str, State]]) -> SensorEvent:
    t0, t1 = min(s.t0_ns for s in sightings), max(s.t1_ns for s in sightings)
    states = {s.sensor: worst(o.state for o in sightings if o.sensor == s.sensor) for s in sightings}
    known: dict[str, list[State]] = {}
    for begin, end, sensor, state in judged:
        if begin < t1 and t0 < end:
            known.setdefault(sensor, []).append(state)
    return SensorEvent(
        cause_of(sightings[0].reason), t0, t1,
        sensors=tuple(sorted(name for name, state in states.items() if state != "SUSPECT")),
        suspect=tuple(sorted(name for name, state in states.items() if state == "SUSPECT")),
        unharmed=tuple(sorted(name for name, of in known.items() if _is_usable(of) and name not in states)),
        reasons=frozenset(s.reason for s in sightings),
    )  # fmt: skip


def _is_usable(states: Sequence[State]) -> bool:
    """Return whether a sensor could be used all the time, although it may have been SUSPECT at times."""
    return not {"BAD", "UNKNOWN"} & {*states} and states.count("OK") >= SETTINGS.min_ok_ratio * len(states)


def _join(names: Sequence[str]) -> str:
    """Return names as an enumeration: `a, b and c`."""
    if len(names) > SETTINGS.max_names:
        first = SETTINGS.max_names - 1
        return f"{', '.join(names[:first])} and {len(names) - first} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


AIR = ("dust", "smoke", "rain", "fog")
"""Obscurants, as recordings are labelled."""
LABELS = "truth/faults"
CLEAR, HUMAN = "clear", "human"


def conditions_among(recording: Recording, verdicts: VerdictTable) -> tuple[str, ...]:
    """Return the conditions of a recording: dust, smoke, rain, fog, human; or clear.

    The source is the catalogue or the labels of faults, else words of the recording's name, else the
    verdicts, which give a cloud or rain.
    """
    known = (*AIR, HUMAN)
    words = {part for word in conditions_of(recording) for part in word.split("_")}
    if LABELS in recording:
        words |= set(texts(recording[LABELS].table, "fault"))
    words |= {HUMAN} if words & {"walking", "visitors"} else set()
    if not words & {*known, CLEAR}:
        words |= {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", recording.name)}
    if not words & {*known, CLEAR}:
        words |= {"rain" if verdict.reason == RAIN else "cloud" for verdict in air_windows(verdicts)}
    return tuple(word for word in (*known, "cloud") if word in words) or (CLEAR,)


def air_windows(verdicts: VerdictTable) -> list[Verdict]:
    """Return verdicts with a cloud, if one was declared, else with persistent rain; the worst first."""
    found = [v for v in verdicts.select(reason=(*CLOUD, RAIN), muted="") if v.raw != "UNKNOWN"]
    clouds = [v for v in found if v.reason in CLOUD]
    if not any(v.state == "BAD" for v in clouds):
        clouds = [v for v in found if v.reason == RAIN]
        clouds = clouds if len(clouds) >= SETTINGS.min_rain_windows else []
    return sorted(clouds, key=lambda verdict: (*badness(verdict), verdict.stream))
