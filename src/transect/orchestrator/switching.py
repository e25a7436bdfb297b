"""When which choice of a policy is used, by verdicts whose windows have ended and by nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transect.base.clocks import NS
from transect.base.timelines import Timeline
from transect.types import Verdict

from .policy import Choice

BAD = "BAD"
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


class _Seen:
    """What was known of a stream by a time."""

    def __init__(self, windows: Sequence[Verdict]) -> None:
        self.windows, self.count, self.since_ns = windows, 0, 0
        self._chained = False

    def go_to(self, t_ns: int) -> None:
        """Take the windows that ended until a time."""
        while self.count < len(self.windows) and self.windows[self.count].t1_ns <= t_ns:
            window = self.windows[self.count]
            doubted = window.raw in (BAD, "SUSPECT")
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
