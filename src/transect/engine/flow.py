"""Flow: execution of a graph. Samples come in waves of equal time; a wave runs each node at most once.

The order of steps is fixed when the flow is made: a wave is a loop over the nodes that it can reach, in
topological order, so a node that two branches lead to sees both fresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transect.errors import TransectError

from .context import NodeEnvironment
from .determinism import seed_libraries
from .digest import digest_of_ports
from .execution import Buffered, Caller, Channels, Direct, NodeError, NodeOutput, Step, Tap, emission
from .graph import Graph, PlacedNode, downstream, inboxes_of, lags, never_paired
from .inboxes import LEFT_OVER, NS
from .ports import LatestPolicy
from .statistics import NodeCount, NodeStatistics, size_of

NEVER_NS = 1 << 62
MAX_SILENT_TICKS = 10_000
"""Maximum periods that run during a gap of all inputs; further ones are skipped."""
REORDER_NS = NS // 2
"""Default reorder horizon: a sample is late if it is older than the newest one by more."""


@dataclass
class Schedule:
    """When nodes run that do not wait for a sample: by a period, or after a deadline."""

    first_ns: int = -NEVER_NS  # of the first wave
    coming_ns: int = -NEVER_NS  # of the wave that is about to come
    ticks: dict[str, int] = field(default_factory=dict[str, int])  # by node: when its next period ends
    wakes: dict[str, int] = field(default_factory=dict[str, int])  # by node: when a waiting firing gives up

    def next_ns(self) -> int:
        """Return the next time at which something is due."""
        return min([NEVER_NS, *self.ticks.values(), *self.wakes.values()])

    def take_due(self, t_ns: int) -> list[str]:
        """Remove the deadlines up to a time, and return their nodes."""
        due = [name for name, deadline in self.wakes.items() if deadline <= t_ns]
        for name in due:
            del self.wakes[name]
        return due

    def clear(self) -> None:
        """Forget all periods and deadlines."""
        self.ticks.clear()
        self.wakes.clear()


@dataclass
class DelayedSamples:
    """Samples on delayed wires that were not delivered yet."""

    pending: list[tuple[str, str, int, Any]] = field(default_factory=list[tuple[str, str, int, Any]])
    """Node, port, time (ns) and value, delivered in the next wave."""
    held: dict[tuple[str, str], tuple[int, Any]] = field(
        default_factory=dict[tuple[str, str], tuple[int, Any]]
    )
    """By node and port: time and value, delivered with the next sample of the source."""


class Flow:
    """A graph that takes samples.

    Parameters
    ----------
    reorder_ns : int
        For how long `At` waits for the next sample.
    late : mapping, optional
        By channel, by how much (ns) its samples may come after their time; if it is part of another graph.

    Attributes
    ----------
    errors : list of TransectError
        Of nodes that failed, or never could run.
    now_ns : int
        Time of the newest wave.
    """

    def __init__(
        self,
        graph: Graph,
        around: NodeEnvironment | None = None,
        *,
        reorder_ns: int = REORDER_NS,
        late: Mapping[str, int] | None = None,
    ) -> None:
        self.graph, self.around, self.reorder_ns = graph, around or NodeEnvironment(), reorder_ns
        parts = graph.parts.values()
        self.channels = Channels([*graph.inputs, *(name for part in parts for name, _ in part.channels())])
        self.counts = {part.id: NodeCount() for part in parts}
        self.outlets = {
            name: NodeOutput(part, port, self.channels, self.around.hashed)
            for part in parts
            for name, port in part.channels()
        }
        self._lags = late if late is not None else lags(graph, reorder_ns)
        for part in parts:
            part.node.ctx = self.around.context_of(part, self.counts[part.id])
        self.firings = {part.id: self._firing(part) for part in parts}
        self._steps = {name: firing.step() for name, firing in self.firings.items()}
        self._source_taps: dict[int, list[Tap]] = {}
        self._plans: dict[Any, tuple[Step, ...]] = {}
        self._delayed = DelayedSamples()
        self._tap_delayed_wires()
        self._downstream = downstream(graph)
        self.errors: list[TransectError] = []
        self.ended = False
        self.now_ns = -NEVER_NS
        self._schedule = Schedule()
        self._wave = 0
        self._alarm_ns = -NEVER_NS
        """Until then a wave needs nothing but its steps: no period ends, no firing gives up."""
        self._again: set[str] = set()

    def _firing(self, part: PlacedNode) -> Direct | Buffered:
        emit = emission(part, [self.outlets[name] for name, _ in part.channels()])
        caller = Caller(part, self.counts[part.id], emit, self)
        if Direct.fits(part):
            return Direct(part, caller, self.channels)
        return Buffered(
            part, caller, self.channels, inboxes_of(part, caller.count, self._lags, self.reorder_ns)
        )

    def _tap_delayed_wires(self) -> None:
        for part in self.graph.parts.values():
            for port, feed in part.feeds.items():
                if feed.delayed:
                    delay = self._holder if feed.held else self._delayer
                    self.tap(feed.source, delay(part.id, port))

    def _delayer(self, part_id: str, port: str) -> Tap:
        def delay(t_ns: int, value: Any) -> None:
            self._delayed.pending.append((part_id, port, t_ns, value))
            self._alarm_ns = -NEVER_NS  # the next wave must deliver it

        return delay

    def _holder(self, part_id: str, port: str) -> Tap:
        """Return a tap that hands over the sample before the one that comes."""

        def hold(t_ns: int, value: Any) -> None:
            before = self._delayed.held.get((part_id, port))
            self._delayed.held[part_id, port] = (t_ns, value)
            firing = self.firings[part_id]
            if before is not None and part_id in self._steps and isinstance(firing, Buffered):
                firing.deliver(port, *before)

        return hold

    def rebind(self) -> None:
        """Update steps after parameters were changed."""
        for name, firing in self.firings.items():
            firing.caller.process = firing.part.node.bind()
            if name in self._steps:
                self._steps[name] = firing.step()
        self._plans.clear()

    def tap(self, channel: str, tap: Tap) -> None:
        """Call a function with (time in ns, value) of every sample of an input or output port."""
        if channel in self.outlets:
            self.outlets[channel].taps.append(tap)
        else:
            self._source_taps.setdefault(self.channels.index[channel], []).append(tap)
            self._plans.clear()  # taps of inputs are among the steps of a plan

    def push(self, t_ns: int, channel: int, value: Any) -> None:
        """Take one sample as a wave of its own.

        Parameters
        ----------
        t_ns : int
            Not before that of the wave before.
        channel : int
            Of an input: `channels.index[name]`.
        """
        if t_ns >= self._alarm_ns:
            self.wave(t_ns, [(channel, value)])
            return
        wave = self._wave = self._wave + 1
        self.now_ns = t_ns
        channels = self.channels  # from here on `Channels.put`, written out
        channels.values[channel] = value
        channels.times[channel] = t_ns
        channels.fresh[channel] = wave
        channels.counts[channel] += 1
        for step in self._plans.get(channel) or self._plan_for(channel):
            step(wave, t_ns)
        if self._again:
            self._run_again(t_ns)

    def wave(self, t_ns: int, samples: Sequence[tuple[int, Any]]) -> None:
        """Take all samples of one time, in the order of their streams' names: (channel, value)."""
        if self._schedule.first_ns == -NEVER_NS:
            self._start(t_ns)
        self._until(t_ns)
        self.now_ns = t_ns
        names = self._deliver()
        wave = self._wave = self._wave + 1
        latest = dict(samples)
        if len(latest) < len(samples):
            self._set_aside_same_times(t_ns, samples)
        for channel, value in latest.items():
            self.channels.put(wave, t_ns, channel, value)
        key = (tuple(sorted(latest)), names) if names else tuple(sorted(latest))
        for step in self._plans.get(key) or self._plan_for(key, sorted(latest), names):
            step(wave, t_ns)
        if self._again:
            self._run_again(t_ns)
        if self._alarm_ns <= t_ns:
            self._tick(t_ns)

    def _set_aside_same_times(self, t_ns: int, samples: Sequence[tuple[int, Any]]) -> None:
        """Hand over samples that share channel and time with a later one; a node runs once per wave."""
        newest = {channel: index for index, (channel, _) in enumerate(samples)}
        inputs = list(self.graph.inputs)
        for index, (channel, value) in enumerate(samples):
            if newest[channel] == index:
                continue
            self.channels.counts[channel] += 1
            for tap in self._source_taps.get(channel, ()):
                tap(t_ns, value)
            for part in self.graph.parts.values():
                firing = self.firings[part.id]
                for port, feed in part.feeds.items():
                    if isinstance(firing, Buffered) and feed.source == inputs[channel] and not feed.delayed:
                        firing.deliver(port, t_ns, value)

    def _plan_for(
        self, key: Any, channels: Iterable[int] = (), names: Iterable[str] = ()
    ) -> tuple[Step, ...]:
        """Return, and remember, the steps that samples on some channels, or nodes to be woken, lead to."""
        numbers = [key] if isinstance(key, int) else channels
        sources = list(self.channels.index)
        reached = {name for c in numbers for name in self._downstream[sources[c]]}
        reached |= {part for name in names for part in (name, *self._downstream[name])}
        taps = (tap for c in numbers for tap in self._tap_steps(c))
        plan = self._plans[key] = (*taps, *(step for name, step in self._steps.items() if name in reached))
        return plan

    def _tap_steps(self, channel: int) -> Iterator[Step]:
        """Return the taps of an input as steps: they come first, and cost nothing where there are none."""
        values = self.channels.values
        for tap in self._source_taps.get(channel, ()):
            yield lambda wave, t_ns, tap=tap: tap(t_ns, values[channel])

    def _deliver(self) -> tuple[str, ...]:
        """Hand over what delayed wires brought in the wave before; return the nodes that it may make run."""
        if not self._delayed.pending:
            return ()
        moved, self._delayed.pending = self._delayed.pending, []
        self._set_alarm()
        woken: set[str] = set()
        for name, port, t_ns, value in moved:
            firing = self.firings[name]
            assert isinstance(firing, Buffered)
            if name in self._steps:
                firing.deliver(port, t_ns, value)
                if not isinstance(firing.part.node.inputs[port].policy, LatestPolicy):
                    woken.add(name)
        return tuple(sorted(woken))

    def _run(self, names: Iterable[str], t_ns: int) -> None:
        """Run a wave without samples for some nodes and what follows them."""
        woken = tuple(sorted({*names, *self._deliver()} & self._steps.keys()))
        wave = self._wave = self._wave + 1
        key = ("woken", woken)
        for step in self._plans.get(key) or self._plan_for(key, (), woken):
            step(wave, t_ns)

    def _run_again(self, t_ns: int) -> None:
        while self._again:
            names, self._again = self._again, set()
            self._run(names, t_ns)

    def _start(self, t_ns: int) -> None:
        self._schedule.first_ns = t_ns
        periodic = [part.id for part in self.graph.parts.values() if part.every_ns is not None]
        self._schedule.ticks = dict.fromkeys(periodic, t_ns)
        self._set_alarm()

    def _set_alarm(self) -> None:
        self._alarm_ns = self._schedule.next_ns()

    def _until(self, t_ns: int) -> None:
        """Process the time before a wave: end of periods, and deadlines of waiting firings."""
        self._schedule.coming_ns = t_ns
        while self._alarm_ns < t_ns:
            at_ns = self._alarm_ns
            due = self._schedule.take_due(at_ns)
            self._set_alarm()
            if due:
                self._run(due, at_ns + 1)
                self._run_again(at_ns + 1)
            self._tick(at_ns)

    def _tick(self, t_ns: int) -> None:
        """Run the nodes whose period ends now, as one wave."""
        if due := self._begin_periods(t_ns):
            self._run(due, t_ns)
            self._run_again(t_ns)

    def _begin_periods(self, t_ns: int) -> list[str]:
        """Begin a new period for the nodes whose period ends now, and return them."""
        ticks = self._schedule.ticks
        due = [name for name, tick_ns in ticks.items() if tick_ns <= t_ns]
        for name in due:
            firing, period = self.firings[name], self.graph.parts[name].every_ns
            assert isinstance(firing, Buffered)
            assert period is not None
            firing.tick_ns = ticks[name]
            ticks[name] = self._next_tick(ticks[name], period)
        self._set_alarm()
        return due

    def _next_tick(self, tick_ns: int, period_ns: int) -> int:
        """Return when the next period ends. Those late in a long silence are left out, in whole periods."""
        next_ns = tick_ns + period_ns
        if next_ns - self.now_ns > MAX_SILENT_TICKS * period_ns:
            next_ns += max(0, self._schedule.coming_ns - next_ns) // period_ns * period_ns
        return next_ns

    def again(self, part_id: str) -> None:
        """Run another wave at this time, for a node that can fire again."""
        self._again.add(part_id)

    def wake(self, part_id: str, deadline_ns: int) -> None:
        """Run the node once that time has passed."""
        self._schedule.wakes[part_id] = deadline_ns
        self._alarm_ns = min(self._alarm_ns, deadline_ns)

    def failed(self, error: NodeError) -> None:
        """Remove a failed node from the flow."""
        self.errors.append(error)
        self._steps.pop(error.node, None)
        self._plans.clear()

    def adopt(self) -> None:
        """Let the nodes look at this flow, after another one of the same graph had them."""
        for firing in self.firings.values():
            firing.part.node.ctx = firing.caller.ctx

    def settle(self) -> None:
        """Wait until everything that was given has been run; here it always has."""

    def stop(self) -> None:
        """Run nothing more, for a run that is given up."""

    def end(self) -> None:
        """Let waiting firings take what there is, call every `finish`, and account for all samples."""
        self.ended = True
        self._schedule.clear()
        while waiting := [name for name, f in self.firings.items() if isinstance(f, Buffered) and f.queue]:
            waiting = [name for name in waiting if name in self._steps]
            if not waiting:
                break
            self._run(waiting, self.now_ns)
            self._run_again(self.now_ns)
        for part in self.graph.parts.values():
            self._finish(part)
        self._account()

    def _account(self) -> None:
        """Count what happened to every remaining sample."""
        for name, port in (
            *((name, port) for name, port, _, _ in self._delayed.pending),
            *self._delayed.held,
        ):
            self.counts[name].samples[port, LEFT_OVER] += 1
        for name, firing in self.firings.items():
            firing.end()
            if error := never_paired(firing.part, self.counts[name]):
                self.errors.append(error)
            self.counts[name].state_bytes = size_of(firing.part.node.freeze())

    def _finish(self, part: PlacedNode) -> None:
        """Emit what a node has left, at its last trigger's time, and let that wave run."""
        if part.id not in self._steps:
            return
        caller = self.firings[part.id].caller
        t_ns = part.node.ctx.time if caller.count.calls else self.now_ns
        wave = self._wave = self._wave + 1
        try:
            seed_libraries()
            result = part.node.finish()
            if result is not None:
                caller.emit(wave, t_ns, result)
        except Exception as error:  # noqa: BLE001 - any exception of a node is reported as its failure
            caller.fail("finish", t_ns, error)
            return
        if result is not None:
            key = ("after", part.id)
            for step in self._plans.get(key) or self._plan_after(key):
                step(wave, self.now_ns)
            self._run_again(self.now_ns)

    def _plan_after(self, key: tuple[str, str]) -> tuple[Step, ...]:
        downstream = self._downstream[key[1]]
        plan = self._plans[key] = tuple(step for name, step in self._steps.items() if name in downstream)
        return plan

    @property
    def port_digests(self) -> dict[str, str]:
        """The hash of everything that each output port emitted."""
        return {name: outlet.digest.hexdigest for name, outlet in self.outlets.items()}

    @property
    def digest(self) -> str:
        """One hash for all of them: same bytes in, same digest out."""
        return digest_of_ports(self.port_digests)

    @property
    def statistics(self) -> dict[str, NodeStatistics]:
        """Costs of each node, and counts of what happened to its samples."""
        return {name: NodeStatistics.of(count) for name, count in self.counts.items()}

    def freeze(self) -> Any:
        """Return the state of everything, so that the run can be taken up here again."""
        nodes = {name: part.node.freeze() for name, part in self.graph.parts.items()}
        times = {name: part.node.ctx.time for name, part in self.graph.parts.items()}
        return {
            "nodes": nodes,
            "times": times,
            "channels": self.channels.freeze(),
            "firings": {name: firing.freeze() for name, firing in self.firings.items()},
            "counts": {name: count.freeze() for name, count in self.counts.items()},
            "digests": {name: outlet.digest.freeze() for name, outlet in self.outlets.items()},
            "clock": (self.now_ns, self._schedule.first_ns, self._wave),
            "due": (dict(self._schedule.ticks), dict(self._schedule.wakes), list(self._delayed.pending)),
            "held": dict(self._delayed.held),
            "dead": [name for name in self.firings if name not in self._steps],
            "errors": list(self.errors),
        }

    def thaw(self, state: Any) -> None:
        """Take back a state that this flow, or one of the same graph, was in."""
        for name, part in self.graph.parts.items():
            part.node.thaw(state["nodes"][name])
            part.node.ctx.time = state["times"][name]
            self.firings[name].thaw(state["firings"][name])
            self.counts[name].thaw(state["counts"][name])
        for name, outlet in self.outlets.items():
            outlet.digest.thaw(state["digests"][name])
        self.channels.thaw(state["channels"])
        self.now_ns, self._schedule.first_ns, self._wave = state["clock"]
        ticks, wakes, delayed = state["due"]
        self._schedule.ticks, self._schedule.wakes = dict(ticks), dict(wakes)
        self._delayed = DelayedSamples(list(delayed), dict(state["held"]))
        for name in state["dead"]:
            self._steps.pop(name, None)
        self.errors = list(state["errors"])
        self._plans.clear()
        self._set_alarm()
