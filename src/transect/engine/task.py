"""A part of a flow that runs in any thread: it gets waves from the tasks before it, and gives its own.

Every wave has a place in the order of the whole flow, so that a task can run a wave as soon as all tasks
before it have told what they have for it, and does exactly what the whole flow would have done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .firing import Buffered
from .flow import NEVER, Flow

Sample = tuple[str, int, Any]
"""Channel, time (ns) and value."""
Place = tuple[int, int, int]
"""Of waves between two waves of samples: (phase, time, kind); repeated waves are numbered within a place."""
Parcel = dict[Place, dict[int, list[Sample]]]
"""What a task has for one wave of samples and everything up to the next, by place and repetition."""

BEFORE, MAIN, AFTER, DRAIN, FINISH = range(5)
WAKE, TICK = range(2)


class TaskFlow(Flow):
    """A flow of some nodes of a graph; what it emits for other tasks is collected in parcels."""

    def __init__(self, *args: Any, ranks: dict[str, int], given: Iterable[str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.ranks = ranks
        self._incoming: Parcel = {}
        self._outgoing: Parcel = {}
        self._now: tuple[Place, int] = ((MAIN, 0, 0), 0)
        for channel in given:
            self.tap(channel, self._collector(channel))

    def _collector(self, channel: str) -> Any:
        def collect(t_ns: int, value: Any) -> None:
            place, repetition = self._now
            self._outgoing.setdefault(place, {}).setdefault(repetition, []).append((channel, t_ns, value))

        return collect

    def advance(self, t_ns: int, incoming: Parcel) -> Parcel:
        """Run a wave of samples and everything before and after it; return what others get of it."""
        self._incoming, self._outgoing = incoming, {}
        if self._first_ns == -NEVER:
            self._start(t_ns)
        self._pass_time(t_ns)
        self.now_ns = t_ns
        self._run_at((MAIN, 0, 0), (), t_ns)
        self._run_ticks((AFTER, 0, TICK), t_ns)
        return self._outgoing

    def finish_up(self, incoming: Parcel) -> Parcel:
        """Do what a flow does at the end."""
        self._incoming, self._outgoing = incoming, {}
        self.ended = True
        self._ticks.clear()
        self._wakes.clear()
        waiting = [name for name, f in self.firings.items() if isinstance(f, Buffered) and f.queue]
        self._run_at((DRAIN, 0, 0), waiting, self.now_ns)
        own = {self.ranks[name]: part for name, part in self.graph.parts.items()}
        for rank in sorted({*own, *(place[1] for place in self._incoming if place[0] == FINISH)}):
            self._now = ((FINISH, rank, 0), 0)
            if rank in own:
                self._finish(own[rank])
            else:
                self._run_at((FINISH, rank, 0), (), self.now_ns)
        self._account()
        return self._outgoing

    def _run_again(self, t_ns: int) -> None:
        """Repeat the wave that was just run until nobody asks for it; numbered, for others to follow."""
        place, repetition = self._now
        waves = self._incoming.get(place, {})
        while self._again or any(number > repetition for number in waves):
            repetition += 1
            names, self._again = self._again, set()
            self._run_one((place, repetition), names, t_ns)

    def _run_at(self, place: Place, names: Iterable[str], t_ns: int) -> None:
        """Run the waves of a place: for nodes of this task, and for samples from others."""
        if names or place in self._incoming or (self._delayed and place[0] == MAIN):
            self._run_one((place, 0), names, t_ns)
        self._now = (place, 0)
        self._run_again(t_ns)

    def _run_one(self, now: tuple[Place, int], names: Iterable[str], t_ns: int) -> None:
        self._now = now
        samples = self._incoming.get(now[0], {}).get(now[1], [])
        woken = tuple(sorted({*names, *self._deliver()} & self._steps.keys()))
        wave = self._wave = self._wave + 1
        numbered = [(self.channels.index[channel], time_ns, value) for channel, time_ns, value in samples]
        newest = {channel: (time_ns, value) for channel, time_ns, value in numbered}
        if len(newest) < len(numbered):
            self._set_aside_same_times(t_ns, [(channel, value) for channel, _, value in numbered])
        for channel, (time_ns, value) in newest.items():
            self.channels.put(wave, time_ns, channel, value)
        key = (tuple(sorted(newest)), woken)
        for step in self._plans.get(key) or self._plan_for(key, sorted(newest), woken):
            step(wave, t_ns)

    def _pass_time(self, t_ns: int) -> None:
        """Let the time before a wave pass: own periods and deadlines, and waves of others, in their order."""
        others = {place[1] for place in self._incoming if place[0] == BEFORE}
        while (at_ns := min([NEVER, self._alarm(), *others])) < t_ns:
            others.discard(at_ns)
            due = [name for name, deadline in self._wakes.items() if deadline <= at_ns]
            for name in due:
                del self._wakes[name]
            self._run_at((BEFORE, at_ns, WAKE), due, at_ns + 1)
            self._run_ticks((BEFORE, at_ns, TICK), at_ns)

    def _alarm(self) -> int:
        return min([NEVER, *self._ticks.values(), *self._wakes.values()])

    def _run_ticks(self, place: Place, t_ns: int) -> None:
        self._run_at(place, self._begin_periods(t_ns), t_ns)
