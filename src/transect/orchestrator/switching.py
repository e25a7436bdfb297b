"""When which choice of a policy is used, by verdicts whose windows have ended and by nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from transect.base.clocks import NS
from transect.base.timelines import Timeline
from transect.types import Verdict

from .policy import Choice

BAD = "BAD"
DOUBTED = (BAD, "SUSPECT")
BESIDE = 0.1
"""What the window before doubts and the one after count: a fault may begin and end within them."""
Windows = Mapping[str, Sequence[Verdict]]
"""By stream: what all checks say together of each window, in order of time."""


@dataclass(frozen=True)
class Switch:
    """A change of what makes a product.

    Attributes
    ----------
    t_ns : int
        When it was decided: the end of a window.
    since_ns : int
        From when on what was used had been doubted, without a break; `t_ns` where it was not.
    before, after : str
        What was used, and what is.
    because : tuple of str
        `Odometry is BAD (SLIP)`, or that it is not BAD any more.
    """

    t_ns: int
    since_ns: int
    before: str
    after: str
    because: tuple[str, ...]

    def line(self, origin_ns: int) -> str:
        """Return it as words; times count from an origin (ns)."""
        doubted = f", doubted since {_seconds(self.since_ns, origin_ns)}" if self.since_ns < self.t_ns else ""
        what = f"from {_seconds(self.t_ns, origin_ns)}: {self.before} -> {self.after}"
        return f"{what}, because {' and '.join(self.because)}{doubted}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**vars(self), "because": list(self.because)}


def _seconds(t_ns: int, origin_ns: int) -> str:
    return f"+{(t_ns - origin_ns) / NS:.1f} s"


def decide(
    choices: Sequence[Choice], members: Mapping[str, Sequence[str]], windows: Windows, dwell: float
) -> list[Switch]:
    """Return the switches of a drive, in order of time; the first choice is used at its start.

    Parameters
    ----------
    choices : sequence of Choice
        The best first.
    members : mapping of str to sequence of str
        By group of sensors: the streams that are used of it.
    dwell : float
        Seconds that a choice holds at least.
    """
    ends = sorted({window.t1_ns for each in windows.values() for window in each})
    seen = {name: _Seen(each) for name, each in windows.items()}
    switches: list[Switch] = []
    current, held_ns = choices[0], None
    for t_ns in ends:
        for each in seen.values():
            each.go_to(t_ns)
        best = next((choice for choice in choices if not _bad(choice, members, seen)), current)
        if best is current or (held_ns is not None and t_ns - held_ns < dwell * NS):
            continue
        bad = _bad(current, members, seen)
        since_ns = max(min((each.since_ns for each in bad), default=t_ns), held_ns or ends[0])
        because = [each.describe() for each in bad] or [_well_again(best, members)]
        switches.append(Switch(t_ns, min(since_ns, t_ns), current.use, best.use, tuple(because)))
        current, held_ns = best, t_ns
    return switches


def timelines_of(
    first: str, switches: Sequence[Switch], names: Mapping[str, str], margin: float = 0.0
) -> tuple[str, str]:
    """Return what is used when, by other names: as decided, and from some seconds before the doubts on."""
    decided = [(each.t_ns, names[each.after]) for each in switches]
    doubted: list[tuple[int, str]] = []
    for number, each in enumerate(switches):
        from_ns = each.since_ns - round(margin * NS) if each.since_ns < each.t_ns else each.t_ns
        from_ns = max(from_ns, switches[number - 1].t_ns) if number else from_ns
        doubted.append((from_ns, names[each.after]))
    return str(Timeline(names[first], tuple(decided))), str(Timeline(names[first], tuple(doubted)))


@dataclass(frozen=True)
class Doubted:
    """What is left out from when to when, [t0_ns, t1_ns)."""

    what: str
    t0_ns: int
    t1_ns: int

    def describe(self, origin_ns: int) -> str:
        """Return it as words; times count from an origin (ns)."""
        return f"{self.what} {_seconds(self.t0_ns, origin_ns)} to {_seconds(self.t1_ns, origin_ns)}"


def find_doubted(sensors: Mapping[str, Sequence[str]], windows: Windows) -> list[Doubted]:
    """Return what is better left out of a fusion, once all verdicts are known.

    Only doubts that led to BAD count, by what the score of a window lacks to 1. While several are doubted at
    once the one that lacks least stays, unless it cannot be trusted at all.

    Parameters
    ----------
    sensors : mapping of str to sequence of str
        By what can be left out: its streams, of which the worst counts.
    """
    lacks = {name: _find_lacks(each) for name, each in windows.items()}
    by_what: dict[str, dict[int, float]] = {}
    for what, streams in sensors.items():
        judged = [lacks[name] for name in streams if name in lacks]
        by_what[what] = {t: max(each.get(t, 0.0) for each in judged) for times in judged for t in times}
    ends = {window.t0_ns: window.t1_ns for each in windows.values() for window in each}
    found: list[Doubted] = []
    for what, lacking in by_what.items():
        for t0_ns, lack in sorted(lacking.items()):
            least = min(each.get(t0_ns, 0.0) for each in by_what.values())
            if lack <= least < 1.0:
                continue
            joins = bool(found) and (found[-1].what, found[-1].t1_ns) == (what, t0_ns)
            found.append(Doubted(what, found.pop().t0_ns if joins else t0_ns, ends[t0_ns]))
    return found


def _find_lacks(windows: Sequence[Verdict]) -> dict[int, float]:
    """Return by its start (ns) what a window lacks to be trusted, if it is one of doubts that led to BAD."""
    found: dict[int, float] = {}
    for doubted, group in groupby(range(len(windows)), key=lambda n: windows[n].raw in DOUBTED):
        chain = list(group)
        if doubted and any(windows[n].state == BAD for n in chain):
            for n in (max(chain[0] - 1, 0), min(chain[-1] + 1, len(windows) - 1)):
                found.setdefault(windows[n].t0_ns, BESIDE)
            found |= {windows[n].t0_ns: 1.0 - (windows[n].score or 0.0) for n in chain}
    return found


class _Seen:
    """What was known of a stream by a time."""

    def __init__(self, windows: Sequence[Verdict]) -> None:
        self.windows, self.count, self.since_ns = windows, 0, 0
        self._chained = False

    def go_to(self, t_ns: int) -> None:
        """Take the windows that ended until a time."""
        while self.count < len(self.windows) and self.windows[self.count].t1_ns <= t_ns:
            window = self.windows[self.count]
            doubted = window.raw in DOUBTED
            if doubted and not self._chained:
                self.since_ns = window.t0_ns
            self._chained = doubted
            self.count += 1

    @property
    def is_bad(self) -> bool:
        return self.count > 0 and self.windows[self.count - 1].state == BAD

    def describe(self) -> str:
        newest = self.windows[self.count - 1]
        return f"{newest.stream} is BAD ({newest.reason})"


def _bad(choice: Choice, members: Mapping[str, Sequence[str]], seen: Mapping[str, _Seen]) -> list[_Seen]:
    """Return the streams that are BAD of groups of which half are; none if the choice can be used."""
    found: list[_Seen] = []
    for group in choice.unless:
        streams = [seen[name] for name in members.get(group, ()) if name in seen]
        bad = [each for each in streams if each.is_bad]
        found += bad if 2 * len(bad) >= len(streams) else []
    return found


def _well_again(choice: Choice, members: Mapping[str, Sequence[str]]) -> str:
    names = [name for group in choice.unless for name in members.get(group, ())]
    return f"{', '.join(names)} {'are' if len(names) > 1 else 'is'} not BAD any more"
