"""A flow on several threads: nodes that do not depend on each other run at once, with the same result.

The graph is cut into tasks: a node each, or nodes joined by delayed wires. Each runs one block of waves
after the other, when all tasks that it depends on have finished theirs; a few blocks run at a time. This is
a Kahn network: results of a task depend on its inputs, never on when they arrive. Waves are numbered in the
order of the whole flow, so that a task can run a wave when all tasks that it depends on have sent their
outputs of that wave, and its results are those of a flow on one thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transect.types import DepthMap, GridMap, Image, PointCloud

from .context import NodeEnvironment
from .determinism import one_openmp_thread
from .execution import Buffered
from .flow import NEVER_NS, REORDER_NS, Flow
from .graph import Graph, PlacedNode
from .ports import LatestPolicy

BLOCK_WAVES = 16
"""Waves that are processed together, unless one has large samples."""
MAX_CONCURRENT_BLOCKS = 6
"""Blocks between the first task and the last, which bounds the memory."""
LARGE_TYPES = (Image, PointCloud, DepthMap, GridMap)


@dataclass
class _Task:
    """Some nodes, the tasks that they wait for, and the blocks that came from these."""

    flow: TaskFlow
    before: set[int]
    after: set[int] = field(default_factory=set[int])
    blocks: dict[int, dict[int, Any]] = field(default_factory=dict[int, dict[int, Any]])
    done: int = 0
    busy: bool = False


SOURCE_TASK = -1


class ParallelFlow(Flow):
    """A flow whose nodes run on `jobs` threads; takes samples and gives results as a flow does."""

    def __init__(
        self,
        graph: Graph,
        around: NodeEnvironment | None = None,
        *,
        reorder_ns: int = REORDER_NS,
        jobs: int = 2,
    ) -> None:
        super().__init__(graph, around, reorder_ns=reorder_ns)
        groups = tasks_of(graph)
        ranks = {name: rank for rank, name in enumerate(graph.parts)}
        self._tasks = [_Task(self._task_flow(names, ranks, reorder_ns), set()) for names in groups]
        self._connect(groups)
        self.outlets = {name: o for task in self._tasks for name, o in task.flow.outlets.items()}
        self.counts = {name: task.flow.counts[name] for task in self._tasks for name in task.flow.counts}
        self._block: list[tuple[int, list[tuple[int, Any]]]] = []
        self._submitted = 0
        self._trouble: BaseException | None = None
        self._changed = threading.Condition()
        self._ready: deque[int] = deque()
        self._closing = False
        self._jobs, self._threads = jobs, list[threading.Thread]()

    def _task_flow(self, names: Sequence[str], ranks: Mapping[str, int], reorder_ns: int) -> TaskFlow:
        """Return the flow of one task: its inputs are the channels that come from elsewhere."""
        parts = {name: part for name, part in self.graph.parts.items() if name in names}
        own = {channel for part in parts.values() for channel, _ in part.channels()}
        kinds = dict(self.graph.inputs) | {
            channel: port for part in self.graph.parts.values() for channel, port in part.channels()
        }
        needed = [f.source for part in parts.values() for f in part.feeds.values() if f.source not in own]
        inputs = {name: kinds[name] for name in dict.fromkeys(needed)}
        used = {
            feed.source
            for part in self.graph.parts.values()
            if part.id not in parts
            for feed in part.feeds.values()
        }
        return TaskFlow(
            Graph(self.graph.name, inputs, parts), self.around, reorder_ns=reorder_ns,
            ranks=dict(ranks), given=sorted(own & used), late=self._lags,
        )  # fmt: skip

    def _connect(self, groups: Sequence[Sequence[str]]) -> None:
        home = {name: k for k, names in enumerate(groups) for name in names}
        for k, task in enumerate(self._tasks):
            sources = [c.rpartition(".")[0] for c in task.flow.graph.inputs if c not in self.graph.inputs]
            task.before = {SOURCE_TASK, *(home[name] for name in sources)}
            for other in task.before - {SOURCE_TASK}:
                self._tasks[other].after.add(k)

    def push(self, t_ns: int, channel: int, value: Any) -> None:
        """Take one sample as a wave of its own."""
        self.wave(t_ns, [(channel, value)])

    def wave(self, t_ns: int, samples: Sequence[tuple[int, Any]]) -> None:
        """Take all samples of one time; nodes run when a block of waves is complete."""
        self.now_ns = t_ns
        for channel, value in samples:
            self.channels.counts[channel] += 1
            for tap in self._source_taps.get(channel, ()):
                tap(t_ns, value)
        self._block.append((t_ns, list(samples)))
        if len(self._block) >= BLOCK_WAVES or any(isinstance(value, LARGE_TYPES) for _, value in samples):
            self._submit()

    def _submit(self) -> None:
        """Hand the block over, once there is room for it."""
        if not self._block:
            return
        block, self._block = self._block, []
        self._start_threads()
        with self._changed:
            while (
                self._submitted - min(task.done for task in self._tasks) >= MAX_CONCURRENT_BLOCKS
                and not self._trouble
            ):
                self._changed.wait()
            self._raise_trouble()
            self._give(SOURCE_TASK, self._submitted, block, range(len(self._tasks)))
            self._submitted += 1

    def _start_threads(self) -> None:
        """Start the threads with the first block: a flow that is never played has none."""
        if not self._threads:
            self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(self._jobs)]
            for thread in self._threads:
                thread.start()

    def _give(self, origin: int, number: int, block: Any, to: Iterable[int]) -> None:
        """Put a block in front of tasks; those that have all that they wait for can run."""
        for k in to:
            task = self._tasks[k]
            task.blocks.setdefault(number, {})[origin] = block
            self._look_at(k)

    def _look_at(self, k: int) -> None:
        task = self._tasks[k]
        if not task.busy and set(task.blocks.get(task.done, ())) == task.before:
            task.busy = True
            self._ready.append(k)
            self._changed.notify_all()

    def _work(self) -> None:
        """What each thread does."""
        with one_openmp_thread():
            self._run_tasks()

    def _run_tasks(self) -> None:
        """Run tasks that can, until there are no more."""
        while True:
            with self._changed:
                while not self._ready and not self._closing:
                    self._changed.wait()
                if not self._ready:
                    return
                k = self._ready.popleft()
                task = self._tasks[k]
                number = task.done
                blocks = task.blocks.pop(number)
            try:
                result = _advance(task.flow, self.graph, blocks)
            except BaseException as error:  # noqa: BLE001 - raised in the thread that plays
                with self._changed:
                    self._trouble = self._trouble or error
                    self._changed.notify_all()
                return
            with self._changed:
                task.done, task.busy = number + 1, False
                self._give(k, number, result, task.after)
                self._look_at(k)
                self._changed.notify_all()

    def settle(self) -> None:
        """Wait until everything that was given has been run."""
        self._submit()
        with self._changed:
            while min(task.done for task in self._tasks) < self._submitted and not self._trouble:
                self._changed.wait()
            self._raise_trouble()

    def _raise_trouble(self) -> None:
        if self._trouble is not None:
            raise self._trouble

    def end(self) -> None:
        """Run what is left, then the end of every task, in their order."""
        try:
            self.settle()
        finally:
            self.stop()
        given: dict[int, Parcel] = {}
        for k, task in enumerate(self._tasks):
            task.flow.now_ns = self.now_ns
            before = [given[other] for other in sorted(task.before - {SOURCE_TASK})]
            given[k] = task.flow.finish_up(_merge(before, task.flow))
        self._collect_errors()

    def _collect_errors(self) -> None:
        """Take over the errors of all tasks, in the order of time and graph."""
        ranks = {name: rank for rank, name in enumerate(self.graph.parts)}
        self.errors = sorted(
            (error for task in self._tasks for error in task.flow.errors),
            key=lambda e: (getattr(e, "t_ns", NEVER_NS), ranks.get(getattr(e, "node", ""), NEVER_NS)),
        )

    def stop(self) -> None:
        """Let the threads finish what is under way, and end them."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._collect_errors()

    def adopt(self) -> None:
        """Let the nodes look at this flow."""
        for task in self._tasks:
            task.flow.adopt()

    def rebind(self) -> None:
        """Take note of parameters that were changed."""
        self.settle()
        for task in self._tasks:
            task.flow.rebind()

    def freeze(self) -> Any:
        """Return the state of everything."""
        self.settle()
        return [task.flow.freeze() for task in self._tasks], self.now_ns, list(self.channels.counts)

    def thaw(self, state: Any) -> None:
        """Take back a state."""
        states, self.now_ns, counts = state
        self.channels.counts[:] = counts
        for task, kept in zip(self._tasks, states, strict=True):
            task.flow.thaw(kept)


def _advance(flow: TaskFlow, graph: Graph, blocks: Mapping[int, Any]) -> list[Parcel]:
    """Run one block of waves through a task; return a parcel for each wave."""
    names = list(graph.inputs)
    result: list[Parcel] = []
    for number, (t_ns, samples) in enumerate(blocks[SOURCE_TASK]):
        own = [(names[c], t_ns, value) for c, value in samples if names[c] in flow.graph.inputs]
        parcel = _merge([blocks[k][number] for k in sorted(blocks) if k != SOURCE_TASK], flow)
        if own:
            parcel.setdefault((MAIN, 0, 0), {}).setdefault(0, []).extend(own)
        result.append(flow.advance(t_ns, parcel))
    return result


def _merge(parcels: Iterable[Parcel], flow: TaskFlow) -> Parcel:
    """Put together what a task gets from several others, leaving out what is not for it."""
    merged: Parcel = {}
    for parcel in parcels:
        for place, repetitions in parcel.items():
            for number, samples in repetitions.items():
                mine: list[Sample] = [sample for sample in samples if sample[0] in flow.graph.inputs]
                if mine:
                    merged.setdefault(place, {}).setdefault(number, []).extend(mine)
    return merged


def can_run_in_parallel(graph: Graph) -> bool:
    """Return whether threads give the same result as one: no delayed wire may trigger a node.

    Which wave is the next one is known to the whole flow only.
    """
    return all(
        isinstance(part.node.inputs[port].policy, LatestPolicy) and not feed.held
        for part in graph.parts.values()
        for port, feed in part.feeds.items()
        if feed.delayed
    )


def tasks_of(graph: Graph) -> list[list[str]]:
    """Cut a graph into tasks, none before what it depends on; delayed wires hold their nodes together."""
    after: dict[str, set[str]] = {name: set() for name in graph.parts}
    for part in graph.parts.values():
        for feed in part.feeds.values():
            source = feed.source.rpartition(".")[0]
            if source in after:
                after[source].add(part.id)
                if feed.delayed:
                    after[part.id].add(source)
    reachable = {name: _reachable(name, after) for name in graph.parts}
    groups: dict[str, list[str]] = {}
    for name in graph.parts:
        cycle = {other for other in reachable[name] if name in reachable[other]} | {name}
        groups.setdefault(next(other for other in graph.parts if other in cycle), []).append(name)
    return _order(list(groups.values()), graph.parts)


def _reachable(name: str, after: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    open_names = [name]
    while open_names:
        for other in after[open_names.pop()] - found:
            found.add(other)
            open_names.append(other)
    return found


def _order(groups: list[list[str]], parts: Mapping[str, PlacedNode]) -> list[list[str]]:
    """Put groups in topological order."""
    from graphlib import TopologicalSorter

    home = {name: k for k, names in enumerate(groups) for name in names}
    sorter = TopologicalSorter[int]()
    for k, names in enumerate(groups):
        sources = [f.source.rpartition(".")[0] for name in names for f in parts[name].feeds.values()]
        sorter.add(k, *({home[s] for s in sources if s in home} - {k}))
    return [groups[k] for k in sorter.static_order()]


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
        if self._schedule.first_ns == -NEVER_NS:
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
        self._schedule.clear()
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
        if names or place in self._incoming or (self._delayed.pending and place[0] == MAIN):
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
        self._schedule.coming_ns = t_ns
        others = {place[1] for place in self._incoming if place[0] == BEFORE}
        while (at_ns := min([self._schedule.next_ns(), *others])) < t_ns:
            others.discard(at_ns)
            self._run_at((BEFORE, at_ns, WAKE), self._schedule.take_due(at_ns), at_ns + 1)
            self._run_ticks((BEFORE, at_ns, TICK), at_ns)

    def _run_ticks(self, place: Place, t_ns: int) -> None:
        self._run_at(place, self._begin_periods(t_ns), t_ns)
