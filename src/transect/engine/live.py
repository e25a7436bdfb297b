"""Live sources: samples that are pushed while they are measured, into the same flow that replays them.

Queues are bounded: what does not fit is dropped, oldest first, and counted. Samples are held back by the
reorder horizon, then played in the order of (time, input, sequence), as a replay would.
"""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from transect.errors import UsageError, did_you_mean

from .determinism import one_thread_per_library
from .flow import NEVER_NS, Flow
from .inboxes import NS

MAX_QUEUED_SAMPLES = 1000
"""Samples that an input may have waiting."""


class Live:
    """Pushes samples into a flow from any thread; one thread plays them.

    Parameters
    ----------
    flow : Flow
    capacity : int
        Samples that each input may have waiting.
    reorder : float
        Seconds for which a sample is held back, for others that are older and still on their way.

    Attributes
    ----------
    dropped, late, played : Counter
        By input: samples dropped because its queue was full, come too late, and played.
    """

    def __init__(self, flow: Flow, capacity: int = MAX_QUEUED_SAMPLES, reorder: float = 0.5) -> None:
        if capacity < 1:
            raise UsageError(f"a queue of {capacity} cannot hold anything", hint="capacity=1000")
        self.flow, self.capacity, self.reorder_ns = flow, capacity, round(reorder * NS)
        self.dropped: Counter[str] = Counter()
        self.late: Counter[str] = Counter()
        self.played: Counter[str] = Counter()
        self._waiting: list[tuple[int, str, int, Any]] = []
        self._held: Counter[str] = Counter()
        self._newest_ns = self._played_ns = -NEVER_NS
        self._sequence = 0
        self._closed = False
        self._changed = threading.Condition()

    def push(self, name: str, t_ns: int, value: Any) -> bool:
        """Take a sample for an input; return False if it was too late to be played."""
        if name not in self.flow.graph.inputs:
            hint = did_you_mean(name, self.flow.graph.inputs)
            raise UsageError(f"{self.flow.graph.name} has no input {name!r}", hint=hint)
        with self._changed:
            if self._closed:
                raise UsageError("the live source is closed already")
            if t_ns < self._newest_ns - self.reorder_ns or t_ns <= self._played_ns:
                self.late[name] += 1
                return False
            if self._held[name] >= self.capacity:
                self._drop_oldest(name)
            self._sequence += 1
            heapq.heappush(self._waiting, (t_ns, name, self._sequence, value))
            self._held[name] += 1
            self._newest_ns = max(self._newest_ns, t_ns)
            self._changed.notify()
        return True

    def _drop_oldest(self, name: str) -> None:
        oldest = min(item for item in self._waiting if item[1] == name)
        self._waiting.remove(oldest)
        heapq.heapify(self._waiting)
        self._held[name] -= 1
        self.dropped[name] += 1

    def close(self) -> None:
        """Say that no more samples will come; `play` then ends."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def play(self, timeout: float | None = None, on_wave: Callable[[int], None] | None = None) -> None:
        """Play samples as they come, until the source is closed and all are played; then end the flow.

        Parameters
        ----------
        timeout : float, optional
            Seconds without a sample after which the source counts as closed.
        on_wave : callable, optional
            Called with the time (ns) of every wave, after it.
        """
        with one_thread_per_library():
            while (wave := self._next_wave(timeout)) is not None:
                t_ns, samples = wave
                self.flow.wave(t_ns, samples)
                if on_wave is not None:
                    on_wave(t_ns)
            self.flow.end()

    def _next_wave(self, timeout: float | None) -> tuple[int, list[tuple[int, Any]]] | None:
        """Wait for samples that are older than the reorder horizon; None at the end."""
        with self._changed:
            while not self._is_due():
                if self._closed and not self._waiting:
                    return None
                if not self._changed.wait(timeout):
                    self._closed = True
            t_ns = self._played_ns = self._waiting[0][0]
            samples: list[tuple[int, Any]] = []
            while self._waiting and self._waiting[0][0] == t_ns:
                _, name, _, value = heapq.heappop(self._waiting)
                self._held[name] -= 1
                self.played[name] += 1
                samples.append((self.flow.channels.index[name], value))
        return t_ns, samples

    def _is_due(self) -> bool:
        if not self._waiting:
            return False
        return self._closed or self._waiting[0][0] <= self._newest_ns - self.reorder_ns

    @property
    def accounts(self) -> Mapping[str, Mapping[str, int]]:
        """By input: how many samples were played, late and dropped."""
        names = sorted({*self.played, *self.late, *self.dropped})
        return {
            n: {"played": self.played[n], "late": self.late[n], "dropped": self.dropped[n]} for n in names
        }
