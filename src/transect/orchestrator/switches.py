"""Switches between alternatives, decided causally: only verdicts whose windows have ended count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from transect.base.clocks import NS
from transect.base.timelines import NameTimeline
from transect.types import Verdict

from .policy import Alternative

BAD = "BAD"
SUSPECT_STATES = (BAD, "SUSPECT")
# Distrust (0 to 1) of the windows next to suspect ones: a fault may begin and end within them.
ADJACENT_DISTRUST = 0.1
# By stream: the combined verdicts of all checks on each window, in order of time
VerdictWindows = Mapping[str, Sequence[Verdict]]


@dataclass(frozen=True)
class Switch:
    """A change of the alternative that makes a product."""

    t_ns: int  # when it was decided: the end of a window
    since_ns: int  # since when `before` had been suspect without interruption; `t_ns` if it was not
    before: str
    after: str
    because: tuple[str, ...]  # `Odometry is BAD (SLIP)`, or that it is not BAD any more

    def describe(self, origin_ns: int) -> str:
        """Return the switch in words; times count from an origin (ns)."""
        suspect = f", suspect since {_seconds(self.since_ns, origin_ns)}" if self.since_ns < self.t_ns else ""
        what = f"from {_seconds(self.t_ns, origin_ns)}: {self.before} -> {self.after}"
        return f"{what}, because {' and '.join(self.because)}{suspect}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**vars(self), "because": list(self.because)}


def _seconds(t_ns: int, origin_ns: int) -> str:
    return f"+{(t_ns - origin_ns) / NS:.1f} s"


def decide_switches(
    choices: Sequence[Alternative],
    group_streams: Mapping[str, Sequence[str]],
    windows: VerdictWindows,
    dwell: float,
) -> list[Switch]:
    """Return the switches of a drive, in order of time; the first alternative is used at its start.

    Parameters
    ----------
    choices : sequence of Alternative
        The preferred one first.
    group_streams : mapping of str to sequence of str
        By sensor group: its streams that are used.
    dwell : float
        Seconds for which an alternative is kept at least.
    """
    ends = sorted({window.t1_ns for each in windows.values() for window in each})
    histories = {name: _StreamHistory(each) for name, each in windows.items()}
    switches: list[Switch] = []
    current, switched_ns = choices[0], None
    for t_ns in ends:
        for each in histories.values():
            each.advance_to(t_ns)
        usable = (choice for choice in choices if not _bad_streams(choice, group_streams, histories))
        best = next(usable, current)
        if best is current or (switched_ns is not None and t_ns - switched_ns < dwell * NS):
            continue
        bad = _bad_streams(current, group_streams, histories)
        since_ns = max(min((each.since_ns for each in bad), default=t_ns), switched_ns or ends[0])
        because = [each.describe() for each in bad] or [_describe_recovery(best, group_streams)]
        switches.append(Switch(t_ns, min(since_ns, t_ns), current.use, best.use, tuple(because)))
        current, switched_ns = best, t_ns
    return switches


def timelines_of(
    first: str, switches: Sequence[Switch], names: Mapping[str, str], margin: float = 0.0
) -> tuple[str, str]:
    """Return two timelines of what is used when, under other names.

    One has the times of decision, the other one the times since which the alternative before was suspect,
    minus `margin` seconds.
    """
    decided = [(each.t_ns, names[each.after]) for each in switches]
    revised: list[tuple[int, str]] = []
    for number, each in enumerate(switches):
        from_ns = each.since_ns - round(margin * NS) if each.since_ns < each.t_ns else each.t_ns
        from_ns = max(from_ns, switches[number - 1].t_ns) if number else from_ns
        revised.append((from_ns, names[each.after]))
    return str(NameTimeline(names[first], tuple(decided))), str(NameTimeline(names[first], tuple(revised)))


@dataclass(frozen=True)
class SuspectSpan:
    """A sensor and the time span [t0_ns, t1_ns) in which it is suspect."""

    what: str
    t0_ns: int
    t1_ns: int

    def describe(self, origin_ns: int) -> str:
        """Return it in words; times count from an origin (ns)."""
        return f"{self.what} {_seconds(self.t0_ns, origin_ns)} to {_seconds(self.t1_ns, origin_ns)}"


def find_suspect_spans(sensors: Mapping[str, Sequence[str]], windows: VerdictWindows) -> list[SuspectSpan]:
    """Return the spans in which sensors are suspect, once all verdicts are known.

    Only suspect windows next to BAD ones count, with the distrust 1 - score. While several sensors are
    suspect at once, the one with the least distrust is not listed, unless its distrust is 1.

    Parameters
    ----------
    sensors : mapping of str to sequence of str
        By sensor: its streams, of which the worst counts.
    """
    distrust = {name: _distrust_by_window(each) for name, each in windows.items()}
    by_sensor: dict[str, dict[int, float]] = {}
    for sensor, streams in sensors.items():
        judged = [distrust[name] for name in streams if name in distrust]
        by_sensor[sensor] = {t: max(each.get(t, 0.0) for each in judged) for times in judged for t in times}
    ends = {window.t0_ns: window.t1_ns for each in windows.values() for window in each}
    found: list[SuspectSpan] = []
    for sensor, distrusted in by_sensor.items():
        for t0_ns, value in sorted(distrusted.items()):
            smallest = min(each.get(t0_ns, 0.0) for each in by_sensor.values())
            if value <= smallest < 1.0:
                continue
            continues = bool(found) and (found[-1].what, found[-1].t1_ns) == (sensor, t0_ns)
            start_ns = found.pop().t0_ns if continues else t0_ns
            found.append(SuspectSpan(sensor, start_ns, ends[t0_ns]))
    return found


def _distrust_by_window(windows: Sequence[Verdict]) -> dict[int, float]:
    """Return, by the start (ns) of a window, 1 - score in sequences of suspect windows with a BAD one."""
    found: dict[int, float] = {}
    for is_suspect, group in groupby(range(len(windows)), key=lambda n: windows[n].raw in SUSPECT_STATES):
        sequence = list(group)
        if is_suspect and any(windows[n].state == BAD for n in sequence):
            for n in (max(sequence[0] - 1, 0), min(sequence[-1] + 1, len(windows) - 1)):
                found.setdefault(windows[n].t0_ns, ADJACENT_DISTRUST)
            found |= {windows[n].t0_ns: 1.0 - (windows[n].score or 0.0) for n in sequence}
    return found


class _StreamHistory:
    """The verdicts on a stream that are known by a time."""

    def __init__(self, windows: Sequence[Verdict]) -> None:
        self.windows, self.count, self.since_ns = windows, 0, 0
        self._is_suspect = False

    def advance_to(self, t_ns: int) -> None:
        """Add the windows that ended by a time."""
        while self.count < len(self.windows) and self.windows[self.count].t1_ns <= t_ns:
            window = self.windows[self.count]
            is_suspect = window.raw in SUSPECT_STATES
            if is_suspect and not self._is_suspect:
                self.since_ns = window.t0_ns
            self._is_suspect = is_suspect
            self.count += 1

    @property
    def is_bad(self) -> bool:
        return self.count > 0 and self.windows[self.count - 1].state == BAD

    def describe(self) -> str:
        newest = self.windows[self.count - 1]
        return f"{newest.stream} is BAD ({newest.reason})"


def _bad_streams(
    choice: Alternative, group_streams: Mapping[str, Sequence[str]], histories: Mapping[str, _StreamHistory]
) -> list[_StreamHistory]:
    """Return the BAD streams of groups that are half BAD; none if the alternative can be used."""
    found: list[_StreamHistory] = []
    for group in choice.unless:
        streams = [histories[name] for name in group_streams.get(group, ()) if name in histories]
        bad = [each for each in streams if each.is_bad]
        found += bad if 2 * len(bad) >= len(streams) else []
    return found


def _describe_recovery(choice: Alternative, group_streams: Mapping[str, Sequence[str]]) -> str:
    names = [name for group in choice.unless for name in group_streams.get(group, ())]
    return f"{', '.join(names)} {'are' if len(names) > 1 else 'is'} not BAD any more"
