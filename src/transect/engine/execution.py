"""Execution of nodes: when a node runs in a wave, its inputs, and its results.

A node with one trigger and nothing but `Latest` beside it reads its channels directly (`Direct`); all others
keep inboxes (`Buffered`). Both take one step per wave that can reach them, in topological order.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from traceback import extract_tb
from typing import Any, Protocol

from transect.errors import TransectError

from .determinism import opencv_seed, seed_libraries
from .digest import PortDigest
from .graph import PlacedNode
from .inboxes import (
    AFTER_FAILURE,
    LEFT_OVER,
    SAME_TIME,
    SKIPPED,
    SUPERSEDED,
    USED,
    Inbox,
    LaterInbox,
    Refused,
    TriggerInbox,
    Waiting,
)
from .nodes import Node, describe
from .ports import LatestPolicy, Port, PortError, is_outputs
from .statistics import SHORT_NS, NodeCount, bucket_of, short_buckets

Tap = Callable[[int, Any], None]
Emit = Callable[[int, int, Any], None]
"""Called with the wave's number, the time and the value."""


class Channels:
    """The newest sample of every stream and output port; one number each.

    Attributes
    ----------
    values, times, fresh, counts : list
        By channel: newest value, its time (ns), the wave that brought it (0 for none), how many there were.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.index = {name: number for number, name in enumerate(names)}
        self.values: list[Any] = [None] * len(names)
        self.times, self.fresh, self.counts = ([0] * len(names) for _ in range(3))

    def put(self, wave: int, t_ns: int, channel: int, value: Any) -> None:
        """Take a sample."""
        self.values[channel] = value
        self.times[channel] = t_ns
        self.fresh[channel] = wave
        self.counts[channel] += 1

    def freeze(self) -> Any:
        """Return copies of the lists; the values are shared."""
        return [list(part) for part in (self.values, self.times, self.fresh, self.counts)]

    def thaw(self, state: Any) -> None:
        """Take back a state, into the same lists: steps hold them."""
        for part, saved in zip((self.values, self.times, self.fresh, self.counts), state, strict=True):
            part[:] = saved


class NodeOutput:
    """One output port.

    Attributes
    ----------
    digest : PortDigest
        Of everything emitted.
    taps : list of callable
        Called with (time, value) of everything emitted.
    """

    def __init__(self, part: PlacedNode, port: Port, channels: Channels, hashed: bool = True) -> None:
        self.port, self.channels = port, channels
        self.name = f"{part.id}.{port.name}"
        self.channel = channels.index[self.name]
        self.digest = PortDigest(port.type, idle=not hashed)
        self.taps: list[Tap] = []

    def emitter(self) -> Emit:
        """Return the function that emits a value."""
        values, times = self.channels.values, self.channels.times
        fresh, counts = self.channels.fresh, self.channels.counts
        channel, port, taps, update = self.channel, self.port, self.taps, self.digest.update
        expected = port.type if port.shape is None else None  # a shape is looked at every time

        def emit(wave: int, t_ns: int, value: Any) -> None:
            if value.__class__ is not expected and not port.carries(value):
                raise PortError(f"{self.name} cannot give {describe(value)}", why=f"expected {port.expected}")
            update(t_ns, value)
            values[channel] = value
            times[channel] = t_ns
            fresh[channel] = wave
            counts[channel] += 1
            for tap in taps:
                tap(t_ns, value)

        return emit


def emission(part: PlacedNode, outlets: Sequence[NodeOutput]) -> Emit:
    """Return what is done with a result that is not None."""
    if not outlets:
        return _refusal(part)
    emits = {outlet.port.name: outlet.emitter() for outlet in outlets}
    return _bundle(part, emits) if part.node.bundled else next(iter(emits.values()))


def _refusal(part: PlacedNode) -> Emit:
    def refuse(wave: int, t_ns: int, value: Any) -> None:
        raise PortError(f"{part.id} returned {describe(value)}", why="it says that it returns nothing")

    return refuse


def _bundle(part: PlacedNode, emits: dict[str, Emit]) -> Emit:
    """A field left None emits nothing."""

    def emit_fields(wave: int, t_ns: int, value: Any) -> None:
        if not is_outputs(value.__class__):
            expected = f"expected the outputs {', '.join(emits)}"
            raise PortError(f"{part.id} returned {describe(value)}", why=expected)
        for name, emit in emits.items():
            field = getattr(value, name)
            if field is not None:
                emit(wave, t_ns, field)

    return emit_fields


Step = Callable[[int, int], None]
"""Called with the wave's number and time; does nothing if the wave brings nothing for the node."""
TICK = "tick"
"""Named in errors in place of the port, for a node that runs by the clock."""
_MEASURED_CALLS, _CPU_SAMPLING_MASK = 16, 63
"""CPU time is measured in the first calls, then in one of 64: measuring costs more than a small node."""


class NodeError(TransectError):
    """A node failed; it is not called again, the rest of the run goes on.

    Attributes
    ----------
    node, port : str
        Its id, and the input whose sample made it run.
    t_ns : int
        Of that sample.
    """

    def __init__(self, part: PlacedNode, port: str, t_ns: int, error: Exception) -> None:
        self.node, self.port, self.t_ns = part.id, port, t_ns
        message = error.what if isinstance(error, TransectError) else f"{type(error).__name__}: {error}"
        super().__init__(
            f"the node {part.id!r} ({type(part.node).__name__}) failed: {message}",
            where=f"{part.id}.{port}@{t_ns} ns{_line_in(part.node, error)}",
            why=getattr(error, "why", ""),
            hint=getattr(error, "hint", ""),
        )


def _line_in(node: Node, error: Exception) -> str:
    """Return the last line of the node's own file that an error went through; "" if it went through none."""
    file = getattr(sys.modules.get(type(node).__module__), "__file__", None)
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
    return f", {Path(file).name}:{lines[-1]}" if file and lines else ""


class Host(Protocol):
    """What a firing needs of the flow around it."""

    ended: bool

    def failed(self, error: NodeError) -> None:
        """Record the failure of a node."""
        ...

    def again(self, part_id: str) -> None:
        """Run another wave at this time, for a node that can fire again."""
        ...

    def wake(self, part_id: str, deadline_ns: int) -> None:
        """Run the node once that time has passed."""
        ...


class Caller:
    """Calls a node's `process`: counted, timed, from OpenCV's first random number; its result is emitted."""

    def __init__(self, part: PlacedNode, count: NodeCount, emit: Emit, host: Host) -> None:
        self.part, self.count, self.emit, self.host = part, count, emit, host
        self.process = part.node.bind()
        self.ctx = part.node.ctx
        self.failed = False

    def __call__(self, wave: int, now_ns: int, trigger_ns: int, port: str, args: list[Any]) -> None:
        """Run the node on its inputs (by position) for a trigger."""
        count, self.ctx.time = self.count, trigger_ns
        count.calls += 1
        if now_ns != trigger_ns:
            count.age.add(max(now_ns - trigger_ns, 0))
        seed_libraries()
        sampled = count.calls <= _MEASURED_CALLS or not count.calls & _CPU_SAMPLING_MASK
        cpu = thread_time_ns() if sampled else 0
        begin = perf_counter_ns()
        try:
            result = self.process(*args)
            count.wall.add(perf_counter_ns() - begin)
            if sampled:
                count.cpu.add(thread_time_ns() - cpu)
            if result is not None:
                self.emit(wave, trigger_ns, result)
        except Exception as error:  # noqa: BLE001 - any exception of a node is reported as its failure
            self.fail(port, trigger_ns, error)

    def fail(self, port: str, trigger_ns: int, error: Exception) -> None:
        """Report a failure, its cause kept."""
        self.failed = True
        failure = NodeError(self.part, port, trigger_ns, error)
        failure.__cause__ = error
        self.host.failed(failure)


class Direct:
    """A node with one trigger, and perhaps `Latest` ports, all fed in the same wave: no inboxes needed."""

    def __init__(self, part: PlacedNode, caller: Caller, channels: Channels) -> None:
        self.part, self.caller, self.channels, self.count = part, caller, channels, caller.count
        self.names = list(part.node.inputs)
        trigger = next(n for n in part.feeds if part.is_trigger(part.node.inputs[n]))
        self.trigger, self.channel = trigger, channels.index[part.feeds[trigger].source]
        self.latest = {
            name: channels.index[feed.source] for name, feed in part.feeds.items() if name != trigger
        }
        self.used = dict.fromkeys(self.latest, 0)
        self.seen = dict.fromkeys(self.latest, 0)
        self.fired = self.refused = 0

    @staticmethod
    def fits(part: PlacedNode) -> bool:
        """Return whether a node can be run this way."""
        if part.every_ns is not None or any(feed.delayed for feed in part.feeds.values()):
            return False
        ports = [part.node.inputs[name] for name in part.feeds]
        others = [port for port in ports if not part.is_trigger(port)]
        return len(ports) == len(others) + 1 and all(
            isinstance(p.policy, LatestPolicy) or p.policy.triggers for p in others
        )

    def step(self) -> Step:
        """Return the step, specialised for a node with a single input."""
        return self._one_input() if self.names == [self.trigger] else self._many_inputs()

    def _one_input(self) -> Step:
        channel, channels, count, caller = self.channel, self.channels, self.count, self.caller
        values, times, fresh = channels.values, channels.times, channels.fresh
        process, ctx, emit, call, port = caller.process, caller.ctx, caller.emit, caller, self.trigger
        buckets, wall, clock, modules = count.wall.buckets, count.wall, perf_counter_ns, sys.modules
        short, seed = short_buckets(), opencv_seed()

        def step(wave: int, now_ns: int) -> None:
            nonlocal seed
            if fresh[channel] != wave:
                return
            calls = count.calls
            trigger_ns = times[channel]
            if calls < _MEASURED_CALLS or not (calls + 1) & _CPU_SAMPLING_MASK or trigger_ns != now_ns:
                call(wave, now_ns, trigger_ns, port, [values[channel]])
                return
            # From here on `Caller.__call__`, written out: this is the engine's hot path.
            count.calls, ctx.time = calls + 1, trigger_ns
            if seed is not None or ("cv2" in modules and (seed := opencv_seed()) is not None):
                seed(0)
            begin = clock()
            try:
                result = process(values[channel])
                spent = clock() - begin
                buckets[short[spent] if spent < SHORT_NS else bucket_of(spent)] += 1
                wall.total += spent
                if spent > wall.largest:
                    wall.largest = spent
                if result is not None:
                    emit(wave, trigger_ns, result)
            except Exception as error:  # noqa: BLE001 - any exception of a node is reported as its failure
                call.fail(port, trigger_ns, error)

        return step

    def _many_inputs(self) -> Step:
        channels, part, caller, seen, used = self.channels, self.part, self.caller, self.seen, self.used
        values, times, fresh, trigger = channels.values, channels.times, channels.fresh, self.channel
        ports = [(n, self.latest.get(n, trigger if n == self.trigger else -1)) for n in self.names]
        inputs = part.node.inputs

        def step(wave: int, now_ns: int) -> None:
            if fresh[trigger] != wave:
                return
            args: list[Any] = []
            for name, channel in ports:
                if channel >= 0 and fresh[channel]:
                    args.append(values[channel])
                    if channel != trigger and seen[name] != fresh[channel]:
                        seen[name] = fresh[channel]
                        used[name] += 1
                elif inputs[name].needed:
                    self.refused += 1
                    self.count.skipped[f"waiting for {name}"] += 1
                    return
                else:
                    args.append(inputs[name].default)
            caller(wave, now_ns, times[trigger], self.trigger, args)

        return step

    def end(self) -> None:
        """Count what happened to every sample that reached the node."""
        fates, arrived = self.count.samples, self.channels.counts
        ran = self.count.calls
        others = AFTER_FAILURE if self.caller.failed else SAME_TIME
        for fate, number in (
            (USED, ran),
            (SKIPPED, self.refused),
            (others, arrived[self.channel] - ran - self.refused),
        ):
            if number:
                fates[self.trigger, fate] = number
        for name, channel in self.latest.items():
            left = int(self.channels.fresh[channel] != self.seen[name])
            unused = arrived[channel] - self.used[name] - left
            for fate, number in ((USED, self.used[name]), (SUPERSEDED, unused), (LEFT_OVER, left)):
                if number:
                    fates[name, fate] = number

    def freeze(self) -> Any:
        """Return its state."""
        return dict(self.used), dict(self.seen), self.refused

    def thaw(self, state: Any) -> None:
        """Take back a state."""
        used, seen, self.refused = state
        self.used.update(used)
        self.seen.update(seen)


class _Pending:
    """A firing that waits for some of its inputs."""

    __slots__ = ("args", "open", "port", "trigger_ns")

    def __init__(self, trigger_ns: int, port: str, args: list[Any], waiting: list[int]) -> None:
        self.trigger_ns, self.port, self.args, self.open = trigger_ns, port, args, waiting

    def copy(self) -> _Pending:
        return _Pending(self.trigger_ns, self.port, list(self.args), list(self.open))


class Buffered:
    """A node whose ports keep inboxes: several triggers, a policy that waits, a delayed wire, or a period.

    Parameters
    ----------
    inboxes : list of Inbox or None
        By input, None where nothing feeds it.
    """

    def __init__(
        self, part: PlacedNode, caller: Caller, channels: Channels, inboxes: list[Inbox | None]
    ) -> None:
        self.part, self.caller, self.count, self.host = part, caller, caller.count, caller.host
        self.inboxes = inboxes
        self.triggers = [box for box in inboxes if isinstance(box, TriggerInbox)]
        self.channels = channels
        self.direct = [
            (channels.index[part.feeds[box.name].source], box)
            for box in inboxes
            if box is not None and not part.feeds[box.name].delayed
        ]
        self.queue: deque[_Pending] = deque()
        self.tick_ns: int | None = None

    def step(self) -> Step:
        """Return the step."""
        fresh, times, values = self.channels.fresh, self.channels.times, self.channels.values

        def step(wave: int, now_ns: int) -> None:
            for channel, box in self.direct:
                if fresh[channel] == wave:
                    box.arrive(times[channel], values[channel])
            self._trigger()
            if self.queue:
                self._fire(wave, now_ns)

        return step

    def _trigger(self) -> None:
        """Queue a firing if the wave brought what the node waits for."""
        if self.tick_ns is not None:
            trigger_ns, port, self.tick_ns = self.tick_ns, TICK, None
        elif self.triggers and all(box.sample is not None for box in self.triggers):
            newest = max(self.triggers, key=lambda box: box.sample[0] if box.sample else 0)
            assert newest.sample is not None
            trigger_ns, port = newest.sample[0], newest.name
        else:
            return
        args = [
            box.capture() if box is not None else port.default
            for box, port in zip(self.inboxes, self.part.node.inputs.values(), strict=True)
        ]
        if refusal := next((a for a in args if isinstance(a, Refused)), None):
            self._skip(refusal.reason)
            return
        waiting = [k for k, arg in enumerate(args) if isinstance(arg, LaterInbox)]
        waiting.sort(key=lambda k: args[k].turn)
        self.queue.append(_Pending(trigger_ns, port, args, waiting))

    def _skip(self, reason: str) -> None:
        self.count.skipped[reason] += 1
        for box in self.triggers:
            self.count.samples[box.name, SKIPPED] += 1

    def _fire(self, wave: int, now_ns: int) -> None:
        """Run the oldest firing whose inputs are all there; at most one per wave."""
        while self.queue:
            head = self.queue[0]
            answer = self._resolve(head, now_ns)
            if isinstance(answer, Waiting):
                self.host.wake(self.part.id, answer.deadline_ns)
                return
            self.queue.popleft()
            if isinstance(answer, Refused):
                self._skip(answer.reason)
                continue
            for box in self.triggers:
                self.count.samples[box.name, USED] += 1
            if self.queue:
                self.host.again(self.part.id)
            self.caller(wave, now_ns, head.trigger_ns, head.port, head.args)
            return

    def _resolve(self, firing: _Pending, now_ns: int) -> Waiting | Refused | None:
        """Fill in what a firing waits for; None if all is there."""
        while firing.open:
            k = firing.open[0]
            box = self.inboxes[k]
            assert isinstance(box, LaterInbox)
            answer = box.resolve(firing.trigger_ns, now_ns, self.host.ended)
            if isinstance(answer, Waiting | Refused):
                return answer
            firing.args[k] = answer
            del firing.open[0]
        return None

    def deliver(self, port: str, t_ns: int, value: Any) -> None:
        """Take a sample of a delayed wire, or one that shares its time with the next."""
        next(box for box in self.inboxes if box is not None and box.name == port).arrive(t_ns, value)

    def end(self) -> None:
        """Count what happened to every sample that reached the node."""
        for box in self.inboxes:
            if box is None:
                continue
            box.end()
            arrived = self.channels.counts[self.channels.index[self.part.feeds[box.name].source]]
            known = sum(n for (port, _), n in self.count.samples.items() if port == box.name)
            if self.caller.failed and arrived > known:
                self.count.samples[box.name, AFTER_FAILURE] += arrived - known

    def freeze(self) -> Any:
        """Return its state."""
        boxes = [box.freeze() if box is not None else None for box in self.inboxes]
        return boxes, [firing.copy() for firing in self.queue]

    def thaw(self, state: Any) -> None:
        """Take back a state."""
        boxes, queue = state
        for box, kept in zip(self.inboxes, boxes, strict=True):
            if box is not None:
                box.thaw(kept)
        self.queue = deque(firing.copy() for firing in queue)
