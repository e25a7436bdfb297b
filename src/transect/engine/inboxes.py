"""Inboxes: how each kind of port holds the samples that reached it, and what it gives to a firing.

Every sample that reaches a port ends with one fate, counted: `used`, or why not.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections import Counter, deque
from typing import Any

import numpy as np

from transect.base.clocks import NS
from transect.geometry.rotations import slerp
from transect.types import Imu, NavFix, Odometry, Pose, RigidBodyState, Twist, Wrench

from .ports import AtPolicy, BatchPolicy, Port, PortError, Synced, type_name

USED, SKIPPED, UNPAIRED, SAME_TIME = "used", "skipped", "unpaired", "same time"
SUPERSEDED, UNMATCHED, NOT_NEEDED, LEFT_OVER = "superseded", "unmatched", "not needed", "left over"
OUT_OF_ORDER, AFTER_FAILURE = "out of order", "after it failed"


class Waiting:
    """The answer of an inbox that cannot say yet; `deadline_ns` is when it gives up."""

    __slots__ = ("deadline_ns",)

    def __init__(self, deadline_ns: int) -> None:
        self.deadline_ns = deadline_ns


class Refused:
    """The answer of an inbox that has nothing for a firing; `reason` is counted."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Inbox(ABC):
    """What all have in common.

    Attributes
    ----------
    turn : int
        Those that may refuse are asked before those whose samples are gone once taken.

    Parameters
    ----------
    fates : Counter
        Of the node: (port, fate) to number of samples.
    lag_ns : int
        By how much samples of its channel may come after their own time, because a node before it waits.
    slack_ns : int
        By how much the node's triggers may, and may then wait for other ports.
    """

    __slots__ = ("fates", "lag_ns", "name", "port", "slack_ns")
    turn = 0

    def __init__(self, port: Port, fates: Counter[tuple[str, str]], lag_ns: int, slack_ns: int) -> None:
        self.port, self.name, self.fates = port, port.name, fates
        self.lag_ns, self.slack_ns = lag_ns, slack_ns
        self.clear()

    @abstractmethod
    def clear(self) -> None:
        """Forget all samples."""

    @abstractmethod
    def arrive(self, t_ns: int, value: Any) -> None:
        """Take a sample."""

    @abstractmethod
    def capture(self) -> Any:
        """Return what a firing takes in its trigger's wave: a value, `Refused`, or itself to ask later."""

    @abstractmethod
    def end(self) -> None:
        """Give the samples that are left a fate."""

    @abstractmethod
    def freeze(self) -> Any:
        """Return its state; samples themselves are not copied, nodes do not change what they get."""

    @abstractmethod
    def thaw(self, state: Any) -> None:
        """Take back a state."""

    def _count(self, fate: str) -> None:
        self.fates[self.name, fate] += 1


class LaterInbox(Inbox):
    """One that is asked when the firing's turn comes, and may have to wait even then."""

    __slots__ = ()

    def capture(self) -> Any:
        return self

    @abstractmethod
    def resolve(self, trigger_ns: int, now_ns: int, ended: bool) -> Any:
        """Return what a firing takes: a value, `Refused` or `Waiting`."""


class TriggerInbox(Inbox):
    """The newest sample that was not used yet."""

    __slots__ = ("sample",)

    def clear(self) -> None:
        self.sample: tuple[int, Any] | None = None

    def arrive(self, t_ns: int, value: Any) -> None:
        if self.sample is not None:
            self._count(SAME_TIME if self.sample[0] == t_ns else UNPAIRED)
        self.sample = (t_ns, value)

    def capture(self) -> Any:
        assert self.sample is not None, "a node fires when every trigger has a sample"
        value, self.sample = self.sample[1], None
        return value

    def end(self) -> None:
        if self.sample is not None:
            self._count(UNPAIRED)
            self.sample = None

    def freeze(self) -> Any:
        return self.sample

    def thaw(self, state: Any) -> None:
        self.sample = state


class LatestInbox(Inbox):
    """The newest sample, however often it was used."""

    __slots__ = ("sample", "used")

    def clear(self) -> None:
        self.sample: tuple[int, Any] | None = None
        self.used = False

    def arrive(self, t_ns: int, value: Any) -> None:
        self._leave(SUPERSEDED)
        self.sample, self.used = (t_ns, value), False

    def capture(self) -> Any:
        if self.sample is None:
            return Refused(f"waiting for {self.name}") if self.port.needed else self.port.default
        self.used = True
        return self.sample[1]

    def end(self) -> None:
        self._leave(LEFT_OVER)

    def _leave(self, unused: str) -> None:
        if self.sample is not None:
            self._count(USED if self.used else unused)
            self.sample = None

    def freeze(self) -> Any:
        return self.sample, self.used

    def thaw(self, state: Any) -> None:
        self.sample, self.used = state


class BatchInbox(LaterInbox):
    """Everything since the last firing, up to the trigger's time.

    Attributes
    ----------
    older : bool
        Without what has the trigger's own time: the trigger comes from the same source.
    """

    __slots__ = ("older", "samples")
    turn = 2

    def clear(self) -> None:
        self.samples: list[tuple[int, Any]] = []

    def arrive(self, t_ns: int, value: Any) -> None:
        self.samples.append((t_ns, value))

    def resolve(self, trigger_ns: int, now_ns: int, ended: bool) -> Any:
        last_ns = trigger_ns - self.older
        taken = [value for t_ns, value in self.samples if t_ns <= last_ns]
        self.samples = [sample for sample in self.samples if sample[0] > last_ns]
        self.fates[self.name, USED] += len(taken)
        return taken

    def end(self) -> None:
        if self.samples:
            self.fates[self.name, LEFT_OVER] += len(self.samples)
            self.samples = []

    def freeze(self) -> Any:
        return list(self.samples)

    def thaw(self, state: Any) -> None:
        self.samples = list(state)


class SyncedInbox(LaterInbox):
    """The nearest sample within a tolerance of the trigger, each once."""

    __slots__ = ("samples", "within_ns")
    turn = 1

    def __init__(self, port: Port, fates: Counter[tuple[str, str]], lag_ns: int, slack_ns: int) -> None:
        assert isinstance(port.policy, Synced)
        self.within_ns = round(port.policy.seconds * NS)
        super().__init__(port, fates, lag_ns, slack_ns)

    def clear(self) -> None:
        self.samples: deque[tuple[int, Any]] = deque()

    def arrive(self, t_ns: int, value: Any) -> None:
        self.samples.append((t_ns, value))
        self._forget(t_ns - self.within_ns - self.slack_ns)

    def _forget(self, before_ns: int) -> None:
        """Drop what no trigger can want any more."""
        samples = self.samples
        while samples and samples[0][0] < before_ns:
            samples.popleft()
            self._count(UNMATCHED)

    def resolve(self, trigger_ns: int, now_ns: int, ended: bool) -> Any:
        samples, within = self.samples, self.within_ns
        self._forget(trigger_ns - within)
        deadline = trigger_ns + within + self.lag_ns
        decided = ended or now_ns > deadline or any(t >= trigger_ns for t, _ in samples)
        if not decided:
            return Waiting(deadline)
        best = min(samples, key=lambda s: (abs(s[0] - trigger_ns), s[0]), default=None)
        if best is None or abs(best[0] - trigger_ns) > within:
            if self.port.needed:
                return Refused(f"no {self.name} within {within / NS:g} s")
            return self.port.default
        samples.remove(best)
        self._count(USED)
        return best[1]

    def end(self) -> None:
        if self.samples:
            self.fates[self.name, UNMATCHED] += len(self.samples)
            self.samples.clear()

    def freeze(self) -> Any:
        return tuple(self.samples)

    def thaw(self, state: Any) -> None:
        self.samples = deque(state)


class AtInbox(LaterInbox):
    """Interpolated to the trigger's time, once the next sample is there."""

    __slots__ = ("horizon_ns", "samples")

    def clear(self) -> None:
        self.samples: deque[tuple[int, Any, bool]] = deque()

    def arrive(self, t_ns: int, value: Any) -> None:
        if self.samples and t_ns < self.samples[-1][0]:
            self._count(OUT_OF_ORDER)
            return
        self.samples.append((t_ns, value, False))
        self._forget(t_ns - self.slack_ns)

    def _forget(self, before_ns: int) -> None:
        """Drop what lies before the last sample up to a time."""
        samples = self.samples
        while len(samples) > 1 and samples[1][0] <= before_ns:
            self._count(USED if samples.popleft()[2] else NOT_NEEDED)

    def resolve(self, trigger_ns: int, now_ns: int, ended: bool) -> Any:
        samples = self.samples
        self._forget(trigger_ns)
        if not samples or samples[-1][0] < trigger_ns:
            deadline = trigger_ns + self.horizon_ns + self.lag_ns
            if not ended and now_ns <= deadline:
                return Waiting(deadline)
            return Refused(f"no {self.name} after it")
        before_ns, before, _ = samples[0]
        if before_ns > trigger_ns:
            return Refused(f"no {self.name} before it")
        samples[0] = (before_ns, before, True)
        if before_ns == trigger_ns:
            return before
        after_ns, after, _ = samples[1]
        samples[1] = (after_ns, after, True)
        return interpolate(before, after, (trigger_ns - before_ns) / (after_ns - before_ns), trigger_ns)

    def end(self) -> None:
        for _, _, used in self.samples:
            self._count(USED if used else NOT_NEEDED)
        self.samples.clear()

    def freeze(self) -> Any:
        return tuple(self.samples)

    def thaw(self, state: Any) -> None:
        self.samples = deque(state)


def inbox_for(
    port: Port,
    triggers: bool,
    fates: Counter[tuple[str, str]],
    lags: tuple[int, int],
    horizon_ns: int,
    held: bool = False,
) -> Inbox:
    """Return the inbox of a port; a `T` that does not trigger here is taken as `Latest`.

    Parameters
    ----------
    lags : (int, int)
        Of the port's channel, and of the node's triggers, in ns.
    horizon_ns : int
        The reorder horizon.
    held : bool
        Whether its wire holds each sample back until the next one.
    """
    policy = port.policy
    if triggers:
        return TriggerInbox(port, fates, *lags)
    if isinstance(policy, Synced):
        return SyncedInbox(port, fates, *lags)
    if isinstance(policy, AtPolicy):
        inbox = AtInbox(port, fates, *lags)
        inbox.horizon_ns = horizon_ns
        return inbox
    if isinstance(policy, BatchPolicy):
        inbox = BatchInbox(port, fates, *lags)
        inbox.older = held
        return inbox
    return LatestInbox(port, fates, *lags)


SAMPLED = (Pose, RigidBodyState, Odometry, Twist, Imu, Wrench, NavFix)
"""Types made of numbers that change steadily: `orientation` goes along the sphere, `attitude` the shorter way
round, everything else straight."""


def check_interpolable(kind: type, owner: str) -> None:
    """Refuse a type between whose samples there is nothing."""
    if not issubclass(kind, (*SAMPLED, float, int, np.ndarray)) or kind is bool:
        raise PortError(
            f"{owner}: {type_name(kind)} cannot be interpolated",
            why="At[T] takes numbers, arrays, " + ", ".join(type_name(k) for k in SAMPLED),
            hint=f"Latest[{type_name(kind)}], or Synced",
        )


def interpolate(before: Any, after: Any, part: float, t_ns: int) -> Any:
    """Return the value a part (0 to 1) of the way from one sample to the next; `t_ns` is its time."""
    if isinstance(before, float | int):
        return before + (after - before) * part
    if isinstance(before, np.ndarray):
        return _straight(before, after, part)
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(before):
        a, b = getattr(before, field.name), getattr(after, field.name)
        if field.name == "orientation" and a is not None and b is not None:
            changes[field.name] = slerp(a, b, part)
        elif field.name == "attitude" and a is not None and b is not None:
            changes[field.name] = a + (np.mod(b - a + np.pi, 2 * np.pi) - np.pi) * part
        elif field.name == "t_ns":
            changes[field.name] = t_ns
        elif (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)) or isinstance(a, float):
            changes[field.name] = None if b is None else _straight(a, b, part)
    return dataclasses.replace(before, **changes)


def _straight(a: Any, b: Any, part: float) -> Any:
    return a + (b - a) * part
