"""The player: gives a flow its waves; at a pace or as fast as it can, to the end or step by step."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import chain
from typing import Any, Literal

from transect.errors import UsageError

from .flow import NEVER, Flow
from .inboxes import NS
from .sources import TOGETHER, Waves

END, PAUSED = "end", "paused"
Attention = Callable[[int], int]
"""Called when the recording has come to a time (ns); returns when it wants to be called again."""
State = Literal["ready", "paused", "ended"]
NAP_S = 0.1
"""A pause that is asked for in a gap of the recording comes after that at the latest."""


class Pace:
    """Holds waves back until their time has come: a start on both clocks, and a rate between them.

    The anchor is set once, not with every sample: what a slow node took is made up for.
    """

    def __init__(self, rate: float) -> None:
        if not rate > 0:
            raise UsageError(
                f"the rate {rate:g} is not more than 0", hint="1 is real time, 5 five times as fast"
            )
        self.rate = rate
        self._anchor: tuple[int, float] | None = None

    def wait_for(self, t_ns: int, given_up: Callable[[], bool] = lambda: False) -> None:
        """Sleep until a time of the recording, in short naps: a pause need not wait for a gap to end."""
        if self._anchor is None:
            self._anchor = (t_ns, time.monotonic())
            return
        first_ns, began = self._anchor
        due = began + (t_ns - first_ns) / NS / self.rate
        while (left := due - time.monotonic()) > 0 and not given_up():
            time.sleep(min(left, NAP_S))

    def restart(self) -> None:
        """Anchor anew with the next wave, after a pause."""
        self._anchor = None


class Player:
    """Plays waves into a flow.

    Parameters
    ----------
    flow : Flow
    waves : iterator
        As `sources.waves` yields them.
    rate : float, optional
        Times real time; as fast as possible by default.
    """

    def __init__(self, flow: Flow, waves: Waves, rate: float | None = None) -> None:
        self.flow, self._waves = flow, waves
        self._pace = Pace(rate) if rate is not None else None
        self._held: tuple[int, int, Any] | None = None
        self._stop = ""
        self._break_ns = NEVER
        self._attentions: list[tuple[int, Attention]] = []
        self._attention_ns = NEVER
        self.state: State = "ready"

    def attend(self, first_ns: int, attention: Attention) -> None:
        """Call a function when the recording has come to a time, before the waves from then on."""
        self._attentions.append((first_ns, attention))
        self._look_out()

    def pause(self) -> None:
        """Stop before the next wave; may be called from a node, a tap, or another thread."""
        self._stop = self._stop or PAUSED
        self._attention_ns = -NEVER

    def break_at(self, t_ns: int) -> None:
        """Stop before the first wave at or after a time."""
        self._break_ns = t_ns
        self._look_out()

    def break_when(self, channel: str, condition: Callable[[Any], bool] = lambda value: True) -> None:
        """Stop after the wave in which a port emits a value for which the condition holds."""

        def tap(t_ns: int, value: Any) -> None:
            if condition(value):
                self._stop = self._stop or f"break: {channel}"
                self._attention_ns = -NEVER

        self.flow.tap(channel, tap)

    def step(self, waves: int = 1) -> str:
        """Play some waves; return "paused", the break that came before they were all played, or "end"."""
        self._stop = ""
        for played in range(waves):
            item = self._next()
            if item is None:
                return self._hold_back() if self._stop else self._end()
            if item[0] >= self._attention_ns and self._attend(item[0]) and played:
                return self._hold_back(item)
            self._stop = ""
            self._play_one(*item)
        self._stop = self._stop or PAUSED
        return self._hold_back()

    def play(self) -> str:
        """Play until the end, a pause or a break; return which it was."""
        flow, push, pace = self.flow, self.flow.push, self._pace
        self._stop = ""
        if pace is not None:
            pace.restart()
        held = () if self._held is None else (self._held,)
        self._held = None
        for t_ns, channel, value in chain(held, self._waves):
            if t_ns >= self._attention_ns and self._attend(t_ns):
                return self._hold_back((t_ns, channel, value))
            if pace is not None:
                pace.wait_for(t_ns, self._is_stopping)
                if self._stop:
                    return self._hold_back((t_ns, channel, value))
            if channel == TOGETHER:
                flow.wave(t_ns, value)
            else:
                push(t_ns, channel, value)
        return self._hold_back() if self._stop else self._end()

    def _play_one(self, t_ns: int, channel: int, value: Any) -> None:
        if channel == TOGETHER:
            self.flow.wave(t_ns, value)
        else:
            self.flow.push(t_ns, channel, value)

    def _next(self) -> tuple[int, int, Any] | None:
        if self._held is None:
            return next(self._waves, None)
        item, self._held = self._held, None
        return item

    def _is_stopping(self) -> bool:
        return bool(self._stop)

    def _hold_back(self, item: tuple[int, int, Any] | None = None) -> str:
        """Hold a wave back until it goes on, and return why."""
        self._held, self.state = item, "paused"
        return self._stop

    def _end(self) -> str:
        if self.state != "ended":
            self.state = "ended"
            self.flow.end()
        return END

    def _look_out(self) -> None:
        self._attention_ns = min([NEVER, self._break_ns, *(first for first, _ in self._attentions)])

    def _attend(self, t_ns: int) -> bool:
        """Do what is due at a time; return whether to stop before its wave."""
        self._attentions = [(f(t_ns) if due <= t_ns else due, f) for due, f in self._attentions]
        if self._break_ns <= t_ns:
            self._break_ns = NEVER
            self._stop = self._stop or "break: time"
        self._look_out()
        return bool(self._stop)
