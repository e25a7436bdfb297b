"""What happened, over all sensors: problems of one cause at one time are one event, told in one sentence.

What was in the air of a recording: what it is labelled with, or what verdicts say.
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
from .report import SUCCESSION, SensorReport, badness, find_runs, reason_of, span_text
from .rules import worst
from .table import VerdictTable

CLOUD = ("OBSCURANT", "DUST", "SMOKE", "HAZE")
"""Reasons that are one cause: lasers cannot tell dust from smoke, and to a camera either may be haze."""
RAIN = "RAIN"
LEAST_RAIN = 3
"""Windows in a row with drops that are rain: the edge of a cloud looks like drops for one."""
MOST_NAMES = 6
MOSTLY = 0.75
"""Part of the time that a sensor must be OK to be unharmed: a radar is a little noisier in dust."""


def cause_of(reason: str) -> str:
    """Return the reason by which an event is called: the same for all that one cloud does to sensors."""
    return CLOUD[0] if reason in CLOUD else reason


@dataclass(frozen=True)
class Event:
    """Something that several sensors noticed at one time.

    Attributes
    ----------
    cause : str
        As `cause_of` has it.
    t0_ns, t1_ns : int
        From when to when any of them noticed.
    sensors, suspect : tuple of str
        Those that were BAD, and those that were SUSPECT at the worst; those that noticed rain stay OK and are
        among the first.
    unharmed : tuple of str
        Those that looked at the surroundings all the time, and were OK most of it, and never BAD.
    reasons : frozenset of str
    """

    cause: str
    t0_ns: int
    t1_ns: int
    sensors: tuple[str, ...]
    suspect: tuple[str, ...]
    unharmed: tuple[str, ...]
    reasons: frozenset[str]

    def sentence(self, start_ns: int) -> str:
        """Return what happened when, who noticed, and whom to use instead; times count from a start."""
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
        """Return it as plain values."""
        return {
            "cause": self.cause, "t0_ns": self.t0_ns, "t1_ns": self.t1_ns, "sensors": list(self.sensors),
            "suspect": list(self.suspect), "unharmed": list(self.unharmed), "reasons": sorted(self.reasons),
        }  # fmt: skip


class _Sighting(NamedTuple):
    """When one sensor noticed something."""

    t0_ns: int
    t1_ns: int
    sensor: str
    state: State
    reason: str


def find_events(reports: Sequence[SensorReport], table: VerdictTable) -> list[Event]:
    """Return what several sensors noticed, and what one noticed and others saw through; the largest first.

    Sightings of one cause that overlap, or nearly, are one event.
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
    looking = table.select(group="content", muted="")
    looked = list(zip(*(looking.column(name) for name in ("t0_ns", "t1_ns", "sensor", "state")), strict=True))
    events = [_make_event(part, looked) for group in groups.values() for part in _split(group)]
    events = [event for event in events if _is_worth_telling(event)]
    return sorted(events, key=lambda e: (-len(e.sensors), e.t0_ns - e.t1_ns, e.t0_ns, e.cause))


def _is_worth_telling(event: Event) -> bool:
    """Tell whether it says more than the line of one sensor."""
    if not event.sensors:
        return False
    several = len(event.sensors + event.suspect) > 1
    return several or event.cause == RAIN or (event.cause in CLOUD and bool(event.unharmed))


def _find_rain(table: VerdictTable) -> Iterator[_Sighting]:
    """Yield stretches with drops: rain leaves a laser OK, and so is no problem of it."""
    rows: dict[str, list[Verdict]] = {}
    for verdict in table.select(reason=RAIN, state="OK", muted=""):
        rows.setdefault(verdict.sensor, []).append(verdict)
    for sensor, verdicts in rows.items():
        for run in find_runs(verdicts):
            if len(run) >= LEAST_RAIN:
                yield _Sighting(run[0].t0_ns, run[-1].t1_ns, sensor, "OK", RAIN)


def _split(sightings: Sequence[_Sighting]) -> Iterator[list[_Sighting]]:
    """Yield sightings, sorted by their begin, that overlap or nearly do."""
    part: list[_Sighting] = []
    end = 0
    for sighting in sightings:
        if part and sighting.t0_ns > end + SUCCESSION:
            yield part
            part = []
        end = max(end, sighting.t1_ns) if part else sighting.t1_ns
        part.append(sighting)
    yield part


def _make_event(sightings: Sequence[_Sighting], looked: Iterable[tuple[int, int, str, State]]) -> Event:
    t0, t1 = min(s.t0_ns for s in sightings), max(s.t1_ns for s in sightings)
    states = {s.sensor: worst(o.state for o in sightings if o.sensor == s.sensor) for s in sightings}
    known: dict[str, list[State]] = {}
    for begin, end, sensor, state in looked:
        if begin < t1 and t0 < end:
            known.setdefault(sensor, []).append(state)
    return Event(
        cause_of(sightings[0].reason), t0, t1,
        sensors=tuple(sorted(name for name, state in states.items() if state != "SUSPECT")),
        suspect=tuple(sorted(name for name, state in states.items() if state == "SUSPECT")),
        unharmed=tuple(sorted(name for name, of in known.items() if _is_fine(of) and name not in states)),
        reasons=frozenset(s.reason for s in sightings),
    )  # fmt: skip


def _is_fine(states: Sequence[State]) -> bool:
    """Tell whether a sensor could be used all the time, though it may have been SUSPECT now and then."""
    return not {"BAD", "UNKNOWN"} & {*states} and states.count("OK") >= MOSTLY * len(states)


def _join(names: Sequence[str]) -> str:
    """Return names as a sentence has them: `a, b and c`."""
    if len(names) > MOST_NAMES:
        return f"{', '.join(names[: MOST_NAMES - 1])} and {len(names) - MOST_NAMES + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


AIR = ("dust", "smoke", "rain", "fog")
"""What may be in the air, as recordings are labelled."""
LABELS = "truth/faults"
CLEAR, HUMAN = "clear", "human"


def conditions_among(recording: Recording, verdicts: VerdictTable) -> tuple[str, ...]:
    """Return the words for what was in the air and the scene: dust, smoke, rain, fog, human; or clear.

    They are what the catalogue or the labels of faults say, else words of the recording's name, else what
    the verdicts say: a cloud or rain.
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
    """Return verdicts that name a cloud, if one was declared, else rain, if it lasted; the worst first."""
    found = [v for v in verdicts.select(reason=(*CLOUD, RAIN), muted="") if v.raw != "UNKNOWN"]
    clouds = [v for v in found if v.reason in CLOUD]
    if not any(v.state == "BAD" for v in clouds):
        clouds = [v for v in found if v.reason == RAIN]
        clouds = clouds if len(clouds) >= LEAST_RAIN else []
    return sorted(clouds, key=lambda verdict: (*badness(verdict), verdict.stream))
